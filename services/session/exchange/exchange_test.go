package exchange_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/internal/testnet"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
)

var (
	ref  = job.Ref{JobID: "job", Ordinal: 1}
	pins = exchange.Pins{ParamsHash: [32]byte{1}, SpecDigest: [32]byte{2}}
)

func open(t *testing.T, n *testnet.Net, party int) *exchange.Streams {
	t.Helper()
	s, err := n.Parties[party].Exchange.Open(ref, pins)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Abort(&exchange.AbortedError{Outcome: "test"}, unsigned) })
	return s
}

func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func from(p round.Party) func(round.Party) bool {
	return func(q round.Party) bool { return p == q }
}

// body makes pseudorandom frames on demand and counts how often.
type body struct {
	frames, size int
	mu           sync.Mutex
	made         int
}

func (b *body) Frames() int { return b.frames }

func (b *body) Frame(i int) ([]byte, error) {
	b.mu.Lock()
	b.made++
	b.mu.Unlock()
	out := make([]byte, b.size)
	rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(out)
	return out, nil
}

func envelope(to round.Party, name string) exchange.Envelope {
	return exchange.Envelope{Protocol: "test", Version: 1, Round: 3, Name: name, From: 0, To: to}
}

func send(ctx context.Context, n *testnet.Net, s *exchange.Streams, to round.Party, name string, b round.Body) error {
	return s.Send(ctx, [2]string{}, 3, round.Message{To: to, Name: name, Body: b}, func(d round.Digest) []byte {
		e := envelope(to, name)
		e.Digest = d
		return e.Sign(n.Parties[0].Signer)
	})
}

// take receives one message of party 0 and compares it with b, and verifies its signature.
func take(ctx context.Context, n *testnet.Net, s *exchange.Streams, to round.Party, name string, b round.Body) error {
	h := round.NewHasher(name)
	for i := range b.Frames() {
		f, err := s.Receive(ctx, from(0))
		if err != nil {
			return err
		}
		want, err := b.Frame(i)
		if err != nil {
			return err
		}
		if f.Name != name || f.Round != 3 || f.Index != i || f.Count != b.Frames() || f.Broadcast != (to == round.All) || !bytes.Equal(f.Data, want) {
			return fmt.Errorf("frame %d of %s: got %d of %s, %d bytes", i, name, f.Index, f.Name, len(f.Data))
		}
		h.Frame(f.Data)
		if f.Last() {
			e := envelope(to, name)
			e.Digest = h.Sum()
			if !bytes.Equal(f.Digest, e.Digest[:]) || !e.Verify(n.Keys[0], f.Signature) {
				return errors.New("bad envelope")
			}
		}
	}
	return nil
}

// hashed provides its own digest.
type hashed struct {
	round.Body
	digest round.Digest
}

func (h hashed) Digest() round.Digest { return h.digest }

// The sender signs a digest that is already known, without hashing again; the recipient computes
// its own.
func TestAKnownDigestIsSigned(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{})
	ctx := short(t)
	a, b := open(t, n, 0), open(t, n, 1)
	content := round.Bytes([]byte("content"))
	right, err := round.DigestOf("x", content)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		digest round.Digest
		ok     bool
	}{{right, true}, {round.Hash("another"), false}} {
		done := make(chan error, 1)
		go func() { done <- send(ctx, n, a, round.All, "x", hashed{content, c.digest}) }()
		if err := take(ctx, n, b, round.All, "x", content); (err == nil) != c.ok {
			t.Errorf("right digest %v: %v", c.ok, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestMessagesArriveInOrder(t *testing.T) {
	n := testnet.New(t, 3, testnet.Options{})
	ctx := short(t)
	s := []*exchange.Streams{open(t, n, 0), open(t, n, 1), open(t, n, 2)}
	shared := &body{frames: 5, size: 1000}
	private := round.Bytes([]byte("for one"))
	empty := round.Bytes(nil)
	errs := make(chan error, 3)
	go func() {
		errs <- errors.Join(
			send(ctx, n, s[0], round.All, "a", shared),
			send(ctx, n, s[0], 2, "b", private),
			send(ctx, n, s[0], round.All, "c", empty),
			s[0].Finish(ctx))
	}()
	for p := 1; p < 3; p++ {
		go func() {
			err := take(ctx, n, s[p], round.All, "a", &body{frames: 5, size: 1000})
			if p == 2 {
				err = errors.Join(err, take(ctx, n, s[p], 2, "b", private))
			}
			errs <- errors.Join(err, take(ctx, n, s[p], round.All, "c", empty), s[p].Finish(ctx))
		}()
	}
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if shared.made != 5 {
		t.Errorf("a broadcast's frames were made %d times", shared.made)
	}
	if _, err := n.Parties[0].Exchange.Open(ref, pins); err == nil {
		t.Error("a session's name was used again")
	}
}

// A connection that breaks in the middle of messages, again and again, is
// resumed: every frame arrives once, in order, identical.
func TestResume(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{Exchange: exchange.Config{Window: 1 << 20}})
	ctx := short(t)
	n.Link(0, 1).CutAfter(700_000, 8)
	a, b := open(t, n, 0), open(t, n, 1)
	mk := func() *body { return &body{frames: 60, size: 100_000} }
	done := make(chan error, 1)
	sent := mk()
	go func() {
		done <- errors.Join(send(ctx, n, a, 1, "big", sent), send(ctx, n, a, 1, "small", round.Bytes([]byte("x"))), a.Finish(ctx))
	}()
	if err := take(ctx, n, b, 1, "big", mk()); err != nil {
		t.Fatal(err)
	}
	if err := take(ctx, n, b, 1, "small", round.Bytes([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if c := n.Link(0, 1).Cuts(); c != 0 {
		t.Errorf("%d cuts did not happen", c)
	}
	if sent.made != 60 {
		t.Errorf("frames were made %d times", sent.made)
	}
	out, _ := a.Traffic()
	_, in := b.Traffic()
	if out < 6_000_000 || in < 6_000_000 || in > 6_100_000 {
		t.Errorf("sent %d, received %d bytes", out, in)
	}
}

func TestBackpressure(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{Exchange: exchange.Config{Window: 500_000}})
	ctx := short(t)
	a, b := open(t, n, 0), open(t, n, 1)
	sent := &body{frames: 50, size: 100_000}
	done := make(chan error, 1)
	go func() { done <- send(ctx, n, a, 1, "big", sent) }()
	time.Sleep(300 * time.Millisecond) // no party receives anything
	sent.mu.Lock()
	made := sent.made
	sent.mu.Unlock()
	if made > 7 {
		t.Fatalf("%d frames were made for a window of 5", made)
	}
	if err := take(ctx, n, b, 1, "big", &body{frames: 50, size: 100_000}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestLateStart(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{Exchange: exchange.Config{StartWait: 100 * time.Millisecond}})
	ctx := short(t)
	a := open(t, n, 0)
	done := make(chan error, 1)
	go func() { done <- send(ctx, n, a, 1, "x", round.Bytes([]byte("x"))) }()
	time.Sleep(350 * time.Millisecond)
	b := open(t, n, 1)
	if err := take(ctx, n, b, 1, "x", round.Bytes([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestPinsDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		pins   exchange.Pins
		roster byte
		want   string
	}{
		"params": {exchange.Pins{ParamsHash: [32]byte{9}, SpecDigest: pins.SpecDigest}, 1, "hash of parameters"},
		"spec":   {exchange.Pins{ParamsHash: pins.ParamsHash, SpecDigest: [32]byte{9}}, 1, "spec"},
		"roster": {pins, 9, "roster"},
	} {
		t.Run(name, func(t *testing.T) {
			n := testnet.New(t, 2, testnet.Options{Roster: func(p int) [32]byte {
				if p == 1 {
					return [32]byte{c.roster}
				}
				return [32]byte{1}
			}})
			ctx := short(t)
			a := open(t, n, 0)
			b, err := n.Parties[1].Exchange.Open(ref, c.pins)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Abort(&exchange.AbortedError{}, unsigned)
			for p, s := range []*exchange.Streams{a, b} {
				_, err := s.Receive(ctx, from(round.Party(1-p)))
				var lost *exchange.LostError
				if !errors.As(err, &lost) || lost.Check != exchange.CheckPins || lost.Peer != round.Party(1-p) || !strings.Contains(lost.Reason, c.want) {
					t.Errorf("party %d: got %v", p, err)
				}
			}
		})
	}
}

func TestAbortReachesPeers(t *testing.T) {
	n := testnet.New(t, 3, testnet.Options{})
	ctx := short(t)
	s := []*exchange.Streams{open(t, n, 0), open(t, n, 1), open(t, n, 2)}
	blamed := round.Party(2)
	other := &exchange.AbortedError{Peer: 2, Outcome: "abort", Check: "x", Signature: []byte("other"), Relayed: []*exchange.AbortedError{{}}}
	s[0].Abort(&exchange.AbortedError{
		Outcome: "blame", Round: "r", Check: "c", Reason: "because\n", Blamed: &blamed, Relayed: []*exchange.AbortedError{other},
	}, func(e *exchange.AbortedError) []byte { return []byte(e.Reason) })
	for p := 1; p < 3; p++ {
		_, err := s[p].Receive(ctx, from(0))
		var gone *exchange.AbortedError
		if !errors.As(err, &gone) || gone.Peer != 0 || gone.Outcome != "blame" || gone.Reason != "because?" || gone.Blamed == nil || *gone.Blamed != 2 {
			t.Errorf("party %d: got %v", p, err)
		}
		if string(gone.Signature) != "because?" {
			t.Errorf("signature %q, of other words than were sent", gone.Signature)
		}
		if r := gone.Relayed; len(r) != 1 || r[0].Peer != 2 || r[0].Check != "x" || string(r[0].Signature) != "other" || r[0].Relayed != nil {
			t.Errorf("relayed %+v", r)
		}
		select {
		case <-s[p].Broken():
		default:
			t.Error("not broken")
		}
	}
	if _, err := s[0].Receive(ctx, from(1)); err == nil {
		t.Error("received after the end")
	}
}

func TestFinishNamesWhoIsMissing(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{})
	a := open(t, n, 0)
	open(t, n, 1)
	if err := send(short(t), n, a, 1, "x", round.Bytes([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := a.Finish(ctx); err == nil || !strings.Contains(err.Error(), "p1 has not acknowledged 1 frames") {
		t.Fatalf("got %v", err)
	}
}

// A raw stream of party 1 to party 0, for messages that a correct party never sends.
func raw(t *testing.T, n *testnet.Net, ctx context.Context, hello *exchangev1.Hello) (exchangev1.ExchangeService_ExchangeClient, *exchangev1.Welcome, error) {
	t.Helper()
	conn, err := rpc.Dial(n.Parties[0].Address, n.Parties[0].Identity, n.Parties[1].Credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	st, err := exchangev1.NewExchangeServiceClient(conn).Exchange(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Hello{Hello: hello}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := st.Recv()
	return st, m.GetWelcome(), err
}

func hello(incarnation byte) *exchangev1.Hello {
	return &exchangev1.Hello{Ref: ref.Proto(), ProtocolVersion: job.ProtocolVersion,
		ParamsHash: pins.ParamsHash[:], SpecDigest: pins.SpecDigest[:], RosterHash: append([]byte{1}, make([]byte, 31)...),
		Incarnation: bytes.Repeat([]byte{incarnation}, 16)}
}

// A peer that receives nothing ends the session of a sender with a full window, and is blamed. If
// other recipients are in the middle of the same message, it is blamed sooner.
func TestAStalledPeerIsNamed(t *testing.T) {
	for name, c := range map[string]exchange.Config{
		"alone": {Window: 1 << 20, Stall: 300 * time.Millisecond}, "before others": {Window: 1 << 20, Stall: time.Minute, Lull: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) { stalledPeerIsNamed(t, c) })
	}
}

func stalledPeerIsNamed(t *testing.T, c exchange.Config) {
	n := testnet.New(t, 3, testnet.Options{Exchange: c})
	ctx := short(t)
	a, b := open(t, n, 0), open(t, n, 1)
	open(t, n, 2) // and never receives
	go func() {
		for {
			if _, err := b.Receive(ctx, from(0)); err != nil {
				return
			}
		}
	}()
	body := round.Frames(40, func(int) ([]byte, error) { return make([]byte, 200_000), nil })
	err := a.Send(ctx, [2]string{}, 0, round.Message{To: round.All, Name: "bulk", Body: body}, func(round.Digest) []byte { return make([]byte, 64) })
	var lost *exchange.LostError
	if !errors.As(err, &lost) || lost.Peer != 2 || lost.Check != exchange.CheckStalled {
		t.Fatalf("got %v", err)
	}
	if !errors.As(a.Failed(), &lost) {
		t.Errorf("the session goes on: %v", a.Failed())
	}
}

// A stream without a hello ends after the start timeout.
func TestAStreamWithoutHelloEnds(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{Exchange: exchange.Config{StartWait: 200 * time.Millisecond}})
	conn, err := rpc.Dial(n.Parties[0].Address, n.Parties[0].Identity, n.Parties[1].Credentials)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	st, err := exchangev1.NewExchangeServiceClient(conn).Exchange(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Recv()
	if e := rpc.FromError(err); e == nil || e.Code != rpc.Unavailable || !strings.Contains(e.What, "no hello came") {
		t.Fatalf("got %v", err)
	}
	st, err = exchangev1.NewExchangeServiceClient(conn).Exchange(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: &exchangev1.Frame{}}}); err != nil {
		t.Fatal(err)
	}
	_, err = st.Recv()
	if e := rpc.FromError(err); e == nil || e.Code != rpc.Invalid || !strings.Contains(e.What, "begins with a hello") {
		t.Fatalf("got %v", err)
	}
}

// ending ends a message with a digest and a signature of the right lengths.
func ending() *exchangev1.End {
	return &exchangev1.End{Digest: make([]byte, 32), Signature: make([]byte, 64)}
}

// Empty frames count towards the window, so a peer cannot fill the memory with frames that the
// protocol does not receive.
func TestEmptyFramesFillTheWindow(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{Exchange: exchange.Config{Window: 256 << 10}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open(t, n, 0)
	st, _, err := raw(t, n, ctx, hello(7))
	if err != nil {
		t.Fatal(err)
	}
	const many = 300_000
	sent := make(chan int)
	go func() {
		for i := range many {
			f := &exchangev1.Frame{Seq: uint64(i), Start: &exchangev1.Start{Name: "x", Frames: 1}, End: ending()}
			if st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: f}}) != nil {
				sent <- i
				return
			}
		}
		sent <- many
	}()
	time.AfterFunc(3*time.Second, cancel)
	if got := <-sent; got > many/2 {
		t.Errorf("%d frames went out that nobody takes", got)
	}
}

func TestMalformedFrames(t *testing.T) {
	start := func(frames uint32) *exchangev1.Start {
		return &exchangev1.Start{Round: 0, Name: "x", Frames: frames}
	}
	end := ending()
	for name, c := range map[string]struct {
		frames []*exchangev1.Frame
		check  string
	}{
		"gap":                 {[]*exchangev1.Frame{{Seq: 1, Start: start(1), End: end}}, round.CheckShape},
		"repeated":            {[]*exchangev1.Frame{{Seq: 0, Start: start(1), End: end}, {Seq: 0, Start: start(1), End: end}}, round.CheckShape},
		"no start":            {[]*exchangev1.Frame{{Seq: 0, End: end}}, round.CheckShape},
		"start inside":        {[]*exchangev1.Frame{{Seq: 0, Start: start(2)}, {Seq: 1, Start: start(1), End: end}}, round.CheckShape},
		"ends early":          {[]*exchangev1.Frame{{Seq: 0, Start: start(2), End: end}}, round.CheckShape},
		"does not end":        {[]*exchangev1.Frame{{Seq: 0, Start: start(1)}}, round.CheckShape},
		"no frames":           {[]*exchangev1.Frame{{Seq: 0, Start: start(0), End: end}}, round.CheckShape},
		"endless":             {[]*exchangev1.Frame{{Seq: 0, Start: start(1 << 30)}}, round.CheckShape},
		"nameless":            {[]*exchangev1.Frame{{Seq: 0, Start: &exchangev1.Start{Frames: 1}, End: end}}, round.CheckShape},
		"long signature":      {[]*exchangev1.Frame{{Seq: 0, Start: start(1), End: &exchangev1.End{Digest: end.Digest, Signature: make([]byte, 1<<20)}}}, round.CheckShape},
		"short digest":        {[]*exchangev1.Frame{{Seq: 0, Start: start(1), End: &exchangev1.End{Digest: end.Digest[1:], Signature: end.Signature}}}, round.CheckShape},
		"oversized by little": {[]*exchangev1.Frame{{Seq: 0, Start: start(1), End: end, Data: make([]byte, round.MaxFrame+1)}}, round.CheckSize},
	} {
		t.Run(name, func(t *testing.T) {
			n := testnet.New(t, 2, testnet.Options{})
			ctx := short(t)
			a := open(t, n, 0)
			st, _, err := raw(t, n, ctx, hello(7))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range c.frames {
				if err := st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: f}}); err != nil {
					t.Fatal(err)
				}
			}
			for {
				if _, err = a.Receive(ctx, from(1)); err != nil {
					break
				}
			}
			var blame *round.Blame
			if !errors.As(err, &blame) || blame.Party != 1 || blame.Check != c.check {
				t.Fatalf("got %v", err)
			}
			for err = nil; err == nil; {
				_, err = st.Recv()
			}
			if e := rpc.FromError(err); e.Code != rpc.Invalid {
				t.Fatalf("the sender got %v", err)
			}
		})
	}
}

// A message far over the bound is refused before it is read.
func TestOversizedFrame(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{})
	ctx := short(t)
	open(t, n, 0)
	st, _, err := raw(t, n, ctx, hello(7))
	if err != nil {
		t.Fatal(err)
	}
	err = st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: &exchangev1.Frame{
		Start: &exchangev1.Start{Name: "x", Frames: 1}, Data: make([]byte, 8<<20)}}})
	if e := rpc.FromError(err); e == nil || e.Code != rpc.TooLarge {
		t.Fatalf("got %v", err)
	}
}

func TestRestartedPeer(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{})
	ctx := short(t)
	a := open(t, n, 0)
	if _, w, err := raw(t, n, ctx, hello(7)); err != nil || w.GetNextSeq() != 0 {
		t.Fatalf("%v, %v", w, err)
	}
	_, _, err := raw(t, n, ctx, hello(8))
	if e := rpc.FromError(err); e == nil || e.Code != rpc.SessionOver {
		t.Fatalf("the restarted peer got %v", err)
	}
	_, err = a.Receive(ctx, from(1))
	var lost *exchange.LostError
	if !errors.As(err, &lost) || lost.Check != exchange.CheckIncarnation || lost.Peer != 1 {
		t.Fatalf("got %v", err)
	}
}

// A newer stream of the same process replaces the older one and resumes from its position.
func TestNewerStreamTakesOver(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{})
	ctx := short(t)
	a := open(t, n, 0)
	old, _, err := raw(t, n, ctx, hello(7))
	if err != nil {
		t.Fatal(err)
	}
	f := func(seq uint64) *exchangev1.ExchangeRequest {
		return &exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: &exchangev1.Frame{
			Seq: seq, Start: &exchangev1.Start{Name: "x", Frames: 1}, End: ending()}}}
	}
	if err := old.Send(f(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Receive(ctx, from(1)); err != nil {
		t.Fatal(err)
	}
	next, w, err := raw(t, n, ctx, hello(7))
	if err != nil || w.GetNextSeq() != 1 {
		t.Fatalf("%v, %v", w, err)
	}
	for err == nil {
		_, err = old.Recv()
	}
	if errors.Is(err, io.EOF) {
		t.Fatal("the older stream ended well")
	}
	if err := next.Send(f(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Receive(ctx, from(1)); err != nil {
		t.Fatal(err)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{})
	ctx := short(t)
	open(t, n, 0)
	for name, id := range map[string]string{
		"unknown": "spiffe://lodge/party/mallory", "itself": n.Parties[0].Identity,
	} {
		conn, err := rpc.Dial(n.Parties[0].Address, n.Parties[0].Identity, n.Credentials(n.CA, pki.Leaf{Identity: id, Lifetime: time.Hour}))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		st, err := exchangev1.NewExchangeServiceClient(conn).Exchange(ctx)
		if err == nil {
			_, err = st.Recv()
		}
		if e := rpc.FromError(err); e == nil || e.Code != rpc.Forbidden {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// The caller also checks the server: it sends nothing to a server that is not the peer.
	other := testnet.New(t, 2, testnet.Options{Issue: func(p int) (*pki.Authority, *pki.Leaf) {
		if p == 1 {
			return n.CA, &pki.Leaf{Identity: testnet.Identity(1), Lifetime: time.Hour}
		}
		return nil, nil
	}})
	a := open(t, other, 0)
	wait, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := a.Receive(wait, from(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if tr := a.Trouble(1); !strings.Contains(tr, "certificate") {
		t.Errorf("the trouble is %q", tr)
	}
}

// The signature covers every field of an envelope.
func TestEnvelope(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{})
	good := exchange.Envelope{Protocol: "p", Version: 1, Session: [32]byte{1}, Round: 2, Name: "n", From: 0, To: 1, Digest: round.Digest{3}}
	sig := good.Sign(n.Parties[0].Signer)
	if !good.Verify(n.Keys[0], sig) || good.Verify(n.Keys[1], sig) || good.Verify(n.Keys[0], sig[1:]) {
		t.Fatal("signature")
	}
	for i, change := range []func(*exchange.Envelope){
		func(e *exchange.Envelope) { e.Protocol = "q" },
		func(e *exchange.Envelope) { e.Version = 2 },
		func(e *exchange.Envelope) { e.Session[0]++ },
		func(e *exchange.Envelope) { e.Round++ },
		func(e *exchange.Envelope) { e.Name = "m" },
		func(e *exchange.Envelope) { e.From = 2 },
		func(e *exchange.Envelope) { e.To = round.All },
		func(e *exchange.Envelope) { e.Transcript[0]++ },
		func(e *exchange.Envelope) { e.Digest[0]++ },
	} {
		e := good
		change(&e)
		if e.Verify(n.Keys[0], sig) {
			t.Errorf("change %d verifies", i)
		}
	}
}

// The signature covers every field of a farewell.
func TestFarewell(t *testing.T) {
	n := testnet.New(t, 2, testnet.Options{})
	party := func(p round.Party) *round.Party { return &p }
	good := exchange.Farewell{
		Protocol: "p", Version: 1, Session: [32]byte{1}, From: 0, Outcome: "blamed", Round: "r", Check: "c", Reason: "because", Blamed: party(1),
	}
	sig := good.Sign(n.Parties[0].Signer)
	if !good.Verify(n.Keys[0], sig) || good.Verify(n.Keys[1], sig) || good.Verify(n.Keys[0], sig[1:]) {
		t.Fatal("signature")
	}
	for i, change := range []func(*exchange.Farewell){
		func(f *exchange.Farewell) { f.Protocol = "q" },
		func(f *exchange.Farewell) { f.Version = 2 },
		func(f *exchange.Farewell) { f.Session[0]++ },
		func(f *exchange.Farewell) { f.From = 1 },
		func(f *exchange.Farewell) { f.Outcome = "aborted" },
		func(f *exchange.Farewell) { f.Round = "s" },
		func(f *exchange.Farewell) { f.Check = "d" },
		func(f *exchange.Farewell) { f.Reason = "" },
		func(f *exchange.Farewell) { f.Blamed = nil },
		func(f *exchange.Farewell) { f.Blamed = party(0) },
		func(f *exchange.Farewell) { f.Check, f.Reason = "cb", "ecause" },
	} {
		f := good
		change(&f)
		if f.Verify(n.Keys[0], sig) {
			t.Errorf("change %d verifies", i)
		}
	}
}

// Frames of 866 kB from one party to another, over TLS.
func BenchmarkExchange(b *testing.B) {
	n := testnet.New(b, 2, testnet.Options{})
	x, err := n.Parties[0].Exchange.Open(ref, pins)
	if err != nil {
		b.Fatal(err)
	}
	y, err := n.Parties[1].Exchange.Open(ref, pins)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Abort(&exchange.AbortedError{}, unsigned)
	defer y.Abort(&exchange.AbortedError{}, unsigned)
	exchange.SetPoison(false)
	defer exchange.SetPoison(true)
	data := make([]byte, 866_000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	b.ResetTimer()
	sent := make(chan error, 1)
	go func() {
		content := round.Frames(b.N, func(int) ([]byte, error) { return data, nil })
		sent <- send(b.Context(), n, x, 1, "x", hashed{content, round.Digest{}})
	}()
	for range b.N {
		if _, err := y.Receive(b.Context(), from(0)); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-sent; err != nil {
		b.Fatal(err)
	}
}

// unsigned returns no signature, for farewells whose signature is not verified.
func unsigned(*exchange.AbortedError) []byte { return nil }
