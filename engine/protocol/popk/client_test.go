package popk

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"math/bits"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

func testScheme(t testing.TB) *gbfv.Scheme {
	t.Helper()
	set, err := params.Lookup("insecure-8")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := set.Field("p128")
	if err != nil {
		t.Fatal(err)
	}
	s, err := gbfv.New(set, spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func testSource(label string) *sample.Source {
	d := round.Hash("popk test", []byte(label))
	return sample.NewSource(d[:])
}

func TestClientProof(t *testing.T) {
	s := testScheme(t)
	key := gbfvtest.New(s, 3, 1, bytes.Repeat([]byte{1}, 32))
	other := gbfvtest.New(s, 3, 1, bytes.Repeat([]byte{2}, 32))
	instance, err := ClientInstance(s.Set, "p128", 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := ClientConfig{Scheme: s, Instance: instance, Key: key.Public, KeyHash: round.Hash("key 1"), Prover: "alice", Context: []byte("vote"), Workers: 2}
	messages := []field.Vec{key.Random(1), key.Random(2)}
	ciphertexts, proof, err := Prove(context.Background(), c, messages, testSource("prove"))
	if err != nil {
		t.Fatal(err)
	}
	doubled, err := Verify(context.Background(), c, ciphertexts, proof)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range messages {
		want := s.Field.NewVec(m.Len())
		s.Field.AddVec(want, m, m)
		if got := key.Decrypt(doubled[i]); !s.Field.EqualVec(got, want) {
			t.Errorf("ciphertext %d does not decrypt to twice its message", i)
		}
	}

	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 1
		return b
	}
	responses := c.ProofSize() - instance.V*responseSize(s.N(), instance.Proof)
	for _, row := range []struct {
		name        string
		change      func(c *ClientConfig)
		ciphertexts []byte
		proof       []byte
		want        error
	}{
		{"a bit of a ciphertext", nil, flip(ciphertexts, 100), proof, ErrProof},
		{"a bit of a mask", nil, ciphertexts, flip(proof, 100), ErrProof},
		{"a bit of a response", nil, ciphertexts, flip(proof, responses+3), ErrProof},
		{"somebody else's name", func(c *ClientConfig) { c.Prover = "bob" }, ciphertexts, proof, ErrProof},
		{"another context", func(c *ClientConfig) { c.Context = []byte("vot") }, ciphertexts, proof, ErrProof},
		{"another key's hash", func(c *ClientConfig) { c.KeyHash = round.Hash("key 2") }, ciphertexts, proof, ErrProof},
		{"another key", func(c *ClientConfig) { c.Key = other.Public }, ciphertexts, proof, ErrProof},
		{"a residue of q", nil, residueOfQ(s, ciphertexts), proof, codec.ErrRange},
		{"a short proof", nil, ciphertexts, proof[1:], codec.ErrTruncated},
		{"a long ciphertext", nil, append(bytes.Clone(ciphertexts), 0), proof, codec.ErrTruncated},
	} {
		d := c
		if row.change != nil {
			row.change(&d)
		}
		if _, err := Verify(context.Background(), d, row.ciphertexts, row.proof); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
	}
	if _, _, err := Prove(context.Background(), c, messages[:1], testSource("few")); err == nil {
		t.Error("one message for a proof of two was accepted")
	}
}

// residueOfQ replaces the first residue of packed polynomials by q.
func residueOfQ(s *gbfv.Scheme, packed []byte) []byte {
	q, packed := s.Q.Primes()[0], bytes.Clone(packed)
	for bit := range bits.Len64(q) {
		packed[bit/8] = packed[bit/8]&^(1<<(bit%8)) | byte(q>>bit&1)<<(bit%8)
	}
	return packed
}

// An instance rejects configurations for another number of parties, field or set.
func TestStartRefuses(t *testing.T) {
	b := newBench(t, 2)
	good := Config{
		Session: round.Session{Parties: 2}, Step: "p", Scheme: b.scheme, Instance: b.instance, Key: b.key.Public,
		KeyHash: round.Hash("key"), Source: testSource("start"),
	}
	client := ClientConfig{Scheme: b.scheme, Instance: b.instance, Key: b.key.Public, Prover: "alice"}
	if err := client.check(); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(good); err != nil {
		t.Fatal(err)
	}
	for _, other := range [][2]string{{"insecure-6", "p128"}, {"insecure-8", "p256"}} {
		set, err := params.Lookup(other[0])
		if err != nil {
			t.Fatal(err)
		}
		i, err := params.Resolve(set, other[1], params.Use{Parties: 2, Dim: 1, U: 3})
		if err != nil {
			t.Fatal(err)
		}
		c, d := good, client
		c.Instance, d.Instance = i, i
		if _, err := Start(c); err == nil {
			t.Errorf("an instance of %s in %s was accepted", other[1], other[0])
		}
		if _, _, err := Prove(context.Background(), d, nil, testSource("prove")); err == nil || d.check() == nil {
			t.Errorf("a client's instance of %s in %s was accepted", other[1], other[0])
		}
		if _, err := Verify(context.Background(), d, nil, nil); err == nil || errors.Is(err, codec.ErrTruncated) {
			t.Errorf("a client's instance of %s in %s was not refused: %v", other[1], other[0], err)
		}
	}
	for _, only := range []round.Party{-1, 2} {
		c := good
		if c.Only = &only; c.check() == nil {
			t.Errorf("party %d of 2 as the single prover was accepted", only)
		}
	}
	c := good
	c.Only = new(round.Party)
	if err := c.check(); err != nil {
		t.Error(err)
	}
	if c.MACKey = true; c.check() == nil {
		t.Error("a single prover of a MAC key was accepted")
	}
	good.Session.Parties = 3
	if _, err := Start(good); err == nil {
		t.Error("an instance for another number of parties was accepted")
	}
}

// A client's proof in parts, with the values that its prover sampled.
type clientProof struct {
	ClientConfig
	ciphertexts, digests []byte
	answers              []response
	masks                []*gbfv.Ciphertext
}

func newClientProof(t *testing.T) *clientProof {
	t.Helper()
	s := testScheme(t)
	key := gbfvtest.New(s, 2, 1, bytes.Repeat([]byte{1}, 32))
	instance, err := ClientInstance(s.Set, "p128", 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	p := &clientProof{ClientConfig: ClientConfig{
		Scheme: s, Instance: instance, Key: key.Public, KeyHash: round.Hash("key 1"), Prover: "alice", Context: []byte("vote"), Workers: 2,
	}}
	messages := []field.Vec{key.Random(1), key.Random(2)}
	var proof []byte
	if p.ciphertexts, proof, err = Prove(context.Background(), p.ClientConfig, messages, testSource("prove")); err != nil {
		t.Fatal(err)
	}
	size, sizes := responseSize(s.N(), instance.Proof), instance.Proof
	p.digests = proof[:32*sizes.V]
	for j := range sizes.V {
		r := newResponse(s.N(), sizes)
		if err := r.decode(sizes, proof[32*sizes.V+j*size:][:size]); err != nil {
			t.Fatal(err)
		}
		p.answers = append(p.answers, r)
	}
	again := &prover{scheme: s, sizes: sizes, key: key.Public, source: testSource("prove"), workers: 2,
		message: func(i int, slots, coeffs field.Vec, _ *sample.Stream) {
			copy(slots.W, messages[i].W)
			s.Pack.Pack(coeffs, slots)
		}}
	if err := again.sample(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, m := range again.secret[sizes.U:] {
		p.masks = append(p.masks, encryption(s, sizes, key.Public, m))
	}
	return p
}

func (p *clientProof) verify(t *testing.T) error {
	t.Helper()
	proof := bytes.Clone(p.digests)
	for _, r := range p.answers {
		frame, err := r.encode(p.Instance.Proof)
		if err != nil {
			t.Fatal(err)
		}
		proof = append(proof, frame...)
	}
	_, err := Verify(context.Background(), p.ClientConfig, p.ciphertexts, proof)
	return err
}

// The challenge hashes all ciphertexts and all digests: responses open their masks for no other
// values.
func TestClientChallengeCoversTheStatement(t *testing.T) {
	p := newClientProof(t)
	s, sizes, h := p.Scheme, p.Instance.Proof, p.Instance.Hash()
	w, err := newChallenge(s, sizes, round.XOF("lodge popk client challenge",
		[]byte("alice"), []byte("vote"), h[:], p.KeyHash[:], slices.Concat(p.ciphertexts, p.digests)))
	if err != nil {
		t.Fatal(err)
	}
	list, size := make([]*gbfv.Ciphertext, sizes.U), len(p.ciphertexts)/(2*sizes.U)
	for i := range list {
		list[i] = s.NewCiphertext()
		for f := 2 * i; f < 2*i+2; f++ {
			if err := codec.DecodePoly(part(list, f), s.Q.Primes(), p.ciphertexts[f*size:(f+1)*size]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for j, r := range p.answers {
		subtract := func(mask *gbfv.Ciphertext) { subtractCombination(s, mask, w, list, j) }
		if !opens(s, sizes, p.Key, r, digestAt(p.digests, j), subtract) {
			t.Errorf("repetition %d answers another challenge", j)
		}
	}
	if err := p.verify(t); err != nil {
		t.Error(err)
	}
}

// Verify rejects a prover that changes a mask and its response after it knows the challenge,
// because the challenge hashes the digest of each mask. Otherwise the prover could choose responses
// first and would need no witness.
func TestClientMaskPrecedesItsChallenge(t *testing.T) {
	p := newClientProof(t)
	s := p.Scheme
	for j := range p.answers {
		kept := bytes.Clone(p.digests)
		mask := p.masks[j].Clone()
		d := maskDigest(s, mask)
		if !bytes.Equal(d[:], p.digests[32*j:][:32]) {
			t.Fatalf("mask %d is not that of the proof", j)
		}
		for l, q := range s.Q.Primes() { // the randomness r1 of the mask plus 1
			mask.C0.C[l][0] = (mask.C0.C[l][0] + 1) % q
		}
		d = maskDigest(s, mask)
		copy(p.digests[32*j:], d[:])
		addTo(p.answers[j].t[1], 0, big.NewInt(1))
		if err := p.verify(t); !errors.Is(err, ErrProof) {
			t.Errorf("mask %d was changed after its challenge: %v", j, err)
		}
		p.digests = kept
		addTo(p.answers[j].t[1], 0, big.NewInt(-1))
	}
	if err := p.verify(t); err != nil {
		t.Error(err)
	}
}
