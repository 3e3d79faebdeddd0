package ring

import (
	"fmt"
	"sync"

	lattigo "github.com/tuneinsight/lattigo/v6/ring"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// newNTT prepares the transform of a prime with Lattigo's root: g^((q-1)/2N) for the smallest
// primitive root g > 2.
func newNTT(m kernel.Modulus, r *lattigo.SubRing) (*kernel.NTT, error) {
	t, err := kernel.NewNTT(m, r.N, m.Exp(r.PrimitiveRoot, (m.Q-1)/uint64(2*r.N)))
	if err != nil {
		return nil, fmt.Errorf("ring: %w", err)
	}
	return t, nil
}

// NewTransformer returns a ring of Lattigo the transforms of package kernel, which return the same
// results:
//
//	lattigo.NewRingWithCustomNTT(n, primes, ring.NewTransformer, 2*n)
//
// It supports Z_q[X]/(X^N+1), not the conjugate-invariant ring. Degrees and primes that package
// kernel does not support keep Lattigo's transform. Lattigo does not know the type of a ring with a
// foreign transformer: Ring.Type panics, and so do its callers, such as Ring.Automorphism on
// coefficients and marshalling.
func NewTransformer(r *lattigo.SubRing, n int) lattigo.NumberTheoreticTransformer {
	if r.NthRoot != uint64(2*n) {
		panic("ring: the transformer supports only rings modulo X^N+1")
	}
	m, err := kernel.NewModulus(r.Modulus)
	if err != nil || n < 16 || n > maxDegree {
		return lattigo.NewNumberTheoreticTransformerStandard(r, n)
	}
	return &transformer{Modulus: m, prepared: sync.OnceValue(func() *kernel.NTT {
		t, err := newNTT(m, r)
		if err != nil {
			panic(err) // Lattigo has checked the prime and its root
		}
		return t
	})}
}

// transformer prepares its tables on first use, because Lattigo does not know the root yet when it
// creates the transformer.
type transformer struct {
	kernel.Modulus
	prepared func() *kernel.NTT
}

// Forward accepts any words, because Lattigo may reduce its values lazily.
func (t *transformer) Forward(src, dst []uint64) {
	ntt := t.prepared()
	dst = dst[:ntt.N()]
	t.ReduceVec(dst, src)
	ntt.Forward(dst, dst)
}

func (t *transformer) Backward(src, dst []uint64) {
	ntt := t.prepared()
	dst = dst[:ntt.N()]
	t.ReduceVec(dst, src)
	ntt.Inverse(dst, dst)
}

// The lazy forms may leave values less reduced; here they reduce fully.

func (t *transformer) ForwardLazy(src, dst []uint64) { t.Forward(src, dst) }

func (t *transformer) BackwardLazy(src, dst []uint64) { t.Backward(src, dst) }
