package round_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// A script encodes the frames that party 0 receives as a fuzzer's input: for every frame the
// sender, the round, the name, the index, flags, the length and the bytes.
type script []byte

var scriptNames = []string{"open/commit", "echo", "open/open", "close"}

func (s *script) add(in round.Incoming) {
	flags := byte(0)
	if in.Last {
		flags |= 1
	}
	name := 0
	for scriptNames[name] != in.Name {
		name++
	}
	*s = append(*s, byte(in.From), byte(in.Round), byte(name), byte(in.Index), flags, byte(len(in.Payload)))
	*s = append(*s, in.Payload...)
}

func (s *script) next() (in round.Incoming, ok bool) {
	b := *s
	if len(b) < 6 {
		return in, false
	}
	n := min(int(b[5]), len(b)-6)
	*s = b[6+n:]
	return round.Incoming{
		From: round.Party(int8(b[0])), Round: int(b[1]), Name: scriptNames[b[2]%4], Index: int(b[3]),
		Last: b[4]&1 != 0, Payload: b[6 : 6+n],
	}, true
}

// opener is one of three parties of a commit-then-open step.
func opener(t testing.TB, p round.Party) *round.Machine[round.Opened] {
	t.Helper()
	s := round.Session{ID: round.Hash("fuzz"), Self: p, Parties: 3}
	start, err := reveal(s)
	if err != nil {
		t.Fatal(err)
	}
	m, err := round.NewMachine(s, start)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// honestScript runs three parties and writes down what party 0 receives.
func honestScript(t testing.TB) (all script) {
	t.Helper()
	machines := []*round.Machine[round.Opened]{opener(t, 0), opener(t, 1), opener(t, 2)}
	for {
		for from, m := range machines {
			for _, o := range m.Outgoing() {
				frame, err := o.Body.Frame(0)
				if err != nil {
					t.Fatal(err)
				}
				in := round.Incoming{Round: o.Round, From: round.Party(from), Name: o.Name, Last: true, Payload: frame}
				for to, other := range machines {
					if to == from {
						continue
					}
					if err := other.Deliver(context.Background(), in); err != nil {
						t.Fatal(err)
					}
					if to == 0 {
						all.add(in)
					}
				}
			}
		}
		for _, m := range machines {
			if err := m.Step(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if _, done := machines[0].Result(); done {
			return all
		}
	}
}

// For any frames of a commit-then-open step and its echoes, the machine accepts them, defers them,
// or blames their sender and is dead. It has a result only if every opening matches its commitment.
func FuzzDeliver(f *testing.F) {
	honest := honestScript(f)
	f.Add([]byte(honest))
	f.Add([]byte(honest[:len(honest)/2]))
	for _, at := range []int{0, 1, 2, 3, 4, 5, 6, len(honest) - 1} {
		b := bytes.Clone(honest)
		b[at] ^= 1
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, m := script(data), opener(t, 0)
		for {
			in, more := all.next()
			if !more {
				if bytes.Equal(data, honest) {
					t.Error("an honest run has no result")
				}
				return
			}
			err := m.Deliver(context.Background(), in)
			if errors.Is(err, round.ErrEarly) {
				continue
			}
			if err == nil && m.Ready() {
				err = m.Step(context.Background())
			} else if err != nil {
				var blame *round.Blame
				if !errors.As(err, &blame) || blame.Party != in.From {
					t.Fatalf("frame of %d: %v", in.From, err)
				}
			}
			if err != nil {
				if err := m.Deliver(context.Background(), in); !errors.Is(err, round.ErrDead) || m.Ready() {
					t.Fatalf("after an error: %v", err)
				}
				return
			}
			if r, done := m.Result(); done {
				for p := range round.Party(3) {
					if !bytes.Equal(r.Payloads[p], content(p)) {
						t.Errorf("party %d did not commit to %x", p, r.Payloads[p])
					}
				}
				return
			}
		}
	})
}
