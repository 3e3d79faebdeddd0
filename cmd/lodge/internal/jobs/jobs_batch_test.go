package jobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/jobs"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// If one job makes too few tuples, a command submits several jobs, and the same jobs again under
// the same key.
func TestSubmitSeveral(t *testing.T) {
	l := lodgetest.Start(t)
	submit := append([]string{"jobs", "submit", "--epoch", "1"}, lodgetest.Class("--count", "1000000")...)
	most := lodgetest.Read[jobs.EstimateRecord](l, append(submit, "--dry-run")...).Tuples
	submit[len(submit)-1] = fmt.Sprint(2*most + 5)
	submit = append(submit, "--idempotency-key", "many")
	list := lodgetest.Read[cli.JobList](l, submit...).Jobs
	if len(list) != 3 || list[0].Count != most || list[1].Count != most || list[2].Count != 5 {
		t.Fatalf("%d jobs for %d tuples, %d each: %+v", len(list), 2*most+5, most, list)
	}
	ids := strings.Fields(l.OK(submit...))
	if len(ids) != 3 || ids[0] != list[0].ID || ids[1] != list[1].ID || ids[2] != list[2].ID {
		t.Errorf("repeated: %v", ids)
	}
	out := l.OK(append(submit, "--wait")...)
	for _, want := range []string{"submitted " + ids[2], ids[2] + "  scalar", fmt.Sprintf("\nasked %d, made ", 2*most+5)} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	made := uint64(0)
	for _, j := range lodgetest.Read[cli.JobList](l, "jobs", "list").Jobs[:3] {
		made += j.Made
	}
	if made < 2*most+5 || !strings.Contains(out, fmt.Sprintf("made %d\n", made)) {
		t.Errorf("%d made, %d asked:\n%s", made, 2*most+5, out)
	}
	submit[slices.Index(submit, "many")-2] = fmt.Sprint(most * (cli.MaxSubmitted + 1))
	l.Refuses(rpc.Invalid, "a command submits up to 1000 jobs", submit...)
}
