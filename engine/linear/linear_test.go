package linear

import (
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// world holds a key and its users' data.
type world struct {
	*Scheme
	secret *SecretKey
	public *PublicKey
	random *sample.Stream
	calls  uint64
}

func newWorld(t testing.TB, name string) *world {
	t.Helper()
	s, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Scheme: s, random: sample.NewSource(make([]byte, 32)).Stream("inputs of tests")}
	w.secret, w.public = s.Generate(true, w.source())
	return w
}

// renew generates new keys if a key proves only one list of inputs.
func (w *world) renew() {
	if w.HasProof() {
		w.secret, w.public = w.Generate(false, w.source())
	}
}

// source returns a different source on every call.
func (w *world) source() *sample.Source {
	w.calls++
	return sample.NewSource(make([]byte, 32)).Sub("linear tests", w.calls)
}

// residues returns uniform residues modulo T.
func (w *world) residues(n int) []uint64 {
	v := make([]uint64, n)
	sample.Uniform(v, w.T, w.random)
	return v
}

// constant returns v, n times.
func constant(n int, v uint64) []uint64 {
	c := make([]uint64, n)
	for i := range c {
		c[i] = v
	}
	return c
}

// below returns a uniform number below n.
func (w *world) below(n int) int { return int(w.random.Uint64() % uint64(n)) }

// product returns M v modulo T.
func (s *Set) product(m, v []uint64) []uint64 {
	mod, out := s.plaintext(), make([]uint64, len(m)/len(v))
	for i, x := range m {
		out[i/len(v)] = mod.Add(out[i/len(v)], mod.Mul(x, v[i%len(v)]))
	}
	return out
}

// sum returns x + y modulo T.
func (s *Set) sum(x, y []uint64) []uint64 {
	mod, out := s.plaintext(), make([]uint64, len(x))
	mod.AddVec(out, x, y)
	return out
}

// phase returns c_0 + c_1 s modulo the primes of the halves.
func (w *world) phase(c0, c1 ring.Poly) ring.Poly {
	basis := w.basis.Prefix(len(c0.C))
	p := basis.NewPoly()
	basis.Forward(ring.NTT(p), c1)
	basis.MulNTT(ring.NTT(p), ring.NTT(p), ring.NTT{C: w.secret.s.Open().C[:len(c0.C)]})
	basis.Inverse(p, ring.NTT(p))
	basis.Add(p, p, c0)
	return p
}

// noises returns e of the phase m/T + e, with m centred, and the messages m modulo T.
func (w *world) noises(c0, c1 ring.Poly) (e []*big.Int, m []uint64) {
	phase, basis, t := w.phase(c0, c1), w.basis.Prefix(len(c0.C)), new(big.Int).SetUint64(w.T)
	q := basis.Modulus()
	half, halfT := new(big.Int).Rsh(q, 1), new(big.Int).Rsh(t, 1)
	weights := make([]*big.Int, basis.Len())
	for i, p := range basis.Primes() {
		prime := new(big.Int).SetUint64(p)
		rest := new(big.Int).Div(q, prime)
		weights[i] = new(big.Int).Mul(rest, new(big.Int).ModInverse(rest, prime))
	}
	for k := range w.N() {
		x := new(big.Int)
		for i, row := range phase.C {
			x.Add(x, new(big.Int).Mul(new(big.Int).SetUint64(row[k]), weights[i]))
		}
		x.Mul(x, t).Mod(x, q)
		if x.Cmp(half) > 0 {
			x.Sub(x, q)
		}
		rest := new(big.Int).Mod(x, t)
		m = append(m, rest.Uint64())
		if rest.Cmp(halfT) > 0 {
			rest.Sub(rest, t)
		}
		e = append(e, x.Sub(x, rest).Div(x, t))
	}
	return e, m
}

// largest returns the largest magnitude.
func largest(e []*big.Int) *big.Int {
	most := new(big.Int)
	for _, x := range e {
		if x.CmpAbs(most) > 0 {
			most.Abs(x)
		}
	}
	return most
}

// coefficients returns the coefficients of halves in evaluation form.
func (w *world) coefficients(b, a ring.NTT) (c0, c1 ring.Poly) {
	c0, c1 = w.basis.NewPoly(), w.basis.NewPoly()
	w.basis.Inverse(c0, b)
	w.basis.Inverse(c1, a)
	return c0, c1
}
