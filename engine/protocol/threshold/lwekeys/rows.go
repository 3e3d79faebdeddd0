package lwekeys

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/table"
)

// makeKeys turns the shares of the errors into shares of the keys' rows, in place, and opens them.
func (p *party) makeKeys(ctx context.Context, products *opening) (transition, error) {
	a := make([]uint64, p.width)
	p.Scheme.UniformPublic(a, p.reference())
	p.sampleRow(p.rows[0], a)
	err := parallel.Try(ctx, p.Workers, p.dim, func(i int) error {
		p.rotationRows(i, products.opened[i])
		return nil
	})
	if err != nil {
		return transition{}, err
	}
	const block = 16 // coefficients of z
	err = parallel.Try(ctx, p.Workers, (p.width+block-1)/block, func(b int) error {
		p.switchSamples(b*block, min((b+1)*block, p.width))
		return nil
	})
	if err != nil {
		return transition{}, err
	}
	p.keys = p.Scheme.NewKeys(*p.reference())
	o := p.opening("keys", p.t, p.rows, p.rowsOf(p.keys))
	return round.Then(o.start(), p.tossChecks), nil
}

// reference returns the seed of the reference string.
func (p *party) reference() *[lwe.SeedSize]byte { return (*[lwe.SeedSize]byte)(&p.seed) }

// sampleRow turns the share of an error into that of a z + e, in evaluation form.
func (p *party) sampleRow(e, a []uint64) {
	p.Scheme.Forward(e, e)
	p.MulAddVec(e, a, p.evals)
}

// rotationRows computes the rows of RGSW(s_i): the rows of the messages -z s_i g_j, and the rows of
// s_i g_j, whose evaluation form is a constant.
func (p *party) rotationRows(i int, opened []uint64) {
	secrets := table.New(2, p.width)
	defer table.Wipe(secrets)
	product, message := secrets[0], secrets[1]
	p.AddVec(product, p.low[p.bits+i], opened)
	p.Scheme.Forward(product, product)
	a := make([]uint64, 2*p.digits*p.width)
	p.Scheme.UniformRotation(a, p.reference(), i)
	rows := p.rows[1+p.switches+2*i*p.digits:]
	for r := range 2 * p.digits {
		row := rows[r]
		p.sampleRow(row, a[r*p.width:(r+1)*p.width])
		g := p.Scheme.Set.Rotation.Factor(p.Q, r%p.digits)
		if r < p.digits {
			p.ScaleVec(message, product, g)
			p.SubVec(row, row, message)
		} else {
			fill(message, p.Scale(p.s[i], p.Factor(g)))
			p.AddVec(row, row, message)
		}
	}
}

// switchSamples computes the samples of the switching key for some coefficients of z: <a, s> + e +
// g_j z_k.
func (p *party) switchSamples(from, to int) {
	a, room := make([]uint64, p.switches*p.dim), make([]uint64, p.dim)
	for k := from; k < to; k++ {
		p.Scheme.UniformSwitch(a, p.reference(), k)
		for j := range p.switches {
			at := k*p.switches + j
			b := &p.rows[1+at/p.width][at%p.width]
			*b = p.Add(*b, p.dot(a[j*p.dim:(j+1)*p.dim], p.s, room))
			*b = p.Add(*b, p.Scale(p.z[k], p.Factor(p.Scheme.Switch.Factor(p.Q, j))))
		}
	}
	clear(room)
}
