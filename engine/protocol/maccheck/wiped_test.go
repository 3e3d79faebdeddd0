package maccheck

import (
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// The end of a run, whatever it is, erases the mask, the combinations of shares and MACs, and the randomness.
func TestTheEndErases(t *testing.T) {
	f := testField(t, "p128")
	c := deal(t, f, 2, 5).inputs[0]
	c.Session = round.Session{ID: round.Hash("a session"), Parties: 2, Secrets: new(round.Secrets)}
	c.Source = source("run", 0)
	if _, err := Start(c); err != nil {
		t.Fatal(err)
	}
	next, err := open(c, round.Hash("a coin"))
	if err != nil {
		t.Fatal(err)
	}
	r := next.Next.(opening)
	secrets := map[string]field.Vec{"mask": c.Mask.Value, "mask's MAC": c.Mask.MAC, "shares": r.shares, "MACs": r.macs}
	for name, v := range secrets {
		if f.EqualVec(v, f.NewVec(v.Len())) {
			t.Fatalf("no %s to erase", name)
		}
	}
	c.Session.Secrets.Wipe()
	for name, v := range secrets {
		if !f.EqualVec(v, f.NewVec(v.Len())) {
			t.Errorf("the %s are still there", name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("the source still gives randomness")
		}
	}()
	c.Source.Stream("coin")
}
