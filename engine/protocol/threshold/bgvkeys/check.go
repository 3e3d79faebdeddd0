package bgvkeys

import (
	"context"
	"slices"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/dealing"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/table"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/share"
)

// weights are the coefficients of the check of dealt sharings. They come from a coin that is tossed
// when all dealers are bound: modulo each prime, frame f has weight alpha[f], column c has weight
// beta[c], and the masks have weight 1. A combination that the dealer cannot foresee is a
// polynomial of degree 2 in the weights, so it hides a fault with probability at most 2/q for the
// smallest prime q.
type weights struct {
	alpha [][]kernel.Factor // by prime and frame
	beta  [][]uint64        // by prime
}

func (p *plan) weights(coin round.Digest) *weights {
	w := &weights{}
	for k, q := range p.primes {
		frames, beta := make([]uint64, p.frames()), make([]uint64, p.width)
		sample.Expand([][]uint64{frames}, []uint64{q}, coin[:], "bgvkeys dealt frames", uint64(k))
		sample.Expand([][]uint64{beta}, []uint64{q}, coin[:], "bgvkeys dealt columns", uint64(k))
		frames[len(frames)-1] = 1
		w.alpha, w.beta = append(w.alpha, p.factors(k, frames)), append(w.beta, beta)
	}
	return w
}

func (p *plan) factors(prime int, v []uint64) []kernel.Factor {
	list := make([]kernel.Factor, len(v))
	for i, x := range v {
		list[i] = p.fields[prime].Factor(x)
	}
	return list
}

// combinations holds, for each of n parties, both degrees and every prime, a vector: the weighted
// sum of rows.
type combinations [][2][][]uint64

func (p *plan) combinations(n int) combinations {
	c := make(combinations, n)
	for i := range c {
		c[i] = [2][][]uint64{p.table(), p.table()}
	}
	return c
}

func (c combinations) wipe() {
	for i := range c {
		table.Wipe(c[i][0])
		table.Wipe(c[i][1])
	}
}

func group(r row) int {
	if r.high {
		return 1
	}
	return 0
}

// announced returns how many numbers a dealer announces modulo a prime. For each of its
// combinations, of degree t and possibly of degree 2t, these are the values at 0 and at the points
// of the parties that expand their shares.
func (p *plan) announced(prime int) int {
	if prime < len(p.scheme.Q) {
		return 3*p.t + 2
	}
	return p.t + 1
}

func (p *plan) announcedSize() (n int) {
	for k := range p.primes {
		n += p.valuesSize(k, p.announced(k))
	}
	return n
}

// announce returns the combinations of the dealer's secrets and of the shares that other parties
// expand, from own.
func (p *party) announce() (values [][]uint64) {
	for k := range p.primes {
		var list []uint64
		for i := range p.t + 1 {
			list = append(list, p.dot(k, p.own[i][0][k], p.check.beta[k]))
		}
		for i := 0; k < len(p.scheme.Q) && i < 2*p.t+1; i++ {
			list = append(list, p.dot(k, p.own[i][1][k], p.check.beta[k]))
		}
		values = append(values, list)
	}
	return values
}

func (p *plan) packAnnounced(values [][]uint64) (b []byte) {
	for k, v := range values {
		b = p.pack(b, k, v)
	}
	return b
}

func (p *plan) unpackAnnounced(from round.Party, b []byte) ([][]uint64, error) {
	//lodge:check bgvkeys/announced-length [swap=len(b) != p.announcedSize()=>len(b) >
	//  p.announcedSize()] shorter announcements pass
	if len(b) != p.announcedSize() {
		return nil, round.Malformed(from, codec.ErrTruncated)
	}
	var values [][]uint64
	for k := range p.primes {
		v := make([]uint64, p.announced(k))
		var err error
		//lodge:check bgvkeys/announced-residues announcements have several encodings
		if b, err = p.unpack(v, k, b); err != nil {
			return nil, round.Malformed(from, err)
		}
		values = append(values, v)
	}
	return values, nil
}

// fits reports whether this party's combinations of its shares from a dealer lie on the polynomials
// that the dealer announced.
func (p *party) fits(from int, said [][]uint64) bool {
	for k, values := range said {
		lists := [][]uint64{values[:p.t+1], values[p.t+1:]}
		for g, known := range lists {
			if len(known) == 0 {
				continue
			}
			mine := p.dot(k, p.received[from][g][k], p.check.beta[k])
			if p.fields[k].Dealing(from, (1+g)*p.t).Value(p.self, known) != mine {
				return false
			}
		}
	}
	return true
}

// fold adds this party's share v of a dealer's row to the combinations, and to the secret or the
// shares of errors. room is overwritten.
func (p *party) fold(from, f int, r row, v, room []uint64) {
	p.add(p.received[from][group(r)][r.prime], v, r.prime, p.check.alpha[r.prime][f], room)
	field := p.fields[r.prime]
	switch {
	case f == 0:
		field.AddVec(p.secret.C[r.prime], p.secret.C[r.prime], v)
	case f <= p.samples():
		to := p.shares[f-1].C[r.prime]
		field.AddVec(to, to, v)
	}
}

// foldKnown folds the shares that no dealer sends to this party: its own shares of its dealings,
// and those that it expands.
func (p *party) foldKnown(ctx context.Context) error {
	return parallel.Try(ctx, p.Workers, len(p.primes), func(k int) error {
		b := dealing.NewBench(p.n, p.width)
		defer b.Wipe()
		for f := range p.frames() {
			for _, r := range p.rows(f) {
				if r.prime == k {
					p.foldRow(b, f, r)
				}
			}
		}
		return ctx.Err()
	})
}

// foldRow is foldKnown for one row.
func (p *party) foldRow(b *dealing.Bench, f int, r row) {
	weight, g := p.check.alpha[r.prime][f], group(r)
	shares := p.dealer.make(b, f, r, p.self)
	p.fold(p.self, f, r, shares[p.self], b.Room)
	p.add(p.own[0][g][r.prime], b.Secrets, r.prime, weight, b.Room)
	for k, i := range p.dealer.dealing(r).Seeded() {
		p.add(p.own[1+k][g][r.prime], shares[i], r.prime, weight, b.Room)
	}
	for from := range p.n {
		if d := p.distance(from, p.self); d > 0 && d <= p.degree(r) {
			p.expand(b.Secrets, p.given.Sources[from], f, r)
			p.fold(from, f, r, b.Secrets, b.Room)
		}
	}
}

// locate checks the combinations of all parties' shares of the keys. Modulo each prime, they must
// lie on polynomials of degrees t and 2t, slot by slot. It returns the degree of the first fault,
// and the parties that explain it.
func (p *plan) locate(c combinations, self int) (degree int, faults share.Faults) {
	all, value := make([]int, p.n), make([]uint64, p.n)
	for i := range all {
		all[i] = i
	}
	for g := range 2 {
		for k, field := range p.fields {
			rows := make([][]uint64, p.n)
			for i := range rows {
				rows[i] = c[i][g][k]
			}
			if degree = (1 + g) * p.t; field.Consistent(degree, all, rows) {
				continue
			}
			for slot := range p.width {
				for i := range value {
					value[i] = rows[i][slot]
				}
				if f := field.Locate(all, value, degree, p.t, self); len(f.Possible) > 0 {
					return degree, f
				}
			}
			// More than t shares are wrong: no set of parties explains the fault.
			return degree, share.Faults{Possible: slices.Delete(all, self, self+1)}
		}
	}
	return 0, share.Faults{}
}
