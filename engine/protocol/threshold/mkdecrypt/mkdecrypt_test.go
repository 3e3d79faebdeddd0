package mkdecrypt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// owners are parties that each have a key.
type owners struct {
	*multikey.Scheme
	secrets []*multikey.Secret
	e       *multikey.Evaluator
	random  *rand.Rand
}

func source(label string, p uint64) *sample.Source {
	d := round.Hash("mkdecrypt test", []byte(label), round.Uint(p))
	return sample.NewSource(d[:])
}

func newOwners(t testing.TB, name string, n int) *owners {
	t.Helper()
	set, err := multikey.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := multikey.New(set, multikey.StandardSeed())
	if err != nil {
		t.Fatal(err)
	}
	o := &owners{Scheme: s, e: multikey.NewEvaluator(s), random: rand.New(rand.NewPCG(1, uint64(n)))}
	for i := range n {
		secret, keys := s.Generate(uint32(i), source("keys", uint64(i)), 2)
		if _, err := o.e.Add(keys, 2); err != nil {
			t.Fatal(err)
		}
		o.secrets = append(o.secrets, secret)
	}
	return o
}

// encrypt encrypts bits under the keys of one owner.
func (o *owners) encrypt(of int, bits ...bool) (list []*multikey.Ciphertext) {
	b := o.secrets[of].Encrypt(bits, source("encryption", o.random.Uint64()))
	for i := range bits {
		list = append(list, b.Ciphertext(i))
	}
	return list
}

// gate computes one gate.
func (o *owners) gate(t testing.TB, g multikey.Gate, a, b, c *multikey.Ciphertext) *multikey.Ciphertext {
	t.Helper()
	out, err := o.e.Gate(context.Background(), 2, g, a, b, c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// open decrypts ciphertexts under the same keys by a quorum of owners.
func (o *owners) open(t testing.TB, quorum []int, list ...*multikey.Ciphertext) []uint64 {
	t.Helper()
	keys := list[0].Keys()
	params, err := Params(o.Set, len(quorum), len(keys))
	if err != nil {
		t.Fatal(err)
	}
	batch := NewCiphertexts(o.Scheme, keys)
	for _, c := range list {
		if err := batch.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	label := fmt.Sprint(o.random.Uint64())
	stock := roundtest.Lockstep(len(quorum), func(s round.Session) (round.Transition[*masks.Batch], error) {
		return masks.Start(masks.Config{
			Session: s, Step: "masks", Kind: params.Kind, Count: len(list), Sacrifice: 4, Source: source(label, uint64(s.Self)), Workers: 2,
		})
	}).OK(t).Results
	out := roundtest.Lockstep(len(quorum), func(s round.Session) (round.Transition[*decrypt.Result], error) {
		own := o.secrets[quorum[s.Self]]
		share := Share(o.Scheme, keys, func(id multikey.KeyID) *multikey.Secret {
			if id == own.ID() {
				return own
			}
			return nil
		})
		return decrypt.Start(decrypt.Config{
			Session: s, Step: "test", Params: params, Ciphertexts: batch, Secret: share, Masks: stock[s.Self], Recipient: decrypt.Outside, Workers: 2,
		})
	}).OK(t)
	var answers [][]byte
	for _, r := range out.Results {
		answers = append(answers, r.Answer)
	}
	opened, err := decrypt.Combine(params, len(list), answers)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// The owners, in any order, and larger quorums decrypt the results of all gates under keys of two
// and of three parties.
func TestGates(t *testing.T) {
	o := newOwners(t, "insecure-M8-32", 4)
	var two, three []*multikey.Ciphertext
	var bits []bool
	for _, g := range multikey.Gates() {
		for v := range 8 {
			a, b, c := v&1 == 1, v&2 == 2, v&4 == 4
			x, y := o.encrypt(0, a)[0], o.encrypt(2, b)[0]
			two = append(two, o.gate(t, g, x, y, o.encrypt(0, c)[0]))
			three = append(three, o.gate(t, multikey.Mux, x, two[len(two)-1], o.encrypt(3, c)[0]))
			bits = append(bits, g.Bit(a, b, c))
		}
	}
	for _, quorum := range [][]int{{0, 2}, {2, 0}, {0, 1, 2}, {3, 2, 1, 0}} {
		got, err := Bits(o.open(t, quorum, two...))
		if err != nil || !slices.Equal(got, bits) {
			t.Errorf("%v open %v, %v; want %v", quorum, got, err, bits)
		}
	}
	var want []bool
	for i := range three {
		bit, err := multikey.Decrypt(three[i], o.secrets...)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, bit)
	}
	if got, err := Bits(o.open(t, []int{0, 2, 3}, three...)); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// Without an owner of a key the opened plaintexts are unrelated to the bits.
func TestAllOwnersAreNeeded(t *testing.T) {
	o := newOwners(t, "insecure-M8-32", 3)
	var list []*multikey.Ciphertext
	for range 200 {
		list = append(list, o.gate(t, multikey.And, o.encrypt(0, true)[0], o.encrypt(1, true)[0], nil))
	}
	counts := [4]int{}
	for _, m := range o.open(t, []int{0, 2}, list...) {
		counts[m]++
	}
	for m, n := range counts {
		if n < 20 || n > 90 {
			t.Errorf("%d of 200 are %d", n, m)
		}
	}
}

// The owner of a key decrypts fresh encryptions under it together with the masks of any other
// party.
func TestOneOwner(t *testing.T) {
	o := newOwners(t, "insecure-M8-32", 2)
	bits := []bool{true, false, false, true}
	if got, err := Bits(o.open(t, []int{1, 0}, o.encrypt(0, bits...)...)); err != nil || !slices.Equal(got, bits) {
		t.Errorf("%v, %v", got, err)
	}
}

// The plaintext is the one nearest to the phase, on both sides of every edge, for noise of all
// sizes. Beyond 1/8 it is another bit, or not a bit.
func TestEdges(t *testing.T) {
	o := newOwners(t, "insecure-M8-32", 2)
	c := o.gate(t, multikey.Xor, o.encrypt(0, true)[0], o.encrypt(1, false)[0], nil)
	phase := c.B
	for _, k := range o.secrets {
		x, err := k.Phase(c)
		if err != nil {
			t.Fatal(err)
		}
		phase += x
	}
	params, err := Params(o.Set, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	rounded := uint32(decrypt.MaxNoise(params.Kind, modulus, 2)) // the part of 1/8 that the roundings of two parties leave
	var list []*multikey.Ciphertext
	var want []uint64
	for m := range uint32(4) {
		for _, e := range []uint32{0, rounded, -rounded} {
			x := c.Clone()
			x.B += m<<30 - eighth + e - phase
			list, want = append(list, x), append(want, uint64(m))
		}
	}
	got := o.open(t, []int{0, 1}, list...)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, m := range got {
		if _, err := Bits([]uint64{0, m}); (m > 1) != errors.Is(err, ErrNoise) {
			t.Errorf("%d: %v", m, err)
		}
	}
}

// The test checks the kind of masks of every set that supports decryption, for the largest number
// of parties, and the failure probability. docs/reference/parameters.md lists them.
func TestFailure(t *testing.T) {
	for d, bound := range map[float64]float64{deviations64: -64, deviations128: -128} {
		if erfc := math.Log2(math.Erfc(d / math.Sqrt2)); erfc > bound || erfc < bound-3 {
			t.Errorf("%v standard deviations: 2^%v", d, erfc)
		}
	}
	none := map[string]bool{"insecure-M11-IV": true, "insecure-M11-V": true}
	for _, set := range multikey.Sets() {
		for parties := 2; parties <= set.Parties; parties++ {
			p, err := Params(set, parties, set.Parties)
			if none[set.Name] {
				if !errors.Is(err, ErrParams) {
					t.Errorf("%s: %v", set.Name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			bound := -64.0
			if !set.Insecure && !set.Legacy() {
				bound = -128
			}
			if f := Failure(set, p); f > bound {
				t.Errorf("%s with %d parties: 2^%.1f", set.Name, parties, f)
			}
			if smaller := p.Kind; smaller.LogPhi > 1 {
				smaller.LogPhi--
				smaller.LogEta--
				if decrypt.MaxNoise(smaller, modulus, parties) >= deviations(set)*deviation(set) {
					t.Errorf("%s with %d parties: eta = 2^%d suffices", set.Name, parties, smaller.LogEta)
				}
			}
		}
	}
}

func TestParamsAndBatchesAreRefused(t *testing.T) {
	o := newOwners(t, "insecure-M8-32", 2)
	for _, x := range [][2]int{{1, 1}, {33, 1}, {2, 0}, {2, 33}} {
		if _, err := Params(o.Set, x[0], x[1]); !errors.Is(err, ErrParams) {
			t.Errorf("%d parties, %d keys: %v", x[0], x[1], err)
		}
	}
	a, b := o.encrypt(0, true)[0], o.encrypt(1, true)[0]
	batch := NewCiphertexts(o.Scheme, a.Keys())
	if err := batch.Add(a); err != nil || batch.Len() != 1 {
		t.Fatal(err)
	}
	both := o.gate(t, multikey.And, a, b, nil)
	for name, c := range map[string]*multikey.Ciphertext{"another key": b, "more keys": both, "no key": multikey.Trivial(true)} {
		if err := batch.Add(c); !errors.Is(err, ErrKeys) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := batch.Add(&multikey.Ciphertext{Parts: []multikey.Part{{Key: a.Parts[0].Key}}}); !errors.Is(err, multikey.ErrCiphertext) || batch.Len() != 1 {
		t.Errorf("no words: %v", err)
	}
}

// Results of gates of the default set decrypt without an error. Gates take longest, so the test
// decrypts each result many times with other masks, which change the roundings and carries.
func TestManyResults(t *testing.T) {
	counts := map[string]int{"a sample": 11, "a hundred thousand": 100_000}
	var cases []longtest.Case
	for name, n := range counts {
		cases = append(cases, longtest.Case{Name: name, Everyday: n < 1000, Run: func(t *testing.T) { manyResults(t, n) }})
	}
	longtest.Run(t, cases)
}

func manyResults(t *testing.T, n int) {
	const distinct, atOnce = 500, 1000
	o := newOwners(t, multikey.Default, 4)
	inputs := make([]*multikey.Ciphertext, 4)
	list, want := make([]*multikey.Ciphertext, min(n, distinct)), make([]bool, min(n, distinct))
	tasks := make([]multikey.Task, len(list))
	for i := range tasks {
		g := multikey.Gates()[i%len(multikey.Gates())]
		v := o.random.Uint32()
		for p := range inputs { // every result depends on all four keys
			inputs[p] = o.encrypt(p, v>>p&1 == 1)[0]
		}
		a, b := (v^v>>1)&1 == 1, (v>>2^v>>3)&1 == 1
		x := o.gate(t, multikey.Xor, inputs[0], inputs[1], nil)
		y := o.gate(t, multikey.Xor, inputs[2], inputs[3], nil)
		list[i] = &multikey.Ciphertext{}
		tasks[i] = multikey.Task{Gate: g, Dst: list[i], A: x, B: y, C: x}
		want[i] = g.Bit(a, b, a)
	}
	if err := o.e.Run(t.Context(), 2, tasks); err != nil {
		t.Fatal(err)
	}
	for len(list) < min(n, atOnce) {
		list, want = append(list, list...), append(want, want...)
	}
	for done := 0; done < n; done += len(list) {
		got, err := Bits(o.open(t, []int{0, 1, 2, 3}, list...))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("after %d: %v", done, err)
		}
	}
}
