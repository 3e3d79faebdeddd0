package round_test

import (
	"bytes"
	"context"
	"crypto/sha3"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	rt "github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// stream is a reproducible source of randomness of one party.
func stream(p round.Party, label string) io.Reader {
	h := sha3.NewSHAKE256()
	fmt.Fprintf(h, "%d %s", p, label)
	return h
}

func toss(s round.Session) (round.Transition[round.Digest], error) {
	return round.CoinToss(s, "coin", stream(s.Self, "coin"))
}

func reveal(s round.Session) (round.Transition[round.Opened], error) {
	return round.CommitOpen(s, "open", stream(s.Self, "nonce"), content(s.Self), 8)
}

func content(p round.Party) []byte { return bytes.Repeat([]byte{byte(p + 1)}, 8) }

func TestCoinTossAgrees(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		o := rt.Lockstep(n, toss).OK(t)
		for p := range n {
			if o.Results[p] != o.Results[0] || o.Results[p] == (round.Digest{}) {
				t.Fatalf("n=%d: party %d has another coin", n, p)
			}
		}
		rounds := 2
		if n > 2 {
			rounds = 4
		}
		if o.Rounds != rounds {
			t.Errorf("n=%d: %d rounds, want %d", n, o.Rounds, rounds)
		}
		sent := int64(n-1) * (32 + 64)
		if n > 2 {
			sent += int64(n-1) * 2 * int64(n+1) * 32
		}
		if o.Sent[0] != sent {
			t.Errorf("n=%d: sent %d bytes, want %d", n, o.Sent[0], sent)
		}
		other := rt.Lockstep(n, toss, rt.ID(round.Hash("another session"))).OK(t)
		if other.Results[0] == o.Results[0] || other.Transcripts[0] == o.Transcripts[0] {
			t.Errorf("n=%d: the coin does not depend on the session", n)
		}
	}
}

func TestCommitOpenGivesPayloads(t *testing.T) {
	for _, n := range []int{2, 3} {
		o := rt.Lockstep(n, reveal).OK(t)
		for p := range n {
			if o.Results[p].Agreed != o.Results[0].Agreed {
				t.Errorf("party %d agrees to something else", p)
			}
			for q := range round.Party(n) {
				if !bytes.Equal(o.Results[p].Payloads[q], content(q)) {
					t.Errorf("party %d has %x of %d", p, o.Results[p].Payloads[q], q)
				}
			}
		}
	}
}

func TestPreludeMakesFreshSession(t *testing.T) {
	run := 0
	start := func(s round.Session) (round.Transition[round.Session], error) {
		return round.Prelude(s, stream(s.Self, fmt.Sprint("prelude", run)))
	}
	a := rt.Lockstep(3, start).OK(t)
	run++
	b := rt.Lockstep(3, start).OK(t)
	if a.Results[0].ID != a.Results[2].ID || a.Results[0].ID == b.Results[0].ID || a.Results[1].Self != 1 {
		t.Fatal("session ids neither agree nor differ where they should")
	}
	rt.Lockstep(3, start, rt.Link(1, rt.Any, "prelude/nonce", rt.Truncate(1))).Blamed(t, 1, round.CheckEcho)
	rt.Lockstep(3, start, rt.Rewrite(1, "prelude/nonce", rt.Truncate(1))).Blamed(t, 1, round.CheckShape)
	terms := round.Terms{Version: 1, Protocol: "popk"}
	more := terms
	more.Epoch++
	if terms.ID() == more.ID() {
		t.Fatal("terms are not all in their id")
	}
}

// One named fault per row, on the way or inside the cheat, which is party 1.
func TestCommitOpenFaults(t *testing.T) {
	recording := rt.Lockstep(3, reveal, rt.Record(), rt.ID(round.Hash("earlier"))).OK(t).Recording
	payload := func(name string, b []byte) rt.Option {
		return rt.Cheat(1, byzantine.On(byzantine.New(), name, func(v *[]byte) { *v = b }))
	}
	for _, n := range []int{2, 3} {
		// On a link, with three parties, the echo of a broadcast differs before its content is
		// looked at.
		linked := round.CheckEcho
		if n == 2 {
			linked = round.CheckCommitment
		}
		for _, test := range []struct {
			name  string
			fault rt.Option
			check string
		}{
			{"bit of the commitment", rt.Rewrite(1, "open/commit", rt.Flip(3)), round.CheckCommitment},
			{"bit of the nonce", rt.Rewrite(1, "open/open", rt.Flip(3)), round.CheckCommitment},
			{"bit of the content", rt.Rewrite(1, "open/open", rt.Flip(-1)), round.CheckCommitment},
			{"bit of the opening on its way", rt.Link(1, rt.Any, "open/open", rt.Flip(-1)), linked},
			{"bit of the commitment on its way", rt.Link(1, rt.Any, "open/commit", rt.Flip(0)), linked},
			{"opens something else", payload("open/open", content(6)), round.CheckCommitment},
			{"commits to something shorter", payload("open/commit", make([]byte, 7)), round.CheckShape},
			{"truncated commitment", rt.Rewrite(1, "open/commit", rt.Truncate(1)), round.CheckShape},
			{"truncated opening", rt.Rewrite(1, "open/open", rt.Truncate(1)), round.CheckCommitment},
			{"extended opening", rt.Rewrite(1, "open/open", rt.Extend(1)), round.CheckSize},
			{"extra frame", rt.Rewrite(1, "open/open", rt.ExtraFrame(nil)), round.CheckShape},
			{"oversized commitment", rt.Link(1, rt.Any, "open/commit", rt.Extend(1)), round.CheckSize},
			{"commitment of an earlier session", rt.Rewrite(1, "open/commit", rt.Replay(recording, 1, rt.Any, "open/commit")), round.CheckCommitment},
			{"copied commitment", rt.Link(1, rt.Any, "open/commit", rt.CopyOf(0, "open/commit")), linked},
			{"message twice", rt.Deliver(1, rt.Any, "open/open", rt.Twice), round.CheckDuplicate},
			{"another name", rt.Deliver(1, rt.Any, "open/open", rt.Renamed("close")), round.CheckShape},
			{"unending", rt.Deliver(1, rt.Any, "open/open", rt.Unending), round.CheckShape},
			{"a round that is over", rt.Deliver(1, rt.Any, "open/open", rt.Shifted(-1)), round.CheckDuplicate},
		} {
			t.Run(fmt.Sprintf("n=%d/%s", n, test.name), func(t *testing.T) {
				rt.Lockstep(n, reveal, test.fault).Blamed(t, 1, test.check)
			})
		}
		for _, test := range []struct {
			name  string
			fault rt.Option
		}{
			{"dropped", rt.Link(1, rt.Any, "open/open", rt.Drop)},
			{"never sent", rt.Rewrite(1, "open/open", rt.Drop)},
			{"a round to come", rt.Deliver(1, rt.Any, "open/open", rt.Shifted(1))},
		} {
			t.Run(fmt.Sprintf("n=%d/%s", n, test.name), func(t *testing.T) {
				rt.Lockstep(n, reveal, test.fault).Stalls(t, 1, "open/open")
			})
		}
	}
}

// The copy attack: a rushing party sends another's commitment and then its opening, nonce and all.
// The party inside the commitment makes it fail; a verifier that skips the commitment would accept.
func TestCopiedOpeningIsRefused(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		copies := func() []rt.Option {
			v := &rt.View{}
			return []rt.Option{
				rt.Rushing(1, v),
				rt.Rewrite(1, "open/commit", rt.CopyOf(0, "open/commit")),
				rt.Rewrite(1, "open/open", rt.CopyOf(0, "open/open")),
			}
		}
		rt.Lockstep(n, reveal, copies()...).Blamed(t, 1, round.CheckCommitment)

		blind := copies()
		for p := range round.Party(n) {
			if p != 1 {
				blind = append(blind, rt.Watch(p, byzantine.New().Skip(round.CheckCommitment)))
			}
		}
		o := rt.Lockstep(n, reveal, blind...)
		if o.Errors[0] != nil || !bytes.Equal(o.Results[0].Payloads[1], content(0)) {
			t.Errorf("n=%d: without the check the copy does not pass: %v", n, o.Errors[0])
		}
	}
}

// A cheat that changes its coin after having seen the others' is caught.
func TestRushingCoinIsRefused(t *testing.T) {
	for _, n := range []int{2, 3} {
		v, culprit := &rt.View{}, round.Party(n-1)
		var seen [][]byte
		h := byzantine.On(byzantine.New(), "coin/open", func(own *[]byte) {
			seen = v.Frames(0, rt.Any, "coin/open")
			*own = bytes.Clone(seen[0][32:])
		})
		rt.Lockstep(n, toss, rt.Rushing(culprit, v), rt.Cheat(culprit, h)).Blamed(t, culprit, round.CheckCommitment)
		if len(seen) != 1 || len(seen[0]) != 64 || h.Fired("coin/open") != 1 {
			t.Fatalf("the cheat saw %d frames", len(seen))
		}
	}
}

func TestEquivocationIsSuspected(t *testing.T) {
	for _, n := range []int{3, 5} {
		for _, name := range []string{"open/commit", "open/open"} {
			o := rt.Lockstep(n, reveal, rt.Link(1, 2, name, rt.Flip(0)))
			// Party 2 sees that party 1 reports a version of its broadcast that differs from the
			// version received by party 2.
			var blame *round.Blame
			if !errors.As(o.Errors[2], &blame) || blame.Party != 1 || blame.Check != round.CheckEcho {
				t.Errorf("the party lied to ends with %v", o.Errors[2])
			}
			// The others have two reports and suspect 1 and 2.
			o.Aborted(t, 1, round.CheckEcho)
			var abort *round.Abort
			if !errors.As(o.Errors[0], &abort) || fmt.Sprint(abort.Suspects) != "[1 2]" ||
				len(abort.Conflicts) != 1 || abort.Conflicts[0].Reporter != 2 || abort.Conflicts[0].About != 1 {
				t.Errorf("party 0 ends with %v", o.Errors[0])
			}
		}
	}
}

func TestFalseEchoIsBlamed(t *testing.T) {
	// Party 2 reports another digest of party 0: 0 knows better, 1 suspects both.
	o := rt.Lockstep(3, reveal, rt.Rewrite(2, "echo", rt.Flip(0)))
	if o.Errors[0] != nil { // the machine's own message is not the protocol's to rewrite
		t.Fatal(o.Errors[0])
	}
	o = rt.Lockstep(3, reveal, rt.Link(2, rt.Any, "echo", rt.Flip(0)))
	var blame *round.Blame
	var abort *round.Abort
	if !errors.As(o.Errors[0], &blame) || blame.Party != 2 || blame.Check != round.CheckEcho {
		t.Errorf("party 0 ends with %v", o.Errors[0])
	}
	if !errors.As(o.Errors[1], &abort) || fmt.Sprint(abort.Suspects) != "[0 2]" {
		t.Errorf("party 1 ends with %v", o.Errors[1])
	}
	rt.Lockstep(3, reveal, rt.Link(2, rt.Any, "echo", rt.Truncate(1))).Blamed(t, 2, round.CheckShape)
}

// sum is a streamed commit-then-open whose contents are three frames of eight words, which every
// receiver adds up as they arrive.
type sum struct {
	total [8]uint64
	seen  map[round.Party]int
}

func (s *sum) Frame(_ context.Context, from round.Party, _ int, _ bool, frame []byte) error {
	if len(frame) != 64 {
		return round.Malformed(from, errors.New("frame of the wrong length"))
	}
	s.seen[from]++
	s.add(frame)
	return nil
}

func (s *sum) add(frame []byte) {
	for i := range s.total {
		s.total[i] += binary.LittleEndian.Uint64(frame[8*i:])
	}
}

func words(p round.Party) round.Body {
	return round.Frames(3, func(i int) ([]byte, error) {
		f := make([]byte, 64)
		_, err := io.ReadFull(stream(p, fmt.Sprint("frame", i)), f)
		return f, err
	})
}

func streamed(s round.Session) (round.Transition[[8]uint64], error) {
	sink := &sum{seen: map[round.Party]int{}}
	limit := round.Limit{Frames: 3, Bytes: 3 * 64}
	t, err := round.CommitOpenStream(s, round.Streamed{
		Step:  "sum",
		Body:  words(s.Self),
		Limit: func(round.Party) round.Limit { return limit },
		Sink:  sink,
	}, stream(s.Self, "nonce"))
	if err != nil {
		return round.Transition[[8]uint64]{}, err
	}
	return round.Map(t, func(round.Opened) ([8]uint64, error) {
		for i := range 3 {
			f, _ := words(s.Self).Frame(i)
			sink.add(f)
		}
		return sink.total, nil
	}), nil
}

func TestStreamedContentsAreSummed(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		o := rt.Lockstep(n, streamed).OK(t)
		var want sum
		for p := range round.Party(n) {
			for i := range 3 {
				f, _ := words(p).Frame(i)
				want.add(f)
			}
		}
		for p := range n {
			if o.Results[p] != want.total {
				t.Errorf("n=%d: party %d has another sum", n, p)
			}
		}
		if s := rt.Lockstep(n, streamed, rt.Serial()).OK(t); s.Transcripts[0] != o.Transcripts[0] || s.Sent[0] != o.Sent[0] {
			t.Errorf("n=%d: a serial run differs", n)
		}
	}
}

func TestStreamedFaults(t *testing.T) {
	altered := func(frame int) rt.Option {
		return rt.Cheat(1, byzantine.On(byzantine.New(), "sum/open", func(b *round.Body) {
			honest := *b
			*b = round.Frames(honest.Frames(), func(i int) ([]byte, error) {
				f, err := honest.Frame(i)
				if i == frame {
					f[0] ^= 1
				}
				return f, err
			})
		}))
	}
	fewer := rt.Cheat(1, byzantine.On(byzantine.New(), "sum/commit", func(b *round.Body) {
		*b = round.Frames(2, (*b).Frame)
	}))
	split := func(_ *rt.View, f [][]byte) [][]byte {
		f[2] = append(f[2], f[3]...)
		return [][]byte{f[0], f[1], f[2], {}}
	}
	shorter := func(_ *rt.View, f [][]byte) [][]byte { return append([][]byte{f[0][1:]}, f[1:]...) }
	bare := func(_ *rt.View, f [][]byte) [][]byte { return append([][]byte{{}}, f[1:]...) }
	for _, n := range []int{2, 3} {
		for _, test := range []struct {
			name  string
			fault rt.Option
			check string
		}{
			{"first frame altered", altered(0), round.CheckCommitment},
			{"last frame altered", altered(2), round.CheckCommitment},
			{"nonce too short", rt.Rewrite(1, "sum/open", shorter), round.CheckShape},
			{"no nonce", rt.Rewrite(1, "sum/open", bare), round.CheckShape},
			{"nonce altered", rt.Rewrite(1, "sum/open", rt.Flip(0)), round.CheckCommitment},
			{"fewer frames", fewer, round.CheckShape},
			{"other boundaries", rt.Rewrite(1, "sum/open", split), round.CheckShape},
			{"a frame too many", rt.Rewrite(1, "sum/open", rt.ExtraFrame(make([]byte, 64))), round.CheckShape},
			{"a frame too long", rt.Rewrite(1, "sum/open", rt.Extend(8)), round.CheckSize},
			{"a frame too short", rt.Rewrite(1, "sum/open", rt.Truncate(8)), round.CheckShape},
			{"out of order", rt.Deliver(1, rt.Any, "sum/open", rt.Reversed), round.CheckShape},
			{"unending", rt.Deliver(1, rt.Any, "sum/open", rt.Unending), round.CheckShape},
			{"copied", rt.Rewrite(1, "sum/open", rt.CopyOf(0, "sum/open")), round.CheckCommitment},
		} {
			t.Run(fmt.Sprintf("n=%d/%s", n, test.name), func(t *testing.T) {
				rt.Lockstep(n, streamed, test.fault, rt.Rushing(1, &rt.View{})).Blamed(t, 1, test.check)
			})
		}
	}
}

func TestCancelledRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for p, err := range rt.Lockstep(3, toss, rt.Context(ctx)).Errors {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("party %d ends with %v", p, err)
		}
	}
}

// Then and Map keep the shape of the chain and pass results on.
func TestChains(t *testing.T) {
	o := rt.Lockstep(3, func(s round.Session) (round.Transition[int], error) {
		first := round.Done(int(s.Self))
		second := round.Then(first, func(_ context.Context, p int) (round.Transition[round.Digest], error) {
			if p != int(s.Self) {
				return round.Transition[round.Digest]{}, errors.New("wrong result")
			}
			return toss(s)
		})
		return round.Map(second, func(d round.Digest) (int, error) { return int(d[0]), nil }), nil
	}).OK(t)
	coin := rt.Lockstep(3, toss).OK(t)
	if o.Results[1] != int(coin.Results[1][0]) || o.Rounds != coin.Rounds+2-1 {
		t.Fatalf("result %d after %d rounds", o.Results[1], o.Rounds)
	}
	failed := errors.New("no")
	m := rt.Lockstep(2, func(s round.Session) (round.Transition[int], error) {
		c, err := toss(s)
		return round.Map(c, func(round.Digest) (int, error) { return 0, failed }), err
	})
	if !errors.Is(m.Errors[0], failed) {
		t.Fatal(m.Errors[0])
	}
}

// uneven has a combiner: party 0 receives, the others have a round that wants nothing.
func uneven(s round.Session) (round.Transition[int], error) {
	if s.Self != 0 {
		last := round.Local(func(context.Context) (round.Transition[int], error) { return round.Done(0), nil })
		return round.Next(last, round.Message{To: 0, Name: "part", Body: round.Bytes([]byte{byte(s.Self)})}), nil
	}
	return round.Next(round.Round[int](combine{s})), nil
}

type combine struct{ round.Session }

func (r combine) Wants() []round.Want { return r.Each(round.Want{Name: "part", MaxBytes: 1}) }

func (r combine) Step(_ context.Context, in round.Inbox) (round.Transition[int], error) {
	total := 0
	for p := range round.Party(r.Parties) {
		if p != r.Self {
			total += int(in.Bytes(p, "part")[0])
		}
	}
	return round.Done(total), nil
}

func TestCombiner(t *testing.T) {
	o := rt.Lockstep(4, uneven).OK(t)
	if o.Results[0] != 6 || o.Rounds != 1 || o.Sent[0] != 0 || o.Sent[3] != 1 {
		t.Fatalf("%+v", o)
	}
}
