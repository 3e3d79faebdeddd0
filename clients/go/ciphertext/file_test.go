package ciphertext

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
)

func written(t testing.TB, c *Ciphertext) []byte {
	var b bytes.Buffer
	if n, err := c.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("%d of %d bytes, %v", n, b.Len(), err)
	}
	return b.Bytes()
}

func sampleFile() *Ciphertext {
	return &Ciphertext{
		Epoch: 7, Params: "S14-32", Field: "p128", Values: 3, Prover: "app", Context: []byte("what for\n"),
		Bytes: bytes.Repeat([]byte{1, 2, '\n'}, 50), ProofBytes: bytes.Repeat([]byte{9}, 70),
	}
}

func TestFile(t *testing.T) {
	x := sampleFile()
	whole := written(t, x)
	got, err := Read(bytes.NewReader(whole))
	if err != nil || !reflect.DeepEqual(got, x) {
		t.Errorf("%+v, %v", got, err)
	}
	refused := func(what string, b []byte) {
		t.Helper()
		if c, err := Read(bytes.NewReader(b)); c != nil || !errors.Is(err, &lodge.Error{Code: lodge.Invalid}) {
			t.Errorf("%s: %v, %v", what, c, err)
		}
	}
	for n := range whole {
		refused("cut", whole[:n])
	}
	refused("longer", append(whole, 0))
	for old, wrong := range map[string]string{
		"ciphertext 1":            "ciphertext 2",
		`"epoch":7`:               `"epoch":7,"more":1`,
		`"epoch":7,`:              `"epoch":-7,`,
		`"values":3`:              `"values":-3`,
		`"proof_bytes":70`:        `"proof_bytes":-70`,
		`"ciphertext_bytes":150`:  `"ciphertext_bytes":268435457`,
		`"context":"d2hhdCBmb3IK`: `"context":"` + strings.Repeat("d2hh", MaxContext) + "d2hhdCBmb3IK",
	} {
		b := bytes.Replace(whole, []byte(old), []byte(wrong), 1)
		if bytes.Equal(b, whole) {
			t.Fatalf("no %q in %q", old, whole)
		}
		refused(wrong, b)
	}
}

// A file that announces much data uses no more memory than its actual content.
func TestFileOfPromises(t *testing.T) {
	x := sampleFile()
	head := bytes.Replace(written(t, x), []byte(`"ciphertext_bytes":150`), []byte(`"ciphertext_bytes":268435456`), 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Read(bytes.NewReader(head)); err == nil {
		t.Error("the truncated file was read")
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes for a file of %d", after.TotalAlloc-before.TotalAlloc, len(head))
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, sampleFile()))
	f.Add([]byte(magic + "\n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := Read(bytes.NewReader(written(t, c)))
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("%+v becomes %+v, %v", c, again, err)
		}
	})
}
