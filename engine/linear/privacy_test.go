package linear

import (
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Tests the papers' protocols as printed, which leak, and applies the same attacks to answers of
// this package.

// quotient returns x/y in R, for y without zeros.
func (w *world) quotient(t *testing.T, x, y ring.NTT) []*big.Int {
	t.Helper()
	out := w.basis.NewNTT()
	for i, row := range y.C {
		one := w.basis.Range(i, i+1)
		q := new(big.Int).SetUint64(w.Q[i])
		for k, v := range row {
			if v == 0 {
				t.Fatal("the ciphertext is not invertible")
			}
			out.C[i][k] = new(big.Int).ModInverse(new(big.Int).SetUint64(v), q).Uint64()
		}
		part := ring.NTT{C: out.C[i : i+1]}
		one.MulNTT(part, part, ring.NTT{C: x.C[i : i+1]})
	}
	p := w.basis.NewPoly()
	w.basis.Inverse(p, out)
	return w.lifted(p)
}

// lifted returns centred coefficients.
func (w *world) lifted(p ring.Poly) []*big.Int {
	basis := w.basis.Prefix(len(p.C))
	q, out := basis.Modulus(), make([]*big.Int, w.N())
	half := new(big.Int).Rsh(q, 1)
	for k := range out {
		out[k] = new(big.Int)
		for i, prime := range basis.Primes() {
			m := new(big.Int).SetUint64(prime)
			rest := new(big.Int).Div(q, m)
			rest.Mul(rest, new(big.Int).ModInverse(rest, m))
			out[k].Add(out[k], rest.Mul(rest, new(big.Int).SetUint64(p.C[i][k])))
		}
		if out[k].Mod(out[k], q).Cmp(half) > 0 {
			out[k].Sub(out[k], q)
		}
	}
	return out
}

// matches counts the coefficients that equal those of a packed matrix, centred.
func (w *world) matches(got []*big.Int, packed []uint64) (n int) {
	for k, x := range got {
		if x.IsInt64() && x.Int64() == w.signed(packed[k]) {
			n++
		}
	}
	return n
}

// In Algorithm 1 of Crypt-CNN as printed, with one block, c_1 of the answer divided by c_1 of the
// input is the packed matrix. Adding the mask, a plaintext, changes only c_0. With a fresh
// encryption of 0 the quotient reveals nothing, before the switch and after it.
func TestQuotientOfAnswerIsNotTheMatrix(t *testing.T) {
	w := newWorld(t, "insecure-V6-32")
	for _, packing := range packings[1:] {
		p, err := w.PlanVector(4, 16, packing, 4)
		if err != nil || p.Blocks != 1 {
			t.Fatal(p, err)
		}
		in, err := p.Encrypt(w.secret, w.residues(16), 1, w.source())
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Evaluator(w.public, in)
		if err != nil {
			t.Fatal(err)
		}
		m, packed := w.residues(4*16), make([]uint64, w.N())
		p.pack(packed, m, 0)
		c0, c1 := e.multiply(m)
		if n := w.matches(w.quotient(t, c1, e.a[0]), packed); n != w.N() {
			t.Errorf("%v: as printed, %d of %d coefficients of the matrix are found", packing, n, w.N())
		}

		printed := c1.Clone()
		b, a := w.public.addZero(c0, c1, w.source())
		w.basis.Forward(ring.NTT(a), a)
		if n := w.matches(w.quotient(t, ring.NTT(a), e.a[0]), packed); n > 1 {
			t.Errorf("%v: %d of %d coefficients of the matrix are found behind an encryption of 0", packing, n, w.N())
		}
		long, rest := 0, ring.NTT(w.basis.NewPoly())
		w.basis.SubNTT(rest, ring.NTT(a), printed)
		w.basis.Inverse(ring.Poly(rest), rest)
		for _, x := range w.lifted(ring.Poly(rest)) {
			if x.BitLen() > int(w.LogQ())-8 {
				long++
			}
		}
		if long < w.N()*9/10 {
			t.Errorf("%v: %d of %d coefficients added to c_1 are as long as uniform ones", packing, long, w.N())
		}
		w.basis.Inverse(a, ring.NTT(a))
		w.basis.Forward(ring.NTT(a), a)
		w.basis.Forward(ring.NTT(b), b)
		_, small := w.public.finish(ring.NTT(b), ring.NTT(a), w.residues(w.N()), p.bound, w.source())
		lifted := w.basis.NewPoly()
		for i := range lifted.C {
			w.first.MulScalar(ring.Poly{C: lifted.C[i : i+1]}, small, []uint64{1})
		}
		w.basis.Forward(ring.NTT(lifted), lifted)
		if n := w.matches(w.quotient(t, ring.NTT(lifted), e.a[0]), packed); n > 1 {
			t.Errorf("%v: %d of %d coefficients of the matrix are found in an answer", packing, n, w.N())
		}
	}
}

// An encryption of 0 without a flood leaves the noise p e + e', and the owner of the key knows e.
// Divided by e and rounded, the noise is p if e is long and p short. So noises distinguish
// matrices; with the flood they do not.
func TestNoiseDoesNotTellMatricesApart(t *testing.T) {
	w := newWorld(t, "insecure-V6-32")
	p, err := w.PlanVector(64, 1, Forward, 64)
	if err != nil {
		t.Fatal(err)
	}
	in, err := p.Encrypt(w.secret, []uint64{w.T / 2}, 1, w.source())
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Evaluator(w.public, in)
	if err != nil {
		t.Fatal(err)
	}
	const cells = 16
	matrices := [][]uint64{constant(64, 0), constant(64, w.T/2)}
	counts, plain := [2][cells]float64{}, [2]*big.Int{}
	// Noises after the switch are at most (q_0/T)/2; a cell is a sixteenth of this range.
	width := int64(w.Q[0]/w.T)/cells + 1
	const runs = 400
	for i, m := range matrices {
		noise, _ := w.noises(w.public.addZeroOf(e, m, w.source()))
		plain[i] = largest(noise)
		for range runs {
			c0, c1 := e.multiply(m)
			noise, _ := w.noises(w.public.finish(c0, c1, w.residues(w.N()), p.bound, w.source()))
			for _, x := range noise {
				counts[i][(x.Int64()+width*cells/2)/width]++
			}
		}
	}
	if plain[1].Cmp(new(big.Int).Lsh(plain[0], 8)) < 0 {
		t.Errorf("without a flood the largest noises are %v and %v", plain[0], plain[1])
	}
	// Both histograms contain all noises, so the variance of the difference of two counts is their
	// sum.
	var chi float64
	for c := range cells {
		if sum := counts[0][c] + counts[1][c]; sum > 0 {
			d := counts[0][c] - counts[1][c]
			chi += d * d / sum
		}
	}
	if chi > 60 { // with 15 degrees of freedom: exceeded with probability 2e-7
		t.Errorf("noises of two matrices differ: chi-square %.1f, %v", chi, counts)
	}
	for _, n := range counts[0][1 : cells-1] {
		if n < 0.8*64*runs/cells || n > 1.2*64*runs/cells {
			t.Errorf("the noises are concentrated: %v", counts)
		}
	}
}

// addZeroOf returns an answer without flood, mask and switch.
func (p *PublicKey) addZeroOf(e *VectorEvaluator, m []uint64, source *sample.Source) (c0, c1 ring.Poly) {
	b, a := e.multiply(m)
	return p.addZero(b, a, source)
}

// chiSquare returns the statistic of residues modulo T in 16 cells, with 15 degrees of freedom if
// they are uniform.
func (s *Set) chiSquare(v []uint64) (chi float64) {
	var cells [16]float64
	for _, x := range v {
		cells[x*16/s.T]++
	}
	expected := float64(len(v)) / 16
	for _, c := range cells {
		chi += (c - expected) * (c - expected) / expected
	}
	return chi
}

// others returns the coefficients of messages that are not targets.
func others(m []uint64, targets []int) (out []uint64) {
	for k, x := range m {
		if !slices.Contains(targets, k) {
			out = append(out, x)
		}
	}
	return out
}

// Coefficients of a vector's product that are not read are uniform, and so are the shares. Without
// the mask they are the same every time, and 0 for a zero matrix.
func TestOtherCoefficientsOfVectorsAreUniform(t *testing.T) {
	w := newWorld(t, "insecure-V6-32")
	for _, packing := range packings[1:] {
		p, err := w.PlanVector(8, 8, packing, 8)
		if err != nil {
			t.Fatal(err)
		}
		in, err := p.Encrypt(w.secret, w.residues(8), 1, w.source())
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Evaluator(w.public, in)
		if err != nil {
			t.Fatal(err)
		}
		for name, m := range map[string][]uint64{"zeros": constant(64, 0), "ones": constant(64, 1)} {
			_, first := w.noises(w.public.addZeroOf(e, m, w.source()))
			_, again := w.noises(w.public.addZeroOf(e, m, w.source()))
			if !slices.Equal(first, again) || w.chiSquare(first) < 60 {
				t.Errorf("%v, %s: without a mask messages are uniform", packing, name)
			}
			var rest, shares []uint64
			for range 200 {
				c0, c1 := e.multiply(m)
				source := w.source()
				mask, _ := p.mask(8, source)
				b, a := w.public.finish(c0, c1, mask, p.bound, source)
				message := w.messages(b, a)
				rest = append(rest, others(message, p.targets)...)
				for _, at := range p.targets {
					shares = append(shares, message[at])
				}
			}
			if chi := w.chiSquare(rest); chi > 60 {
				t.Errorf("%v, %s: other coefficients are not uniform, chi-square %.1f", packing, name, chi)
			}
			if chi := w.chiSquare(shares); chi > 60 {
				t.Errorf("%v, %s: shares are not uniform, chi-square %.1f", packing, name, chi)
			}
		}
	}
}

// The same holds for a batch, whether vectors are numbers or polynomials.
func TestOtherCoefficientsOfBatchesAreUniform(t *testing.T) {
	w := newWorld(t, "insecure-V6-32")
	for _, shape := range [][4]int{{40, 2, 2, 1}, {5, 2, 2, 3}} {
		p, err := w.PlanBatch(shape[0], shape[1], shape[2], shape[3])
		if err != nil || p.scalars() != (shape[0] == 40) || p.Answers != 1 {
			t.Fatal(p, err)
		}
		in, err := p.Encrypt(w.secret, w.residues(p.Rows*p.Cols*p.Count), 1, w.source())
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Evaluator(w.public, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, vectors := range [][]uint64{constant(p.Outputs*4, 0), constant(p.Outputs*4, 1)} {
			var all []uint64
			for range 200 {
				c0, c1 := e.multiply(vectors, p.PartOf(0), 0)
				source := w.source()
				all = append(all, w.messages(w.public.finish(c0, c1, w.mask(source), p.bound, source))...)
			}
			if chi := w.chiSquare(all); chi > 60 {
				t.Errorf("%v: coefficients of an answer are not uniform, chi-square %.1f", shape, chi)
			}
		}
	}
}

// messages returns all coefficients of an answer before it is cut.
func (w *world) messages(c0, c1 ring.Poly) []uint64 { return w.decode(w.phase(c0, c1).C[0]) }

// In the packed product as printed, a coefficient outside the product is a single product of
// entries, here of the last entry of the left factor with one of the right. In answers it is
// uniform, and so are all others.
func TestCrossTermsAreMasked(t *testing.T) {
	w := newWorld(t, "insecure-P6-17")
	p, err := w.PlanProduct(ProductShape{Rows: 4, Inner: 4, Cols: 4, MaxLeft: 30, MaxRight: 30, Method: Second})
	if err != nil || p.Answers() != 1 || p.inners != 1 {
		t.Fatal(p, err)
	}
	left, right := w.entries(16, 30), w.entries(16, 30)
	l, err := p.EncryptLeft(w.secret, left, 1, w.source())
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.EncryptRight(w.secret, right, 1, w.source())
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Evaluator(w.public, l, r)
	if err != nil {
		t.Fatal(err)
	}
	const at = 63 // u = 3 of row 3 with column 3 of row 0, and -X^64 times u = 0 of row 0 with column 0 of row 1
	c0, c1, c2 := e.multiply(0)
	w.public.relinearise(c0, c1, c2)
	_, plain := w.noises(w.coefficients(c0, c1))
	if got := w.signed(plain[at]); got != left[15]*right[3]-left[0]*right[4] || slices.Contains(p.targets, at) {
		t.Errorf("as printed, coefficient %d is %d, not %d %d - %d %d", at, got, left[15], right[3], left[0], right[4])
	}
	var rest, one []uint64
	for range 400 {
		c0, c1, c2 := e.multiply(0)
		w.public.relinearise(c0, c1, c2)
		source := w.source()
		message := w.messages(w.public.finish(c0, c1, p.mask(source), p.bound, source))
		rest, one = append(rest, others(message, p.targets)...), append(one, message[at])
		for i, want := range p.integers(left, right) {
			if got := w.signed(message[p.targets[i/4+i%4*4]]); got != want {
				t.Fatalf("entry %d is %d, want %d", i, got, want)
			}
		}
	}
	if chi := w.chiSquare(rest); chi > 60 {
		t.Errorf("other coefficients are not uniform, chi-square %.1f", chi)
	}
	if chi := w.chiSquare(one); chi > 60 {
		t.Errorf("coefficient %d is not uniform, chi-square %.1f", at, chi)
	}
}
