package ddec

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// A decryption share is the unique encoding of a polynomial, which is added, or its sender is
// blamed.
func FuzzShare(f *testing.F) {
	w := newWorld(f, "insecure-6", "p512", 2, 1)
	c := Config{
		Session: round.Session{Parties: 2}, Step: "test", Scheme: w.scheme, Instance: w.instance, Ciphertexts: w.switched,
	}
	primes := c.basis().Primes()
	valid := w.client()[1]
	for _, data := range [][]byte{valid, valid[1:], append(bytes.Clone(valid), 0), residue(primes[0])(bytes.Clone(valid)), nil} {
		f.Add(true, data)
	}
	f.Add(false, valid)
	f.Fuzz(func(t *testing.T, last bool, data []byte) {
		r := &combine{Config: c, shares: make(Shares, 1), sum: []ring.Poly{c.basis().NewPoly()}, buffer: c.basis().NewPoly()}
		err := r.Frame(context.Background(), 1, r.name(), 0, last, data)
		if err == nil {
			if again := codec.AppendPoly(nil, r.sum[0].C, primes); !last || !bytes.Equal(again, data) {
				t.Error("accepted another encoding")
			}
			return
		}
		var blame *round.Blame
		if !errors.As(err, &blame) || blame.Party != 1 || blame.Check != round.CheckShape {
			t.Errorf("got %v", err)
		}
	})
}

// Combine returns a result for well-formed messages and blames the sender of any other message.
func FuzzCombine(f *testing.F) {
	w := newWorld(f, "insecure-6", "p512", 2, 1)
	messages := w.client()
	for _, data := range [][]byte{messages[1], messages[1][1:], append(bytes.Clone(messages[1]), 0), make([]byte, len(messages[1])), nil} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Combine(w.scheme, w.instance, w.full[0], [][]byte{messages[0], data})
		if err == nil {
			if bytes.Equal(data, messages[1]) && !w.scheme.Field.EqualVec(got, w.messages[0]) {
				t.Error("the correct message yields a wrong result")
			}
			return
		}
		var blame *round.Blame
		if !errors.As(err, &blame) || blame.Party != 1 || blame.Check != round.CheckShape || bytes.Equal(data, messages[1]) {
			t.Errorf("got %v", err)
		}
	})
}
