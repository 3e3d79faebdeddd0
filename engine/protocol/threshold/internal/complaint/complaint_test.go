package complaint

import (
	"errors"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

func TestNote(t *testing.T) {
	against := make([][]int, 3)
	for from, list := range [][]byte{{0, 1, 1}, {0, 0, 1}, {0, 0, 0}} {
		if err := Note(against, list, from); err != nil {
			t.Fatal(err)
		}
	}
	if len(against[0]) > 0 || !slices.Equal(against[1], []int{0}) || !slices.Equal(against[2], []int{0, 1}) {
		t.Errorf("%v", against)
	}
	for _, list := range [][]byte{nil, {0, 0}, {1, 0, 0, 0}, {1, 0, 2}, {0, 1, 0}, {1, 1, 1}} {
		into := make([][]int, 3)
		var blame *round.Blame
		if err := Note(into, list, 1); !errors.As(err, &blame) || blame.Party != 1 || blame.Check != round.CheckShape {
			t.Errorf("%v: %v", list, err)
		}
		if len(into[0])+len(into[1])+len(into[2]) > 0 {
			t.Errorf("%v was accepted: %v", list, into)
		}
	}
}

func TestJudge(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		against         [][]int
		self, threshold int
		blame           int
		suspects        []round.Party
	}{
		{[][]int{nil, nil, nil}, 0, 1, none, nil},
		{[][]int{nil, {0}, nil}, 0, 1, 1, nil},                    // this party's own complaint
		{[][]int{nil, {0}, nil}, 1, 1, 0, nil},                    // a complaint about this party
		{[][]int{nil, {0}, nil}, 2, 1, none, []round.Party{0, 1}}, // others' complaint
		{[][]int{nil, nil, {1}}, 0, 1, none, []round.Party{1, 2}},
		{[][]int{nil, {0, 2}, nil, nil}, 3, 1, 1, nil}, // more complaints than the threshold
		{[][]int{nil, {0, 2}, nil, nil}, 3, 2, none, []round.Party{0, 1}},
		{[][]int{{1, 2}, nil, nil}, 0, 1, 1, nil}, // complaints about this party from more than the threshold: all liars
	} {
		err := judge(c.against, c.self, c.threshold, "check")
		var blame *round.Blame
		var abort *round.Abort
		switch {
		case c.blame != none:
			if !errors.As(err, &blame) || int(blame.Party) != c.blame || blame.Check != "check" {
				t.Errorf("%+v: %v", c, err)
			}
		case c.suspects != nil:
			if !errors.As(err, &abort) || !slices.Equal(abort.Suspects, c.suspects) || abort.Check != "check" {
				t.Errorf("%+v: %v", c, err)
			}
		case err != nil:
			t.Errorf("%+v: %v", c, err)
		}
	}
}
