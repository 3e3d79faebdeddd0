package bgvdecrypt

import (
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Shares of zero: each pair of parties in a quorum has a seed, which the party with the lower
// number sampled for this run. For each ciphertext both expand it to a polynomial. The party with
// the lower number adds the polynomial to its answer and the other subtracts it.

// expander returns the source from which two parties expand shares of zero.
func expander(seed []byte) *sample.Source { return sample.NewSource(seed) }

// zero sets p to the polynomial of two parties for ciphertext k.
func (f *Flooding) zero(p ring.Poly, seed *sample.Source, k int) {
	for i, q := range f.basis.Primes() {
		stream := seed.Stream("zero", uint64(k), uint64(i))
		sample.Uniform(p.C[i], q, stream)
		stream.Wipe()
	}
}
