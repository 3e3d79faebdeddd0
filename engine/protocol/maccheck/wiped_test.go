package maccheck

import (
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Every end of a run erases the mask, the combinations of shares and MACs, and the randomness.
func TestTheEndErases(t *testing.T) {
	f := testField(t, "p128")
	c := deal(t, f, 2, 5).inputs[0]
	c.Session = round.Session{ID: round.Hash("a session"), Parties: 2, Secrets: new(round.Secrets)}
	c.Source = source("run", 0)
	if _, err := Start(c); err != nil {
		t.Fatal(err)
	}
	shares, macs, err := c.combined(round.Hash("a coin"))
	if err != nil {
		t.Fatal(err)
	}
	m := c.Material
	secrets := map[string]field.Vec{
		"mask": m.Mask.Value, "mask's MAC": m.Mask.MAC, "shares": shares, "MACs": macs,
		"triple": m.Triples[2].A, "triple's b": m.Triples[1].B, "triple's product": m.Triples[0].C, "triple's MAC": m.Triples[0].MACB,
	}
	for name, v := range secrets {
		if f.EqualVec(v, f.NewVec(v.Len())) {
			t.Fatalf("no %s to erase", name)
		}
	}
	c.Session.Secrets.Wipe()
	for name, v := range secrets {
		if !f.EqualVec(v, f.NewVec(v.Len())) {
			t.Errorf("the %s are not erased", name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("the source still yields randomness")
		}
	}()
	c.Source.Stream("coin")
}
