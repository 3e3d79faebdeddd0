package linear_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

const proved = vectors + "-proved"

// Products with proved inputs, at a party that requires proofs: with a test set, and for a vector
// with the production set.
func TestProvedProducts(t *testing.T) {
	w := newWorld(t, func(f *config.PartyFile) { f.AllowUnprovedLinear = false })
	asks, answers := w.as(devnet.App), w.as(matrixClient)
	for _, c := range []struct {
		name       string
		rows, cols int
	}{{proved, 70, 150}, {linear.DefaultVector, 30, 3000}} {
		modulus := set(t, c.name).T
		m, v1, v2 := residues(c.rows*c.cols, modulus), residues(c.cols, modulus), residues(c.cols, modulus)
		askEnds, answerEnds := ends()
		askEnds.Set, answerEnds.Set = c.name, c.name
		a, b, askErr, answerErr := both(func() (*client.Shares, error) {
			return asks.AskVector(t.Context(), &client.Vector{Ends: askEnds, Rows: c.rows, Cols: c.cols}, v1)
		}, func() (*client.Shares, error) {
			return answers.AnswerVector(t.Context(), &client.Vector{Ends: answerEnds, Rows: c.rows, Cols: c.cols}, v2, func(row int, into []uint64) error {
				copy(into, m[row*c.cols:])
				return nil
			})
		})
		if askErr != nil || answerErr != nil {
			t.Fatal(c.name, askErr, answerErr)
		}
		v := slices.Clone(v1)
		for i := range v2 {
			v[i] = (v[i] + v2[i]) % modulus
		}
		for row, got := range opened(t, a, b) {
			if want := inner(m[row*c.cols:][:c.cols], v, modulus); got != want {
				t.Fatalf("%s: row %d is %d, want %d", c.name, row, got, want)
			}
		}
		if a.Security != "passive_evaluator" || b.Security != a.Security {
			t.Errorf("%s: security %q and %q", c.name, a.Security, b.Security)
		}
	}

	modulus := set(t, proved).T
	askEnds, answerEnds := ends()
	askEnds.Set, answerEnds.Set = proved, proved
	shape := client.Batch{Rows: 3, Cols: 2, Count: 2, Outputs: 2}
	matrices, factors := residues(12, modulus), residues(8, modulus)
	a, b, askErr, answerErr := both(func() (*client.Shares, error) {
		x := shape
		x.Ends = askEnds
		return asks.AskBatch(t.Context(), &x, matrices)
	}, func() (*client.Shares, error) {
		x := shape
		x.Ends = answerEnds
		return answers.AnswerBatch(t.Context(), &x, nil, factors)
	})
	if askErr != nil || answerErr != nil {
		t.Fatal(askErr, answerErr)
	}
	for i, got := range opened(t, a, b) {
		o, row, want := i/3, i%3, uint64(0)
		for k := range 2 {
			want = (want + inner(matrices[k*6+row*2:][:2], factors[o*4+k*2:][:2], modulus)) % modulus
		}
		if got != want {
			t.Errorf("entry %d of a batch is %d, want %d", i, got, want)
		}
	}
}

// By default, unproved inputs are rejected at both ends, and the error names the parameter set, the
// version of clients and the setting.
func TestUnprovedInputsAreRefused(t *testing.T) {
	w := newWorld(t, func(f *config.PartyFile) { f.AllowUnprovedLinear, f.Linear.Wait = false, config.Duration(time.Second) })
	asks, answers := w.as(devnet.App), w.as(matrixClient)
	for _, name := range []string{vectors, linear.Unproved} {
		ask, answer := ends()
		ask.Set, answer.Set = name, name
		_, askErr := asks.AskVector(t.Context(), &client.Vector{Ends: ask, Rows: 1, Cols: 1}, []uint64{1})
		_, answerErr := answers.AnswerVector(t.Context(), &client.Vector{Ends: answer, Rows: 1, Cols: 1}, nil, func(_ int, into []uint64) error { clear(into); return nil })
		for end, err := range map[string]error{"ask": askErr, "answer": answerErr} {
			if code(err) != "policy_refused" {
				t.Fatalf("%s under %s: %v", end, name, err)
			}
			for _, part := range []string{"not proved", linear.DefaultVector, "protocol version 13", "allow_unproved_linear"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s under %s: %q does not say %q", end, name, err, part)
				}
			}
		}
	}
}

// A client whose proof does not verify receives the error and appears in the log, and the other end
// learns which client failed.
func TestBadProofs(t *testing.T) {
	var dir string
	w := newWorld(t, func(f *config.PartyFile) { dir, f.Linear.Wait = f.AuditDir, config.Duration(time.Second) })
	app, other := w.connect(devnet.App), w.connect(matrixClient)
	s := set(t, proved)
	size, hash := s.ProofFrameSize(2), s.Hash()
	cases := map[string]func(all []byte) []byte{
		"a response":  func(all []byte) []byte { all[len(all)-size] ^= 1; return all },
		"a challenge": func(all []byte) []byte { all[len(all)-size-s.ProofFrameSize(1)-s.ProofFrameSize(0)] ^= 1; return all },
		"a long response": func(all []byte) []byte {
			for i := range size {
				all[len(all)-1-i] = 0x55
			}
			return all
		},
	}
	tried := 0
	for name, change := range cases {
		for knows := false; !knows; { // repeat if one end had left before the other joined
			h, from := header(matrixClient), header(devnet.App)
			h.Set, h.SetHash = proved, hash[:]
			from.Run, from.Set, from.SetHash = h.GetRun(), proved, hash[:]
			told := make(chan error, 1)
			go func() { told <- answering(t.Context(), other, from, lines(t, 4)) }()
			_, err := askingWith(t.Context(), t, app, h, func(all []byte) []byte {
				time.Sleep(time.Duration(tried+1) * 50 * time.Millisecond) // the header was received, so the other end joins
				return change(all)
			})
			refused(t, name, err, rpc.BadProof)
			tried++
			err = <-told
			refused(t, name+", at the other end", err, rpc.Unavailable)
			knows = strings.Contains(err.Error(), "the owner of the key, client app, has failed: bad_proof")
			if !knows && !strings.Contains(err.Error(), "did not come") {
				t.Fatalf("%s: the other end receives %v", name, err)
			}
		}
	}
	found := 0
	for _, line := range logged(t, dir) {
		if strings.Contains(line, string(audit.Refused)) && strings.Contains(line, "the proof does not hold") && strings.Contains(line, `"app"`) {
			found++
		}
	}
	if found != tried {
		t.Errorf("%d of %d are in the log", found, tried)
	}
}
