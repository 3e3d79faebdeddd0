// Package sigma is the core of Lodge's sigma protocols: proofs that a public value is the image of
// a short witness under a linear map over R = Z[X]/(X^N+1), with monomials as challenges
// (MatriGear, Figure 3, after TopGear). A prover has U witnesses and V masks, each mask large
// enough to hide any sum of U rotated witnesses. The challenge assigns a monomial to every pair,
// and the response to repetition j is
//
//	z_j = y_j + sum_i X^(w_ij) x_i.
//
// The difference of two monomials divides 2 with a quotient whose coefficients are in {-1, 0, 1},
// so the extractor obtains a witness for twice the statement. The package does not depend on the
// map itself: package popk applies it to encryption.
package sigma

import (
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// Challenge is a V x U table of monomials X^e with e in [0, 2N).
type Challenge struct {
	v, u int
	exp  []uint32
}

// NewChallenge draws a challenge for v repetitions over u witnesses from xof, uniformly from the
// monomials X^(stride k), 0 <= k < count. Count must be a power of two of at most 2^16, so two
// bytes make one exponent without bias. Signs are included if stride*count = 2N, because X^N = -1.
func NewChallenge(xof io.Reader, v, u, stride, count int) (Challenge, error) {
	//lodge:check sigma/space [run=Challenge] a proof uses a challenge space for which its soundness
	//  was not computed
	if count < 2 || count > 1<<16 || count&(count-1) != 0 || stride < 1 || v < 1 || u < 1 {
		return Challenge{}, fmt.Errorf("sigma: a challenge space of %d monomials with stride %d is not supported", count, stride)
	}
	buf := make([]byte, 2*v*u)
	if _, err := io.ReadFull(xof, buf); err != nil {
		return Challenge{}, fmt.Errorf("sigma: reading the challenge: %w", err)
	}
	c := Challenge{v: v, u: u, exp: make([]uint32, v*u)}
	for i := range c.exp {
		//lodge:check sigma/whole-space [swap=count=>count / 2] [run=Challenge] challenges come from
		//  half of the space, so proofs are less sound
		k := (int(buf[2*i]) | int(buf[2*i+1])<<8) & (count - 1)
		c.exp[i] = uint32(k * stride)
	}
	return c, nil
}

// Repetitions returns the number V of repetitions.
func (c Challenge) Repetitions() int { return c.v }

// Witnesses returns the number U of witnesses that the challenge combines.
func (c Challenge) Witnesses() int { return c.u }

// At returns the exponent of the monomial for repetition j and witness i, in [0, 2N).
func (c Challenge) At(j, i int) int { return int(c.exp[j*c.u+i]) }

// Respond adds sum_i X^(w_ji) x_i to z, which holds the mask of repetition j and must be wide
// enough for the sum. Its running time does not depend on the witnesses.
func (c Challenge) Respond(z intpoly.Poly, j int, x []intpoly.Poly) {
	if len(x) != c.u {
		panic("sigma: number of witnesses differs from the challenge")
	}
	for i := range x {
		intpoly.AddMonomial(z, x[i], c.At(j, i))
	}
}
