package ot

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"filippo.io/edwards25519"

	"github.com/lodge-mpc/lodge/engine/sample"
)

func testSource(label string) *sample.Source {
	seed := hashFields([]byte("ot test"), []byte(label))
	return sample.NewSource(seed[:])
}

// pair returns a sender and a receiver after the base transfers.
func pair(t testing.TB, label string) (*Sender, *Receiver) {
	t.Helper()
	id := ID(hashFields([]byte(label)))
	r, offer := NewReceiver(id, testSource(label+"receiver"))
	s, reply, err := NewSender(id, testSource(label+"sender"), offer)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(reply); err != nil {
		t.Fatal(err)
	}
	return s, r
}

func random(n int, seed uint64) []uint64 {
	g := rand.New(rand.NewPCG(seed, uint64(n)))
	v := make([]uint64, n)
	for i := range v {
		v[i] = g.Uint64()
	}
	return v
}

// extend extends both parties by n transfers with these choices.
func extend(t testing.TB, s *Sender, r *Receiver, choices []uint64, n int) {
	t.Helper()
	for i := range Chunks(n) {
		k := Chunk(n, i)
		frame := r.Extend(choices[i*ChunkSize/64:], k)
		if len(frame) != FrameSize(k) {
			t.Fatalf("a frame of %d bytes, want %d", len(frame), FrameSize(k))
		}
		if err := s.Extend(frame, k); err != nil {
			t.Fatal(err)
		}
	}
}

func choice(x []uint64, j int) uint64 { return x[j/64] >> (j % 64) & 1 }

func TestSharesOfProducts(t *testing.T) {
	for _, n := range []int{
		1, 2, 63, 64, 65, 127, 128, 129, 1000, ChunkSize - 1, ChunkSize, ChunkSize + 1, 2*ChunkSize + 77,
	} {
		s, r := pair(t, fmt.Sprint(n))
		x := random((n+63)/64, 1)
		extend(t, s, r, x, n)
		for j := range n { // rows as in the extension
			want := r.batch.rows[j]
			if choice(x, j) == 1 {
				want = want.xor(s.batch.s)
			}
			if s.batch.rows[j] != want {
				t.Fatalf("%d transfers: row %d is wrong", n, j)
			}
		}
		k := 1 + n%64
		d, u, v, c := random(n, 2), make([]uint64, n), make([]uint64, n), make([]uint64, n)
		if err := s.Batch().Words(u, c, d, k); err != nil {
			t.Fatal(err)
		}
		if err := r.Batch().Words(v, c, k); err != nil {
			t.Fatal(err)
		}
		for j := range n {
			if (u[j]+v[j])&mask(k) != d[j]*choice(x, j)&mask(k) || u[j] > mask(k) || v[j] > mask(k) || c[j] > mask(k) {
				t.Fatalf("%d transfers of %d bits: %d + %d for %d times %d", n, k, u[j], v[j], d[j], choice(x, j))
			}
		}
		if s.Batch().Left() != 0 || r.Batch().Left() != 0 {
			t.Errorf("%d and %d transfers are left", s.Batch().Left(), r.Batch().Left())
		}
	}
}

// The test uses transfers of every width, and of bits, from one batch that was extended in several
// parts.
func TestEveryWidth(t *testing.T) {
	s, r := pair(t, "widths")
	const each = 70
	s.Batch().Reserve(80 * each)
	r.Batch().Reserve(80 * each)
	var x []uint64
	for part := range 80 {
		choices := random(2, uint64(part))
		extend(t, s, r, choices, each)
		for j := range each {
			x = append(x, choice(choices, j))
		}
	}
	at := 0
	for k := 1; k <= 64; k++ {
		d, u, v := random(each, uint64(k)), make([]uint64, each), make([]uint64, each)
		c := slices.Clone(d)
		if err := errors.Join(s.Batch().Words(u, c, c, k), r.Batch().Words(v, c, k)); err != nil {
			t.Fatal(err)
		}
		for j := range each {
			if (u[j]+v[j]-d[j]*x[at+j])&mask(k) != 0 {
				t.Fatalf("%d bits: transfer %d is wrong", k, j)
			}
		}
		at += each
	}
	for _, n := range []int{1, 64, each, 3} {
		d, u, v, c := random(2, uint64(n)), make([]uint64, 2), make([]uint64, 2), make([]uint64, 2)
		if err := errors.Join(s.Batch().Bits(u, c, d, n), r.Batch().Bits(v, c, n)); err != nil {
			t.Fatal(err)
		}
		for j := range n {
			if choice(u, j)^choice(v, j) != choice(d, j)&x[at+j] {
				t.Fatalf("%d transfers of a bit: number %d is wrong", n, j)
			}
		}
		if n%64 != 0 && (u[n/64]|v[n/64]|c[n/64])>>(n%64) != 0 {
			t.Errorf("nonzero bits after the last of %d", n)
		}
		at += n
	}
	left := 80*each - at
	if s.Batch().Left() != left || r.Batch().Left() != left {
		t.Errorf("%d and %d transfers are left, want %d", s.Batch().Left(), r.Batch().Left(), left)
	}
	many := make([]uint64, left+1)
	for name, err := range map[string]error{
		"sender": s.Batch().Words(many, many, many, 8), "receiver": r.Batch().Words(many, many, 8),
		"sender's bits": s.Batch().Bits(many, many, many, left+1), "receiver's bits": r.Batch().Bits(many, many, left+1),
	} {
		if !errors.Is(err, ErrSpent) {
			t.Errorf("%s uses more transfers than there are: %v", name, err)
		}
	}
	for j, b := range s.batch.rows[:at] {
		if b != (block{}) || r.batch.rows[j] != (block{}) {
			t.Fatalf("row %d was not erased", j)
		}
	}
}

func TestTranspose(t *testing.T) {
	var a, b [64]uint64
	copy(a[:], random(64, 3))
	b = a
	transpose(&b)
	for i := range 64 {
		for j := range 64 {
			if a[i]>>j&1 != b[j]>>i&1 {
				t.Fatalf("entry %d, %d is wrong", i, j)
			}
		}
	}
	for _, length := range []int{128, 256, 640, 1152} {
		columns := random(Kappa*length/64, 4)
		for _, n := range []int{1, 64, 65, length - 1, length} {
			dst := make([]block, n)
			rows(dst, columns, length)
			for j, row := range dst {
				for i := range Kappa {
					if uint64(row.bit(i)) != choice(columns[i*length/64:], j) {
						t.Fatalf("%d of %d rows: row %d, column %d is wrong", n, length, j, i)
					}
				}
			}
		}
	}
}

// The sender has the chosen generator of each pair, and not the other.
func TestBaseTransfers(t *testing.T) {
	s, r := pair(t, "base")
	ones := 0
	for i := range Kappa {
		var got, pair [2][32]byte
		_, _ = s.columns[i].Read(got[0][:])
		_, _ = r.columns[i][0].Read(pair[0][:])
		_, _ = r.columns[i][1].Read(pair[1][:])
		c := s.batch.s.bit(i)
		ones += c
		if got[0] != pair[c] || got[0] == pair[1-c] {
			t.Errorf("transfer %d is wrong", i)
		}
	}
	if ones < 30 || ones > 98 {
		t.Errorf("%d of %d choices are 1", ones, Kappa)
	}
}

// smallOrder has the encodings of the 8 points whose order divides 8, and bytes that do not encode
// a point.
var smallOrder = []string{
	"0100000000000000000000000000000000000000000000000000000000000000",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0000000000000000000000000000000000000000000000000000000000000080",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	"0200000000000000000000000000000000000000000000000000000000000000", // not on the curve
}

func TestPointsAreRefused(t *testing.T) {
	for _, h := range smallOrder {
		bad, _ := hex.DecodeString(h)
		if _, _, err := NewSender(ID{}, testSource("s"), bad); !errors.Is(err, ErrPoint) {
			t.Errorf("offer %s: %v", h, err)
		}
		r, offer := NewReceiver(ID{}, testSource("r"))
		_, reply, err := NewSender(ID{}, testSource("s"), offer)
		if err != nil {
			t.Fatal(err)
		}
		copy(reply[77*pointSize:], bad)
		if err := r.Finish(reply); !errors.Is(err, ErrPoint) {
			t.Errorf("answer %s: %v", h, err)
		}
	}
	if _, _, err := NewSender(ID{}, testSource("s"), make([]byte, 31)); !errors.Is(err, ErrPoint) {
		t.Error(err)
	}
	r, _ := NewReceiver(ID{}, testSource("r"))
	if err := r.Finish(make([]byte, ReplySize-1)); err == nil {
		t.Error("accepted a short reply")
	}
}

// An offer outside the group of prime order does not make answers depend on choices: all answers
// are in that group.
func TestOfferWithSmallPart(t *testing.T) {
	torsion, _ := hex.DecodeString(smallOrder[4])
	low, err := new(edwards25519.Point).SetBytes(torsion)
	if err != nil {
		t.Fatal(err)
	}
	_, good := offer(testSource("small part").Stream("offer"))
	p, _ := new(edwards25519.Point).SetBytes(good)
	_, reply, err := NewSender(ID{}, testSource("s"), p.Add(p, low).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	// A point P is in the group of order l if (l-1) P = -P.
	minus := edwards25519.NewScalar().Negate(one())
	for i := range Kappa {
		answer, _ := new(edwards25519.Point).SetBytes(reply[i*pointSize : (i+1)*pointSize])
		got := new(edwards25519.Point).ScalarMult(minus, answer)
		if got.Add(got, answer).Equal(edwards25519.NewIdentityPoint()) != 1 {
			t.Fatalf("answer %d has a part of small order", i)
		}
	}
}

func one() *edwards25519.Scalar {
	v, err := edwards25519.NewScalar().SetCanonicalBytes(append([]byte{1}, make([]byte, 31)...))
	if err != nil {
		panic(err)
	}
	return v
}

// Two IDs share no values, even if everything else is equal.
func TestDomains(t *testing.T) {
	run := func(id ID) (offer, reply, frame []byte, pad uint64) {
		r, offer := NewReceiver(id, testSource("r"))
		s, reply, err := NewSender(id, testSource("s"), offer)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Finish(reply); err != nil {
			t.Fatal(err)
		}
		frame = r.Extend([]uint64{5}, 64)
		if err := s.Extend(frame, 64); err != nil {
			t.Fatal(err)
		}
		return offer, reply, frame, newHasher(id).sum(0, block{1, 2})
	}
	o1, r1, f1, p1 := run(ID{1})
	o2, r2, f2, p2 := run(ID{2})
	if !bytes.Equal(o1, o2) || !bytes.Equal(r1, r2) {
		t.Error("points depend on the ID: the test compares nothing")
	}
	if bytes.Equal(f1[:16], f2[:16]) || p1 == p2 {
		t.Error("two IDs have the same keys or pads")
	}
	h := newHasher(ID{1})
	if h.sum(0, block{1, 2}) == h.sum(1, block{1, 2}) {
		t.Error("two transfers have the same pads")
	}
}

// A party with another ID obtains nothing from the transfers.
func TestOtherSession(t *testing.T) {
	r, offer := NewReceiver(ID{1}, testSource("r"))
	s, reply, err := NewSender(ID{2}, testSource("s"), offer)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(reply); err != nil {
		t.Fatal(err)
	}
	if err := s.Extend(r.Extend([]uint64{0}, 64), 64); !errors.Is(err, ErrConsistency) {
		t.Error(err)
	}
}

func TestWipe(t *testing.T) {
	s, r := pair(t, "wipe")
	extend(t, s, r, random(4, 1), 256)
	s.Wipe()
	r.Wipe()
	for j := range 256 {
		if s.batch.rows[j] != (block{}) || r.batch.rows[j] != (block{}) {
			t.Fatal("rows were not erased")
		}
	}
	if s.batch.s != (block{}) || slices.Max(r.batch.choices) != 0 || s.Batch().Left() != 0 || r.Batch().Left() != 0 {
		t.Error("secrets were not erased")
	}
	NewBegun := func() { r, _ := NewReceiver(ID{}, testSource("r")); r.Wipe() }
	NewBegun()
}
