package roundtest

import (
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// OK fails the test unless every party has a result and all transcripts agree.
func (o *Outcome[R]) OK(t testing.TB) *Outcome[R] {
	t.Helper()
	for p, err := range o.Errors {
		if err != nil {
			t.Fatalf("party %d: %v", p, err)
		}
		if o.Transcripts[p] != o.Transcripts[0] {
			t.Fatalf("party %d has another transcript", p)
		}
	}
	return o
}

// Blamed fails the test unless an honest party blames the culprit for this check, no honest party
// blames anybody else or for anything else, and none has a result.
func (o *Outcome[R]) Blamed(t testing.TB, culprit round.Party, check string) {
	t.Helper()
	blamed := false
	for p, err := range o.Errors {
		if o.cheats[round.Party(p)] || round.Party(p) == culprit {
			continue
		}
		var blame *round.Blame
		var stalled *Stalled
		switch {
		case errors.As(err, &blame):
			blamed = true
			if blame.Party != culprit || blame.Check != check {
				t.Errorf("party %d blames %d for %s, want %d for %s (%v)", p, blame.Party, blame.Check, culprit, check, blame.Reason)
			}
		case !errors.As(err, &stalled):
			t.Errorf("party %d ends with %v, want blame of %d for %s", p, err, culprit, check)
		}
	}
	if !blamed {
		t.Errorf("nobody blames party %d for %s: %v", culprit, check, o.Errors)
	}
}

// Aborted fails the test unless an honest party ends with an Abort of this check whose suspects
// include the culprit, no honest party blames an honest one, and none has a result.
func (o *Outcome[R]) Aborted(t testing.TB, culprit round.Party, check string) {
	t.Helper()
	aborted := false
	for p, err := range o.Errors {
		if o.cheats[round.Party(p)] || round.Party(p) == culprit {
			continue
		}
		var abort *round.Abort
		var blame *round.Blame
		var stalled *Stalled
		switch {
		case errors.As(err, &blame):
			if blame.Party != culprit {
				t.Errorf("party %d blames %d, want suspicion of %d", p, blame.Party, culprit)
			}
		case errors.As(err, &abort):
			aborted = true
			if abort.Check != check || len(abort.Suspects) > 0 && !abort.Suspect(culprit) {
				t.Errorf("party %d: %v, want %s with suspect %d", p, err, check, culprit)
			}
		case !errors.As(err, &stalled):
			t.Errorf("party %d ends with %v", p, err)
		}
	}
	if !aborted {
		t.Errorf("nobody aborts for %s: %v", check, o.Errors)
	}
}

// Stalls fails the test unless an honest party waits for a message of this name from the culprit,
// and no honest party has a result or blames anybody.
func (o *Outcome[R]) Stalls(t testing.TB, culprit round.Party, name string) {
	t.Helper()
	waits := false
	for p, err := range o.Errors {
		if o.cheats[round.Party(p)] || round.Party(p) == culprit {
			continue
		}
		var stalled *Stalled
		if !errors.As(err, &stalled) {
			t.Errorf("party %d ends with %v", p, err)
			continue
		}
		for _, w := range stalled.Missing {
			waits = waits || w.From == culprit && w.Name == name
		}
	}
	if !waits {
		t.Errorf("nobody waits for %s of party %d: %v", name, culprit, o.Errors)
	}
}
