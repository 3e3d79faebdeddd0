package runner_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/internal/testnet"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

var (
	ref  = job.Ref{JobID: "job", Ordinal: 1}
	fast = runner.Limits{Idle: 500 * time.Millisecond, Compute: 500 * time.Millisecond, MinRate: 1 << 20}
	slow = runner.Limits{Idle: 10 * time.Second, Compute: 10 * time.Second, MinRate: 64 << 10}
)

// options of a party in a session of a protocol named test.
func options(t *testing.T, n *testnet.Net, p int, l runner.Limits) runner.Options {
	t.Helper()
	s, err := n.Parties[p].Exchange.Open(ref, exchange.Pins{})
	if err != nil {
		t.Fatal(err)
	}
	return runner.Options{
		Terms: round.Terms{Version: 1, Protocol: "test"}, Session: s, Self: round.Party(p),
		Names: n.Names, Signer: n.Parties[p].Signer, Keys: n.Keys, Random: rand.Reader,
		Limits: l, Metrics: n.Parties[p].Metrics,
	}
}

type end[R any] struct {
	result R
	report runner.Report
	err    error
}

func (e end[R]) failure(t *testing.T) *runner.Failure {
	t.Helper()
	var f *runner.Failure
	if !errors.As(e.err, &f) {
		t.Fatalf("got %v", e.err)
	}
	return f
}

// play runs a session at all parties; each party's options and start may differ.
func play[R any](ctx context.Context, opts []runner.Options, start func(p int) runner.Start[R]) []end[R] {
	ends := make([]end[R], len(opts))
	var wg sync.WaitGroup
	for p, o := range opts {
		wg.Go(func() {
			ends[p].result, ends[p].report, ends[p].err = runner.Run(ctx, o, start(p))
		})
	}
	wg.Wait()
	return ends
}

func all(t *testing.T, n *testnet.Net, l runner.Limits) []runner.Options {
	opts := make([]runner.Options, len(n.Parties))
	for p := range opts {
		opts[p] = options(t, n, p, l)
	}
	return opts
}

func coin(int) runner.Start[round.Digest] {
	return func(s round.Session) (round.Transition[round.Digest], error) {
		return round.CoinToss(s, "coin", rand.Reader)
	}
}

func TestCoinToss(t *testing.T) {
	for n := range 2 {
		n += 2
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			net := testnet.New(t, n, testnet.Options{})
			opts := all(t, net, slow)
			var mu sync.Mutex
			seen := map[string]bool{}
			opts[0].Progress = func(p runner.Progress) {
				mu.Lock()
				defer mu.Unlock()
				seen[p.Round] = true
			}
			ends := play(t.Context(), opts, coin)
			for p, e := range ends {
				if e.err != nil {
					t.Fatalf("party %d: %v", p, e.err)
				}
				r, first := e.report, ends[0].report
				if e.result != ends[0].result || r.SessionID != first.SessionID || r.Transcript != first.Transcript || r.Rounds != first.Rounds {
					t.Errorf("party %d differs: %+v", p, r)
				}
				if r.Outcome != runner.OK || r.Sent == 0 || r.Received == 0 {
					t.Errorf("party %d: %+v", p, r)
				}
			}
			for _, name := range []string{"prelude/nonce", "coin/commit", "coin/open"} {
				if !seen[name] {
					t.Errorf("no progress in %s: %v", name, seen)
				}
			}
			if g, err := net.Parties[0].Metrics.Registry().Gather(); err != nil || !strings.Contains(fmt.Sprint(g), "coin/commit") {
				t.Errorf("no metrics of the rounds: %v", err)
			}
		})
	}
}

// bulk is a commit-then-open of large contents. Its result is the received bytes.
type bulk struct {
	round.Session
	frames, size int
	bytes        *int
}

func content(p round.Party, frames, size int) round.Body {
	return round.Frames(frames, func(i int) ([]byte, error) {
		b := make([]byte, size)
		mrand.NewChaCha8([32]byte{byte(p), byte(i), byte(i >> 8)}).Read(b)
		return b, nil
	})
}

func (b bulk) Frame(_ context.Context, from round.Party, index int, last bool, frame []byte) error {
	want, _ := content(from, b.frames, b.size).Frame(index)
	if !bytes.Equal(frame, want) || last != (index == b.frames-1) {
		return &round.Blame{Party: from, Check: "content", Reason: fmt.Sprintf("frame %d differs", index)}
	}
	*b.bytes += len(frame)
	return nil
}

func (b bulk) limit(round.Party) round.Limit {
	return round.Limit{Frames: b.frames, Bytes: int64(b.frames * b.size)}
}

func (b bulk) start() (round.Transition[int], error) {
	b.bytes = new(int)
	t, err := round.CommitOpenStream(b.Session, round.Streamed{
		Step: "bulk", Body: content(b.Self, b.frames, b.size), Limit: b.limit, Sink: b,
	}, rand.Reader)
	if err != nil {
		return round.Transition[int]{}, err
	}
	return round.Map(t, func(round.Opened) (int, error) { return *b.bytes, nil }), nil
}

// Large streamed messages over connections that break halfway.
func TestBulkOverBrokenConnections(t *testing.T) {
	net := testnet.New(t, 3, testnet.Options{Exchange: exchange.Config{Window: 1 << 20}})
	net.Link(0, 1).CutAfter(500_000, 4)
	net.Link(2, 0).CutAfter(700_000, 3)
	const frames, size = 20, 200_000
	ends := play(t.Context(), all(t, net, slow), func(int) runner.Start[int] {
		return func(s round.Session) (round.Transition[int], error) {
			return bulk{Session: s, frames: frames, size: size}.start()
		}
	})
	for p, e := range ends {
		if e.err != nil || e.result != 2*frames*size {
			t.Errorf("party %d: %d, %v", p, e.result, e.err)
		}
	}
	if c := net.Link(0, 1).Cuts() + net.Link(2, 0).Cuts(); c != 0 {
		t.Errorf("%d cuts did not happen", c)
	}
}

// A peer that stalls in the middle of a message ends the session for all, within
// the deadline, with its name.
func TestStalledPeer(t *testing.T) {
	net := testnet.New(t, 3, testnet.Options{Exchange: exchange.Config{Window: 1 << 20}})
	opts := all(t, net, fast)
	const frames, size = 40, 200_000
	net.Link(2, 0).StallAfter(frames * size / 4)
	net.Link(2, 1).StallAfter(frames * size / 2)
	began := time.Now()
	ends := play(t.Context(), opts, func(int) runner.Start[int] {
		return func(s round.Session) (round.Transition[int], error) {
			return bulk{Session: s, frames: frames, size: size}.start()
		}
	})
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
	timeouts := 0
	for p := range 2 {
		f := ends[p].failure(t)
		if f.Outcome != runner.Timeout && f.Outcome != runner.PeerAbort {
			t.Errorf("party %d: %v", p, f)
		}
		if f.Outcome == runner.Timeout {
			timeouts++
			if len(f.Suspects) != 1 || f.Suspects[0] != 2 || !strings.Contains(f.Reason, "party 2 (p2) sent ") || f.Round == "" {
				t.Errorf("party %d: %v", p, f)
			}
		}
	}
	if timeouts == 0 {
		t.Error("nobody timed out")
	}
	ends[2].failure(t)
}

// A peer that receives nothing of a last message larger than the window is blamed, well before the
// deadline of the session.
func TestLastMessageIsNotTaken(t *testing.T) {
	for size, name := range map[int]string{200_000: "larger than the window", 1000: "within the window"} {
		t.Run(name, func(t *testing.T) {
			net := testnet.New(t, 2, testnet.Options{Exchange: exchange.Config{Window: 1 << 20}})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			opts := all(t, net, fast)
			took, absence := time.Duration(0), 4*time.Second
			if size == 1000 {
				absence = 1500 * time.Millisecond
			}
			ends := play(ctx, opts, func(p int) runner.Start[int] {
				return func(round.Session) (round.Transition[int], error) {
					if p == 1 {
						return round.Next(round.Local(func(ctx context.Context) (round.Transition[int], error) {
							defer func(began time.Time) { took = time.Since(began) }(time.Now())
							select {
							case <-ctx.Done():
							case <-time.After(absence):
							}
							return round.Transition[int]{}, errors.New("took nothing")
						})), nil
					}
					last := round.Next(round.Local(func(context.Context) (round.Transition[int], error) { return round.Done(1), nil }))
					last.Send = []round.Message{{To: 1, Name: "last", Body: content(0, 20, size)}}
					return last, nil
				}
			})
			if size == 1000 {
				if ends[0].err != nil || ends[0].result != 1 {
					t.Errorf("party 0: %d, %v", ends[0].result, ends[0].err)
				}
				return
			}
			f := ends[0].failure(t)
			if f.Outcome != runner.Timeout || len(f.Suspects) != 1 || f.Suspects[0] != 1 || f.Check != exchange.CheckStalled {
				t.Errorf("party 0: %v, suspects %v", f, f.Suspects)
			}
			if took > 3*time.Second {
				t.Errorf("the peer heard of it after %s", took)
			}
		})
	}
}

// A last message arrives even if it takes longer than patience, if the peer receives it at the
// lowest rate.
func TestLastMessageIsTakenSlowly(t *testing.T) {
	net := testnet.New(t, 2, testnet.Options{Exchange: exchange.Config{Window: 256 << 10}})
	limits := runner.Limits{Idle: 1500 * time.Millisecond, Compute: 1500 * time.Millisecond, MinRate: 16 << 10}
	const frames, size = 14, 100_000 // 4.2 s
	ends := play(t.Context(), all(t, net, limits), func(p int) runner.Start[int] {
		return func(s round.Session) (round.Transition[int], error) {
			if p == 1 {
				return round.Next(round.Round[int](&slowly{bulk{s, frames, size, new(int)}})), nil
			}
			last := round.Next(round.Local(func(context.Context) (round.Transition[int], error) { return round.Done(1), nil }))
			last.Send = []round.Message{{To: 1, Name: "last", Body: content(0, frames, size)}}
			return last, nil
		}
	})
	for p, e := range ends {
		if e.err != nil {
			t.Errorf("party %d: %v", p, e.err)
		}
	}
}

// slowly takes a large message with a pause at every frame.
type slowly struct{ bulk }

func (r *slowly) Wants() []round.Want {
	return []round.Want{{From: 0, Name: "last", MaxFrames: r.frames, MaxBytes: r.limit(0).Bytes, Stream: true}}
}

func (r *slowly) Frame(ctx context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	time.Sleep(300 * time.Millisecond)
	return r.bulk.Frame(ctx, from, index, last, frame)
}

func (r *slowly) Step(context.Context, round.Inbox) (round.Transition[int], error) {
	return round.Done(1), nil
}

// A peer that never starts.
func TestAbsentPeer(t *testing.T) {
	net := testnet.New(t, 3, testnet.Options{Exchange: exchange.Config{StartWait: 100 * time.Millisecond}})
	opts := []runner.Options{options(t, net, 0, fast), options(t, net, 1, fast)}
	for p, e := range play(t.Context(), opts, coin) {
		f := e.failure(t)
		if f.Outcome == runner.PeerAbort {
			continue // the other was first
		}
		if f.Outcome != runner.Timeout || f.Round != "prelude/nonce" || len(f.Suspects) != 1 || f.Suspects[0] != 2 ||
			!strings.Contains(f.Reason, "not started here") {
			t.Errorf("party %d: %v", p, f)
		}
	}
}

// lie sends another opening than it committed to.
type lie struct{ round.Round[round.Digest] }

func (l lie) Step(ctx context.Context, in round.Inbox) (round.Transition[round.Digest], error) {
	t, err := l.Round.Step(ctx, in)
	for i, m := range t.Send {
		if strings.HasSuffix(m.Name, "/open") {
			b, _ := m.Body.Frame(0)
			b = bytes.Clone(b)
			b[40] ^= 1
			t.Send[i].Body = round.Bytes(b)
		}
	}
	return t, err
}

func TestCheatIsBlamed(t *testing.T) {
	net := testnet.New(t, 3, testnet.Options{})
	ends := play(t.Context(), all(t, net, slow), func(p int) runner.Start[round.Digest] {
		return func(s round.Session) (round.Transition[round.Digest], error) {
			t, err := round.CoinToss(s, "coin", rand.Reader)
			if p == 1 {
				t.Next = lie{t.Next}
			}
			return t, err
		}
	})
	blames := 0
	for _, p := range []int{0, 2} {
		f := ends[p].failure(t)
		switch {
		case f.Outcome == runner.Blamed:
			blames++
			if f.Party != 1 || f.Check != round.CheckCommitment || f.Round != "echo" && f.Round != "coin/open" {
				t.Errorf("party %d: %v", p, f)
			}
			if w := f.Proto(round.Party(p)); w.GetBlame().GetParty() != 1 || w.GetOutcome() != "blame" || w.GetReporter() != uint32(p) {
				t.Errorf("party %d: %v", p, w)
			}
			if len(ends[p].report.Broadcasts) == 0 {
				t.Error("no evidence")
			}
			for _, e := range ends[p].report.Broadcasts {
				if !e.Envelope.Verify(net.Keys[e.Envelope.From], e.Signature) {
					t.Error("evidence does not verify")
				}
			}
		case f.Outcome != runner.PeerAbort || !strings.Contains(f.Reason, "blames party 1 (p1)"):
			t.Errorf("party %d: %v", p, f)
		}
	}
	if blames == 0 {
		t.Error("nobody blamed")
	}
	// The cheating party may have its result before it learns of the failure. No other party has a
	// result.
	if ends[1].err != nil && ends[1].failure(t).Outcome != runner.PeerAbort {
		t.Errorf("the cheat: %v", ends[1].err)
	}
}

// A broadcast that is signed for each recipient separately, which could not prove equivocation, and
// a missing message are blamed on their sender.
func TestMessagesOutOfPlaceAreBlamed(t *testing.T) {
	for name, change := range map[string]func(m round.Message) []round.Message{
		"one by one": func(m round.Message) []round.Message {
			return []round.Message{{To: 0, Name: m.Name, Body: m.Body}, {To: 2, Name: m.Name, Body: m.Body}}
		},
		"left out": func(round.Message) []round.Message { return nil },
	} {
		net := testnet.New(t, 3, testnet.Options{})
		ends := play(t.Context(), all(t, net, slow), func(p int) runner.Start[round.Digest] {
			return func(s round.Session) (round.Transition[round.Digest], error) {
				t, err := round.CoinToss(s, "coin", rand.Reader)
				if p == 1 {
					t.Send = change(t.Send[0])
				}
				return t, err
			}
		})
		blames := 0
		for _, p := range []int{0, 2} {
			switch f := ends[p].failure(t); f.Outcome {
			case runner.Blamed:
				if blames++; f.Party != 1 || f.Check != round.CheckShape {
					t.Errorf("%s: party %d: %v", name, p, f)
				}
			case runner.PeerAbort: // it has heard of it first
			default:
				t.Errorf("%s: party %d: %v", name, p, f)
			}
		}
		if blames == 0 {
			t.Errorf("%s: nobody blamed", name)
		}
	}
}

func TestWrongSigningKey(t *testing.T) {
	net := testnet.New(t, 2, testnet.Options{})
	opts := all(t, net, slow)
	_, opts[1].Signer, _ = ed25519.GenerateKey(rand.Reader)
	ends := play(t.Context(), opts, coin)
	if f := ends[0].failure(t); f.Outcome != runner.Blamed || f.Party != 1 || f.Check != runner.CheckSignature {
		t.Errorf("got %v", f)
	}
}

// Other terms give other session ids, so that no signature carries over.
func TestOtherTerms(t *testing.T) {
	net := testnet.New(t, 2, testnet.Options{})
	opts := all(t, net, slow)
	opts[1].Terms.Epoch++
	for p, e := range play(t.Context(), opts, coin) {
		if f := e.failure(t); f.Outcome != runner.Blamed && f.Outcome != runner.PeerAbort {
			t.Errorf("party %d: %v", p, f)
		}
	}
}

// broken is a round whose own step fails.
type broken struct{ round.Round[round.Digest] }

func (broken) Step(context.Context, round.Inbox) (round.Transition[round.Digest], error) {
	return round.Transition[round.Digest]{}, errors.New("disk on fire at /secret/path")
}

func TestOwnFaultIsNotDescribed(t *testing.T) {
	net := testnet.New(t, 2, testnet.Options{})
	ends := play(t.Context(), all(t, net, slow), func(p int) runner.Start[round.Digest] {
		return func(s round.Session) (round.Transition[round.Digest], error) {
			t, err := round.CoinToss(s, "coin", rand.Reader)
			if p == 1 {
				t.Next = broken{t.Next}
			}
			return t, err
		}
	})
	if f := ends[1].failure(t); f.Outcome != runner.Internal || strings.Contains(f.Reason, "disk") || !strings.Contains(fmt.Sprint(f.Cause), "disk") {
		t.Errorf("got %v", f)
	}
	if f := ends[0].failure(t); f.Outcome != runner.PeerAbort || strings.Contains(f.Error(), "disk") {
		t.Errorf("got %v", f)
	}
}

func TestCancelAndDeadline(t *testing.T) {
	net := testnet.New(t, 2, testnet.Options{})
	o := options(t, net, 0, slow) // the peer is absent
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("cancelled by the coordinator")) })
	_, _, err := runner.Run(ctx, o, coin(0))
	f := end[int]{err: err}.failure(t)
	if f.Outcome != runner.Cancelled || f.Reason != "cancelled by the coordinator" {
		t.Errorf("got %v", f)
	}
	net = testnet.New(t, 2, testnet.Options{})
	late, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, _, err = runner.Run(late, options(t, net, 0, slow), coin(0))
	f = end[int]{err: err}.failure(t)
	if f.Outcome != runner.Timeout || len(f.Suspects) != 1 || f.Suspects[0] != 1 {
		t.Errorf("got %v", f)
	}
}

// A step that computes is woken when a peer ends the session.
func TestStepIsCancelled(t *testing.T) {
	net := testnet.New(t, 2, testnet.Options{})
	ends := play(t.Context(), all(t, net, slow), func(p int) runner.Start[int] {
		return func(s round.Session) (round.Transition[int], error) {
			if p == 1 {
				return round.Transition[int]{}, errors.New("fails at once")
			}
			return round.Next(round.Local(func(ctx context.Context) (round.Transition[int], error) {
				select {
				case <-ctx.Done():
					return round.Transition[int]{}, ctx.Err()
				case <-time.After(10 * time.Second):
					return round.Done(1), nil
				}
			})), nil
		}
	})
	if f := ends[0].failure(t); f.Outcome != runner.PeerAbort {
		t.Errorf("got %v", f)
	}
}
