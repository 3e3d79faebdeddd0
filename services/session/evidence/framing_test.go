package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// reports checks that a party's own recorder cannot accuse honest parties, given reports and
// broadcasts that contradict each other.
func (w *world) reports(kept *evidence.Recorder, c evidence.Case, report runner.Report) {
	signer := w.net.Parties[c.Self].Signer
	for _, b := range report.Broadcasts {
		e, another := b.Envelope, b.Envelope
		another.Digest[0] ^= 1
		list := []round.Conflict{
			{Seen: e.Digest, Reported: another.Digest, ReportedSignature: b.Signature},
			{Seen: e.Digest, Reported: another.Digest, ReportedSignature: another.Sign(signer)},
			{Seen: another.Digest, Reported: e.Digest, ReportedSignature: b.Signature},
			{Seen: e.Digest, Reported: e.Digest, ReportedSignature: b.Signature},
			{Seen: e.Digest},
		}
		for q := range round.Party(w.n) {
			if q == c.Self || q != e.From && e.From != c.Self {
				continue
			}
			for _, x := range list {
				x.Reporter, x.About, x.Round, x.Name = q, e.From, int(e.Round), e.Name
				x.Transcript, x.SeenSignature = e.Transcript, b.Signature
				abort := &round.Abort{Conflicts: []round.Conflict{x}}
				c.Round, c.Err = e.Round, &round.Blame{Party: q, Check: round.CheckEcho, Cause: abort}
				found, file, err := kept.Accuse(context.Background(), c, w.dir)
				var unproven *evidence.Error
				if err == nil {
					file.Close()
					w.t.Errorf("honest party %d is accused of a report of %s: %v", q, e.Name, found)
				} else if !errors.Is(err, evidence.ErrNothing) && !errors.As(err, &unproven) {
					w.t.Errorf("a report of %s: %v", e.Name, err)
				}
			}
		}
	}
}

// endings lists the reasons that judges give for accusations that are well-formed and untrue.
var endings = map[string][]string{
	"all":  {"both versions of", "the opening matches the commitment", "is well-formed"},
	"echo": {"all that the echo reports is signed"},
	"keys": {"the responses are short", "the proof of equation"},
	"proofs": {
		"the response is within its bounds", "the ciphertexts are those of the statement", "the response opens its mask",
	},
	"batch": {"the verdict is about the batch of the broadcasts"},
}

// accused makes a party try every accusation, and checks that each kind of accusation has been
// judged to its end.
func accused(t *testing.T, m, other *material, every int, sorts ...string) {
	x := &trial{material: m, t: t, other: other, every: every, reasons: map[string]bool{}}
	x.accuse()
	for _, sort := range sorts {
		for _, ending := range endings[sort] {
			said := func(reason string) bool { return strings.Contains(reason, ending) }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(x.reasons)), said) {
				t.Errorf("no accusation was rejected because %s", ending)
			}
		}
	}
	t.Logf("%d accusations, 1 of %d tried", x.seen, every)
}

// A party cannot convict anybody by accusations from all its messages after an honest session, or
// after a session in which it sent a peer a second version of a broadcast.
func TestLimitsOfFraming(t *testing.T) {
	var cases []longtest.Case
	every := 20
	if longtest.All() {
		every = 1
	}
	for _, n := range []int{3, 2} {
		w := newWorld(t, n)
		w.hold()
		echo := "all"
		if n > 2 {
			echo = "echo"
		}
		add := func(name string, everyday bool, run func(t *testing.T)) {
			cases = append(cases, longtest.Case{Name: fmt.Sprint(name, " ", n), Everyday: everyday, Run: func(t *testing.T) {
				w.t = t
				run(t)
			}})
		}
		for _, kind := range []jobv1.Kind{
			jobv1.Kind_KIND_KEYS, jobv1.Kind_KIND_PROOF, jobv1.Kind_KIND_SCALAR, jobv1.Kind_KIND_MATRIX, jobv1.Kind_KIND_BIT,
			jobv1.Kind_KIND_INPUT, jobv1.Kind_KIND_CONVOLUTION,
		} {
			sorts := []string{"all", echo, "proofs", "batch"}
			switch kind {
			case jobv1.Kind_KIND_KEYS:
				sorts = []string{"all", echo, "keys"}
			case jobv1.Kind_KIND_PROOF:
				sorts = []string{"all", echo, "proofs"}
			}
			everyday := n == 3 && (kind == jobv1.Kind_KIND_KEYS || kind == jobv1.Kind_KIND_SCALAR)
			add(job.KindName(kind), everyday, func(t *testing.T) {
				accused(t, w.gathered(kind, nil), w.gathered(kind, nil), every, sorts...)
			})
		}
		if n == 2 {
			continue // the messages are not compared
		}
		for _, name := range []string{
			"triple/mackey", "mackey/statement/commit", "triple/statement/open", "triple/mac/open", round.EchoName,
		} {
			add("two versions of "+name, name == "mackey/statement/commit", func(t *testing.T) {
				m := w.gathered(jobv1.Kind_KIND_SCALAR, w.forger.cheat(name, 9))
				accused(t, m, w.gathered(jobv1.Kind_KIND_SCALAR, nil), every)
			})
		}
	}
	longtest.Run(t, cases)
}

// gathered returns the material of the last party after a session in which it deviates.
func (w *world) gathered(kind jobv1.Kind, cheat func(*round.Session)) (m *material) {
	w.t.Helper()
	w.adversary = func(kept *evidence.Recorder, c evidence.Case, report runner.Report) {
		w.reports(kept, c, report)
		m = w.gather(c, report)
	}
	defer func() { w.adversary = nil }()
	w.listener.forget()
	spec, culprit, errs := w.spec(kind), w.n-1, []error(nil)
	switch kind {
	case jobv1.Kind_KIND_KEYS:
		errs = failures(w.keygen(spec, cheat, culprit))
	case jobv1.Kind_KIND_PROOF:
		errs = failures(w.proof(spec, w.keys[0].Keys.Public, cheat, culprit))
	case jobv1.Kind_KIND_INPUT:
		spec.InputParty = 0 // this party is accused of its proof
		fallthrough
	default:
		errs = failures(w.batch(spec, cheat, culprit))
	}
	for p, err := range errs {
		if (err != nil) != (cheat != nil) {
			w.t.Fatalf("party %d: %v", p, err)
		}
	}
	return m
}

func failures[R any](ends []ended[R]) (errs []error) {
	for _, e := range ends {
		errs = append(errs, e.err)
	}
	return errs
}
