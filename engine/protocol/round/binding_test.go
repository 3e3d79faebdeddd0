package round_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	rt "github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// The ID depends on each of the terms and on every byte of their digests.
func TestEveryTermChangesTheID(t *testing.T) {
	base := round.Terms{
		Version: 1, Protocol: "triple", Params: round.Hash("params"), Roster: round.Hash("roster"), Epoch: 3, Job: round.Hash("job"),
	}
	seen := map[round.Digest]string{base.ID(): "nothing"}
	add := func(name string, terms round.Terms) {
		t.Helper()
		id := terms.ID()
		if other, ok := seen[id]; ok {
			t.Errorf("the ID is the same with another %s and %s", name, other)
		}
		seen[id] = name
	}
	for name, change := range map[string]func(x *round.Terms){
		"version":           func(x *round.Terms) { x.Version++ },
		"large version":     func(x *round.Terms) { x.Version |= 1 << 63 },
		"protocol":          func(x *round.Terms) { x.Protocol = "tripld" },
		"empty protocol":    func(x *round.Terms) { x.Protocol = "" },
		"longer protocol":   func(x *round.Terms) { x.Protocol += "\x00" },
		"epoch":             func(x *round.Terms) { x.Epoch++ },
		"large epoch":       func(x *round.Terms) { x.Epoch |= 1 << 63 },
		"order of digests":  func(x *round.Terms) { x.Params, x.Roster = x.Roster, x.Params },
		"order of the rest": func(x *round.Terms) { x.Version, x.Epoch = x.Epoch, x.Version },
	} {
		terms := base
		change(&terms)
		add(name, terms)
	}
	for i := range base.Job {
		for name, pick := range map[string]func(x *round.Terms) *round.Digest{
			"params": func(x *round.Terms) *round.Digest { return &x.Params },
			"roster": func(x *round.Terms) *round.Digest { return &x.Roster },
			"job":    func(x *round.Terms) *round.Digest { return &x.Job },
		} {
			terms := base
			pick(&terms)[i] ^= 1
			add(name, terms)
		}
	}
}

// The session's ID depends on the terms, the number of parties and every nonce.
func TestPreludeBindsTermsAndNonces(t *testing.T) {
	terms := round.Terms{Version: 1, Protocol: "triple"}
	later := terms
	later.Epoch++
	const n = 3
	run := func(label func(p round.Party) string, id round.Digest) round.Digest {
		return rt.Lockstep(n, func(s round.Session) (round.Transition[round.Session], error) {
			return round.Prelude(s, stream(s.Self, label(s.Self)))
		}, rt.ID(id)).OK(t).Results[0].ID
	}
	same := func(round.Party) string { return "a" }
	first := run(same, terms.ID())
	if run(same, terms.ID()) != first {
		t.Error("the ID is not a function of terms and nonces")
	}
	if run(same, later.ID()) == first {
		t.Error("with the same nonces, other terms give the same ID")
	}
	for changed := range round.Party(n) {
		if run(func(p round.Party) string { return map[bool]string{true: "b", false: "a"}[p == changed] }, terms.ID()) == first {
			t.Errorf("with another nonce of party %d the ID is the same", changed)
		}
	}
	// The ID is that of the terms and nonces in the order of the roster.
	id := terms.ID()
	fields := [][]byte{id[:], round.Uint(n)}
	for p := range round.Party(n) {
		nonce := make([]byte, 32)
		if _, err := io.ReadFull(stream(p, "a"), nonce); err != nil {
			t.Fatal(err)
		}
		fields = append(fields, nonce)
	}
	if round.Hash("lodge session", fields...) != first {
		t.Error("the ID is another hash")
	}
}

// Parties with different terms cannot complete a later step together.
func TestOtherTermsEndInAnotherSession(t *testing.T) {
	out := rt.Lockstep(2, func(s round.Session) (round.Transition[round.Digest], error) {
		s.ID = round.Terms{Epoch: uint64(s.Self)}.ID()
		next, err := round.Prelude(s, stream(s.Self, "prelude"))
		if err != nil {
			return round.Transition[round.Digest]{}, err
		}
		return round.Then(next, func(_ context.Context, s round.Session) (round.Transition[round.Digest], error) { return toss(s) }), nil
	})
	for p, err := range out.Errors {
		if err == nil {
			t.Errorf("party %d tosses a coin with a party of other terms", p)
		}
	}
}

// With the same randomness of all parties, coins differ by session and by step.
func TestCoinsBindSessionAndStep(t *testing.T) {
	seen := map[round.Digest]string{}
	for _, id := range []string{"session 1", "session 2"} {
		for _, step := range []string{"a", "b"} {
			coin := rt.Lockstep(2, func(s round.Session) (round.Transition[round.Digest], error) {
				return round.CoinToss(s, step, stream(s.Self, "coin"))
			}, rt.ID(round.Hash(id))).OK(t).Results[0]
			if other, ok := seen[coin]; ok {
				t.Errorf("step %s of %s has the coin of %s", step, id, other)
			}
			seen[coin] = step + " of " + id
		}
	}
	// And by every party's seed.
	for changed := range round.Party(3) {
		coin := rt.Lockstep(3, func(s round.Session) (round.Transition[round.Digest], error) {
			label := "coin"
			if s.Self == changed {
				label = "another"
			}
			return round.CoinToss(s, "a", stream(s.Self, label))
		}).OK(t).Results[0]
		if other, ok := seen[coin]; ok {
			t.Errorf("another seed of party %d: the coin of %s", changed, other)
		}
		seen[coin] = "another seed"
	}
}

// Agreed depends on the session, the name and the number of parties, not only on the broadcasts.
func TestAgreementBindsTheSession(t *testing.T) {
	run := func(id, step string, n int, b byte) round.Opened {
		return rt.Lockstep(n, func(s round.Session) (round.Transition[round.Opened], error) {
			content := []byte{0}
			if int(s.Self) == n-1 {
				content[0] = b
			}
			return round.CommitOpen(s, step, bytes.NewReader(make([]byte, 32)), content, 1)
		}, rt.ID(round.Hash(id))).OK(t).Results[0]
	}
	base := run("session 1", "a", 2, 0)
	for name, other := range map[string]round.Opened{
		"session":           run("session 2", "a", 2, 0),
		"step":              run("session 1", "b", 2, 0),
		"content":           run("session 1", "a", 2, 1),
		"number of parties": run("session 1", "a", 3, 0),
	} {
		if other.Agreed == base.Agreed {
			t.Errorf("with another %s the same is agreed", name)
		}
		if other.Transcript == base.Transcript {
			t.Errorf("with another %s the transcript is the same", name)
		}
	}
	if again := run("session 1", "a", 2, 0); again.Agreed != base.Agreed || again.Transcript != base.Transcript {
		t.Error("agreement is not a function of the messages")
	}
}

// A transcript begins with the session and the number of parties, before there is any broadcast.
func TestTranscriptsBeginWithTheSession(t *testing.T) {
	silent := round.Next(round.Local(func(context.Context) (round.Transition[int], error) { return round.Done(1), nil }))
	begin := func(s round.Session) round.Digest {
		m, err := round.NewMachine(s, silent)
		if err != nil {
			t.Fatal(err)
		}
		return m.Transcript()
	}
	s := round.Session{ID: round.Hash("a session"), Parties: 3}
	first := begin(s)
	self, id, parties := s, s, s
	self.Self, parties.Parties = 2, 4
	id.ID[31] ^= 1
	if begin(self) != first {
		t.Error("parties of one session begin with different transcripts")
	}
	if begin(id) == first || begin(parties) == first {
		t.Error("transcripts of another session or more parties begin alike")
	}
}

// A transcript depends on every earlier broadcast: its round, its name and its content.
func TestTranscriptsBindEverything(t *testing.T) {
	id, agreed := round.Hash("session"), round.Hash("agreed")
	start := round.NewTranscript(id, 3)
	seen := map[round.Transcript]string{}
	for name, tr := range map[string]round.Transcript{
		"nothing":        start,
		"parties":        round.NewTranscript(id, 2),
		"session":        round.NewTranscript(round.Hash("another"), 3),
		"a broadcast":    start.With(1, "a", agreed),
		"round":          start.With(2, "a", agreed),
		"name":           start.With(1, "b", agreed),
		"content":        start.With(1, "a", round.Hash("other")),
		"twice":          start.With(1, "a", agreed).With(1, "a", agreed),
		"a, then b":      start.With(1, "a", agreed).With(1, "b", agreed),
		"b, then a":      start.With(1, "b", agreed).With(1, "a", agreed),
		"from elsewhere": round.NewTranscript(id, 2).With(1, "a", agreed),
	} {
		if other, ok := seen[tr]; ok {
			t.Errorf("%s and %s have one transcript", name, other)
		}
		seen[tr] = name
	}
}
