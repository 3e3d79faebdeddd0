package threshold

import (
	"bytes"
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
)

const bgvTestSet = "insecure-B5-17"

// bgvTestKey returns a key pair for tests.
func bgvTestKey(t testing.TB) (*Key, *rlwe.PublicKey) {
	t.Helper()
	k := &Key{Epoch: 7, Params: bgvTestSet, Digest: [32]byte{1, 2}}
	if _, err := k.load(); err != nil {
		t.Fatal(err)
	}
	g := rlwe.NewKeyGenerator(k.bgv.Lattigo)
	return k, g.GenPublicKeyNew(g.GenSecretKeyNew())
}

// A file of BGV ciphertexts is read as it was written, and modified files are refused.
func TestBGVFiles(t *testing.T) {
	k, public := bgvTestKey(t)
	values := make([]uint64, 40)
	for i := range values {
		values[i] = uint64(i)
	}
	for _, slots := range []bool{false, true} {
		for _, n := range []int{1, 32, 40} {
			list, err := EncryptBGV(k, public, values[:n], slots)
			if err != nil {
				t.Fatal(err)
			}
			f, err := NewBGVFile(k, list, n, slots)
			if err != nil {
				t.Fatal(err)
			}
			whole := written(t, f)
			got, err := ReadFile(bytes.NewReader(whole))
			if err != nil {
				t.Fatal(err)
			}
			if got.Slots != slots || got.Messages != n || got.Coefficients != f.Coefficients || got.Keys != k.Digest || !bytes.Equal(written(t, got), whole) {
				t.Errorf("slots %v, %d values: %+v", slots, n, got)
			}
			for i, c := range got.BGV {
				if !c.Equal(list[i]) {
					t.Errorf("ciphertext %d differs", i)
				}
			}
			for _, bad := range [][]byte{whole[:len(whole)-1], append(slices.Clone(whole), 0), bytes.Replace(whole, []byte(`"level":2`), []byte(`"level":1`), 1), bytes.Replace(whole, []byte(`"level":2`), []byte(`"level":3`), 1)} {
				if _, err := ReadFile(bytes.NewReader(bad)); err == nil {
					t.Error("a modified file was accepted")
				}
			}
		}
	}
	if _, err := EncryptBGV(k, public, []uint64{65537}, true); err == nil {
		t.Error("a value that is too large was encrypted")
	}
	if _, err := EncryptBGV(k, public, nil, true); err == nil {
		t.Error("an empty list of values was encrypted")
	}
}

// Tests the requests for a file, and the values in the answers.
func TestBGVFileRequests(t *testing.T) {
	k, public := bgvTestKey(t)
	list, err := EncryptBGV(k, public, make([]uint64, 70), true)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewBGVFile(k, list, 70, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, flooding := range []bool{false, true} {
		f.Flooding = flooding
		requests, err := f.Requests(64)
		if err != nil || len(requests) != 2 || len(requests[0].BGV) != 2 || requests[0].Flooding != flooding || (requests[0].Coefficients == 0) != flooding {
			t.Errorf("%+v, %v", requests, err)
		}
		if _, err := f.Requests(31); err == nil {
			t.Error("a request for less than a ciphertext was accepted")
		}
		opened := make([]uint64, 3*32)
		values, err := f.Values(opened)
		if err != nil || len(values) != 70 {
			t.Errorf("%v, %v", values, err)
		}
		if _, err := f.Values(opened[:64]); err == nil {
			t.Error("too few values were accepted")
		}
	}
	some, err := NewBGVFile(k, list[:1], 3, false)
	if err != nil {
		t.Fatal(err)
	}
	some.Flooding = true
	opened := make([]uint64, 32)
	copy(opened, []uint64{9, 8, 7, 6})
	if values, err := some.Values(opened); err != nil || !slices.Equal(values, []uint64{9, 8, 7}) {
		t.Errorf("%v, %v", values, err)
	}
	_, key, _ := ed25519.GenerateKey(nil)
	if word, err := f.Attest(7, 64, "pipeline", "sum", key); err != nil || len(word.Signatures) != 2 {
		t.Errorf("%+v, %v", word, err)
	}
	if _, err := f.Extract(); err == nil || !strings.Contains(err.Error(), "BGV") {
		t.Errorf("%v", err)
	}
}
