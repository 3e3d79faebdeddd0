package lwekeys

import (
	"context"
	"errors"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/dealing"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/share"
)

// Names of the shares that a dealer and a party with a common seed expand: of degree t and 2t, by
// row.
const (
	labelLow  = "threshold share t"
	labelHigh = "threshold share 2t"
)

// dealer computes the sharings that a party deals. It stores only the errors of ring samples, one
// byte each, because sampling them dominates the cost. It recomputes everything else, identically,
// whenever it is needed.
type dealer struct {
	*plan
	self       int
	source     *sample.Source
	seeds      *dealing.Seeds
	low, high  *share.Dealing
	ring, wide *lwe.Errors // errors of ring samples and of key switching samples
	drawn      [][]int8    // the errors of ring samples, by row of the keys
	session    round.Session
}

// Deal is the argument of the hook threshold/deal in tests: the computed shares of one dealt row,
// by party, just before they are sent. The shares of degree 2t are high.
type Deal struct {
	High   bool
	Row    int
	Shares [][]uint64
}

func newDealer(c *Config, p *plan) (d *dealer, err error) {
	self := int(c.Session.Self)
	d = &dealer{
		plan: p, self: self, source: c.Source.Sub("dealt"),
		low: p.Dealing(self, p.t), high: p.Dealing(self, 2*p.t), session: c.Session,
	}
	if d.ring, err = lwe.NewErrors(lwe.PartyVariance(c.Scheme.Variance, p.n, p.t)); err != nil {
		return nil, err
	}
	if d.wide, err = lwe.NewErrors(lwe.PartyVariance(c.Scheme.SwitchVariance, p.n, p.t)); err != nil {
		return nil, err
	}
	if d.seeds, err = dealing.Draw(d.source, p.n, self); err != nil {
		return nil, err
	}
	return d, nil
}

// Wipe erases the seeds and errors from which all sharings are computed.
func (d *dealer) Wipe() {
	d.source.Wipe()
	for _, e := range d.drawn {
		clear(e)
	}
	d.seeds.Wipe()
}

// sampleErrors samples the errors of ring samples if their deviation is small enough for one byte.
func (d *dealer) sampleErrors(ctx context.Context, workers int) error {
	if d.ring.Variance() > maxByteDeviation*maxByteDeviation {
		return nil
	}
	d.drawn = make([][]int8, d.keys)
	return parallel.Try(ctx, workers, d.keys, func(r int) error {
		if d.isSwitch(r) {
			return nil
		}
		e := d.sample(place{noise, r})
		d.drawn[r] = make([]int8, d.width)
		for i, v := range e {
			if d.drawn[r][i] = int8(v); int64(d.drawn[r][i]) != v {
				return errors.New("threshold: an error beyond all probability")
			}
		}
		clear(e)
		return nil
	})
}

// maxByteDeviation is the largest deviation of which 14 fit in a signed byte.
const maxByteDeviation = 9

// draw samples the secrets of a row.
func (d *dealer) draw(secrets []uint64, of place) {
	switch {
	case of.kind != noise:
		stream := d.source.Stream("row", uint64(of.kind), uint64(of.index))
		sample.Uniform(secrets, d.Q, stream)
		stream.Wipe()
		return
	case d.drawn != nil && d.drawn[of.index] != nil:
		for i, v := range d.drawn[of.index] {
			secrets[i] = uint64(v)
		}
	default:
		e := d.sample(of)
		for i, v := range e {
			secrets[i] = uint64(v)
		}
		clear(e)
	}
	d.SignedVec(secrets, secrets)
}

// sample samples a row of errors.
func (d *dealer) sample(of place) []int64 {
	e, stream := make([]int64, d.width), d.source.Stream("row", uint64(of.kind), uint64(of.index))
	defer stream.Wipe()
	if d.isSwitch(of.index) {
		d.wide.Sample(e, stream)
	} else {
		d.ring.Sample(e, stream)
	}
	return e
}

// make sets the secrets of a row and the shares of the parties that expand theirs, and computes the
// shares of the parties in to. The result holds only these shares and the expanded ones.
func (d *dealer) make(b *dealing.Bench, high bool, r int, to ...int) [][]uint64 {
	of, label := d.low, labelLow
	if high {
		of, label = d.high, labelHigh
	}
	d.draw(b.Secrets, d.kindOf(high, r))
	return b.Deal(of, func(dst []uint64, p int) { d.Expand(dst, d.seeds.Sources[p], label, uint64(r)) }, to...)
}

// frame returns frame f of the shares for each of these parties. Each of them must receive a frame
// f.
func (d *dealer) frame(f int, to ...int) [][]byte {
	lowFrames := d.framesOf(d.lowRows())
	high, rows := f >= lowFrames, d.lowRows()
	if high {
		f, rows = f-lowFrames, d.highRows()
	}
	first, last := d.span(f, rows)
	frames := make([][]byte, len(to))
	for i := range frames {
		frames[i] = make([]byte, 0, (last-first)*d.rowBytes)
	}
	b := dealing.NewBench(d.n, d.width)
	defer b.Wipe()
	for r := first; r < last; r++ {
		shares := d.make(b, high, r, to...)
		// The dealer computes a row several times, for the digests that bind it and for the
		// messages.
		round.Expose(d.session, "threshold/deal", &Deal{high, r, shares})
		for i, p := range to {
			frames[i] = d.pack(frames[i], shares[p:p+1])
		}
	}
	return frames
}

// body returns the message with the shares of a party, or nil.
func (d *dealer) body(to int) round.Body {
	low, high := d.dealtFrames(d.self, to)
	if low == 0 {
		return nil
	}
	return round.Frames(low+high, func(f int) ([]byte, error) { return d.frame(f, to)[0], nil })
}

// digests binds the dealer to the shares that it will send.
func (d *dealer) digests(ctx context.Context, workers int) ([]round.Digest, error) {
	low := d.framesOf(d.lowRows())
	total := low
	if len(d.high.Sent()) > 0 {
		total += d.framesOf(d.highRows())
	}
	return dealing.Digests(ctx, workers, total, d.n, nameShares, func(f int) ([]int, [][]byte) {
		to := d.low.Sent()
		if f >= low {
			to = d.high.Sent()
		}
		return to, d.frame(f, to...)
	})
}

// The groups of dealt rows. One combination of each group is checked.
const (
	single   = iota // rows of the kinds random and noise, with mask
	lowPair         // rows of the kind pair of degree t, with pairMask
	highPair        // the same of degree 2t
	groups
)

// weights are the coefficients of the check of dealt rows, derived from a coin that is tossed after
// all dealers are bound. Row r has weight alpha[r], column c has weight beta[c], and the masks have
// weight 1. The combination is a polynomial of degree 2 in weights that a dealer cannot foresee, so
// it hides a fault with probability at most 2/Q.
type weights struct {
	plan  *plan
	alpha []kernel.Factor // rows of degree t; those of degree 2t have the weights of their partners
	beta  []uint64
	unit  kernel.Factor
	pairs int // index of the first row of the kind pair
}

func (p *plan) weights(coin round.Digest) *weights {
	w := &weights{plan: p, unit: p.Factor(1), beta: make([]uint64, p.width), pairs: p.dealt[random]}
	rows := make([]uint64, p.lowRows())
	sample.Expand([][]uint64{rows}, p.primes, coin[:], "threshold dealt rows")
	sample.Expand([][]uint64{w.beta}, p.primes, coin[:], "threshold dealt columns")
	for _, a := range rows {
		w.alpha = append(w.alpha, p.Factor(a))
	}
	return w
}

// of returns the group and the weight of a row.
func (w *weights) of(high bool, r int) (group int, weight kernel.Factor) {
	at := w.plan.kindOf(high, r)
	group = single
	if at.kind == pair || at.kind == pairMask {
		group = lowPair
		if high {
			group = highPair
		}
	}
	switch at.kind {
	case mask, pairMask:
		return group, w.unit
	case pair:
		return group, w.alpha[w.pairs+at.index]
	}
	return group, w.alpha[r]
}

// seededFor reports whether a party expands its shares of a dealer's sharings of a degree.
func (p *plan) seededFor(dealer, to, degree int) bool {
	d := p.distance(dealer, to)
	return d > 0 && d <= degree
}
