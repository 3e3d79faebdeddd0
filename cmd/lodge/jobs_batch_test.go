package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		count, most uint64
		want        []uint64
	}{
		{1, 1, []uint64{1}}, {7, 10, []uint64{7}}, {10, 10, []uint64{10}}, {11, 10, []uint64{10, 1}}, {30, 10, []uint64{10, 10, 10}},
	} {
		if got, err := split(c.count, c.most); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d of at most %d: %v, %v", c.count, c.most, got, err)
		}
	}
	if got, err := split(10*maxSubmitted, 10); err != nil || len(got) != maxSubmitted {
		t.Errorf("%d jobs, %v", len(got), err)
	}
	for _, most := range []uint64{0, 10} {
		if _, err := split(10*maxSubmitted+1, most); rpc.FromError(err).Code != rpc.Invalid {
			t.Errorf("at most %d: %v", most, err)
		}
	}
}

// Where one job makes too few, a command submits as many as it takes, and the same again under the same key.
func TestSubmitSeveral(t *testing.T) {
	l := startLive(t)
	submit := append([]string{"jobs", "submit", "--epoch", "1"}, class("--count", "1000000")...)
	most := read[estimateRecord](l, append(submit, "--dry-run")...).Tuples
	submit[len(submit)-1] = fmt.Sprint(2*most + 5)
	submit = append(submit, "--idempotency-key", "many")
	list := read[jobList](l, submit...).Jobs
	if len(list) != 3 || list[0].Count != most || list[1].Count != most || list[2].Count != 5 {
		t.Fatalf("%d jobs for %d tuples, %d each: %+v", len(list), 2*most+5, most, list)
	}
	ids := strings.Fields(l.ok(submit...))
	if len(ids) != 3 || ids[0] != list[0].ID || ids[1] != list[1].ID || ids[2] != list[2].ID {
		t.Errorf("repeated: %v", ids)
	}
	out := l.ok(append(submit, "--wait")...)
	for _, want := range []string{"submitted " + ids[2], ids[2] + "  scalar", fmt.Sprintf("\nasked %d, made ", 2*most+5)} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	made := uint64(0)
	for _, j := range read[jobList](l, "jobs", "list").Jobs[:3] {
		made += j.Made
	}
	if made < 2*most+5 || !strings.Contains(out, fmt.Sprintf("made %d\n", made)) {
		t.Errorf("%d made, %d asked:\n%s", made, 2*most+5, out)
	}
	submit[slices.Index(submit, "many")-2] = fmt.Sprint(most * (maxSubmitted + 1))
	l.refuses(rpc.Invalid, "a command submits up to 1000 jobs", submit...)
}
