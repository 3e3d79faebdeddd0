package multikey

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sp301415/tfhe-go/math/poly"
	"github.com/sp301415/tfhe-go/mktfhe"
	"github.com/sp301415/tfhe-go/tfhe"
)

// library holds tfhe-go's own evaluator with the same keys.
type library struct {
	s      *subject
	params mktfhe.Parameters[uint64]
	e      *mktfhe.BinaryEvaluator[uint64]
}

// newLibrary loads the keys of the first parties.
func newLibrary(s *subject, parties int) *library {
	literal := func(g Gadget) tfhe.GadgetParametersLiteral[uint64] {
		return tfhe.GadgetParametersLiteral[uint64]{Base: 1 << g.LogBase, Level: g.Digits}
	}
	l := &library{s: s, params: mktfhe.ParametersLiteral[uint64]{
		SingleKeyParametersLiteral: tfhe.ParametersLiteral[uint64]{
			LWEDimension: s.Dim, GLWERank: 1, PolyDegree: s.N(), LWEStdDev: s.LWE, GLWEStdDev: s.Ring, BlockSize: s.Block,
			MessageModulus: 2, BlindRotateParameters: literal(s.Rotation), KeySwitchParameters: literal(s.Switch),
			BootstrapOrder: tfhe.OrderBlindRotateKeySwitch,
		},
		PartyCount: parties, AccumulatorParameters: literal(s.Lev), RelinKeyParameters: literal(s.Uni),
	}.Compile()}
	keys := map[int]mktfhe.EvaluationKey[uint64]{}
	for i := range parties {
		keys[i] = l.key(s.e.keys[s.secrets[i].ID()])
	}
	l.e = mktfhe.NewBinaryEvaluator(l.params, keys)
	return l
}

// key returns a party's key in the library's types.
func (l *library) key(x *expanded) mktfhe.EvaluationKey[uint64] {
	s := l.s
	crs := make([]poly.FourierPoly, s.Uni.Digits)
	for j := range crs {
		crs[j] = s.transform.ToFourierPoly(poly.Poly[uint64]{Coeffs: s.string[j]})
	}
	lev := func(g gadget, at func(j int) (b, a poly.FourierPoly)) tfhe.FourierGLevCiphertext[uint64] {
		c := tfhe.FourierGLevCiphertext[uint64]{GadgetParameters: g}
		for j := range g.Level() {
			b, a := at(j)
			c.Value = append(c.Value, tfhe.FourierGLWECiphertext[uint64]{Value: []poly.FourierPoly{b, a}})
		}
		return c
	}
	var k mktfhe.EvaluationKey[uint64]
	k.CRSPublicKey = lev(s.uni, func(j int) (b, a poly.FourierPoly) { return x.public[j], crs[j] })
	k.RelinKey = mktfhe.FourierUniEncryption[uint64]{GadgetParameters: s.uni, Value: []tfhe.FourierGLevCiphertext[uint64]{
		lev(s.uni, func(j int) (b, a poly.FourierPoly) { return x.relin[j], crs[j] }),
		lev(s.uni, func(j int) (b, a poly.FourierPoly) { return x.relin2[j][0], x.relin2[j][1] }),
	}}
	d, each := s.Rotation.Digits, 2*s.Rotation.Digits
	k.BlindRotateKey.GadgetParameters = s.rotation
	for i := range s.Dim {
		c := tfhe.FourierGGSWCiphertext[uint64]{GadgetParameters: s.rotation}
		for half := range 2 {
			c.Value = append(c.Value, lev(s.rotation, func(j int) (b, a poly.FourierPoly) {
				row := x.rotation[i*each+half*d+j]
				return row[0], row[1]
			}))
		}
		k.BlindRotateKey.Value = append(k.BlindRotateKey.Value, c)
	}
	g := s.Switch.compile()
	k.KeySwitchKey.GadgetParameters = g
	for i := range s.N() - s.Dim {
		c := tfhe.LevCiphertext[uint64]{GadgetParameters: g}
		for j := range s.Switch.Digits {
			at := (i*s.Switch.Digits + j) * (s.Dim + 1)
			row := tfhe.LWECiphertext[uint64]{Value: []uint64{uint64(x.switches[at+s.Dim]) << 32}}
			for _, w := range x.switches[at : at+s.Dim] {
				row.Value = append(row.Value, uint64(w)<<32)
			}
			c.Value = append(c.Value, row)
		}
		k.KeySwitchKey.Value = append(k.KeySwitchKey.Value, c)
	}
	return k
}

// to and from convert a ciphertext to and from the library's type.
func (l *library) to(c *Ciphertext) mktfhe.LWECiphertext[uint64] {
	out := mktfhe.NewLWECiphertext(l.params)
	out.Value[0] = uint64(c.B) << 32
	for _, p := range c.Parts {
		at := slices.IndexFunc(l.s.secrets, func(k *Secret) bool { return k.ID() == p.Key })
		for j, w := range p.A {
			out.Value[1+at*l.s.Dim+j] = uint64(w) << 32
		}
	}
	return out
}

func (l *library) from(c mktfhe.LWECiphertext[uint64]) *Ciphertext {
	out := &Ciphertext{B: round(c.Value[0])}
	for i := range l.params.PartyCount() {
		p := Part{l.s.secrets[i].ID(), make([]uint32, l.s.Dim)}
		for j := range p.A {
			p.A[j] = round(c.Value[1+i*l.s.Dim+j])
		}
		out.Parts = append(out.Parts, p)
	}
	slices.SortFunc(out.Parts, func(a, b Part) int { return slices.Compare(a.Key[:], b.Key[:]) })
	return out
}

// everyParty returns the first k parties.
func everyParty(k int) (list []int) {
	for i := range k {
		list = append(list, i)
	}
	return list
}

// The library computes the same results from our keys and ciphertexts.
func TestLibraryAgrees(t *testing.T) {
	s := newSubject(t, cheap, 3)
	l := newLibrary(s, 3)
	for bits := range 4 {
		a, b := bits&1 == 1, bits&2 == 2
		x, y := s.of(t, a, everyParty(3), 1), s.of(t, b, everyParty(3), 2)
		got, off := s.decrypt(t, l.from(l.e.NAND(l.to(x), l.to(y))))
		if got != (!a || !b) || off > 0.01 || off < -0.01 {
			t.Errorf("the library computes %v NAND %v as %v, off by %g", a, b, got, off)
		}
	}
}

// BenchmarkNAND compares a gate of k parties on one goroutine with the library's own gate and the
// same keys.
func BenchmarkNAND(b *testing.B) {
	for _, c := range []struct {
		set string
		k   int
	}{
		{"insecure-M11-I", 2}, {"insecure-M11-II", 4}, {"insecure-M11-III", 8}, {"insecure-M11-IV", 16}, {"insecure-M11-V", 32},
		{"M11-2", 2}, {"M11-4", 4}, {"M11-8", 8}, {"M11-16", 16}, {"M11-32", 32},
	} {
		b.Run(fmt.Sprintf("%s/k=%d", c.set, c.k), func(b *testing.B) {
			defer forget(c.set)
			s := newSubject(b, c.set, c.k)
			x, y := s.of(b, true, everyParty(c.k), 1), s.of(b, false, everyParty(c.k), 2)
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("lodge/%d", workers), func(b *testing.B) {
					for b.Loop() {
						if _, err := s.e.Gate(b.Context(), workers, Nand, x, y, nil); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			l := newLibrary(s, c.k)
			p, q := l.to(x), l.to(y)
			b.Run("tfhe-go/1", func(b *testing.B) {
				for b.Loop() {
					l.e.NAND(p, q)
				}
			})
			b.Run("tfhe-go/all", func(b *testing.B) {
				for b.Loop() {
					l.e.NANDParallel(p, q)
				}
			})
		})
	}
}

// forget removes the keys of a set.
func forget(name string) {
	subjects.Lock()
	defer subjects.Unlock()
	delete(subjects.have, name)
}
