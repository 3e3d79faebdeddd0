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
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// recorded returns the frames of party 0's message of this name in an honest run.
func recorded(t testing.TB, b *bench, mac bool, name string) [][]byte {
	t.Helper()
	out := b.run(mac, nil, roundtest.Record())
	for p, err := range out.Errors {
		if err != nil {
			t.Fatalf("party %d: %v", p, err)
		}
	}
	return out.Recording.Frames(0, roundtest.Any, name)
}

// spoiled returns a valid encoding and variants: shortened, extended, and with the first or last
// bit changed.
func spoiled(valid []byte) [][]byte {
	first, last := bytes.Clone(valid), bytes.Clone(valid)
	first[0] ^= 1
	last[len(last)-1] ^= 0x80
	return [][]byte{valid, valid[:len(valid)-1], append(bytes.Clone(valid), 0), first, last, bytes.Repeat([]byte{0xff}, len(valid)), nil}
}

// Decoding a response fails or is the inverse of encoding, and fault returns one of its three
// values.
func FuzzResponse(f *testing.F) {
	b := newBench(f, 2)
	for _, mac := range []bool{false, true} {
		for _, data := range spoiled(recorded(f, b, mac, "p/response")[0]) {
			f.Add(mac, data)
		}
	}
	f.Fuzz(func(t *testing.T, mac bool, data []byte) {
		p := b.instance.Proof
		if mac {
			p = b.instance.MACKey
		}
		r := newResponse(b.scheme.N(), p)
		if r.decode(p, data) != nil {
			return
		}
		again, err := r.encode(p)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("another encoding was accepted (%v)", err)
		}
		if check := r.fault(p); check != "" && check != CheckBound {
			t.Errorf("check %q", check)
		}
	})
}

// A frame of a ciphertext is either blamed on its sender without effect, or added to the sum at its
// index and to the sender's statement: the ciphertext itself, or its part of every repetition.
func FuzzCiphertexts(f *testing.F) {
	b := newBench(f, 2)
	p := b.instance.Proof
	frames := recorded(f, b, false, "p/ciphertexts")
	for _, i := range []int{0, 2*p.U - 1} {
		for _, data := range spoiled(frames[i]) {
			f.Add(uint8(i), false, data)
			f.Add(uint8(i), true, data)
		}
	}
	primes := b.scheme.Q.Primes()
	empty := make([]byte, codec.PolySize(b.scheme.N(), primes))
	f.Fuzz(func(t *testing.T, place uint8, folded bool, data []byte) {
		index := int(place) % (2 * p.U)
		r := b.receiver(t, false, folded)
		err := r.Frame(context.Background(), 1, "p/ciphertexts", index, index == 2*p.U-1, data)
		want := data
		if err != nil {
			var blame *round.Blame
			if !errors.As(err, &blame) || blame.Party != 1 || blame.Check != round.CheckShape {
				t.Fatalf("got %v", err)
			}
			want = empty
		}
		if got := codec.AppendPoly(nil, part(r.sums, index), primes); !bytes.Equal(got, want) {
			t.Errorf("the sum at %d is another polynomial than was sent", index)
		}
		if !folded {
			if got := codec.AppendPoly(nil, part(r.others[1].list, index), primes); !bytes.Equal(got, want) {
				t.Errorf("the ciphertext at %d is another polynomial than was sent", index)
			}
			return
		}
		for j := range r.others[1].list {
			got := b.scheme.NewCiphertext()
			b.scheme.AddMonomial(got, r.others[1].list[j], (2*b.scheme.N()-r.challenge.At(j, index/2))%(2*b.scheme.N()))
			if !bytes.Equal(codec.AppendPoly(nil, part([]*gbfv.Ciphertext{got}, index%2), primes), want) {
				t.Errorf("repetition %d has not been given the polynomial", j)
			}
		}
	})
}

// Verify rejects any input that Prove did not produce, with one of its documented errors.
func FuzzVerify(f *testing.F) {
	s := testScheme(f)
	key := gbfvtest.New(s, 2, 1, bytes.Repeat([]byte{1}, 32))
	instance, err := ClientInstance(s.Set, "p128", 2, 1)
	if err != nil {
		f.Fatal(err)
	}
	c := ClientConfig{Scheme: s, Instance: instance, Key: key.Public, KeyHash: round.Hash("key"), Prover: "alice", Workers: 1}
	ciphertexts, proof, err := Prove(context.Background(), c, []field.Vec{key.Random(1)}, testSource("fuzz"))
	if err != nil {
		f.Fatal(err)
	}
	for _, data := range spoiled(ciphertexts) {
		f.Add(data, proof)
	}
	for _, data := range spoiled(proof) {
		f.Add(ciphertexts, data)
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		list, err := Verify(context.Background(), c, a, b)
		if made := bytes.Equal(a, ciphertexts) && bytes.Equal(b, proof); (err == nil) != made || made && len(list) != 1 {
			t.Fatalf("accepted: %v (%v)", err == nil, err)
		}
		if err != nil && !errors.Is(err, ErrProof) && !errors.Is(err, codec.ErrTruncated) && !errors.Is(err, codec.ErrTrailing) && !errors.Is(err, codec.ErrRange) {
			t.Errorf("untyped error %v", err)
		}
	})
}
