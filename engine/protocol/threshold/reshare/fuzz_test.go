package reshare

import (
	"bytes"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// A message of numbers is their unique encoding, or its sender is blamed.
func FuzzNumbers(f *testing.F) {
	w := newWorldOf(f, ofBGV, group(1, 0, 1, 2), group(1, 0, 1, 2))
	c := w.config(round.Session{Parties: 3})
	p, err := newPlan(&c)
	if err != nil {
		f.Fatal(err)
	}
	valid := p.pack(rows(p.widths()))
	for _, data := range [][]byte{valid, valid[1:], append(bytes.Clone(valid), 0), bytes.Repeat([]byte{0xff}, len(valid)), nil} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := p.unpack(1, data, p.widths())
		if err == nil {
			if !bytes.Equal(p.pack(v), data) {
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
