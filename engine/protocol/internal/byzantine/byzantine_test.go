package byzantine

import "testing"

func TestHooks(t *testing.T) {
	x := 1
	Apply(Hooks{}, "a", &x)
	if x != 1 || (Hooks{}).Skips("c") || (Hooks{}).Fired("a") != 0 {
		t.Fatal("the zero hooks have an effect")
	}
	h := On(New(), "a", func(v *int) { *v++ }).Skip("c")
	On(h, "later", func(*int) {})
	Apply(h, "a", &x)
	Apply(h, "b", &x)
	if x != 2 || h.Fired("a") != 1 || h.Fired("b") != 0 || !h.Skips("c") || h.Skips("a") {
		t.Fatal("hooks miscounted")
	}
	if got := h.Unfired(); len(got) != 1 || got[0] != "later" || (Hooks{}).Unfired() != nil {
		t.Fatalf("hooks %v have not run", got)
	}
	defer func() {
		if recover() == nil {
			t.Fatal("a hook of the wrong type was accepted")
		}
	}()
	Apply(h, "a", "text")
}
