package threshold

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/lwe"
)

const testSet = "insecure-L8-50"

func testKey(t testing.TB) *Key {
	t.Helper()
	scheme, err := schemeOf(testSet)
	if err != nil {
		t.Fatal(err)
	}
	return &Key{Epoch: 7, Params: testSet, Digest: [32]byte{1, 2, 3}, scheme: scheme}
}

// ringFile holds two ring ciphertexts with 300 messages of 256 each.
func ringFile(t testing.TB) *File {
	k := testKey(t)
	list := []*lwe.Ring{k.scheme.NewRing(), k.scheme.NewRing()}
	list[0].A[3], list[1].B[5] = 17, k.scheme.Q-1
	return NewFile(k, list, 300, lwe.Padded)
}

func lweFile(t testing.TB) *File {
	k := testKey(t)
	list := []*lwe.LWE{k.scheme.NewLWE(), k.scheme.NewLWE(), k.scheme.NewLWE()}
	list[2].B = 99
	return NewLWEFile(k, list, lwe.Boolean)
}

func written(t testing.TB, f *File) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := f.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("%d of %d bytes, %v", n, b.Len(), err)
	}
	return b.Bytes()
}

func TestFile(t *testing.T) {
	for _, f := range []*File{ringFile(t), lweFile(t)} {
		whole := written(t, f)
		got, err := ReadFile(bytes.NewReader(whole))
		if err != nil {
			t.Fatal(err)
		}
		if got.Epoch != 7 || got.Keys != f.Keys || got.Messages != f.Messages || got.Encoding != f.Encoding || !bytes.Equal(written(t, got), whole) {
			t.Errorf("%+v", got)
		}
		refused := func(what string, b []byte) {
			t.Helper()
			if c, err := ReadFile(bytes.NewReader(b)); c != nil || !errors.Is(err, &lodge.Error{Code: lodge.Invalid}) {
				t.Errorf("%s: %v, %v", what, c, err)
			}
		}
		for n := 0; n < len(whole); n += 1 + n/8 {
			refused("cut", whole[:n])
		}
		refused("longer", append(slices.Clone(whole), 0))
		refused("a residue that is none", append(slices.Clone(whole[:len(whole)-7]), bytes.Repeat([]byte{0xff}, 7)...))
		for old, wrong := range map[string]string{
			"ciphertexts 1":       "ciphertexts 2",
			`"epoch":7`:           `"epoch":7,"more":1`,
			`"epoch":7,`:          `"epoch": 7,`,
			`{"epoch":7,`:         `{"epoch":0,`,
			`"params":"insecure-`: `"params":"secure-`,
			`"messages":3`:        `"messages":9`,
			`"messages":30`:       `"messages":10`,
			`"keys":"01`:          `"keys":"0g`,
			`"encoding":"`:        `"encoding":"un`,
			`"form":"`:            `"form":"x`,
		} {
			if b := bytes.Replace(whole, []byte(old), []byte(wrong), 1); !bytes.Equal(b, whole) {
				refused(wrong, b)
			}
		}
	}
}

// A file that announces much data uses no more memory than its actual content.
func TestFileOfPromises(t *testing.T) {
	whole := written(t, lweFile(t))
	head := bytes.Replace(whole, []byte(`"count":3`), []byte(`"count":100000`), 1)
	head = bytes.Replace(head, []byte(`"messages":3`), []byte(`"messages":100000`), 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReadFile(bytes.NewReader(head)); err == nil || !strings.Contains(err.Error(), "it ends in ciphertext 3") {
		t.Errorf("%v", err)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes for a file of %d", after.TotalAlloc-before.TotalAlloc, len(head))
	}
}

// Requests have the given size, and padded ciphertexts are doubled.
func TestFileRequests(t *testing.T) {
	f := ringFile(t)
	list, err := f.Requests(256)
	if err != nil || len(list) != 2 || list[0].Coefficients != 256 || list[0].Ring[0].A[3] != 34 || f.Ring[0].A[3] != 17 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err = f.Requests(1 << 16); err != nil || len(list) != 1 || len(list[0].Ring) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err = f.Requests(255); err == nil {
		t.Error("a request for half a ciphertext was accepted")
	}
	if list, err = lweFile(t).Requests(2); err != nil || len(list) != 2 || len(list[1].LWE) != 1 || list[1].LWE[0].B != 99 {
		t.Errorf("%v, %v", list, err)
	}
	if c, err := f.Extract(); err != nil || len(c) != 300 || c[261].B != f.Ring[1].B[5] {
		t.Errorf("%d, %v", len(c), err)
	}
	if v, err := Values(testSet, lwe.Boolean, []uint64{2, 14}); err != nil || !slices.Equal(v, []uint64{1, 0}) {
		t.Errorf("%v, %v", v, err)
	}
	if v, err := Values(testSet, lwe.Boolean, []uint64{3}); err == nil {
		t.Errorf("%v", v)
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add(written(f, lweFile(f)))
	f.Add([]byte(fileMagic + "\n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ReadFile(bytes.NewReader(b))
		if err != nil {
			return
		}
		if again := written(t, x); !bytes.Equal(again, b) {
			t.Errorf("writing it again changes it")
		}
	})
}

func FuzzReadAnswers(f *testing.F) {
	f.Add([]byte(`{"format":"lodge threshold answers 1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ReadAnswers(bytes.NewReader(b))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := x.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadAnswers(&out); err != nil {
			t.Errorf("the written file is not accepted: %v", err)
		}
	})
}

// Each of a recipient's files is accepted only as its own type.
func TestRecipientFiles(t *testing.T) {
	r, err := NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	private, err := r.PEM()
	if err != nil {
		t.Fatal(err)
	}
	public := PublicPEM(r.Public())
	if k, err := ParsePublicPEM(public); err != nil || !bytes.Equal(k.Bytes(), r.Public().Bytes()) {
		t.Errorf("%v", err)
	}
	if again, err := ParseRecipientPEM(private); err != nil || !bytes.Equal(again.Public().Bytes(), r.Public().Bytes()) {
		t.Errorf("%v", err)
	}
	for what, b := range map[string][]byte{"the private key": private, "twice": append(slices.Clone(public), public...), "nothing": nil, "cut": public[:len(public)/2]} {
		if _, err := ParsePublicPEM(b); !errors.Is(err, &lodge.Error{Code: lodge.Invalid}) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ParseRecipientPEM(public); err == nil {
		t.Error("a public key was accepted as a private one")
	}
}
