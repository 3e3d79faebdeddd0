package multikey

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
)

func TestCiphertextEncoding(t *testing.T) {
	s := newSubject(t, cheap, 3)
	for k := range 4 {
		c := Trivial(true)
		if k > 0 {
			c = s.of(t, true, everyParty(k), 1)
		}
		b := s.AppendCiphertext(nil, c)
		if len(b) != s.CiphertextSize(k) {
			t.Errorf("%d parts: %d bytes, want %d", k, len(b), s.CiphertextSize(k))
		}
		got, err := s.DecodeCiphertext(b)
		if err != nil || !got.Equal(c) || len(got.Keys()) != k {
			t.Errorf("%d parts: %v", k, err)
		}
		if k > 1 && (got.Equal(Not(c)) || !got.Equal(Not(Not(c)))) {
			t.Error("Equal accepts ciphertexts that differ")
		}
	}
	b := s.AppendCiphertext(nil, s.of(t, true, everyParty(2), 1))
	swapped := bytes.Clone(b)
	copy(swapped[1:33], b[33:65])
	copy(swapped[33:65], b[1:33])
	twice := bytes.Clone(b)
	copy(twice[1:33], b[33:65])
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"empty":          {nil, codec.ErrTruncated},
		"one byte":       {b[:1], codec.ErrTruncated},
		"short":          {b[:len(b)-1], codec.ErrTruncated},
		"long":           {append(bytes.Clone(b), 0), codec.ErrTrailing},
		"more parts":     {append([]byte{3}, b[1:]...), codec.ErrTruncated},
		"fewer parts":    {append([]byte{1}, b[1:]...), codec.ErrTrailing},
		"too many parts": {append([]byte{33}, b[1:]...), ErrParties},
		"swapped owners": {swapped, ErrCiphertext},
		"a key twice":    {twice, ErrCiphertext},
	} {
		if _, err := s.DecodeCiphertext(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Flipped bits of a ciphertext, or parts moved to each other's keys in the right order, decrypt to
// some bit without an error, and the keys stay the same. Which ciphertext to decrypt is a matter of
// agreement among the parties, not of encoding.
func TestFlippedBitsAreHarmless(t *testing.T) {
	s := newSubject(t, cheap, 3)
	b := s.AppendCiphertext(nil, s.of(t, true, everyParty(2), 1))
	for at := 65; at < len(b); at += 37 {
		c, err := s.DecodeCiphertext(flip(b, at))
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.e.Gate(t.Context(), 1, Nand, c, s.encrypt(2, true, 2), nil)
		if err != nil || s.Check(out) != nil {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	c, err := s.DecodeCiphertext(b)
	if err != nil {
		t.Fatal(err)
	}
	c.Parts[0].A, c.Parts[1].A = c.Parts[1].A, c.Parts[0].A
	out, err := s.e.Gate(t.Context(), 1, Nand, c, c, nil)
	if err != nil || s.Check(out) != nil {
		t.Errorf("parts under each other's keys: %v", err)
	}
	for at := 1; at < 65; at += 9 { // names of keys: unknown, or out of order
		c, err := s.DecodeCiphertext(flip(b, at))
		if err != nil {
			continue
		}
		if _, err := s.e.Gate(t.Context(), 1, Nand, c, c, nil); !errors.Is(err, ErrUnknownKey) {
			t.Errorf("byte %d, another name: %v", at, err)
		}
	}
}

func TestBatchEncoding(t *testing.T) {
	s := newSubject(t, cheap, 1)
	for _, bits := range [][]bool{nil, {true}, {false, true, true}} {
		batch := s.secrets[0].Encrypt(bits, s.source.Sub("batch"))
		b := s.AppendBatch(nil, batch)
		got, err := s.DecodeBatch(b)
		if err != nil || got.Len() != len(bits) || got.Key != batch.Key || !bytes.Equal(s.AppendBatch(nil, got), b) {
			t.Fatalf("%d bits: %v", len(bits), err)
		}
		for i, want := range bits {
			if bit, err := Decrypt(got.Ciphertext(i), s.secrets[0]); err != nil || bit != want {
				t.Errorf("bit %d: %v, %v", i, bit, err)
			}
		}
	}
	b := s.AppendBatch(nil, s.secrets[0].Encrypt([]bool{true, false}, s.source.Sub("batch")))
	huge := bytes.Clone(b)
	binary.LittleEndian.PutUint32(huge[batchHead-4:], 1<<31)
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"empty":       {nil, codec.ErrTruncated},
		"half a head": {b[:batchHead-1], codec.ErrTruncated},
		"short":       {b[:len(b)-1], codec.ErrTruncated},
		"long":        {append(bytes.Clone(b), 0), codec.ErrTrailing},
		"another set": {flip(b, 7), ErrSet},
		"huge":        {huge, ErrCiphertext},
	} {
		if _, err := s.DecodeBatch(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCiphertext(f *testing.F) {
	s := newSubject(f, cheap, 2)
	f.Add(s.AppendCiphertext(nil, s.encrypt(0, true)))
	f.Add(s.AppendCiphertext(nil, s.of(f, true, everyParty(2))))
	f.Add(s.AppendCiphertext(nil, Trivial(false)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := s.DecodeCiphertext(b)
		if err != nil {
			return
		}
		if err := s.Check(c); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(s.AppendCiphertext(nil, c), b) {
			t.Error("a batch has a second encoding")
		}
		if _, err := s.secrets[0].Phase(c); err != nil {
			t.Error(err)
		}
		if _, err := s.e.Gate(t.Context(), 1, Xor, c, Trivial(true), nil); err != nil && !errors.Is(err, ErrUnknownKey) {
			t.Error(err)
		}
	})
}

func FuzzBatch(f *testing.F) {
	s := newSubject(f, cheap, 1)
	f.Add(s.AppendBatch(nil, s.secrets[0].Encrypt([]bool{true, false}, s.source)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		batch, err := s.DecodeBatch(b)
		if err != nil {
			return
		}
		if !bytes.Equal(s.AppendBatch(nil, batch), b) {
			t.Error("a ciphertext has a second encoding")
		}
		if batch.Len() > 0 && s.Check(batch.Ciphertext(batch.Len()-1)) != nil {
			t.Error("a malformed ciphertext was accepted")
		}
	})
}

func FuzzSecret(f *testing.F) {
	s := newSubject(f, cheap, 1)
	f.Add(s.secrets[0].AppendSecret(nil))
	f.Add(make([]byte, s.SecretSize()))
	f.Fuzz(func(t *testing.T, b []byte) {
		secret, err := s.DecodeSecret(b)
		if err != nil {
			return
		}
		if !bytes.Equal(secret.AppendSecret(nil), b) {
			t.Error("a secret has a second encoding")
		}
	})
}

// The input is chunk 0 of a set whose keys are small, and a header.
func FuzzKeys(f *testing.F) {
	s := newSubject(f, cheap, 1)
	f.Add(s.keys[0].Header(), s.keys[0].AppendChunk(nil, 0))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, header, chunk []byte) {
		if s.CheckHeader(0, header) != nil {
			return
		}
		keys := s.newKeys(0, HeaderSeed(header))
		if !bytes.Equal(keys.Header(), header) {
			t.Error("a second encoding of the header")
		}
		if keys.decodeChunk(0, chunk) != nil {
			return
		}
		if !bytes.Equal(keys.AppendChunk(nil, 0), chunk) {
			t.Error("a second encoding of the chunk")
		}
	})
}
