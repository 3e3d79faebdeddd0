package lwe_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/lwe"
)

func newKeys(t testing.TB, name string) *lwe.Keys {
	t.Helper()
	s := newScheme(t, name)
	return newSecret(s).Keys(s.NoiseOf(3, 1), source.Sub("keys"))
}

// Every sample has the message that the package says it has, and errors of the variances of the
// noise model.
func TestKeysAreSamples(t *testing.T) {
	eachTiny(t, func(t *testing.T, s *lwe.Scheme) {
		secret, noise, mod, n := newSecret(s), s.NoiseOf(3, 1), s.Modulus(), s.N()
		keys := secret.Keys(noise, source.Sub("keys"))
		var ring, switches []int64
		// phase gives b - a z less a message, in coefficient form.
		phase := func(a, b, message []uint64) {
			p := make([]uint64, n)
			mod.MulVec(p, a, secret.NTT)
			mod.SubVec(p, b, p)
			s.Inverse(p, p)
			mod.SubVec(p, p, message)
			for _, x := range p {
				ring = append(ring, centred(x, s.Q))
			}
		}
		a := make([]uint64, s.RotationRows()*n)
		s.UniformPublic(a, &keys.Seed)
		phase(a[:n], keys.Public, make([]uint64, n))
		digits := s.Set.Rotation.Digits
		for i := range s.Dim {
			s.UniformRotation(a, &keys.Seed, i)
			for r := range s.RotationRows() {
				message := make([]uint64, n)
				g := mod.Mul(secret.S[i], s.Set.Rotation.Factor(s.Q, r%digits))
				if r < digits {
					mod.ScaleVec(message, secret.Z, mod.Neg(g))
				} else {
					message[0] = g
				}
				phase(a[r*n:(r+1)*n], keys.RotationRow(i, r), message)
			}
		}
		a = make([]uint64, s.Switch.Digits*s.Dim)
		for i := range n {
			s.UniformSwitch(a, &keys.Seed, i)
			for j := range s.Switch.Digits {
				e := mod.Sub(keys.Switch[i*s.Switch.Digits+j], s.Dot(a[j*s.Dim:(j+1)*s.Dim], secret.S))
				e = mod.Sub(e, mod.Mul(secret.Z[i], s.Switch.Factor(s.Q, j)))
				switches = append(switches, centred(e, s.Q))
			}
		}
		within(t, "errors of ring samples", meanSquare(ring), noise.Ring, 0.9, 1.1)
		within(t, "errors of the switching key", meanSquare(switches), noise.Switch, 0.8, 1.2)
	})
}

// within holds a measurement against a figure of the model.
func within(t *testing.T, what string, got, model, low, high float64) {
	t.Helper()
	if r := got / model; !(r >= low && r <= high) {
		t.Errorf("%s: variance %.4g, %.3f of the model's %.4g; want %v to %v", what, got, r, model, low, high)
	}
}

// Keys come back from their chunks in any order, some of them twice.
func TestReceive(t *testing.T) {
	for _, name := range tiny {
		keys := newKeys(t, name)
		s := newScheme(t, name) // another with the same set
		receiver, err := s.Receive(keys.Header())
		if err != nil {
			t.Fatal(err)
		}
		for i := s.Chunks() - 1; i >= 0; i-- {
			chunk := keys.AppendChunk(nil, i)
			if len(chunk) != s.ChunkSize(i) || len(chunk) > 4<<20 {
				t.Errorf("%s: chunk %d of %d bytes", name, i, len(chunk))
			}
			if !slices.Contains(receiver.Missing(), i) {
				t.Errorf("%s: chunk %d was accepted", name, i)
			}
			if _, err := receiver.Finish(keys.Digest()); !errors.Is(err, lwe.ErrKeys) {
				t.Errorf("%s: finished without chunk %d: %v", name, i, err)
			}
			if err := errors.Join(receiver.Put(i, chunk), receiver.Put(i, chunk)); err != nil {
				t.Fatal(err)
			}
		}
		got, err := receiver.Finish(keys.Digest())
		if err != nil {
			t.Fatal(err)
		}
		if got.Seed != keys.Seed || !slices.Equal(got.Public, keys.Public) || !slices.Equal(got.Switch, keys.Switch) ||
			!slices.Equal(got.Rotation, keys.Rotation) || got.Digest() != keys.Digest() {
			t.Errorf("%s: other keys", name)
		}
	}
}

// The sizes of chunks for the shipped sets, without keys.
func TestChunks(t *testing.T) {
	for name, want := range map[string]int{"L11-50": 9, "L11-53": 65, "T11-4": 8, "T11-53": 59} {
		s := newScheme(t, name)
		if s.Chunks() != want {
			t.Errorf("%s: %d chunks, want %d", name, s.Chunks(), want)
		}
		total := 0
		for i := range s.Chunks() {
			if s.ChunkSize(i) > 4<<20 || s.ChunkSize(i) <= 0 {
				t.Errorf("%s: chunk %d of %d bytes", name, i, s.ChunkSize(i))
			}
			total += s.ChunkSize(i)
		}
		t.Logf("%s: %d bytes of keys", name, total)
	}
}

func TestReceiveRefuses(t *testing.T) {
	keys, s := newKeys(t, tiny[0]), newScheme(t, tiny[0])
	if _, err := s.Receive(newKeys(t, tiny[1]).Header()); !errors.Is(err, lwe.ErrSet) {
		t.Errorf("header of another set: %v", err)
	}
	for _, header := range [][]byte{nil, keys.Header()[1:], append(keys.Header(), 0)} {
		if _, err := s.Receive(header); !errors.Is(err, lwe.ErrKeys) {
			t.Errorf("header of %d bytes: %v", len(header), err)
		}
	}
	receiver, err := s.Receive(keys.Header())
	if err != nil {
		t.Fatal(err)
	}
	chunk := keys.AppendChunk(nil, 0)
	for name, c := range map[string]struct {
		i     int
		chunk []byte
		want  error
	}{
		"chunk -1":         {-1, chunk, lwe.ErrKeys},
		"chunk behind all": {s.Chunks(), chunk, lwe.ErrKeys},
		"short chunk":      {0, chunk[1:], codec.ErrTruncated},
		"long chunk":       {0, append(bytes.Clone(chunk), 0), codec.ErrTrailing},
		"residue over q":   {0, bytes.Repeat([]byte{255}, len(chunk)), codec.ErrRange},
	} {
		if err := receiver.Put(c.i, c.chunk); !errors.Is(err, c.want) || !errors.Is(err, lwe.ErrKeys) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(receiver.Missing()) != s.Chunks() {
		t.Error("a refused chunk was stored")
	}
	for i := range s.Chunks() {
		if err := receiver.Put(i, keys.AppendChunk(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	other := bytes.Clone(chunk)
	other[0] ^= 1
	if err := receiver.Put(0, other); !errors.Is(err, lwe.ErrKeys) {
		t.Errorf("a different chunk with the number of the first: %v", err)
	}
	wrong := keys.Digest()
	wrong[0] ^= 1
	if _, err := receiver.Finish(wrong); !errors.Is(err, lwe.ErrKeys) {
		t.Errorf("another digest: %v", err)
	}
}

// Any change of keys changes their digest.
func TestDigest(t *testing.T) {
	keys := newKeys(t, tiny[0])
	seen := map[[32]byte]bool{keys.Digest(): true}
	for _, p := range []*uint64{&keys.Public[0], &keys.Switch[3], &keys.Rotation[len(keys.Rotation)-1]} {
		*p ^= 1
		seen[keys.Digest()] = true
	}
	keys.Seed[31] ^= 1
	seen[keys.Digest()] = true
	if len(seen) != 5 {
		t.Errorf("%d digests of 5 keys", len(seen))
	}
}

// The halves that everybody expands, and the keys of a source, are fixed.
func TestKeyVectors(t *testing.T) {
	for name, want := range map[string]string{
		tiny[0]: "430eeaace00e461290ee45a66134ddb8de162d26cb429a65d58eef967fcb71e7",
		tiny[1]: "df3fcd91d18a1126bcde922f299b5ea87c1db2243ca55206a8fefe2b613031cb",
	} {
		digest := newKeys(t, name).Digest()
		if got := hex.EncodeToString(digest[:]); got != want {
			t.Errorf("%s: digest %s, want %s", name, got, want)
		}
	}
}

func TestKeysAreRefused(t *testing.T) {
	s, keys := newScheme(t, tiny[0]), newKeys(t, tiny[0])
	for name, c := range map[string]struct {
		keys *lwe.Keys
		want error
	}{
		"none":             {nil, lwe.ErrKeys},
		"of nothing":       {&lwe.Keys{}, lwe.ErrKeys},
		"of another set":   {newKeys(t, tiny[1]), lwe.ErrSet},
		"with a residue q": {func() *lwe.Keys { keys.Rotation[5] = s.Q; return keys }(), lwe.ErrKeys},
	} {
		if _, err := lwe.NewEvaluator(s, c.keys, 1); !errors.Is(err, c.want) {
			t.Errorf("evaluator with keys %s: %v", name, err)
		}
		if _, err := s.PublicKey(c.keys); !errors.Is(err, c.want) {
			t.Errorf("public key of keys %s: %v", name, err)
		}
	}
}

func FuzzChunk(f *testing.F) {
	keys, s := newKeys(f, tiny[0]), newScheme(f, tiny[0])
	f.Add(0, keys.AppendChunk(nil, 0))
	f.Add(1, []byte{})
	f.Add(-1, make([]byte, s.ChunkSize(0)))
	f.Fuzz(func(t *testing.T, i int, chunk []byte) {
		r, err := s.Receive(keys.Header())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Put(i, chunk); err != nil {
			if !errors.Is(err, lwe.ErrKeys) {
				t.Errorf("an error of no type: %v", err)
			}
			return
		}
		got, err := r.Finish([32]byte{})
		if got != nil || !errors.Is(err, lwe.ErrKeys) || slices.Contains(r.Missing(), i) {
			t.Errorf("a chunk is taken and not there: %v", err)
		}
	})
}
