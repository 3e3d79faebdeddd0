package threshold_test

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/party"
)

// legacySet has the successor insecure-T8-50.
const legacySet = "insecure-L8-legacy"

// Keys of a set that has become legacy still get masks, decrypt and can be reshared. New keys of it
// are refused, and the refusal names the successor, which the same parties make keys with.
func TestLegacyKeys(t *testing.T) {
	const successor = "insecure-T8-50"
	w := newWorld(t, 3, nil, legacySet, successor)
	restart := func(d party.Seam) {
		for i := range 3 {
			w.running[i]()
			f, err := config.LoadParty(w.net.Parties[i])
			if err != nil {
				t.Fatal(err)
			}
			f.StopAfter = config.Duration(100 * time.Millisecond)
			w.running[i] = w.run(func(ctx context.Context) error { return party.RunWith(ctx, f, "test", quiet(), d) })
		}
	}
	makes := func(set string) *coordinatorv1.Job {
		return w.submit(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: set, Threshold: 1})
	}

	restart(party.Seam{LegacyKeys: true}) // before the set was legacy
	old := makes(legacySet)
	if old.GetState() != jobv1.JobState_JOB_STATE_COMPLETED {
		t.Fatalf("%s: %v", old.GetState(), old.GetFailure())
	}
	restart(party.Seam{})

	j := makes(legacySet)
	reason := j.GetFailure().GetReason()
	if j.GetFailure().GetOutcome() != "refused" || !strings.Contains(reason, legacySet+" is legacy") || !strings.Contains(reason, "new keys are made with "+successor) {
		t.Fatalf("%s: %v", j.GetState(), j.GetFailure())
	}

	k, public := w.key(old.GetEpoch())
	c := w.encrypt(k, public, want...)
	w.masks(old.GetEpoch(), 40, "exact", 0, 2)
	w.opens(k, ring(c, len(want), 0, 2), want)
	renewed := w.complete(&coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_RESHARE, FromEpoch: old.GetEpoch(), Threshold: 1, Group: []uint32{0, 1, 2},
	}).GetEpoch()
	w.masks(renewed, 40, "exact", 1, 2)
	again, _ := w.key(renewed)
	if again.Digest != k.Digest {
		t.Fatal("new shares of other keys")
	}
	w.opens(again, ring(c, len(want), 1, 2), want)

	if j := makes(successor); j.GetState() != jobv1.JobState_JOB_STATE_COMPLETED {
		t.Errorf("keys of the successor: %s, %v", j.GetState(), j.GetFailure())
	}
}
