package threshold

import (
	"bytes"
	"crypto/ed25519"
	"reflect"
	"strings"
	"testing"
)

// The provenance of a file has a signature for each request, and is read as it was written.
func TestProvenanceFiles(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*File{ringFile(t), lweFile(t)} {
		for _, most := range []int{256, 1000} {
			word, err := f.Attest(9, most, "pipeline", "mean", private)
			if err != nil {
				t.Fatal(err)
			}
			list, err := f.Requests(most)
			if err != nil {
				t.Fatal(err)
			}
			if err := word.Put(list); err != nil {
				t.Fatal(err)
			}
			k := testKey(t)
			k.Epoch = 9
			for i, r := range list {
				q, err := r.question(k, nil)
				if err != nil || r.Attester != "pipeline" || !ed25519.Verify(public, q.Statement("mean"), r.Signature) {
					t.Errorf("request %d: %v, or its signature is wrong", i, err)
				}
			}
			if word.Put(append(list, &Request{})) == nil {
				t.Error("a request without a signature was accepted")
			}
			var b bytes.Buffer
			if n, err := word.WriteTo(&b); err != nil || n != int64(b.Len()) {
				t.Errorf("%d of %d bytes, %v", n, b.Len(), err)
			}
			text := b.String()
			if got, err := ReadProvenance(&b); err != nil || !reflect.DeepEqual(got, word) {
				t.Errorf("%+v, %v", got, err)
			}
			for _, edit := range [][2]string{
				{"provenance 1", "provenance 2"}, {`"epoch": 9`, `"epoch": 0`}, {`"batch": `, `"batch": -`}, {`"attester": "pipeline"`, `"attester": ""`},
				{`"circuit"`, `"circuits"`}, {`"signatures": [`, `"signatures": ["AAAA", `}, {"{", ""},
			} {
				changed := strings.Replace(text, edit[0], edit[1], 1)
				if changed == text {
					t.Fatalf("no %s", edit[0])
				}
				if got, err := ReadProvenance(strings.NewReader(changed)); err == nil {
					t.Errorf("%q: %+v", edit, got)
				}
			}
		}
	}
	if _, err := lweFile(t).Attest(9, 0, "pipeline", "mean", private); err == nil {
		t.Error("a batch of 0 messages was accepted")
	}
}
