package bgvdecrypt

import (
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Shares of zero: each two parties of a quorum have a seed, which the one with the lower number has drawn for this run,
// and expand a polynomial of it for each ciphertext, which that one adds to its answer and the other takes off.

// expander is what two parties expand shares of zero from.
func expander(seed []byte) *sample.Source { return sample.NewSource(seed) }

// zero sets p to what two parties have for ciphertext k.
func (f *Flooding) zero(p ring.Poly, seed *sample.Source, k int) {
	for i, q := range f.basis.Primes() {
		stream := seed.Stream("zero", uint64(k), uint64(i))
		sample.Uniform(p.C[i], q, stream)
		stream.Wipe()
	}
}
