package bench

import (
	"context"
	"fmt"
	"slices"

	lattigo "github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/utils/sampling"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

const logN = 14          // of kernels on one polynomial
const degree = 1 << logN // N

// prime returns the largest prime with the given number of bits that is 1 mod 2N.
func prime(bits int) uint64 {
	q := uint64(1)<<bits - 2*degree + 1
	for !lattigo.IsPrime(q) {
		q -= 2 * degree
	}
	return q
}

// seed of everything that is drawn here: nothing of it is secret.
var seed = []byte("thirty-two bytes for benchmarks!")

func stream(label string) *sample.Stream { return sample.NewSource(seed).Stream(label) }

// Kernels lists the measurements of kernels.
func (o *Options) Kernels() []Row {
	var rows []Row
	for _, bits := range []int{50, 60, 61} {
		rows = append(rows, o.transforms(bits)...)
	}
	rows = append(rows, o.pointwise()...)
	sfx := o.dimSuffix()
	rows = append(rows, o.matmulMAC("matmul_mac"+sfx, 50), o.matmulMAC("matmul_mac_60bit"+sfx, 60))
	rows = append(rows, o.bases()...)
	rows = append(rows, o.samplers()...)
	return under("Kernels", append(rows, o.fields()...))
}

// under puts rows in a section.
func under(section string, rows []Row) []Row {
	for i := range rows {
		rows[i].Section = section
	}
	return rows
}

// pair is one polynomial ring, ours and Lattigo's, with operands.
type pair struct {
	basis   *ring.Basis
	rival   *lattigo.Ring
	x, y, z ring.Poly
	p, q, r lattigo.Poly
}

func newPair(logN int, primes []uint64) (*pair, error) {
	b, err := ring.NewBasis(logN, primes)
	if err != nil {
		return nil, err
	}
	rival, err := lattigo.NewRing(1<<logN, primes)
	if err != nil {
		return nil, err
	}
	p := &pair{basis: b, rival: rival, x: b.NewPoly(), y: b.NewPoly(), z: b.NewPoly(), p: rival.NewPoly(), q: rival.NewPoly(), r: rival.NewPoly()}
	sample.Expand(p.x.C, primes, seed, "x")
	sample.Expand(p.y.C, primes, seed, "y")
	for i := range primes {
		copy(p.p.Coeffs[i], p.x.C[i])
		copy(p.q.Coeffs[i], p.y.C[i])
	}
	return p, nil
}

// sure adapts a function that cannot fail.
func sure(f func()) func() error { return func() error { f(); return nil } }

func (o *Options) transforms(bits int) []Row {
	of := fmt.Sprintf("NTT of one polynomial, N = 2^%d, prime of %d bits", logN, bits)
	row := func(name, what string, ops func(p *pair) (own, rival func())) Row {
		return o.timed(fmt.Sprintf("%s_n%d_%dbit", name, logN, bits), "us", what+of, func(context.Context) (operation, error) {
			p, err := newPair(logN, []uint64{prime(bits)})
			if err != nil {
				return operation{}, err
			}
			own, rival := ops(p)
			return operation{own: sure(own), lattigo: sure(rival)}, nil
		})
	}
	return []Row{
		row("ntt", "forward ", func(p *pair) (own, rival func()) {
			return func() { p.basis.Forward(ring.NTT(p.z), p.x) }, func() { p.rival.NTT(p.p, p.r) }
		}),
		row("intt", "inverse ", func(p *pair) (own, rival func()) {
			return func() { p.basis.Inverse(p.z, ring.NTT(p.x)) }, func() { p.rival.INTT(p.p, p.r) }
		}),
	}
}

func (o *Options) pointwise() (rows []Row) {
	for _, bits := range []int{50, 61} {
		for _, c := range []struct {
			name, what string
			ops        func(p *pair) (own, rival func())
		}{
			{"mul", "product", func(p *pair) (own, rival func()) {
				return func() { p.basis.MulNTT(ring.NTT(p.z), ring.NTT(p.x), ring.NTT(p.y)) }, func() { p.rival.MulCoeffsMontgomery(p.p, p.q, p.r) }
			}},
			{"muladd", "product added to a sum", func(p *pair) (own, rival func()) {
				return func() { p.basis.MulAddNTT(ring.NTT(p.z), ring.NTT(p.x), ring.NTT(p.y)) }, func() { p.rival.MulCoeffsMontgomeryThenAdd(p.p, p.q, p.r) }
			}},
		} {
			what := fmt.Sprintf("pointwise %s, a coefficient, prime of %d bits (Lattigo: Montgomery form)", c.what, bits)
			rows = append(rows, o.timed(fmt.Sprintf("pointwise_%s_%dbit", c.name, bits), "ns", what, func(context.Context) (operation, error) {
				p, err := newPair(logN, []uint64{prime(bits)})
				if err != nil {
					return operation{}, err
				}
				own, rival := c.ops(p)
				return operation{own: sure(own), lattigo: sure(rival), per: degree, lattigoPer: degree}, nil
			}))
		}
	}
	return rows
}

// matmulMAC measures the plain product that the homomorphic matrix product consists of: d x d by d
// x 2d.
func (o *Options) matmulMAC(name string, bits int) Row {
	d := defaultDim
	if o.Dimension > 0 {
		d = o.Dimension
	}
	what := fmt.Sprintf("multiply-accumulate in a matrix product, prime of %d bits%s (Lattigo: MulCoeffsMontgomeryThenAdd)", bits, o.dimWhat())
	return o.timed(name, "ns", what,
		func(context.Context) (operation, error) {
			q := prime(bits)
			p, err := newPair(logN, []uint64{q})
			if err != nil {
				return operation{}, err
			}
			a, b, c := make([]uint64, d*d), make([]uint64, 2*d*d), make([]uint64, 2*d*d)
			sample.Uniform(a, q, stream("a"))
			sample.Uniform(b, q, stream("b"))
			return operation{
				own: sure(func() { kernel.MatMul(c, a, b, d, d, 2*d, q) }), per: float64(2 * d * d * d),
				lattigo: sure(func() { p.rival.MulCoeffsMontgomeryThenAdd(p.p, p.q, p.r) }), lattigoPer: degree,
			}, nil
		})
}

// bases are operations on polynomials modulo the primes of the first set.
func (o *Options) bases() []Row {
	set := o.Sets[0]
	N := float64(set.N())
	of := fmt.Sprintf(", a coefficient, from %d to %d primes of %s", len(set.Q), len(set.Aux), set.Name)
	prepare := func(ops func(p *pair, aux *ring.Basis, rivalAux *lattigo.Ring) (own, rival func())) func(context.Context) (operation, error) {
		return func(context.Context) (operation, error) {
			p, err := newPair(set.LogN, set.Q)
			if err != nil {
				return operation{}, err
			}
			aux, err := newPair(set.LogN, set.Aux)
			if err != nil {
				return operation{}, err
			}
			own, rival := ops(p, aux.basis, aux.rival)
			op := operation{own: sure(own), per: N, lattigoPer: N}
			if rival != nil {
				op.lattigo = sure(rival)
			}
			return op, nil
		}
	}
	return []Row{
		o.timed("basis_extension", "ns", "exact centred basis extension"+of, prepare(func(p *pair, aux *ring.Basis, rivalAux *lattigo.Ring) (own, rival func()) {
			e, dst, be, out := ring.NewExtender(p.basis, aux), aux.NewPoly(), lattigo.NewBasisExtender(p.rival, rivalAux), rivalAux.NewPoly()
			return func() { e.Extend(dst, p.x) }, func() { be.ModUpQtoP(p.rival.MaxLevel(), rivalAux.MaxLevel(), p.p, out) }
		})),
		o.timed("divide_and_round", "ns", "division by the auxiliary modulus, rounded"+of, prepare(func(p *pair, aux *ring.Basis, rivalAux *lattigo.Ring) (own, rival func()) {
			d, low, be, rivalLow := ring.NewDivider(p.basis, aux), aux.NewPoly(), lattigo.NewBasisExtender(p.rival, rivalAux), rivalAux.NewPoly()
			sample.Expand(low.C, aux.Primes(), seed, "low")
			for i := range low.C {
				copy(rivalLow.Coeffs[i], low.C[i])
			}
			return func() { d.DivRound(p.z, p.x, low) }, func() { be.ModDownQPtoQ(p.rival.MaxLevel(), rivalAux.MaxLevel(), p.p, rivalLow, p.r) }
		})),
		o.timed("add_monomial", "ns", fmt.Sprintf("X^e times a polynomial added to a sum, a coefficient modulo %d primes", len(set.Q)), prepare(func(p *pair, _ *ring.Basis, _ *lattigo.Ring) (own, rival func()) {
			e := 12345 % set.N()
			return func() { p.basis.AddMonomial(p.z, p.x, e) }, func() {
				p.rival.MultByMonomial(p.p, e, p.q)
				p.rival.Add(p.r, p.q, p.r)
			}
		})),
		o.timed("automorphism_ntt", "ns", fmt.Sprintf("automorphism in evaluation form, a coefficient modulo %d primes", len(set.Q)), prepare(func(p *pair, _ *ring.Basis, _ *lattigo.Ring) (own, rival func()) {
			g := gbfv.Galois(set.N(), 1, 2)
			index, err := lattigo.AutomorphismNTTIndex(set.N(), uint64(2*set.N()), uint64(g))
			if err != nil {
				panic(err) // g is odd
			}
			return func() { p.basis.AutomorphismNTT(ring.NTT(p.z), ring.NTT(p.x), g) }, func() { p.rival.AutomorphismNTTWithIndex(p.p, index, p.r) }
		})),
	}
}

func (o *Options) samplers() []Row {
	const sigma, width = 3.19, 8 // width = sigma sqrt(2 pi)
	rival := func() (*lattigo.Ring, sampling.PRNG, error) {
		r, err := lattigo.NewRing(degree, []uint64{prime(50)})
		if err != nil {
			return nil, nil, err
		}
		g, err := sampling.NewKeyedPRNG(seed)
		return r, g, err
	}
	return []Row{
		o.timed("gaussian_coset", "ns", "discrete Gaussian of width 4000 about fractional centres, a sample", func(context.Context) (operation, error) {
			g, err := sample.NewGaussian(4000)
			if err != nil {
				return operation{}, err
			}
			dst, centres, s := make([]int64, degree), make([]sample.Frac, degree), stream("gaussian")
			for i := range centres {
				centres[i] = sample.Frac{Hi: s.Uint64(), Lo: s.Uint64()}
			}
			return operation{own: sure(func() { g.SampleAt(dst, centres, s) }), per: degree}, nil
		}),
		o.timed("gaussian_error", "ns", "discrete Gaussian of deviation 3.19 about 0, a sample (Lattigo: a rounded Gaussian)", func(context.Context) (operation, error) {
			g, err := sample.NewGaussian(width)
			if err != nil {
				return operation{}, err
			}
			dst, s := make([]int64, degree), stream("gaussian")
			r, prng, err := rival()
			if err != nil {
				return operation{}, err
			}
			out := r.NewPoly()
			theirs := lattigo.NewGaussianSampler(prng, r, lattigo.DiscreteGaussian{Sigma: sigma, Bound: 6 * sigma}, false)
			return operation{own: sure(func() { g.Sample(dst, s) }), lattigo: sure(func() { theirs.Read(out) }), per: degree, lattigoPer: degree}, nil
		}),
		o.timed("uniform", "ns", "uniform residue of 50 bits, a sample", func(context.Context) (operation, error) {
			dst, s, q := make([]uint64, degree), stream("uniform"), prime(50)
			r, prng, err := rival()
			if err != nil {
				return operation{}, err
			}
			out, theirs := r.NewPoly(), lattigo.NewUniformSampler(prng, r)
			return operation{own: sure(func() { sample.Uniform(dst, q, s) }), lattigo: sure(func() { theirs.Read(out) }), per: degree, lattigoPer: degree}, nil
		}),
	}
}

// fieldNames are the sizes of fields in the order of their bits.
var fieldNames = []string{"p64", "p128", "p256", "p512", "p1024", "p2048", "p4096"}

// fields are multiplication, packing and unpacking for each size of field, in the first set that
// has it.
func (o *Options) fields() (rows []Row) {
	for _, name := range fieldNames {
		if o.Field != "" && name != o.Field {
			continue
		}
		i := slices.IndexFunc(o.Sets, func(s *params.Set) bool { _, err := s.Field(name); return err == nil })
		if i < 0 {
			continue
		}
		set := o.Sets[i]
		spec, _ := set.Field(name)
		slots := float64(set.Slots(spec))
		add := func(row, unit, what string, per float64, op func(f *field.Field, p *field.Packing) func()) {
			rows = append(rows, o.timed(row+"_"+name, unit, what, func(context.Context) (operation, error) {
				f, err := field.New(spec.B, spec.M)
				if err != nil {
					return operation{}, err
				}
				p, err := field.NewPacking(f, set.LogN)
				if err != nil {
					return operation{}, err
				}
				return operation{own: sure(op(f, p)), per: per}, nil
			}))
		}
		const batch = 256 // multiplications in a call, so that the call costs nothing
		add("field_mul", "ns", fmt.Sprintf("multiplication in a field of %s bits", name[1:]), batch, func(f *field.Field, _ *field.Packing) func() {
			v := f.NewVec(2)
			_ = f.Random(v, stream("field")) // streams do not fail
			x, y := v.At(0), v.At(1)
			return func() {
				for range batch {
					f.Mul(x, x, y)
				}
			}
		})
		of := fmt.Sprintf(" %.0f slots of %s bits, a slot, %s", slots, name[1:], set.Name)
		for _, dir := range []string{"pack", "unpack"} {
			add(dir, "ns", dir+"ing"+of, slots, func(f *field.Field, p *field.Packing) func() {
				v, w := f.NewVec(p.D()), f.NewVec(p.D())
				_ = f.Random(v, stream("slots")) // streams do not fail
				if dir == "pack" {
					return func() { p.Pack(w, v) }
				}
				return func() { p.Unpack(w, v) }
			})
		}
	}
	return rows
}
