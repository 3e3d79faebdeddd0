package lwekeys

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/table"
)

// Random bits (Damgard, Fitzi, Kiltz, Nielsen and Toft, TCC 2006): for a random sharing [a] the
// square v = a^2 is opened, and [b] = ([a]/sqrt(v) + 1)/2 is a bit, the sign of a, about which v
// reveals nothing. Shares of v are those of [a]^2 of degree 2t, plus a sharing of zero of that
// degree, [r]_2t - [r]_t.

// spare is the least number of random sharings in excess of the bits, because a may be 0.
const spare = 16

// openSquares opens the squares.
func (p *party) openSquares(ctx context.Context) (transition, error) {
	o := p.opening("squares", 2*p.t, table.New(p.bits, p.width), table.New(p.bits, p.width))
	for r, v := range o.mine {
		p.MulVec(v, p.random[r], p.random[r])
		p.AddVec(v, v, p.high[r])
		p.SubVec(v, v, p.low[r])
	}
	return round.Then(o.start(), p.makeSecrets), nil
}

// makeSecrets computes z, whose coefficients are differences of two of 2N bits, and s of n bits,
// and opens the products.
func (p *party) makeSecrets(ctx context.Context, squares *opening) (transition, error) {
	if err := p.takeBits(squares.opened); err != nil {
		return transition{}, err
	}
	copy(p.evals, p.z)
	p.Scheme.Forward(p.evals, p.evals)

	// [z_k s_i] = u + [r]_t for the opened u = z_k s_i - r.
	o := p.opening("products", 2*p.t, table.New(p.dim, p.width), table.New(p.dim, p.width))
	err := parallel.Try(ctx, p.Workers, p.dim, func(i int) error {
		v := o.mine[i]
		fill(v, p.s[i])
		p.MulVec(v, v, p.z)
		p.SubVec(v, v, p.high[p.bits+i])
		return nil
	})
	if err != nil {
		return transition{}, err
	}
	return round.Then(o.start(), p.makeKeys), nil
}

// takeBits sets z and s. It skips zeros and opened values that are not squares. The latter only
// occur if a party cheats; the check of the opened values then identifies that party if the
// messages allow it.
func (p *party) takeBits(squares [][]uint64) error {
	half := (p.Q + 1) / 2
	need := 2*p.width + p.dim
	taken := 0
	for r, row := range squares {
		for c, v := range row {
			if taken == need {
				return nil
			}
			root, ok := p.sqrt(v)
			if !ok {
				p.unsquare = true
			}
			if !ok || root == 0 {
				continue
			}
			bit := p.Add(p.Scale(p.random[r][c], p.Factor(p.Inverse(p.Add(root, root)))), half)
			switch {
			case taken < p.width:
				p.z[taken] = bit
			case taken < 2*p.width:
				p.z[taken-p.width] = p.Sub(p.z[taken-p.width], bit)
			default:
				p.s[taken-2*p.width] = bit
			}
			taken++
		}
	}
	if taken == need {
		return nil
	}
	return &round.Abort{Check: CheckSquare, Reason: "too many opened values are 0 or not squares"}
}

// sqrt returns a root of a public v modulo the prime Q (Tonelli and Shanks), and whether v has one.
func (p *plan) sqrt(v uint64) (uint64, bool) {
	if v == 0 {
		return 0, true
	}
	if p.Exp(v, (p.Q-1)/2) != 1 {
		return 0, false
	}
	odd, twos := p.Q-1, 0
	for ; odd&1 == 0; odd >>= 1 {
		twos++
	}
	c := p.Exp(p.nonresidue, odd) // of order 2^twos
	x, b := p.Exp(v, (odd+1)/2), p.Exp(v, odd)
	for b != 1 { // x^2 = v b, and the order of b is 2^k, k < twos
		k := 0
		for y := b; y != 1; y = p.Mul(y, y) {
			k++
		}
		g := c
		for range twos - k - 1 {
			g = p.Mul(g, g)
		}
		x, c, twos = p.Mul(x, g), p.Mul(g, g), k
		b = p.Mul(b, c)
	}
	return x, true
}

// fill sets all of v to one residue.
func fill(v []uint64, x uint64) {
	for i := range v {
		v[i] = x
	}
}
