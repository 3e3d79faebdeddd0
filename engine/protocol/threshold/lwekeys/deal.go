package lwekeys

import (
	"context"
	"errors"
	"slices"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/complaint"
)

// deal sends the shares. Each dealer combines all its sharings with the tossed coin and announces
// the polynomials of the combinations to all parties: their values at 0 and at the parties that
// expand their shares. These values can only describe a polynomial of the right degree. The two
// combinations of the pairs share one value at 0.
func (p *party) deal(ctx context.Context, coin round.Digest) (transition, error) {
	p.check = p.weights(coin)
	if err := p.foldKnown(ctx); err != nil {
		return transition{}, err
	}
	polynomial := slices.Concat(
		p.own.values(0, single, p.t+1, p.check.beta),
		p.own.values(0, lowPair, p.t+1, p.check.beta),
		p.own.values(0, highPair, 2*p.t+1, p.check.beta)[1:],
	)
	send := []round.Message{{To: round.All, Name: namePolynomial, Body: round.Encoded(polynomial, p.packValues)}}
	for _, i := range p.dealer.low.Sent() {
		send = append(send, round.Message{To: round.Party(i), Name: nameShares, Body: p.dealer.body(i)})
	}
	r := &dealt{party: p, row: make([]uint64, p.width), room: make([]uint64, p.width)}
	return round.Next(round.Round[Result](r), send...), nil
}

// polynomialValues returns the number of values that a dealer announces.
func (p *plan) polynomialValues() int { return 2*(p.t+1) + 2*p.t }

// dealt waits for the shares.
type dealt struct {
	*party
	row, room []uint64
}

func (r *dealt) Wants() []round.Want {
	wants := r.Session.Each(round.Want{Name: namePolynomial, MaxBytes: int64(r.valuesSize(r.polynomialValues())), Broadcast: true})
	for from := range r.n {
		low, high := r.dealtFrames(from, r.self)
		if low == 0 || from == r.self {
			continue
		}
		rows := r.lowRows()
		if high > 0 {
			rows += r.highRows()
		}
		wants = append(wants, round.Want{
			From: round.Party(from), Name: nameShares, Stream: true,
			MaxFrames: low + high, MaxBytes: int64(rows) * int64(r.rowBytes),
		})
	}
	return wants
}

var errFrame = errors.New("a frame has the wrong length")

func (r *dealt) Frame(_ context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	low, high := r.dealtFrames(int(from), r.self)
	isHigh, f, rows := index >= low, index, r.lowRows()
	if isHigh {
		f, rows = index-low, r.highRows()
	}
	first, end := r.span(f, rows)
	if last != (index == low+high-1) || len(frame) != (end-first)*r.rowBytes {
		return round.Malformed(from, errFrame)
	}
	for k := range end - first {
		if err := r.unpack(r.row, frame, k); err != nil {
			return round.Malformed(from, err)
		}
		r.fold(r.received, int(from), isHigh, first+k, r.row, r.room)
	}
	return nil
}

func (r *dealt) Step(_ context.Context, in round.Inbox) (transition, error) {
	clear(r.row)
	clear(r.room)
	complaints := make([]byte, r.n)
	for from := range r.n {
		if from == r.self {
			continue
		}
		p := round.Party(from)
		sent, _ := r.dealtFrames(from, r.self)
		//lodge:check thresholdkeys/bound [run=TestBound] a dealer can choose its shares after it
		//  knows the coin
		if sent > 0 && in.Digest(p, nameShares) != r.given.Bound[from] && !r.Session.Omits(CheckBound) {
			return transition{}, &round.Blame{Party: p, Check: CheckBound, Reason: "sent shares that differ from its commitment"}
		}
		said, err := r.values(p, in.Bytes(p, namePolynomial), r.polynomialValues())
		if err != nil {
			return transition{}, err
		}
		if !r.fits(from, said) {
			complaints[from] = 1
		}
	}
	r.received.wipe()
	r.own.wipe()
	//lodge:check thresholdkeys/degree [swap=complaints=>make([]byte, r.n)] [run=Degree] a party
	//  that received wrong shares does not complain
	return complaint.Hear(complaint.Hearing{
		Session: r.Session, Threshold: r.t, Name: nameComplaints, Check: CheckDegree, Mine: complaints,
	}, r.openSquares), nil
}

// fits reports whether this party's combinations of a dealer's shares are values of the polynomials
// that the dealer announced.
func (r *dealt) fits(from int, said []uint64) bool {
	t := r.t
	pairs := said[t+1:]
	lists := [groups][]uint64{said[:t+1], pairs[:t+1], slices.Concat(pairs[:1], pairs[t+1:])}
	for group, known := range lists {
		degree := t
		if group == highPair {
			degree = 2 * t
		}
		mine := r.received.values(from, group, 1, r.check.beta)[0]
		if r.Dealing(from, degree).Value(r.self, known) != mine {
			return false
		}
	}
	return true
}
