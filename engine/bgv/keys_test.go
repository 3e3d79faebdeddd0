package bgv

import (
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
)

func (w *world) keysOf(t testing.TB, galois ...uint64) *Keys {
	t.Helper()
	k, err := w.NewKeys([SeedSize]byte{7}, galois)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range k.B {
		w.Uniform(p, &k.Seed, 100+i)
	}
	return k
}

// received assembles keys from all their chunks, the last one first.
func (w *world) received(k *Keys) (*Keys, error) {
	in, err := w.Receive(w.KeysHeader(k))
	if err != nil {
		return nil, err
	}
	for i := range k.B {
		at := len(k.B) - 1 - i
		if err := in.Put(at, w.AppendChunk(nil, k, at)); err != nil {
			return nil, err
		}
	}
	return in.Finish(w.KeysDigest(k))
}

func TestAutomorphisms(t *testing.T) {
	w := newWorld(t, "insecure-B5-17")
	for _, list := range [][]uint64{{1}, {2}, {5, 3}, {3, 3}, {64}, {65}, {0}, make([]uint64, 129)} {
		if _, err := w.NewKeys([SeedSize]byte{}, list); !errors.Is(err, ErrKeys) {
			t.Errorf("%v: %v", list, err)
		}
	}
	if k := w.keysOf(t, 5, 63); len(k.B) != 1+3*3 {
		t.Fatalf("%d samples", len(k.B))
	}
}

func TestKeysAreReceived(t *testing.T) {
	w := newWorld(t, "insecure-B5-17")
	for _, galois := range [][]uint64{nil, {5, 63}} {
		k := w.keysOf(t, galois...)
		again, err := w.received(k)
		if err != nil || !slices.Equal(again.Galois, galois) || again.Seed != k.Seed || w.KeysDigest(again) != w.KeysDigest(k) {
			t.Errorf("%v, %v", again, err)
		}
		public, err := w.ReceivePublicKey(w.KeysDigest(k), w.KeysHeader(k), w.ChunkDigests(k), w.AppendChunk(nil, k, 0))
		if all, _ := w.KeysToLattigo(k); err != nil || !public.Equal(all) {
			t.Errorf("the public key differs: %v", err)
		}
	}
	k := w.keysOf(t)
	digest := w.KeysDigest(k)
	k.Seed[0]++
	if w.KeysDigest(k) == digest {
		t.Error("keys of another seed have the same digest")
	}
}

func TestHeadersAreRefused(t *testing.T) {
	w := newWorld(t, "insecure-B5-17")
	good := w.KeysHeader(w.keysOf(t, 5, 63))
	for name, b := range map[string][]byte{
		"nothing": nil, "seed": good[:minHeader-1], "short": good[:len(good)-1], "long": append(slices.Clone(good), 0),
		"set": edited(good, 0, good[0]+1), "more": edited(good, minHeader-1, 3), "order": edited(good, minHeader, 63),
		"even": edited(good, minHeader, 4), "large": edited(good, minHeader+7, 1),
	} {
		if _, err := w.Receive(b); !errors.Is(err, ErrKeys) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := w.ReceivePublicKey([32]byte{}, b, nil, nil); !errors.Is(err, ErrKeys) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChunksAreRefused(t *testing.T) {
	w := newWorld(t, "insecure-B5-17")
	k := w.keysOf(t, 5)
	in, err := w.Receive(w.KeysHeader(k))
	if err != nil {
		t.Fatal(err)
	}
	zero, one := w.AppendChunk(nil, k, 0), w.AppendChunk(nil, k, 1)
	residue := slices.Clone(zero)
	for i := range 7 {
		residue[i] = 0xff
	}
	put := func(name string, i int, b []byte, good bool) {
		if err := in.Put(i, b); errors.Is(err, ErrKeys) == good || (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	put("before", -1, zero, false)
	put("after", len(k.B), zero, false)
	put("short", 0, zero[:len(zero)-1], false)
	put("long", 0, append(slices.Clone(zero), 0), false)
	put("residue", 0, residue, false)
	put("good", 0, zero, true)
	put("again", 0, zero, true)
	put("another", 0, one, false)
	if _, err := in.Finish(w.KeysDigest(k)); !errors.Is(err, ErrKeys) || len(in.Missing()) != len(k.B)-1 {
		t.Errorf("%v, %v", in.Missing(), err)
	}
	for i := range k.B {
		put("good", i, w.AppendChunk(nil, k, i), true)
	}
	if _, err := in.Finish([32]byte{}); !errors.Is(err, ErrKeys) {
		t.Error(err)
	}
	digests := w.ChunkDigests(k)
	public := func(name string, digest [32]byte, list [][32]byte, chunk []byte) {
		if _, err := w.ReceivePublicKey(digest, w.KeysHeader(k), list, chunk); !errors.Is(err, ErrKeys) {
			t.Errorf("%s: %v", name, err)
		}
	}
	public("digest", [32]byte{}, digests, zero)
	public("fewer", DigestOf(w.KeysHeader(k), digests[1:]), digests[1:], one)
	public("chunk", w.KeysDigest(k), digests, one)
	digests[0] = sha256.Sum256(residue)
	public("residue", DigestOf(w.KeysHeader(k), digests), digests, residue)
}
