package bgvkeys

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/dealing"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/share"
)

// dealer makes a party's dealings. It stores the secret and the errors, one byte each, and
// recomputes everything else deterministically when needed.
type dealer struct {
	*plan
	self    int
	source  *sample.Source
	seeds   *dealing.Seeds
	low     []*share.Dealing // by prime
	high    []*share.Dealing
	drawn   [][]int8 // by frame
	session round.Session
}

// Deal is the argument of the test hook bgvkeys/deal: the shares, by party, of one dealt row. The
// hook runs where the shares are computed, just before they are sent.
type Deal struct {
	Frame, Prime int
	High         bool
	Shares       [][]uint64
}

func newDealer(ctx context.Context, c *Config, p *plan) (d *dealer, err error) {
	self := int(c.Session.Self)
	d = &dealer{
		plan: p, self: self, source: c.Source.Sub("dealt"),
		drawn: make([][]int8, 1+p.samples()), session: c.Session,
	}
	for _, f := range p.fields {
		d.low, d.high = append(d.low, f.Dealing(self, p.t)), append(d.high, f.Dealing(self, 2*p.t))
	}
	if d.seeds, err = dealing.Draw(d.source, p.n, self); err != nil {
		return nil, err
	}
	return d, d.draw(ctx, c)
}

// draw samples the secret and the errors.
func (d *dealer) draw(ctx context.Context, c *Config) error {
	errs, err := lwe.NewErrors(lwe.PartyVariance(c.Scheme.Variance, d.n, d.t))
	if err != nil {
		return err
	}
	return parallel.Try(ctx, c.Workers, len(d.drawn), func(f int) error {
		e, stream := make([]int64, d.width), d.source.Stream("drawn", uint64(f))
		defer stream.Wipe()
		from := errs.Sample
		if f == 0 {
			from = sample.Ternary
		}
		round.Draw(d.session, fmt.Sprint("bgvkeys/drawn/", f), from, e, stream)
		d.drawn[f] = make([]int8, d.width)
		for i, v := range e {
			if d.drawn[f][i] = int8(v); int64(d.drawn[f][i]) != v {
				return errors.New("bgvkeys: a sampled error does not fit one byte (negligible probability)")
			}
		}
		clear(e)
		return nil
	})
}

// Wipe erases the seeds, the secret and the errors.
func (d *dealer) Wipe() {
	d.source.Wipe()
	for _, e := range d.drawn {
		clear(e)
	}
	d.seeds.Wipe()
}

// secrets sets dst to the secrets of a row.
func (d *dealer) secrets(dst []uint64, f int, r row) {
	if f < len(d.drawn) {
		for i, v := range d.drawn[f] {
			dst[i] = uint64(int64(v))
		}
		d.fields[r.prime].SignedVec(dst, dst)
		return
	}
	label := "mask t"
	if r.high {
		label = "mask 2t"
	}
	stream := d.source.Stream(label, uint64(r.prime))
	//lodge:check bgvkeys/masked [swap=sample.Uniform(dst, d.primes[r.prime], stream)=>clear(dst)]
	//  the check of dealt shares reveals secrets
	sample.Uniform(dst, d.primes[r.prime], stream)
	stream.Wipe()
}

func (d *dealer) dealing(r row) *share.Dealing {
	if r.high {
		return d.high[r.prime]
	}
	return d.low[r.prime]
}

// expand sets dst to the shares of a row that a seed determines.
func (p *plan) expand(dst []uint64, seed *sample.Source, f int, r row) {
	label := "bgvkeys share t"
	if r.high {
		label = "bgvkeys share 2t"
	}
	p.fields[r.prime].Expand(dst, seed, label, uint64(f), uint64(r.prime))
}

// make sets the secrets of a row and the shares of the parties that expand theirs, and computes
// those of the parties in to. In the result only these shares and the expanded ones are valid.
func (d *dealer) make(b *dealing.Bench, f int, r row, to ...int) [][]uint64 {
	d.secrets(b.Secrets, f, r)
	return b.Deal(d.dealing(r), func(dst []uint64, p int) { d.expand(dst, d.seeds.Sources[p], f, r) }, to...)
}

// frame returns frame f of the shares for each of these parties, all of which are sent shares.
func (d *dealer) frame(f int, to ...int) [][]byte {
	frames := make([][]byte, len(to))
	for i, p := range to {
		frames[i] = make([]byte, 0, d.size(d.sent(f, d.self, p)))
	}
	b := dealing.NewBench(d.n, d.width)
	defer b.Wipe()
	for _, r := range d.rows(f) {
		var takers []int // the parties that are sent shares of this row
		for _, p := range to {
			if d.distance(d.self, p) > d.degree(r) {
				takers = append(takers, p)
			}
		}
		if len(takers) == 0 {
			continue
		}
		shares := d.make(b, f, r, takers...)
		// The dealer computes a row several times, for the digests that bind it and for the
		// messages.
		round.Expose(d.session, "bgvkeys/deal", &Deal{f, r.prime, r.high, shares})
		for i, p := range to {
			if slices.Contains(takers, p) {
				frames[i] = d.pack(frames[i], r.prime, shares[p])
			}
		}
	}
	return frames
}

// receivers returns the parties that are sent shares.
func (d *dealer) receivers() []int { return d.low[0].Sent() }

// body returns the message with the shares of a party.
func (d *dealer) body(to int) round.Body {
	return round.Frames(d.frames(), func(f int) ([]byte, error) { return d.frame(f, to)[0], nil })
}

// digests binds the dealer to the frames that it will send.
func (d *dealer) digests(ctx context.Context, workers int) ([]round.Digest, error) {
	to := d.receivers()
	return dealing.Digests(ctx, workers, d.frames(), d.n, nameShares, func(f int) ([]int, [][]byte) {
		return to, d.frame(f, to...)
	})
}
