package ring

import (
	"fmt"
	"sync"

	lattigo "github.com/tuneinsight/lattigo/v6/ring"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// newNTT prepares the transform of a prime with the root that Lattigo takes: g^((q-1)/2N) for the smallest primitive
// root g > 2.
func newNTT(m kernel.Modulus, r *lattigo.SubRing) (*kernel.NTT, error) {
	t, err := kernel.NewNTT(m, r.N, m.Exp(r.PrimitiveRoot, (m.Q-1)/uint64(2*r.N)))
	if err != nil {
		return nil, fmt.Errorf("ring: %w", err)
	}
	return t, nil
}

// NewTransformer gives a ring of Lattigo's the transforms of package kernel, with the same results:
//
//	lattigo.NewRingWithCustomNTT(n, primes, ring.NewTransformer, 2*n)
//
// It is for Z_q[X]/(X^N+1), not for the conjugate-invariant ring. Degrees and primes that package kernel does not
// serve keep Lattigo's transform. Lattigo does not know the type of a ring with a transformer that is not its own:
// Ring.Type, and what asks it, such as Ring.Automorphism on coefficients and marshalling, panics.
func NewTransformer(r *lattigo.SubRing, n int) lattigo.NumberTheoreticTransformer {
	if r.NthRoot != uint64(2*n) {
		panic("ring: a transformer for another ring than that modulo X^N+1")
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

// transformer prepares its tables when they are first wanted: Lattigo does not yet know the root when it asks for one.
type transformer struct {
	kernel.Modulus
	prepared func() *kernel.NTT
}

// Forward takes any words, as Lattigo's values may be reduced lazily.
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

// The lazy forms may give less reduced values.

func (t *transformer) ForwardLazy(src, dst []uint64) { t.Forward(src, dst) }

func (t *transformer) BackwardLazy(src, dst []uint64) { t.Backward(src, dst) }
