package popk

import (
	"bytes"
	"context"
	"errors"
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
