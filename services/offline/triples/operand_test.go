package triples

import (
	"bytes"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/params"
)

// The operand of a MAC key is made once, also for sessions at the same time, and another key has
// its own.
func TestOperandIsMadeOncePerMACKey(t *testing.T) {
	set, err := params.Lookup("insecure-6")
	if err != nil {
		t.Fatal(err)
	}
	s, err := gbfv.New(set, set.Fields[0])
	if err != nil {
		t.Fatal(err)
	}
	key := gbfvtest.New(s, 2, 1, bytes.Repeat([]byte{1}, 32))
	a, b := key.Encrypt(key.Random(1), 1), key.Encrypt(key.Random(2), 2)
	var o operand
	first := o.of("mac-a", s, a)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if o.of("mac-a", s, a) != first {
				t.Error("made again for the same key")
			}
		})
	}
	wg.Wait()
	e := gbfv.NewEvaluator(s, key.Eval)
	for id, ct := range map[string]*gbfv.Ciphertext{"mac-a": a, "mac-b": b} {
		if !e.Mul(o.of(id, s, ct), s.Right(a)).Equal(e.Mul(s.Left(ct), s.Right(a))) {
			t.Errorf("%s has the operand of another key", id)
		}
	}
}
