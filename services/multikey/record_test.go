package multikey

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func signer(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

func signers() (keys []ed25519.PublicKey) {
	for i := range byte(3) {
		keys = append(keys, signer(i).Public().(ed25519.PublicKey))
	}
	return keys
}

func testContext(t *testing.T, set, seed string) *Context {
	t.Helper()
	c, err := ContextOf(&config.Multikey{Set: set, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func record(c *Context) *Record {
	return &Record{
		Version: 3, Set: c.Hash(), CRS: c.CRS(), Key: multikey.KeyID{7, 31: 9}, Size: uint64(c.KeySize()),
		Created: time.Date(2026, 11, 23, 8, 50, 1, 0, time.UTC), Bound: true, Salt: [32]byte{1, 31: 2},
	}
}

// weakRecord returns a record in the form of an older version.
func weakRecord(c *Context) *Record {
	r := record(c)
	r.Bound, r.Salt = false, [32]byte{}
	return r
}

const testSeed = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

func TestRecord(t *testing.T) {
	c := testContext(t, "insecure-M8-32", config.StandardSeed)
	for i, revoked := range []bool{false, true, false, true} {
		r, size, number := record(c), RecordSize, uint32(OwnerInSeed)
		if i > 1 {
			r, size, number = weakRecord(c), WeakRecordSize, OwnerNumber(signers()[1])
		}
		r.Revoked = revoked
		signed := r.Sign(signer(1))
		if len(signed) != size {
			t.Fatalf("%d bytes", len(signed))
		}
		got, err := VerifyRecord(signed)
		if err != nil {
			t.Fatal(err)
		}
		if place, err := got.Place(signers()); err != nil || place != 1 || got.Owner() != number || got.Weak() != (i > 1) {
			t.Errorf("the owner is %d, at %d, %v", got.Owner(), place, err)
		}
		if _, err := got.Place(signers()[:1]); !errors.Is(err, ErrOwner) {
			t.Errorf("of a party that left the roster: %v", err)
		}
		if *got != *r || got.Check(c) != nil {
			t.Errorf("%+v, want %+v", got, r)
		}
	}
}

// A record with any flipped bit is rejected: it is malformed, or its signature does not verify.
func TestRecordsAreSigned(t *testing.T) {
	c := testContext(t, "insecure-M8-32", config.StandardSeed)
	signed := weakRecord(c).Sign(signer(1))
	for _, signed := range [][]byte{signed, record(c).Sign(signer(1))} {
		for i := range 8 * len(signed) {
			b := bytes.Clone(signed)
			b[i/8] ^= 1 << (i % 8)
			if _, err := VerifyRecord(b); !errors.Is(err, ErrRecord) && !errors.Is(err, ErrSignature) {
				t.Errorf("bit %d of %d bytes: %v", i, len(signed), err)
			}
		}
	}
	for name, x := range map[string]struct {
		record []byte
		want   error
	}{
		"another party's signature": {append(bytes.Clone(signed[:recordBody]), ed25519.Sign(signer(2), signedPart(signed[:recordBody]))...), ErrSignature},
		"another party's name":      {append(bytes.Clone(signers()[2]), signed[ed25519.PublicKeySize:]...), ErrSignature},
		"version 0":                 {func() []byte { r := record(c); r.Version = 0; return r.Sign(signer(1)) }(), ErrRecord},
		"before 1970":               {func() []byte { r := record(c); r.Created = time.Unix(-1, 0); return r.Sign(signer(1)) }(), ErrRecord},
		"after 9999":                {func() []byte { r := record(c); r.Created = time.Unix(maxCreated+1, 0); return r.Sign(signer(1)) }(), ErrRecord},
		"short":                     {signed[1:], ErrRecord},
		"long":                      {append(bytes.Clone(signed), 0), ErrRecord},
		"nothing":                   {nil, ErrRecord},
		"without its salt": {func() []byte { // the signature is for another form
			b := record(c).Sign(signer(1))
			return append(bytes.Clone(b[:recordBody]), b[recordBody+saltSize:]...)
		}(), ErrSignature},
	} {
		if _, err := VerifyRecord(x.record); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	twice := bytes.Clone(signed)
	twice[recordBody-1] = 2
	if _, err := ParseRecord(twice); !errors.Is(err, ErrRecord) {
		t.Errorf("revoked twice: %v", err)
	}
}

func TestRecordsOfAnotherContext(t *testing.T) {
	c := testContext(t, "insecure-M8-32", config.StandardSeed)
	r := record(c)
	for name, x := range map[string]struct {
		change func(*Record)
		want   error
	}{
		"set":  {func(r *Record) { r.Set[0] ^= 1 }, multikey.ErrSet},
		"CRS":  {func(r *Record) { r.CRS[0] ^= 1 }, multikey.ErrCRS},
		"size": {func(r *Record) { r.Size = math.MaxUint64 }, ErrRecord},
	} {
		other := *r
		x.change(&other)
		if err := other.Check(c); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.Check(testContext(t, "insecure-M8-32", testSeed)); !errors.Is(err, multikey.ErrCRS) {
		t.Errorf("keys of the standard string under another: %v", err)
	}
}

// The encoding is pinned, because different releases exchange records.
func TestRecordIsPinned(t *testing.T) {
	r := &Record{Version: 2, Set: [32]byte{3}, CRS: [32]byte{4}, Key: multikey.KeyID{5}, Size: 6, Created: time.Unix(7, 0), Revoked: true}
	zeros := func(n int) string { return hex.EncodeToString(make([]byte, n)) }
	want := hex.EncodeToString(signers()[1]) + "0200000000000000" + "03" + zeros(31) + "04" + zeros(31) + "05" + zeros(31) + "0600000000000000" + "0700000000000000" + "01" +
		pinnedSignature
	if got := hex.EncodeToString(r.Sign(signer(1))); got != want {
		t.Errorf("got %s", got)
	}
	r.Bound, r.Salt = true, [32]byte{8}
	want = want[:2*recordBody] + "08" + zeros(31) + pinnedBoundSignature
	if got := hex.EncodeToString(r.Sign(signer(1))); got != want {
		t.Errorf("got %s", got)
	}
	seed := OwnerSeed(signers()[1], r.Salt)
	if got := hex.EncodeToString(seed[:]); got != pinnedSeed {
		t.Errorf("the seed is %s", got)
	}
}

const (
	pinnedBoundSignature = "35e0bce7765d88d2adb81c176b9fa176f8672e0e8edf3b67da4dd2cc5e9b8838" +
		"86acf75ab88bc4c46dc13a0d1d1542d4b0445ec42b2ddb6484cfa8f438504506"
	pinnedSeed = "3b17c714e958e31b84856dd43c184642425533ddec65b96ed6a867567a88d416"
)

const pinnedSignature = "e4f489483cf6ace8cea5172dc2aae91b7040f010af3641e79166a405f087112a" +
	"6eeba43a55f1cf6529c112229338bebcfadbee5a98d9a36c2bbf4da6ad046d00"

func TestContext(t *testing.T) {
	standard, tossed := testContext(t, "insecure-M8-32", config.StandardSeed), testContext(t, "insecure-M8-32", testSeed)
	other := testContext(t, "insecure-M11-I", config.StandardSeed)
	s, err := multikey.New(standard.Set, multikey.StandardSeed())
	if err != nil {
		t.Fatal(err)
	}
	if standard.CRS() != s.CRS() || standard.Hash() != s.Hash() {
		t.Error("the standard seed has changed")
	}
	if standard.Digest() == tossed.Digest() || standard.Digest() == other.Digest() || standard.Digest() != testContext(t, "insecure-M8-32", config.StandardSeed).Digest() {
		t.Error("different contexts have the same digest")
	}
	for name, m := range map[string]*config.Multikey{"none": nil, "an unknown set": {Set: "M99-1", Seed: config.StandardSeed}} {
		if _, err := ContextOf(m); rpc.FromError(err).Code != rpc.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	r := &Record{Version: 2, Size: 6, Created: time.Unix(7, 0), Revoked: true}
	f.Add(r.Sign(signer(1)))
	r.Bound = true
	f.Add(r.Sign(signer(1)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRecord(b)
		if err != nil {
			return
		}
		if !bytes.Equal(r.body(), b[:len(b)-ed25519.SignatureSize]) {
			t.Errorf("%x is decoded as %x", b, r.body())
		}
	})
}
