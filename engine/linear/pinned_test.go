package linear

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/lodge-mpc/lodge/engine/sample"
)

// Pins the messages for fixed randomness: keys, inputs and answers of each kind of plan. Builds
// that differ here are not compatible.
func TestMessagesArePinned(t *testing.T) {
	pins := map[string]string{}
	for _, name := range []string{"insecure-V6-32", "insecure-P6-40", Unproved} {
		w := newWorld(t, name)
		var said bytes.Buffer
		said.Write(w.public.Encode())
		say := func(in *Inputs, err error) *Inputs {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			said.Write(in.Header())
			for i := range in.Len() {
				said.Write(in.AppendCiphertext(nil, i))
			}
			return in
		}
		source := func(label string) *sample.Source { return sample.NewSource(make([]byte, 32)).Sub(label) }
		vector, err := w.PlanVector(3, 20, Double, 0)
		if err != nil {
			t.Fatal(err)
		}
		e, err := vector.Evaluator(w.public, say(vector.Encrypt(w.secret, constant(20, 7), 1, source("vector"))))
		if err != nil {
			t.Fatal(err)
		}
		_, rows := vector.RowsOf(0)
		answer, shares, err := e.Answer(0, constant(rows*20, 5), constant(20, 9), source("answer"))
		if err != nil {
			t.Fatal(err)
		}
		said.Write(answer)
		for _, v := range shares {
			said.WriteByte(byte(v))
		}
		batch, err := w.PlanBatch(5, 2, 2, 1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := batch.Evaluator(w.public, say(batch.Encrypt(w.secret, constant(20, 3), 1, source("batch"))))
		if err != nil {
			t.Fatal(err)
		}
		if answer, _, err = b.Answer(0, constant(4, 2), nil, source("batch answer")); err != nil {
			t.Fatal(err)
		}
		said.Write(answer)
		if name == "insecure-P6-40" {
			p, err := w.PlanProduct(ProductShape{Rows: 2, Inner: 2, Cols: 2, MaxLeft: 9, MaxRight: 9})
			if err != nil {
				t.Fatal(err)
			}
			l := say(p.EncryptLeft(w.secret, []int64{1, 2, -3, 4}, 1, source("left")))
			r := say(p.EncryptRight(w.secret, []int64{5, 6, 7, -8}, 1, source("right")))
			e, err := p.Evaluator(w.public, l, r)
			if err != nil {
				t.Fatal(err)
			}
			said.Write(bytes.Join(e.Multiply(1, source("product")), nil))
		}
		sum := sha256.Sum256(said.Bytes())
		pins[name] = hex.EncodeToString(sum[:8])
	}
	for name, want := range map[string]string{
		"insecure-V6-32": "44fc03977dfd6024", "insecure-P6-40": "f0e957dec08f8b68", Unproved: "86bcd8d6e2f49b1e",
	} {
		if pins[name] != want {
			t.Errorf("%s: %s, pinned is %s", name, pins[name], want)
		}
	}
}
