package evidence_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// everyday lists cheats for every kind of evidence, and for every part of a proof.
var everyday = map[string]evidence.Kind{
	"alter:keygen/seed/open":         evidence.WrongOpening,
	"alter:keygen/relin/open":        evidence.WrongOpening,
	"alter:triple/mac/z/open":        evidence.WrongOpening,
	"alter:mackey/ciphertexts":       evidence.BadProof,
	"alter:mackey/response":          evidence.BadProof,
	"alter:triple/ciphertexts":       evidence.BadProof,
	"alter:triple/response":          evidence.BadProof,
	"long-witness":                   evidence.BadProof,
	"wrong-public-key":               evidence.BadKeyProof,
	"wrong-relin-h0":                 evidence.BadKeyProof,
	"wrong-relin-h1":                 evidence.BadKeyProof,
	"malformed-relin":                evidence.BadKeyProof,
	"swapped-keys":                   evidence.BadKeyProof,
	"long-secret":                    evidence.BadKeyProof,
	"long-error-public":              evidence.BadKeyProof,
	"last-residue":                   evidence.Malformed,
	"cut:keygen/relin/open":          evidence.Malformed,
	"cut:triple/response":            evidence.Malformed,
	"cut:triple/sacrifice":           evidence.Malformed,
	"extend:triple/statement/commit": evidence.Malformed,
	"alter:verdict":                  evidence.WrongVerdict,
}

// unprovable lists cheats whose cheating party is named but cannot be proved to others, with the
// reason.
var unprovable = map[string]string{
	"alter:prelude/nonce":  "later signatures belong to another session, like those of a party that restarts",
	"cut:prelude/nonce":    "the prelude has no session yet",
	"extend:prelude/nonce": "the prelude has no session yet",

	"cut:triple/share":            "it was sent to one party only",
	"extend:triple/share":         "it was sent to one party only",
	"withhold:mackey/ciphertexts": "the order of messages in a round is that of a connection, which is not signed",
	"withhold:triple/ciphertexts": "the order of messages in a round is that of a connection, which is not signed",
}

// kindOf returns the kind of evidence that proves a cheat, given the check in which it ends.
func kindOf(c *cheattest.Cheat) evidence.Kind {
	switch c.OnWire().Check {
	case round.CheckCommitment:
		if strings.HasSuffix(c.Name, "/ciphertexts") || strings.HasPrefix(c.Name, "other-ciphertext:") {
			return evidence.BadProof
		}
		return evidence.WrongOpening
	case popk.CheckBound, popk.CheckEquation:
		return evidence.BadProof
	case keygen.CheckBound, keygen.CheckShare, keygen.CheckEquation:
		return evidence.BadKeyProof
	case verdict.Check:
		if c.Name == "cut:verdict" {
			return evidence.Malformed
		}
		return evidence.WrongVerdict
	}
	return evidence.Malformed
}

// Every cheat that names the cheating party in sessions of keys and of scalars yields an accusation
// that verifies with only the roster.
func TestLimitsOfWhatIsProved(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n, " parties"), func(t *testing.T) {
			w := newWorld(t, n)
			w.hold()
			seen := map[string]bool{}
			var cases []longtest.Case
			for i, c := range cheattest.Table() {
				kind, always := everyday[c.Name]
				seen[c.Name] = true
				if c.Fault != nil || c.OnWire().Named != cheattest.Certain || c.Replays || speaksLast(c.Name) || unprovable[c.Name] != "" ||
					c.In != cheattest.Keys && c.In != cheattest.First && c.In != cheattest.Scalars {
					if always {
						t.Errorf("%s did not run", c.Name)
					}
					continue
				}
				if !always {
					kind = kindOf(c)
				}
				cases = append(cases, longtest.Case{Name: c.Name, Everyday: always && (n == 3 || i%3 == 0), Run: func(t *testing.T) { w.proved(t, c, kind) }})
			}
			for name := range everyday {
				if !seen[name] {
					t.Errorf("there is no cheat %s", name)
				}
			}
			longtest.Run(t, cases)
		})
	}
}

// speaksLast reports whether a cheat needs the other parties' messages of the same round. Other
// cheats prove the same.
func speaksLast(name string) bool {
	return strings.HasPrefix(name, "reflect:") || strings.HasPrefix(name, "copied-") || strings.HasPrefix(name, "negated-") ||
		slices.Contains([]string{"rushing-relin", "rogue-share"}, name)
}

// proved runs a cheat of the last party, in a batch of scalars if it is a cheat in a batch, and
// returns an accusation.
func (w *world) proved(t *testing.T, c *cheattest.Cheat, kind evidence.Kind) []byte {
	return w.provedIn(t, jobv1.Kind_KIND_SCALAR, c, kind)
}

// provedIn is proved with batches of the given kind.
func (w *world) provedIn(t *testing.T, batch jobv1.Kind, c *cheattest.Cheat, kind evidence.Kind) []byte {
	w.t = t
	culprit, check := w.n-1, c.OnWire().Check
	if kind == evidence.Malformed {
		check = round.CheckShape // also if the message is too long
	}
	if c.In == cheattest.Keys {
		return proves(w, w.keygen(w.spec(jobv1.Kind_KIND_KEYS), w.cheat(c.Name), culprit), culprit, kind, check)
	}
	return proves(w, w.batch(w.spec(batch), w.cheat(c.Name), culprit), culprit, kind, check)
}

// The rules of judgement follow from the kind of a batch: its plan, the sizes of its messages,
// which party proves, and which values are opened.
func TestKindsOfBatches(t *testing.T) {
	var cases []longtest.Case
	for _, n := range []int{2, 3} {
		w := newWorld(t, n)
		w.hold()
		add := func(batch jobv1.Kind, cheat string, kind evidence.Kind) {
			name := fmt.Sprintf("%s of %d, %s", job.KindName(batch), n, cheat)
			everyday := n == 3 && cheat != "long-witness" && cheat != "alter:triple/ciphertexts"
			cases = append(cases, longtest.Case{Name: name, Everyday: everyday, Run: func(t *testing.T) {
				w.provedIn(t, batch, cheattest.Find(cheat), kind)
			}})
		}
		for _, batch := range []jobv1.Kind{jobv1.Kind_KIND_MATRIX, jobv1.Kind_KIND_BIT, jobv1.Kind_KIND_INPUT, jobv1.Kind_KIND_CONVOLUTION} {
			add(batch, "alter:triple/statement/open", evidence.WrongOpening)
			add(batch, "alter:triple/ciphertexts", evidence.BadProof)
			add(batch, "alter:triple/response", evidence.BadProof)
			add(batch, "long-witness", evidence.BadProof)
			add(batch, "cut:triple/response", evidence.Malformed)
			add(batch, "alter:verdict", evidence.WrongVerdict)
		}
		add(jobv1.Kind_KIND_MATRIX, "cut:triple/sacrifice", evidence.Malformed)
		add(jobv1.Kind_KIND_CONVOLUTION, "cut:triple/sacrifice", evidence.Malformed)
		add(jobv1.Kind_KIND_BIT, "cut:triple/products", evidence.Malformed)
		for cheat, kind := range map[string]evidence.Kind{
			"alter:triple/statement/open": evidence.WrongOpening, "extend:triple/statement/open": evidence.Malformed,
		} {
			name := fmt.Sprintf("masks of another of %d, %s", n, cheat)
			cases = append(cases, longtest.Case{Name: name, Everyday: n == 3, Run: func(t *testing.T) {
				w.t = t
				spec, check := w.spec(jobv1.Kind_KIND_INPUT), round.CheckCommitment
				if spec.InputParty = 0; kind == evidence.Malformed {
					check = round.CheckShape
				}
				proves(w, w.batch(spec, w.cheat(cheat), n-1), n-1, kind, check)
			}})
		}
	}
	longtest.Run(t, cases)
}

// A version of a broadcast for party 0 that differs from the others' proves that its sender
// equivocates. A report of a message that its sender has not signed proves that the reporter lies.
func TestWhatPartiesSayToEachOther(t *testing.T) {
	w := newWorld(t, 3)
	w.hold()
	for _, c := range []struct {
		name string
		at   int
		kind evidence.Kind
	}{
		{"triple/mackey", 0, evidence.Equivocation},
		{"mackey/statement/commit", 31, evidence.Equivocation},
		{"triple/statement/open", 40, evidence.Equivocation},
		{"triple/mac/open", 1, evidence.Equivocation},
		{round.EchoName, 96, evidence.FalseEcho},  // the digest of the broadcast of party 1
		{round.EchoName, 128, evidence.FalseEcho}, // its signature: no party compares it, and the session succeeds
	} {
		t.Run(fmt.Sprint(c.name, c.at), func(t *testing.T) {
			w.t = t
			ends := w.batch(w.spec(jobv1.Kind_KIND_SCALAR), w.forger.cheat(c.name, c.at), 2)
			if c.at == 128 {
				for p, e := range ends {
					if e.err != nil {
						t.Errorf("party %d: %v", p, e.err)
					}
				}
				return
			}
			proves(w, ends, 2, c.kind, round.CheckEcho)
		})
	}
}

// An accusation contains the accused party's broadcasts and public values of others, but no large
// message that it does not need.
func TestFilesAreSmall(t *testing.T) {
	w := newWorld(t, 3)
	w.hold()
	file := w.proved(t, cheattest.Find("long-secret"), evidence.BadKeyProof)
	if !bytes.HasPrefix(file, []byte("lodge accusation 1\n")) || len(file) > 64<<10 {
		t.Errorf("%d bytes", len(file))
	}
}

// The last party of a session of proofs encrypts under a key that is not the session's. The spec
// has an unknown field, which a coordinator may add to prevent a proof of the cheat.
func TestProofUnderAnotherKeyIsProved(t *testing.T) {
	w := newWorld(t, 2)
	w.hold()
	spec, public := w.spec(jobv1.Kind_KIND_PROOF), w.keys[0].Keys.Public
	spec.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 1))
	other := w.scheme.Q.NewNTT()
	w.scheme.Q.NegNTT(other, public.P0)
	ends := w.proof(spec, &gbfv.PublicKey{P0: other, P1: public.P1}, w.forger.cheat("", 0), 1)
	if ends[0].file == nil {
		t.Fatalf("%v, %v", ends[0].err, ends[0].why)
	}
	found, err := evidence.Verify(context.Background(), bytes.NewReader(ends[0].file), w.roster)
	if err != nil || found.Kind != evidence.BadProof || found.Culprit.Index != 1 || found.Protocol != plan.Popk {
		t.Errorf("%v, %v", found, err)
	}
}
