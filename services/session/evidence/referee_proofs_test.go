package evidence

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// A proof is judged by its prover's own statement in the previous round, as in the history of all
// parties.
func TestRefereeOfStatements(t *testing.T) {
	const step = triple.StepBatch
	type hearing struct {
		accused   message
		statement []byte // of party 1
		about     round.Party
		name      string // of the statement
		at        uint32
		historyOf string
		none      bool
		other     bool // the history of all parties has another statement
	}
	judge := func(change func(h *hearing, x *trial)) (string, error) {
		x := newTrial(t, jobv1.Protocol_PROTOCOL_TRIPLES)
		c, err := x.computed()
		if err != nil {
			t.Fatal(err)
		}
		j, _, err := x.judge(c, step, 1)
		if err != nil {
			t.Fatal(err)
		}
		h := hearing{statement: make([]byte, j.StatementSize()), about: 1, name: round.OpenName(j.Statement()), at: 5, historyOf: round.OpenName(j.Statement())}
		h.accused.Envelope = exchange.Envelope{From: 1, Round: 7, Name: j.Ciphertexts(), Digest: round.Hash("ciphertexts")}
		change(&h, x)
		x.list = append(x.list, h.accused)
		contents := [][]byte{make([]byte, 1), h.statement, bytes.Repeat([]byte{2}, j.StatementSize())}
		x.sees(h.about, h.at, h.name, contents[h.about])
		if !h.none {
			var all []round.Digest
			for _, c := range contents {
				all = append(all, digestOf(h.name, c))
			}
			if h.other {
				all[1][0] ^= 1
			}
			x.knows(4, h.historyOf, all...)
		}
		check, _, err := x.badProof()
		return check, err
	}
	promised := func(h *hearing) { copy(h.statement[round.NonceSize:], h.accused.Digest[:]) }
	check, err := judge(func(*hearing, *trial) {})
	provenBy(t, "other ciphertexts", check, round.CheckCommitment, err)
	for what, change := range map[string]func(h *hearing, x *trial){
		"the ciphertexts of the statement":        func(h *hearing, _ *trial) { promised(h) },
		"another party's statement":               func(h *hearing, _ *trial) { promised(h); h.about = 2 },
		"not the statement in the history":        func(h *hearing, _ *trial) { h.other = true },
		"a statement of another round":            func(h *hearing, _ *trial) { h.at = 4 },
		"ciphertexts of a later round":            func(h *hearing, _ *trial) { h.accused.Round = 9 },
		"a statement of another step":             func(h *hearing, _ *trial) { h.name, h.historyOf = "mackey/statement/open", "mackey/statement/open" },
		"under another name than in the history":  func(h *hearing, _ *trial) { h.historyOf = "mackey/statement/open" },
		"invalid ciphertexts":                     func(h *hearing, _ *trial) { h.accused.Name = step + "/response" },
		"not part of a proof":                     func(h *hearing, _ *trial) { h.accused.Name = step + "/share" },
		"of a step that does not exist":           func(h *hearing, _ *trial) { h.accused.Name = "popk/ciphertexts" },
		"a truncated statement":                   func(h *hearing, _ *trial) { h.statement = h.statement[1:] },
		"a statement without a history":           func(h *hearing, _ *trial) { h.none = true },
		"a key that the accusation does not need": func(_ *hearing, x *trial) { x.st.KeySeed = make([]byte, 32) },
		"with a key that is not the session's":    func(_ *hearing, x *trial) { x.st.KeyHash[3] ^= 1 },
	} {
		check, err := judge(change)
		unprovenBy(t, what, check, err)
	}
}

// A party that proves nothing cannot fail a proof, and a bound accusation needs only a response.
func TestRefereeOfProvers(t *testing.T) {
	x := newTrial(t, jobv1.Protocol_PROTOCOL_TRIPLES)
	x.spec.Kind, x.spec.InputParty = jobv1.Kind_KIND_INPUT, 2
	b, _, err := plan.Batch(x.spec, mustSet(t).Proved(), 3, mustSet(t).N(), false)
	if err != nil {
		t.Fatal(err)
	}
	terms := plan.Terms(plan.Triples, b.Instance, round.Digest(x.st.GetKeyHash()))
	x.st.Params = terms[:]
	c, err := x.computed()
	if err != nil {
		t.Fatal(err)
	}
	for p, proves := range []bool{false, false, true} {
		if _, _, err := x.judge(c, triple.StepBatch, round.Party(p)); (err == nil) != proves {
			t.Errorf("party %d: %v", p, err)
		}
		if _, _, err := x.judge(c, triple.StepMACKey, round.Party(p)); err != nil {
			t.Errorf("party %d, of its MAC key: %v", p, err)
		}
		shapes, err := x.shapes(round.Party(p))
		if err != nil {
			t.Fatal(err)
		}
		_, speaks := shapes[triple.StepBatch+"/response"]
		if silent := shapes[round.OpenName(triple.StepBatch+"/statement")].Check(0, make([]byte, round.NonceSize)) == nil; speaks != proves || silent == proves {
			t.Errorf("party %d has a response: %v, may open an empty statement: %v", p, speaks, silent)
		}
	}
	j, _, err := x.judge(c, triple.StepBatch, 2)
	if err != nil {
		t.Fatal(err)
	}
	x.sees(2, 7, j.Response(), make([]byte, 3))
	check, _, err := x.badProof()
	unprovenBy(t, "not a response", check, err)
	x.file.Reset()
	x.list, x.read, x.history = nil, 0, []round.Agreement{{}}
	x.sees(2, 7, j.Response(), make([]byte, 3))
	var known *Error
	if _, _, err = x.responseBound(j); !errors.As(err, &known) || known.Problem != Unreadable {
		t.Errorf("a bound with a history: %v", err)
	}
}

func mustSet(t *testing.T) *params.Set {
	t.Helper()
	set, err := params.Lookup("insecure-8")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Only sessions of proved key generation are judged by the rules for keys, with the required
// message at each position.
func TestRefereeOfKeys(t *testing.T) {
	for what, change := range map[string]func(x *trial){
		"of triples":            func(x *trial) { x.spec.Protocol = jobv1.Protocol_PROTOCOL_TRIPLES },
		"of other parameters":   func(x *trial) { x.st.Params[0] ^= 1 },
		"without a dimension":   func(x *trial) { x.spec.Dim = 3 },
		"of keys without proof": func(x *trial) { x.of(t, "insecure-8-64") },
	} {
		x := newTrial(t, jobv1.Protocol_PROTOCOL_KEYGEN)
		change(x)
		_, err := x.keys()
		unprovenBy(t, what, "", err)
	}
	x := newTrial(t, jobv1.Protocol_PROTOCOL_KEYGEN)
	j, err := x.keys()
	if err != nil {
		t.Fatal(err)
	}
	proof, err := mustSet(t).KeyProof(3, 2)
	if err != nil {
		t.Fatal(err)
	}
	frames := make([][]byte, j.Frames())
	frames[0] = bytes.Repeat([]byte{0x55}, 2*codec.SignedSize(mustSet(t).N(), proof.Bits)) // is not short
	judge := func(name string, frames [][]byte) (string, error) {
		x.list, x.read = nil, 0
		x.file.Reset()
		x.sees(1, 9, name, frames...).shown = []int{0}
		check, _, err := x.badKeyProof()
		return check, err
	}
	check, err := judge(keygen.NameProofs, frames)
	provenBy(t, "a long response", check, keygen.CheckBound, err)
	check, err = judge("no proof", frames)
	unprovenBy(t, "a long response in no proof", check, err)
	check, err = judge(keygen.NameProofs, frames[:len(frames)-1])
	unprovenBy(t, "a long response in a proof of fewer frames", check, err)
}

// of changes the session's parameter set.
func (x *trial) of(t *testing.T, name string) {
	t.Helper()
	set, err := params.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	hash := set.Hash()
	x.spec.Params, x.spec.ParamsHash, x.st.Params, x.spec.Field = name, hash[:], hash[:], ""
}

// Each position in a file requires a specific message: its sender, its name, the content in the
// history, and the requested frames.
func TestRefereeOfNames(t *testing.T) {
	const name = "keygen/seed/open"
	seeds := [][]byte{bytes.Repeat([]byte{1}, 64), bytes.Repeat([]byte{2}, 64), bytes.Repeat([]byte{3}, 64)}
	judge := func(change func(x *trial)) (*keygen.Exhibits, error) {
		x := newTrial(t, jobv1.Protocol_PROTOCOL_KEYGEN)
		var all []round.Digest
		for p, s := range seeds {
			x.sees(round.Party(p), 3, name, s)
			all = append(all, digestOf(name, s))
		}
		x.knows(2, name, all...)
		change(x)
		var exhibits keygen.Exhibits
		_, err := x.seeds(0, &exhibits)
		return &exhibits, err
	}
	if got, err := judge(func(*trial) {}); err != nil || len(got.Seeds) != 3 || got.Seeds[2][0] != 3 || len(got.Seeds[0]) != 32 {
		t.Errorf("%v, %v", got, err)
	}
	of := func(x *trial, p int, content []byte) {
		rest := x.list[p+1:]
		x.list = slices.Clone(x.list[:p])
		x.file.Reset()
		for i := range p {
			_ = writeBlock(x.file, seeds[i])
		}
		x.sees(round.Party(p), 3, name, content)
		x.list = append(x.list, rest...)
	}
	for what, change := range map[string]func(x *trial){
		"of another name": func(x *trial) { x.list[1].Name = "x" },
		"of another name, in the history": func(x *trial) {
			x.list = nil
			x.file.Reset()
			for p, name := range []string{name, "keygen/other/open", name} {
				x.sees(round.Party(p), 3, name, seeds[p])
			}
			x.knows(2, "keygen/other/open", round.Digest{}, x.list[1].Digest, round.Digest{})
		},
		"of another party": func(x *trial) {
			x.list = nil
			x.file.Reset()
			for _, p := range []round.Party{0, 2, 2} {
				x.sees(p, 3, name, seeds[p])
			}
		},
		"in another round":            func(x *trial) { x.list[1].Round = 4 },
		"another than in the history": func(x *trial) { of(x, 2, bytes.Repeat([]byte{9}, 64)) },
		"that is not shown":           func(x *trial) { x.list[1].shown = nil },
		"that is missing":             func(x *trial) { x.list = x.list[:2] },
		"with additional frames shown": func(x *trial) {
			x.list[1].shown = []int{0, 1}
			x.list[1].frames = append(x.list[1].frames, x.list[1].frames[0])
		},
		"of another frame":                       func(x *trial) { x.list[0].shown = []int{1}; x.list[0].frames = slices.Repeat(x.list[0].frames, 2) },
		"whose frame belongs to another message": func(x *trial) { x.list[0].frames[0][0] ^= 1 },
		"with a short history": func(x *trial) {
			of(x, 2, make([]byte, 20))
			x.history[0].Digests[2] = x.list[2].Digest
		},
	} {
		_, err := judge(change)
		unprovenBy(t, "a seed "+what, "", err)
	}
}

// A session computes with the values of its terms: the parties' key and the parameters of its spec.
func TestRefereeOfTerms(t *testing.T) {
	for _, protocol := range []jobv1.Protocol{jobv1.Protocol_PROTOCOL_TRIPLES, jobv1.Protocol_PROTOCOL_POPK} {
		if _, err := newTrial(t, protocol).computed(); err != nil {
			t.Error(err)
		}
		for what, change := range map[string]func(x *trial){
			"another key":    func(x *trial) { x.st.KeyHash[0] ^= 1 },
			"no key":         func(x *trial) { x.st.KeyHash = nil },
			"half a key":     func(x *trial) { x.st.KeyHash = x.st.KeyHash[:16] },
			"other terms":    func(x *trial) { x.st.Params[0] ^= 1 },
			"another field":  func(x *trial) { x.spec.Field = "p128" },
			"another number": func(x *trial) { x.spec.Count = 1 << 20 },
		} {
			x := newTrial(t, protocol)
			change(x)
			_, err := x.computed()
			unprovenBy(t, what, "", err)
		}
	}
}
