package popk

import (
	"bytes"
	"context"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// judged is a judge of party 1 of an honest run, and the messages that party 1 sent.
func judged(t *testing.T, b *bench) (j *Judge, opened round.Digest, sent func(name string) [][]byte) {
	t.Helper()
	var id round.Digest
	out := b.run(false, func(c *Config) { id = c.Session.ID }, roundtest.Record()).OK(t)
	sent = func(name string) [][]byte { return out.Recording.Frames(round.Party(1), roundtest.Any, name) }
	c := Config{
		Session: round.Session{ID: id, Parties: b.n}, Step: "p", Scheme: b.scheme, Instance: b.instance, Key: b.key.Public,
		KeyHash: round.Hash("key"), Workers: 2,
	}
	j, err := NewJudge(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	digests := make([]round.Digest, b.n)
	for p := range digests {
		frames := out.Recording.Frames(round.Party(p), roundtest.Any, round.OpenName(j.Statement()))
		if digests[p], err = round.DigestOf(round.OpenName(j.Statement()), round.Bytes(frames[0])); err != nil {
			t.Fatal(err)
		}
	}
	return j, round.Agreed(id, round.OpenName(j.Statement()), digests), sent
}

// A judge finds no fault with an honest party, accepts exactly the number of ciphertexts of the
// run, and rejects data that cannot belong to a run.
func TestJudge(t *testing.T) {
	for _, b := range []*bench{newBench(t, 2), newFoldedBench(t, 2)} {
		ctx := context.Background()
		j, opened, sent := judged(t, b)
		statement, frames, answers := sent(round.OpenName(j.Statement()))[0], sent(j.Ciphertexts()), sent(j.Response())
		if check, err := j.Bound(answers[0]); check != "" || err != nil {
			t.Errorf("an honest response: %s, %v", check, err)
		}
		for _, bad := range [][]byte{nil, answers[0][1:], append(bytes.Clone(answers[0]), 0)} {
			if check, err := j.Bound(bad); err == nil {
				t.Errorf("a response of %d bytes: %s", len(bad), check)
			}
		}
		for _, bad := range [][]byte{nil, statement[1:], append(bytes.Clone(statement), 0)} {
			_, noPromise := j.Promised(bad)
			_, noEquation := j.Equation(opened, bad)
			if noPromise == nil || noEquation == nil {
				t.Errorf("a statement of %d bytes: %v, %v", len(bad), noPromise, noEquation)
			}
		}
		if _, err := (&Judge{c: Config{Scheme: b.scheme, Instance: b.instance, Session: j.c.Session, Step: "p"}, culprit: 1}).Equation(opened, statement); err == nil {
			t.Error("an equation without a key")
		}
		e, err := j.Equation(opened, statement)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Free()
		if err := e.Take(ctx, bytes.Repeat([]byte{0xff}, len(frames[0]))); err == nil {
			t.Error("a ciphertext of residues above their primes")
		}
		for i, f := range frames {
			if _, err := e.Holds(0, answers[0]); err == nil {
				t.Errorf("judged after %d of %d polynomials", i, len(frames))
			}
			if err := e.Take(ctx, f); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Take(ctx, frames[0]); err == nil {
			t.Error("more ciphertexts than there are")
		}
		for i, f := range answers {
			if holds, err := e.Holds(i, f); !holds || err != nil {
				t.Errorf("repetition %d of an honest party: %v, %v", i, holds, err)
			}
		}
		for _, i := range []int{-1, len(answers)} {
			if _, err := e.Holds(i, answers[0]); err == nil {
				t.Errorf("repetition %d", i)
			}
		}
		if holds, err := e.Holds(1, answers[0]); holds || err != nil {
			t.Errorf("the response to another repetition: %v, %v", holds, err)
		}
		if _, err := e.Holds(0, answers[0][1:]); err == nil {
			t.Error("a response that is cut short")
		}
	}
}

// NewJudge rejects a party that does not prove, and a configuration without scheme or instance.
func TestJudgeConfigurations(t *testing.T) {
	b := alone(newBench(t, 3), 1)
	c := Config{Session: round.Session{Parties: 3}, Step: "p", Scheme: b.scheme, Instance: b.instance, Only: b.only}
	for p, proves := range map[round.Party]bool{0: false, 1: true, 2: false} {
		if _, err := NewJudge(c, p); (err == nil) != proves {
			t.Errorf("party %d: %v", p, err)
		}
	}
	all := c
	all.Only = nil
	for p := round.Party(-1); p <= 3; p++ {
		if _, err := NewJudge(all, p); (err == nil) != (p >= 0 && p < 3) {
			t.Errorf("party %d of three that prove: %v", p, err)
		}
	}
	for name, change := range map[string]func(c *Config){
		"no scheme":           func(c *Config) { c.Scheme = nil },
		"no instance":         func(c *Config) { c.Instance = nil },
		"of too many parties": func(c *Config) { c.Session.Parties = 4 },
	} {
		other := c
		change(&other)
		if _, err := NewJudge(other, 1); err == nil {
			t.Errorf("%s: a judge", name)
		}
	}
}
