package ot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// The sender rejects a frame with any changed bit, and then accepts no more frames.
func TestChangedFrames(t *testing.T) {
	const n = 300
	g := rand.New(rand.NewPCG(1, 2))
	for i := range 24 {
		s, r := pair(t, "changed")
		frame := r.Extend(random(5, 1), n)
		columns := Kappa * length(n)
		at := g.IntN(columns)
		if i%2 == 1 {
			// the hash of a column or of x; s has ones
			at = columns + g.IntN((Kappa+1)*tagSize*8)
		}
		frame[at/8] ^= 1 << (at % 8)
		if err := s.Extend(frame, n); !errors.Is(err, ErrConsistency) {
			t.Fatalf("bit %d: %v", at, err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a failed sender continues")
				}
			}()
			_ = s.Extend(frame, n)
		}()
	}
	for _, cut := range []int{-1, 1} {
		s, r := pair(t, "length")
		frame := append(r.Extend(random(5, 1), n), 0)
		if err := s.Extend(frame[:FrameSize(n)+cut], n); !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes more: %v", cut, err)
		}
	}
}

// A receiver lies about its choices in some columns and proves its message. It passes exactly if it
// guessed the sender's bits there: it hashes its columns as if those bits were 0.
func TestInconsistentChoices(t *testing.T) {
	const n = 128
	passed := 0
	for lies := 1; lies <= 3; lies++ {
		for trial := range 12 {
			s, r := pair(t, string(rune('a'+trial)))
			size := length(n) / 8
			x := make([]byte, size)
			frame, own := make([]byte, FrameSize(n)), make([]byte, Kappa*size)
			r.expand(frame, own, x)
			guessed := true
			for l := range lies {
				column := 17*l + trial
				frame[column*size] ^= 1 // another first choice in this column
				guessed = guessed && s.batch.s.bit(column) == 0
			}
			r.prove(frame, own, x)
			err := s.Extend(frame, n)
			if guessed != (err == nil) || err != nil && !errors.Is(err, ErrConsistency) {
				t.Errorf("%d lies, guessed %v: %v", lies, guessed, err)
			}
			if err == nil {
				passed++
			}
		}
	}
	if passed == 0 || passed > 24 {
		t.Errorf("%d of 36 pass", passed)
	}
}

// The hash is linear and depends on its key.
func TestLinear(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{16, 32, 4112} {
		l, other := newLinear([32]byte{1}, size), newLinear([32]byte{2}, size)
		a, b, sum := make([]byte, size), make([]byte, size), make([]byte, size)
		for range 20 {
			for i := range a {
				a[i], b[i] = byte(g.Uint32()), byte(g.Uint32())
				sum[i] = a[i] ^ b[i]
			}
			ha, hb, hs := l.of(a), l.of(b), l.of(sum)
			for i := range hs {
				hs[i] ^= ha[i] ^ hb[i]
			}
			if hs != [tagSize]byte{} {
				t.Fatal("the hash is not linear")
			}
			if other.of(a) == ha {
				t.Fatal("two keys have the same hash")
			}
		}
		if l.of(make([]byte, size)) != [tagSize]byte{} {
			t.Error("the hash of zeros is not zero")
		}
	}
}

// The sender's messages for the choices 0 and for random choices, and the corrections, have about
// as many ones as zeros.
func TestMessagesAreBalanced(t *testing.T) {
	const n = ChunkSize
	s, r := pair(t, "balanced")
	frame := r.Extend(make([]uint64, n/64), n)
	if err := s.Extend(frame, n); err != nil {
		t.Fatal(err)
	}
	d, u := make([]uint64, n), make([]uint64, n)
	if err := s.Batch().Words(u, d, d, 64); err != nil {
		t.Fatal(err)
	}
	balanced(t, "frame", bytesAsWords(frame))
	balanced(t, "corrections", d)
	balanced(t, "shares", u)
}

func bytesAsWords(b []byte) []uint64 { return words(b) }

func balanced(t *testing.T, what string, v []uint64) {
	t.Helper()
	ones := 0
	for _, w := range v {
		ones += bits.OnesCount64(w)
	}
	// 6 standard deviations of sqrt(n)/2 each
	n := 64 * len(v)
	if off := ones - n/2; off*off > 9*n {
		t.Errorf("%s: %d of %d bits are 1", what, ones, n)
	}
}

// Fixed randomness gives fixed results.
func TestPinned(t *testing.T) {
	s, r := pair(t, "pinned")
	h := sha256.New()
	h.Write(r.offer)
	for range 2 {
		frame := r.Extend(random(16, 5), 1000)
		if err := s.Extend(frame, 1000); err != nil {
			t.Fatal(err)
		}
		h.Write(frame)
	}
	d, u := random(2000, 6), make([]uint64, 2000)
	if err := s.Batch().Words(u, d, d, 50); err != nil {
		t.Fatal(err)
	}
	for i := range d {
		h.Write([]byte{byte(d[i]), byte(d[i] >> 8), byte(d[i] >> 45), byte(u[i]), byte(u[i] >> 45)})
	}
	const want = "7458beca437eb19e2d95dc83389dbb575c21ec9b284802b7c6f4981e82eed98f"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}
