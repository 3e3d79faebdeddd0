package triple

import (
	"testing"

	"github.com/lodge-mpc/lodge/engine/params"
)

// The blocks that plans choose: for squares those that hold them, for others those that cost less,
// within what memory they take.
func TestChosenBlocks(t *testing.T) {
	set, err := params.Lookup(params.Default)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		shape  Shape
		keyDim int
		want   int
	}{
		{Shape{128, 128, 128}, 128, 128}, {Shape{100, 100, 100}, 128, 128}, {Shape{64, 64, 64}, 128, 64}, {Shape{3, 3, 3}, 128, 4},
		{Shape{200, 200, 200}, 128, 128},
		{Shape{128, 128, 1}, 128, 64}, // 32 would save more, and take 4.2 GB
		{Shape{64, 576, 1}, 128, 64},
		{Shape{64, 576, 1}, 16, 16}, // no keys for more
		{Shape{2, 3, 1}, 128, 1}, {Shape{32, 32, 1}, 128, 4},
		{Shape{512, 512, 1}, 128, 128}, // takes more than it should as it is
	} {
		for _, parties := range []int{2, 8} {
			p, err := NewPlan(set, "p128", parties, Matrix, matrices(c.shape), 0, 1, c.keyDim)
			if err != nil {
				t.Fatal(err)
			}
			if p.Dim != c.want {
				t.Errorf("%v of %d parties, keys for %d: blocks of %d, want %d", c.shape, parties, c.keyDim, p.Dim, c.want)
			}
			named, err := NewPlan(set, "p128", parties, Matrix, matrices(c.shape), p.Dim, 1, c.keyDim)
			if err != nil || named.Instance.Hash() != p.Instance.Hash() || named.Count != p.Count {
				t.Errorf("%v: the plan of the blocks that were chosen is another: %v", c.shape, err)
			}
		}
	}
	if _, err := NewPlan(set, "p128", 2, Matrix, matrices(Shape{128, 128, 1}), 0, 1, 0); err == nil {
		t.Error("blocks were chosen without keys")
	}
}
