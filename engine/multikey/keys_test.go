package multikey

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// The common reference string derives from a sentence, and the result for a seed and a set never
// changes.
func TestCRSIsPinned(t *testing.T) {
	seed := StandardSeed()
	if got, want := hex.EncodeToString(seed[:]), "3f201de216001d67500c0ffd45185b2b22734ceb417143a26d328732f9718a3e"; got != want {
		t.Errorf("the standard seed is %s, want %s", got, want)
	}
	for name, want := range map[string]string{
		"M11-2": "8827919b8a2380ba", "M11-4": "256af739a39e0b90", "M11-32": "bb1aa65918d73ce5",
		"insecure-M11-V": "bc14885c0e8747e1", cheap: "d677ef3172c23e5e",
	} {
		s := schemeOf(t, name)
		if got := s.CRS(); hex.EncodeToString(got[:8]) != want {
			t.Errorf("%s: %x, want %s", name, got[:8], want)
		}
	}
	set, err := Lookup(cheap)
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(set, [SeedSize]byte{1})
	if err != nil || other.CRS() == schemeOf(t, cheap).CRS() {
		t.Errorf("a different seed yields the same string: %v", err)
	}
}

// Keys and ciphertexts for fixed randomness never change and do not depend on the number of
// goroutines.
func TestKeysArePinned(t *testing.T) {
	s := schemeOf(t, cheap)
	for workers := range 4 {
		secret, keys := s.Generate(7, sample.NewSource(make([]byte, 32)), workers)
		if got, want := fmt.Sprintf("%x", keys.ID()), "5759a9cbb6abd3e4c4195e00c34afc5a2923385f28a388b872a99457d698d217"; got != want || secret.ID() != keys.ID() {
			t.Fatalf("%d workers: the keys' name is %s, want %s", workers, got, want)
		}
		batch := secret.Encrypt([]bool{true, false, true}, sample.NewSource(make([]byte, 32)))
		if got, want := fmt.Sprintf("%x", batch.B), "[57cee6df 5e2a2ab0 f11baeb0]"; got != want {
			t.Errorf("encryption: %s, want %s", got, want)
		}
	}
}

// Every block of z has at most one 1. All cases are equally frequent, and so are both values of the
// other coefficients.
func TestSecretsHaveTheirDistribution(t *testing.T) {
	s := schemeOf(t, cheap)
	cases, rest := make([]float64, s.Block+1), 0.0
	const count = 300
	for i := range uint64(count) {
		c := s.drawSecret(sample.NewSource(make([]byte, 32)).Sub("secret", i))
		for at := 0; at < s.Dim; at += s.Block {
			which, ones := s.Block, uint64(0)
			for j, x := range c.bits[at : at+s.Block] {
				ones += x
				if x == 1 {
					which = j
				}
			}
			if ones > 1 {
				t.Fatal("a block with two ones")
			}
			cases[which]++
		}
		for _, x := range c.bits[s.Dim:] {
			rest += float64(x)
		}
	}
	blocks := float64(count * s.Dim / s.Block)
	for which, n := range cases {
		p := 1 / float64(s.Block+1)
		if math.Abs(n-blocks*p) > 6*math.Sqrt(blocks*p*(1-p)) {
			t.Errorf("case %d: %v of %v blocks", which, n, blocks)
		}
	}
	if n := float64(count * (s.N() - s.Dim)); math.Abs(rest-n/2) > 3*math.Sqrt(n) {
		t.Errorf("%v of %v other coefficients are 1", rest, n)
	}
}

// 10^5 bits decrypt correctly.
func TestEncryption(t *testing.T) {
	s := newSubject(t, cheap, 1)
	bits := make([]bool, 100_000)
	for i := range bits {
		bits[i] = i%3 == 1
	}
	batch := s.secrets[0].Encrypt(bits, s.source.Sub("many"))
	for i, want := range bits {
		if got, err := Decrypt(batch.Ciphertext(i), s.secrets[0]); err != nil || got != want {
			t.Fatalf("bit %d: %v, %v", i, got, err)
		}
	}
}

// Keys are unchanged after they have been split into chunks and reassembled in any order.
func TestChunks(t *testing.T) {
	for _, name := range []string{cheap, "insecure-M11-I", "M11-4"} {
		s := schemeOf(t, name)
		size := HeaderSize
		for i := range s.Chunks() {
			if s.ChunkSize(i) > 4<<20 {
				t.Errorf("%s: chunk %d has %d bytes", name, i, s.ChunkSize(i))
			}
			size += s.ChunkSize(i)
		}
		t.Logf("%s: %d chunks, %d bytes; %d bytes in an evaluator", name, s.Chunks(), size, s.KeyMemory())
		if size != s.KeySize() {
			t.Errorf("%s: keys of %d bytes, not %d", name, s.KeySize(), size)
		}
	}
	s := newSubject(t, cheap, 2)
	k := s.keys[1]
	r, err := s.Receive(1, k.Header())
	if err != nil {
		t.Fatal(err)
	}
	for i := s.Chunks() - 1; i >= 0; i-- {
		if list := r.Missing(); len(list) != i+1 {
			t.Errorf("missing %v", list)
		}
		if _, err := r.Finish(k.ID()); !errors.Is(err, ErrKeys) {
			t.Errorf("keys are finished without chunk %d: %v", i, err)
		}
		for range 2 {
			if err := r.Put(i, k.AppendChunk(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := r.Finish(k.ID())
	if err != nil || got.Owner != 1 || !slices.Equal(got.words, k.words) || !slices.Equal(got.short, k.short) || got.ID() != k.ID() {
		t.Errorf("keys with another name: %v", err)
	}
}

func TestChunksAreRefused(t *testing.T) {
	s := newSubject(t, cheap, 2)
	k := s.keys[1]
	header := k.Header()
	set, _ := Lookup(cheap)
	tossed, err := New(set, [SeedSize]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		s      *Scheme
		owner  uint32
		header []byte
		want   error
	}{
		"another set":       {schemeOf(t, "M11-2"), 1, header, ErrSet},
		"another string":    {tossed, 1, header, ErrCRS},
		"another owner":     {s.Scheme, 0, header, ErrOwner},
		"short":             {s.Scheme, 1, header[:len(header)-1], ErrKeys},
		"long":              {s.Scheme, 1, append(bytes.Clone(header), 0), ErrKeys},
		"no header":         {s.Scheme, 1, nil, ErrKeys},
		"as it should be":   {s.Scheme, 1, header, nil},
		"a flipped set":     {s.Scheme, 1, flip(header, 3), ErrSet},
		"a flipped string":  {s.Scheme, 1, flip(header, 40), ErrCRS},
		"a flipped owner":   {s.Scheme, 1, flip(header, 66), ErrOwner},
		"flipped, own word": {s.Scheme, 1, flip(header, 70), nil}, // the seed: detected by the name at the end
	} {
		if _, err := c.s.Receive(c.owner, c.header); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	chunk := k.AppendChunk(nil, 1)
	for name, c := range map[string]struct {
		i     int
		chunk []byte
		want  error
	}{
		"no such chunk": {s.Chunks(), chunk, ErrKeys},
		"a negative":    {-1, chunk, ErrKeys},
		"of its size":   {-1, make([]byte, s.ChunkSize(-1)), ErrKeys},
		"empty":         {1, nil, codec.ErrTruncated},
		"short":         {1, chunk[1:], codec.ErrTruncated},
		"long":          {1, append(bytes.Clone(chunk), 1), codec.ErrTrailing},
		"another's":     {0, chunk, ErrKeys},
	} {
		r, err := s.Receive(1, header)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Put(c.i, c.chunk); !errors.Is(err, c.want) || !errors.Is(err, ErrKeys) {
			t.Errorf("%s: %v", name, err)
		}
		if len(r.Missing()) != s.Chunks() {
			t.Errorf("%s: the chunk was accepted", name)
		}
	}
	// Flipping any bit of a chunk or of the seed changes the name of the keys; a different chunk in
	// place of a received one is rejected.
	for at, h := range [][]byte{header, flip(header, 99)} {
		r, err := s.Receive(1, h)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Chunks() {
			b := k.AppendChunk(nil, i)
			if at == 0 && i == 1 {
				b = flip(b, 1234)
			}
			if err := r.Put(i, b); err != nil {
				t.Fatal(err)
			}
			if err := r.Put(i, flip(b, 5)); !errors.Is(err, ErrKeys) {
				t.Errorf("a different chunk %d in its place: %v", i, err)
			}
		}
		if _, err := r.Finish(k.ID()); !errors.Is(err, ErrKeys) {
			t.Errorf("different keys with this name: %v", err)
		}
	}
}

// flip returns b with one bit of byte i flipped.
func flip(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 4
	return b
}

func TestKeysOfOthersAreRefused(t *testing.T) {
	s := newSubject(t, cheap, 1)
	set, _ := Lookup(cheap)
	tossed, err := New(set, [SeedSize]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		e    *Evaluator
		k    *Keys
		want error
	}{
		"none":           {s.e, nil, ErrKeys},
		"empty":          {s.e, new(Keys), ErrKeys},
		"another set":    {NewEvaluator(schemeOf(t, "M11-2")), s.keys[0], ErrSet},
		"another string": {NewEvaluator(tossed), s.keys[0], ErrCRS},
	} {
		if _, err := c.e.Add(c.k, 1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Keys with words that key generation never produces spoil the results of gates with their party,
// which still return a result, and nothing else: gates among the other parties have the same words
// as without these keys. The same holds for keys made with another common reference string whose
// header denies it.
func TestHostileKeys(t *testing.T) {
	s := newSubject(t, cheap, 2)
	set, _ := Lookup(cheap)
	tossed, err := New(set, [SeedSize]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.encrypt(0, true, 1), s.encrypt(1, false, 2)
	want, err := s.e.Gate(t.Context(), 1, Or, a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	fill := func(word uint64, short uint32) *Keys {
		k := s.newKeys(9, [SeedSize]byte{})
		for i := range k.words {
			k.words[i] = word >> s.Drop
		}
		for i := range k.short {
			k.short[i] = short
		}
		return k
	}
	_, liar := tossed.Generate(9, s.source.Sub("liar"), 1)
	liar.s = s.Scheme
	for name, k := range map[string]*Keys{
		"zeros": fill(0, 0), "ones": fill(math.MaxUint64, math.MaxUint32), "the middle": fill(1<<63, 1<<31), "another string": liar,
	} {
		e := NewEvaluator(s.Scheme)
		for _, x := range append([]*Keys{k}, s.keys[:2]...) {
			if _, err := e.Add(x, 2); err != nil {
				t.Fatal(err)
			}
		}
		got, err := e.Gate(t.Context(), 1, Or, a, b, nil)
		if err != nil || !got.Equal(want) {
			t.Errorf("%s: the honest parties' gate: %v", name, err)
		}
		hostile := &Ciphertext{B: 5, Parts: []Part{{k.ID(), make([]uint32, s.Dim)}}}
		for i := range hostile.Parts[0].A {
			hostile.Parts[0].A[i] = uint32(i) * 0x9e3779b9
		}
		out, err := e.Gate(t.Context(), 1, Or, a, hostile, nil)
		if err != nil || s.Check(out) != nil {
			t.Errorf("%s: a gate with the hostile party: %v", name, err)
		}
	}
}

func TestSecretEncoding(t *testing.T) {
	s := newSubject(t, cheap, 2)
	secret := s.secrets[1]
	b := secret.AppendSecret(nil)
	if len(b) != s.SecretSize() {
		t.Errorf("%d bytes, want %d", len(b), s.SecretSize())
	}
	got, err := s.DecodeSecret(b)
	if err != nil || got.ID() != secret.ID() || !slices.Equal(got.held.Open().bits, secret.held.Open().bits) {
		t.Fatalf("another secret: %v", err)
	}
	set, _ := Lookup(cheap)
	tossed, err := New(set, [SeedSize]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	crowded := bytes.Clone(b)
	crowded[96] |= 3
	for name, c := range map[string]struct {
		s    *Scheme
		b    []byte
		want error
	}{
		"empty":          {s.Scheme, nil, ErrSecret},
		"short":          {s.Scheme, b[1:], ErrSecret},
		"long":           {s.Scheme, append(bytes.Clone(b), 0), ErrSecret},
		"another set":    {s.Scheme, flip(b, 0), ErrSet},
		"another string": {tossed, b, ErrCRS},
		"two ones":       {s.Scheme, crowded, ErrSecret},
	} {
		if _, err := c.s.DecodeSecret(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if out := fmt.Sprintf(format, secret); !strings.HasPrefix(out, "multikey secret of ") || len(out) > 30 {
			t.Errorf("%s shows %s", format, out)
		}
	}
	got.Wipe()
	if !got.held.Empty() {
		t.Error("a wiped secret is not erased")
	}
}

// Joint decryption needs the secrets of exactly the keys in a ciphertext, in any position.
func TestDecryption(t *testing.T) {
	s := newSubject(t, cheap, 4)
	c := s.of(t, true, []int{3, 0, 2}, 5)
	if bit, err := Decrypt(c, s.secrets[2], s.secrets[1], s.secrets[3], s.secrets[0]); err != nil || !bit {
		t.Errorf("%v, %v", bit, err)
	}
	if _, err := Decrypt(c, s.secrets[:3]...); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("without one of the secrets: %v", err)
	}
	if share, err := s.secrets[1].Phase(c); err != nil || share != 0 {
		t.Errorf("the share of a party that is not in the ciphertext: %d, %v", share, err)
	}
	c.Parts[0].A = c.Parts[0].A[1:]
	if _, err := s.secrets[0].Phase(c); !errors.Is(err, ErrCiphertext) {
		t.Errorf("malformed: %v", err)
	}
	if _, err := Decrypt(c, s.secrets...); !errors.Is(err, ErrCiphertext) {
		t.Errorf("malformed: %v", err)
	}
}
