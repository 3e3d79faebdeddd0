package byzantine

import "testing"

func TestHooks(t *testing.T) {
	x := 1
	Apply(Hooks{}, "a", &x)
	if x != 1 || (Hooks{}).Skips("c") || (Hooks{}).Fired("a") != 0 {
		t.Fatal("the zero hooks do something")
	}
	h := On(New(), "a", func(v *int) { *v++ }).Skip("c")
	Apply(h, "a", &x)
	Apply(h, "b", &x)
	if x != 2 || h.Fired("a") != 1 || h.Fired("b") != 0 || !h.Skips("c") || h.Skips("a") {
		t.Fatal("hooks miscounted")
	}
	defer func() {
		if recover() == nil {
			t.Fatal("a hook of the wrong type was accepted")
		}
	}()
	Apply(h, "a", "text")
}
