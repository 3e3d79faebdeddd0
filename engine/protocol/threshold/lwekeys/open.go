package lwekeys

import (
	"context"
	"slices"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/table"
)

// opening opens rows of sharings through kings. Each king opens a slice of the rows: it receives
// the shares of the d parties that follow it in the roster, where d is the degree, and sends the
// values to all parties. The echo check compares these values.
type opening struct {
	*party
	name   string
	degree int
	mine   [][]uint64 // this party's shares, kept for the check
	opened [][]uint64
	// kept are the shares that this king received for its slice, by sender, except those of the
	// last sender, which follow from the values.
	kept map[int][][]uint64
	// lagrange are the weights of this king's share and of its senders' shares.
	lagrange map[int]kernel.Factor
}

func (p *party) opening(name string, degree int, mine, opened [][]uint64) *opening {
	o := &opening{
		party: p, name: name, degree: degree, mine: mine, opened: opened,
		kept: map[int][][]uint64{}, lagrange: map[int]kernel.Factor{},
	}
	p.openings = append(p.openings, o)
	return o
}

// Wipe erases this party's shares and those that it received.
func (o *opening) Wipe() {
	table.Wipe(o.mine)
	for _, rows := range o.kept {
		table.Wipe(rows)
	}
}

// quorum returns a king and its senders.
func (o *opening) quorum(king int) []int { return append([]int{king}, o.senders(king, o.degree)...) }

func (o *opening) sharesName() string { return "threshold/" + o.name + "/shares" }
func (o *opening) valuesName() string { return "threshold/" + o.name + "/values" }

// start sends this party's shares to the kings.
func (o *opening) start() round.Transition[*opening] {
	round.Own(o.Session, "threshold/shares", o)
	quorum := o.quorum(o.self)
	for k, l := range o.Lagrange(0, quorum) {
		o.lagrange[quorum[k]] = o.Factor(l)
	}
	from, to := o.slice(o.self, len(o.mine))
	for r := from; r < to; r++ {
		o.ScaleByVec(o.opened[r], o.mine[r], o.lagrange[o.self])
	}
	for _, i := range quorum[1:o.degree] {
		o.kept[i] = table.New(to-from, o.width)
	}
	var send []round.Message
	for king := range o.n {
		if d := o.distance(king, o.self); d == 0 || d > o.degree || o.frames(king) == 0 {
			continue
		}
		send = append(send, round.Message{To: round.Party(king), Name: o.sharesName(), Body: o.body(king, o.mine)})
	}
	return round.Next(round.Round[*opening](&crowned{o, make([]uint64, o.width), make([]uint64, o.width)}), send...)
}

// frames returns the number of frames of a king's slice.
func (o *opening) frames(king int) int {
	from, to := o.slice(king, len(o.mine))
	return o.framesOf(to - from)
}

// part is the content of a message: the rows of a king's slice.
type part struct {
	king int
	rows [][]uint64
}

// body returns a message with the rows of a king's slice.
func (o *opening) body(king int, rows [][]uint64) round.Body {
	from, to := o.slice(king, len(rows))
	content := &part{king, slices.Clone(rows[from:to])}
	return round.FramesOf(content, o.framesOf(to-from), func(p *part, f int) ([]byte, error) {
		first, last := o.span(f, to-from)
		return o.pack(make([]byte, 0, (last-first)*o.rowBytes), p.rows[first:last]), nil
	})
}

// want returns the want for the message of a king's slice.
func (o *opening) want(w round.Want, king int) round.Want {
	from, to := o.slice(king, len(o.mine))
	w.MaxFrames, w.MaxBytes, w.Stream = o.frames(king), int64(to-from)*int64(o.rowBytes), true
	return w
}

// each decodes a frame of a king's slice and calls f with each row and its index.
func (o *opening) each(from round.Party, king, index int, last bool, frame []byte, row []uint64, f func(r int)) error {
	start, end := o.slice(king, len(o.mine))
	first, stop := o.span(index, end-start)
	if last != (index == o.frames(king)-1) || len(frame) != (stop-first)*o.rowBytes {
		return round.Malformed(from, errFrame)
	}
	for k := range stop - first {
		if err := o.unpack(row, frame, k); err != nil {
			return round.Malformed(from, err)
		}
		f(start + first + k)
	}
	return nil
}

// crowned is a king that waits for shares.
type crowned struct {
	*opening
	row, room []uint64
}

func (r *crowned) Wants() (wants []round.Want) {
	if r.frames(r.self) == 0 {
		return nil
	}
	for _, i := range r.senders(r.self, r.degree) {
		wants = append(wants, r.want(round.Want{From: round.Party(i), Name: r.sharesName()}, r.self))
	}
	return wants
}

func (r *crowned) Frame(_ context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	kept := r.kept[int(from)]
	start, _ := r.slice(r.self, len(r.mine))
	return r.each(from, r.self, index, last, frame, r.row, func(row int) {
		r.add(r.opened[row], r.row, r.lagrange[int(from)], r.room)
		if kept != nil {
			copy(kept[row-start], r.row)
		}
	})
}

func (r *crowned) Step(context.Context, round.Inbox) (round.Transition[*opening], error) {
	clear(r.row)
	clear(r.room)
	var send []round.Message
	if r.frames(r.self) > 0 {
		send = append(send, round.Message{To: round.All, Name: r.valuesName(), Body: r.body(r.self, r.opened)})
	}
	return round.Next(round.Round[*opening](&proclaimed{r.opening, r.row}), send...), nil
}

// proclaimed waits for the values that the kings open.
type proclaimed struct {
	*opening
	row []uint64
}

func (r *proclaimed) Wants() (wants []round.Want) {
	for king := range r.n {
		if king != r.self && r.frames(king) > 0 {
			wants = append(wants, r.want(round.Want{From: round.Party(king), Name: r.valuesName(), Broadcast: true}, king))
		}
	}
	return wants
}

func (r *proclaimed) Frame(_ context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	return r.each(from, int(from), index, last, frame, r.row, func(row int) { copy(r.opened[row], r.row) })
}

func (r *proclaimed) Step(context.Context, round.Inbox) (round.Transition[*opening], error) {
	return round.Done(r.opening), nil
}
