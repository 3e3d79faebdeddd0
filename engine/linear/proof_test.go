package linear

import (
	"crypto/sha256"
	"errors"
	"math"
	"math/big"
	"math/cmplx"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/ring"
)

const provedSet = "insecure-V6-32-proved"

// received returns the key and inputs as received, up to the first refused message.
func receive(s *Scheme, key []byte, in *Inputs) (*PublicKey, *Inputs, error) {
	p, err := s.DecodePublicKey(key)
	if err != nil {
		return nil, nil, err
	}
	header := in.Header()
	copy(header[32:64], p.digest[:])
	out, err := p.ReceiveInputs(header, in.Len())
	if err != nil {
		return nil, nil, err
	}
	for i := range in.Len() {
		if err := out.Put(i, in.AppendCiphertext(nil, i)); err != nil {
			return nil, nil, err
		}
	}
	for i := range in.sent {
		if err := out.PutProof(i, in.sent[i]); err != nil {
			return nil, nil, err
		}
	}
	_, _, err = out.all(p, in.Len())
	return p, out, err
}

// Tests a shipped set.
func TestProvedProductsAtFullDegree(t *testing.T) {
	w := newWorld(t, "V13-32-proved")
	p, err := w.PlanVector(70, 9000, Cheapest, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, x, y := w.residues(70*9000), w.residues(9000), w.residues(9000)
	if got := w.run(t, p, m, x, y); !slices.Equal(got, w.product(m, w.sum(x, y))) {
		t.Error("another product")
	}
}

// A missing proof, a proof of something else, and a proof changed anywhere are each refused by the
// intended check.
func TestProofsAreChecked(t *testing.T) {
	w := newWorld(t, provedSet)
	const count = 3
	in := w.encrypted(t, count, 12345)
	key := w.public.Encode()
	if _, _, err := receive(w.Scheme, key, in); err != nil {
		t.Fatal(err)
	}
	other := newWorld(t, provedSet)
	other.renew()
	foreign := other.encrypted(t, count, 12345)
	touch := func(i, at int) func(*Inputs) {
		return func(in *Inputs) { in.sent[i][at] ^= 1 }
	}
	long := func(i, width int) func(*Inputs) {
		return func(in *Inputs) {
			z, at := intpoly.New(w.N(), 1), 0
			if i == 0 {
				at = sha256.Size
			}
			for k := range z.C {
				z.C[k] = uint64(1<<(width-1) - 1)
			}
			packed, err := codec.AppendSigned(nil, z, width)
			if err != nil {
				t.Fatal(err)
			}
			copy(in.sent[i][at:], packed)
		}
	}
	for name, c := range map[string]struct {
		change func(*Inputs)
		want   string
	}{
		"challenge":                {touch(0, 0), "not to this key"},
		"response of the secret":   {touch(0, sha256.Size), "not to this key"},
		"response of the key":      {touch(1, 7), "not to this key"},
		"response of an input":     {touch(3, 7), "not to this key"},
		"long secret":              {long(0, proofBits), "of the secret: response 0 is longer"},
		"long error of the key":    {long(1, proofBits), "of the error of the key: response 0 is longer"},
		"long input":               {long(4, w.inputBits()), "of input 2: response 0 is longer"},
		"frames swapped":           {func(in *Inputs) { in.sent[2], in.sent[3] = in.sent[3], in.sent[2] }, "not to this key"},
		"short frame":              {func(in *Inputs) { in.sent[2] = in.sent[2][1:] }, "frame 2 has"},
		"long frame":               {func(in *Inputs) { in.sent[1] = append(in.sent[1], 0) }, "frame 1 has"},
		"a frame too many":         {func(in *Inputs) { in.sent = append(in.sent, in.sent[2]) }, "out of order"},
		"a frame is missing":       {func(in *Inputs) { in.sent = in.sent[:4] }, "frame 4 of 5 is missing"},
		"none":                     {func(in *Inputs) { in.sent = nil }, "frame 0 of 5 is missing"},
		"of another key":           {func(in *Inputs) { in.sent = foreign.sent }, "not to this key"},
		"inputs swapped":           {func(in *Inputs) { in.b[0], in.b[1] = in.b[1], in.b[0] }, "not to this key"},
		"another input":            {func(in *Inputs) { in.b[2] = foreign.b[2] }, "not to this key"},
		"another seed":             {func(in *Inputs) { in.seed[5] ^= 1 }, "not to this key"},
		"an input with more noise": {func(in *Inputs) { in.b[1].C[0][0]++ }, "not to this key"},
	} {
		in := *in
		in.b, in.sent = slices.Clone(in.b), slices.Clone(in.sent)
		for i := range in.b {
			in.b[i] = in.b[i].Clone()
		}
		for i := range in.sent {
			in.sent[i] = slices.Clone(in.sent[i])
		}
		c.change(&in)
		_, _, err := receive(w.Scheme, key, &in)
		if !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := receive(w.Scheme, other.public.Encode(), in); !errors.Is(err, ErrProof) {
		t.Errorf("under another key: %v", err)
	}
	out, err := w.public.ReceiveInputs(in.Header(), count)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]string{-1: "out of order", 1: "out of order", 5: "out of order"} {
		if err := out.PutProof(i, in.sent[1]); !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), want) {
			t.Errorf("frame %d first: %v", i, err)
		}
	}
	for range 2 {
		err = out.PutProof(0, in.sent[0])
	}
	if !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("a frame twice: %v", err)
	}
	if err := out.PutProof(2, in.sent[2]); !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), "which has not been received") {
		t.Errorf("a frame before its input: %v", err)
	}
	if _, _, err := in.all(w.public, count); !errors.Is(err, ErrProof) {
		t.Errorf("inputs without proof state: %v", err)
	}
	plain := newWorld(t, "insecure-V6-32")
	if err := plain.received(t, plain.encrypted(t, 1, 1)).PutProof(0, in.sent[0]); !errors.Is(err, ErrProof) {
		t.Errorf("a proof that is not expected: %v", err)
	}
}

// A key makes one proof only: a proof reveals something about the secret, and two reveal more.
func TestAKeyProvesOnce(t *testing.T) {
	w := newWorld(t, provedSet)
	p, err := w.PlanVector(2, 2, Cheapest, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Encrypt(w.secret, w.residues(2), 1, w.source()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Encrypt(w.secret, w.residues(2), 1, w.source()); !errors.Is(err, ErrKeys) {
		t.Errorf("a second proof: %v", err)
	}
}

// Data without a proof is refused: samples for products of ciphertexts, and plans of such products.
func TestProvedSetsHaveNoProductsOfCiphertexts(t *testing.T) {
	w := newWorld(t, provedSet)
	if w.public.Products() {
		t.Error("a key has samples that nothing proves")
	}
	long := append(w.public.Encode(), make([]byte, w.PublicKeySize(true)-w.PublicKeySize(false))...)
	if _, err := w.DecodePublicKey(long); !errors.Is(err, ErrKeys) {
		t.Errorf("a key with more samples: %v", err)
	}
	if _, err := w.PlanProduct(ProductShape{Rows: 1, Inner: 1, Cols: 1, MaxLeft: 1, MaxRight: 1}); !errors.Is(err, ErrShape) {
		t.Errorf("a product of ciphertexts: %v", err)
	}
}

// Owners without short secrets cannot produce an accepted proof. They follow the honest prover
// otherwise; the verifier refuses their proof, or proving fails.
func TestLongSecretsAreRefused(t *testing.T) {
	for name, cheat := range map[string]func(w *world){
		"secret": func(w *world) {
			w.secret.witness.Open().s.C[3] = 1 << 20
			w.rekey()
		},
		"secret, a little": func(w *world) {
			for k := range w.N() {
				w.secret.witness.Open().s.C[k] = 300
			}
			w.rekey()
		},
		"error of the key": func(w *world) {
			w.secret.witness.Open().e.C[0] = 1 << 20
			w.rekey()
		},
		"error of the key that is not said": func(w *world) {
			w.public.b[0].C[0][0] ^= 1
			w.redigest()
		},
		"another secret in the inputs": func(w *world) {
			w.secret.s.Open().C[0][0] ^= 1
		},
	} {
		w := newWorld(t, provedSet)
		cheat(w)
		in, err := w.secret.encrypt(2, 1, func(int, []uint64) {}, w.source())
		if err != nil {
			if !errors.Is(err, codec.ErrRange) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if _, _, err := receive(w.Scheme, w.public.Encode(), in); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rekey computes the public key of a changed witness.
func (w *world) rekey() {
	x, key := w.secret.witness.Open(), w.secret.s.Open()
	w.basis.FromInt(ring.Poly(key.NTT), x.s)
	w.basis.Forward(key.NTT, ring.Poly(key.NTT))
	w.image(w.public.b[0], w.public.a[0], key.NTT, x.e, false)
	w.redigest()
}

func (w *world) redigest() {
	w.public.digest = sha256.Sum256(w.public.Encode())
	w.secret.digest = w.public.digest
}

// Responses made without any secret, for a challenge chosen first, satisfy the equations; the hash
// refuses them.
func TestChallengesAreNotChosen(t *testing.T) {
	w := newWorld(t, provedSet)
	in := w.encrypted(t, 1, 7)
	var z []byte
	zero := intpoly.New(w.N(), 1)
	for range w.repetitions() {
		z, _ = codec.AppendSigned(z, zero, proofBits)
	}
	var wide []byte
	for range w.repetitions() {
		wide, _ = codec.AppendSigned(wide, zero, w.inputBits())
	}
	in.b[0] = w.basis.NewNTT()
	in.b[0].C[1][5] = 99
	challenge := sha256.Sum256([]byte("chosen"))
	in.sent = [][]byte{append(challenge[:], z...), z, wide}
	_, _, err := receive(w.Scheme, w.public.Encode(), in)
	if !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), "not to this key") {
		t.Errorf("a challenge that was chosen first: %v", err)
	}
}

// canonical returns the largest absolute value at the roots of X^N+1.
func canonical(z []int64) (most float64) {
	n := len(z)
	for j := range n {
		var v complex128
		for k, c := range z {
			v += complex(float64(c), 0) * cmplx.Rect(1, math.Pi*float64((2*j+1)*k%(2*n))/float64(n))
		}
		most = max(most, cmplx.Abs(v))
	}
	return most
}

// The bounds of products of proved inputs hold for inputs as long as a proof allows. They are
// tight: adversarial signs come close.
func (w *world) noiseOfProvedProducts(t *testing.T) {
	if !w.Insecure {
		return // the formulas are the same, and canonical is slow
	}
	const terms = 5
	n := w.N()
	signs := make([]int64, n)
	for k := range signs {
		signs[k] = int64(2*w.below(2)) - 1
	}
	_, most := w.proved()
	size := int64(most / canonical(signs) / 2)
	x, p := intpoly.New(n, 1), make([]uint64, n)
	for k, sign := range signs {
		x.C[k] = uint64(size * sign)
		if at := (n - k) % n; sign > 0 == (k == 0) { // coefficient 0 of the product adds up the values at k and N - k
			p[at] = w.T / 2
		} else {
			p[at] = w.T - w.T/2
		}
	}
	key := w.secret.s.Open()
	noise := func(multiply func(dst, x ring.NTT)) []*big.Int {
		c0, c1, b := w.basis.NewNTT(), w.basis.NewNTT(), w.basis.NewNTT()
		for i := range terms {
			a := w.expand(&w.public.seed, "test", uint64(i))
			w.image(b, a, key.NTT, x, false)
			multiply(c0, b)
			multiply(c1, a)
		}
		w.basis.AddNTT(c0, c0, c0)
		w.basis.AddNTT(c1, c1, c1)
		e, _ := w.noises(w.coefficients(c0, c1))
		return e
	}
	double, mod, factor := make([]uint64, n), w.plaintext(), w.basis.NewNTT()
	for k, v := range p {
		double[k] = mod.Add(v, v) // multiplier halves it
	}
	w.multiplier(factor, double)
	within(t, "product", noise(func(dst, x ring.NTT) { w.basis.MulAddNTT(dst, x, factor) }), w.ProductNoise(terms, n), 2)
	c, scaled := w.scalar(mod.Add(w.T/2, w.T/2)), w.basis.NewPoly()
	within(t, "scalars", noise(func(dst, x ring.NTT) {
		w.basis.MulScalar(scaled, ring.Poly(x), c)
		w.basis.AddNTT(dst, dst, ring.NTT(scaled))
	}), w.ScalarNoise(terms), 5)
}

// Responses reveal nothing about messages: modulo T they are uniform for every message, and divided
// by T they are as wide as masks and inputs together.
func TestResponsesSayNothingOfMessages(t *testing.T) {
	for _, message := range []uint64{0, 1, t32 / 2, t32 - 1} {
		w := newWorld(t, provedSet)
		w.calls = message + 1000
		w.renew()
		const count, bins = 20, 16
		in := w.encrypted(t, count, message)
		var seen [bins]float64
		total, squares, size := 0.0, 0.0, codec.SignedSize(w.N(), w.inputBits())
		z := intpoly.New(w.N(), 1)
		for i := range count {
			for r := range w.repetitions() {
				if err := codec.DecodeSigned(z, w.inputBits(), in.sent[2+i][r*size:(r+1)*size]); err != nil {
					t.Fatal(err)
				}
				for _, c := range z.C {
					rest := int64(c) % int64(w.T)
					if rest < 0 {
						rest += int64(w.T)
					}
					seen[uint64(rest)*bins/w.T]++
					x := float64(int64(c)) / float64(w.T)
					total, squares = total+x, squares+x*x
				}
			}
		}
		all := float64(count * w.repetitions() * w.N())
		chi := 0.0
		for _, n := range seen {
			chi += (n - all/bins) * (n - all/bins) / (all / bins)
		}
		if chi > 50 { // 15 degrees of freedom: 2^-16
			t.Errorf("message %d: responses modulo T are not uniform, chi-square %.1f", message, chi)
		}
		variance := w.Proof.honest() * w.Proof.honest() / (2 * math.Pi)
		if mean := total / all; math.Abs(mean) > 5*math.Sqrt(variance/all) {
			t.Errorf("message %d: responses have the mean %.3f", message, mean)
		}
		if got := squares / all; math.Abs(got/variance-1) > 0.05 {
			t.Errorf("message %d: responses have the variance %.1f, want %.1f", message, got, variance)
		}
	}
}

// fraction has the right bits, and coset the right messages.
func TestCosets(t *testing.T) {
	w := newWorld(t, provedSet)
	modulus := new(big.Int).SetUint64(w.T)
	for _, c := range append(w.residues(50), 0, 1, 2, w.T/2, w.T-2, w.T-1) {
		f := w.fraction(c)
		got := new(big.Int).SetUint64(f.Hi)
		got.Lsh(got, 64).Add(got, new(big.Int).SetUint64(f.Lo))
		want := new(big.Int).SetUint64(c)
		want.Lsh(want, 128).Div(want, modulus)
		if d := want.Sub(want, got); d.Sign() < 0 || d.Cmp(big.NewInt(2)) > 0 {
			t.Errorf("%d/T: off by %d/2^128", c, d)
		}
	}
	m := append(w.residues(w.N()-3), 0, 1, w.T-1)
	v := w.coset(m, w.witnesses, w.source().Stream("test"))
	for k, c := range v.C {
		rest := int64(c) % int64(w.T)
		if rest < 0 {
			rest += int64(w.T)
		}
		if uint64(rest) != m[k] {
			t.Errorf("coefficient %d is %d modulo T, want %d", k, rest, m[k])
		}
		if math.Abs(float64(int64(c))/float64(w.T)) > 6*w.Proof.SecretWidth {
			t.Errorf("coefficient %d is long", k)
		}
	}
	for _, message := range []uint64{1, w.T / 2, w.T - 1} {
		const times = 64
		total, source := 0.0, w.source()
		for i := range times {
			for _, c := range w.coset(constant(w.N(), message), w.witnesses, source.Stream("mean", uint64(i))).C {
				total += float64(int64(c)) / float64(w.T)
			}
		}
		n := float64(times * w.N())
		if mean := total / n; math.Abs(mean) > 5*w.Proof.SecretWidth/math.Sqrt(2*math.Pi*n) {
			t.Errorf("message %d: errors have the mean %.3f", message, mean)
		}
	}
}
