package accusations

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// call is a peer's stream with its messages.
type call struct {
	grpc.ServerStream
	ctx  context.Context
	sent []*accusationsv1.OfferRequest
	told *accusationsv1.OfferResponse
}

func (c *call) Context() context.Context { return c.ctx }

func (c *call) Recv() (*accusationsv1.OfferRequest, error) {
	if len(c.sent) == 0 {
		return nil, io.EOF
	}
	m := c.sent[0]
	c.sent = c.sent[1:]
	return m, nil
}

func (c *call) RecvMsg(any) error {
	_, err := c.Recv()
	return err
}

func (c *call) SendAndClose(r *accusationsv1.OfferResponse) error {
	c.told = r
	return nil
}

// peer returns the context of a party's call.
func peer(i int) context.Context {
	return rpc.WithCaller(context.Background(), rpc.Principal{Role: rpc.Peer, Party: i, Name: "p" + string(rune('0'+i))})
}

// operator returns the context of a call by an operator.
func operator() context.Context {
	return rpc.WithCaller(context.Background(), rpc.Principal{Role: rpc.Client, Name: "op"})
}

// offers offers a file as a peer, in chunks that change may modify before they are sent.
func (p *party) offers(from int, file []byte, change func(sent []*accusationsv1.OfferRequest)) error {
	sum := sha256.Sum256(file)
	c := &call{ctx: peer(from), sent: []*accusationsv1.OfferRequest{{Digest: sum[:], Size: uint64(len(file)), Chunk: file[:10]}, {Chunk: file[10:]}}}
	change(c.sent)
	return (&Service{Book: p.Book}).Offer(c)
}

func (p *party) withAudit(t *testing.T) *party {
	t.Helper()
	var err error
	p.Audit, err = audit.Open(t.TempDir(), audit.Options{Party: "p0"})
	must(t, err)
	t.Cleanup(func() { p.Audit.Close() })
	return p
}

func hasCode(t *testing.T, what string, err error, code rpc.Code) {
	t.Helper()
	if e := rpc.FromError(err); e == nil || e.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

// A peer's file must match its announcement and the limits, and is received one at a time. Files
// that prove nothing use up the peer's offers.
func TestOffer(t *testing.T) {
	as := func([]*accusationsv1.OfferRequest) {}
	for what, c := range map[string]struct {
		change func(sent []*accusationsv1.OfferRequest)
		code   rpc.Code
	}{
		"half a digest":       {func(s []*accusationsv1.OfferRequest) { s[0].Digest = s[0].Digest[:16] }, rpc.Invalid},
		"no size":             {func(s []*accusationsv1.OfferRequest) { s[0].Size = 0 }, rpc.Invalid},
		"too large":           {func(s []*accusationsv1.OfferRequest) { s[0].Size = maxFile + 1 }, rpc.TooLarge},
		"a large chunk":       {func(s []*accusationsv1.OfferRequest) { s[0].Size, s[1].Chunk = maxFile, make([]byte, chunk+1) }, rpc.TooLarge},
		"more than announced": {func(s []*accusationsv1.OfferRequest) { s[0].Size-- }, rpc.TooLarge},
		"another digest":      {func(s []*accusationsv1.OfferRequest) { s[0].Digest[0] ^= 1 }, rpc.Invalid},
		"less than announced": {func(s []*accusationsv1.OfferRequest) { s[1].Chunk = s[1].Chunk[1:] }, rpc.Invalid},
		"other bytes":         {func(s []*accusationsv1.OfferRequest) { s[1].Chunk = bytes.Repeat([]byte{7}, len(s[1].Chunk)) }, rpc.Invalid},
	} {
		p := newParty(t, strict)
		file := p.accuses(t, 1)
		hasCode(t, what, p.offers(1, file, c.change), c.code)
		if all, err := p.Vault.Accusations(); err != nil || len(all) != 0 {
			t.Errorf("%s: %d accusations, %v", what, len(all), err)
		}
		said := strings.HasPrefix(what, "half") || strings.HasPrefix(what, "no ") || what == "too large"
		if err := p.offers(1, file, as); said {
			must(t, err)
		} else {
			hasCode(t, "after "+what, err, rpc.RateLimited)
		}
		must(t, p.offers(2, file, as)) // the other peers need not wait
	}
	p := newParty(t, strict)
	file := p.accuses(t, 1)
	lie := append(bytes.Clone(file), 0)
	hasCode(t, "a file that proves nothing", p.offers(1, lie, as), rpc.Invalid)
	hasCode(t, "after a file that proves nothing", p.offers(1, file, as), rpc.RateLimited)
	p.receiving <- struct{}{}
	hasCode(t, "beside another", p.offers(2, file, as), rpc.Busy)
	<-p.receiving
	must(t, p.offers(2, file, as))
}

// A file that proves nothing convicts no party, and a file about a party outside the roster is
// rejected.
func TestWhatProvesNothing(t *testing.T) {
	p := newParty(t, strict)
	file := p.accuses(t, 1)
	file[len(file)-1] ^= 1
	var nothing *evidence.Error
	if _, _, err := p.find(file); !errors.As(err, &nothing) {
		t.Errorf("a changed file: %v", err)
	}
	p.Verify = func(context.Context, io.Reader, *config.Roster) (*evidence.Finding, error) {
		return &evidence.Finding{Culprit: evidence.Party{Index: 3}}, nil
	}
	if _, _, err := p.find([]byte("of a fourth party")); !errors.As(err, &nothing) || nothing.Problem != evidence.OtherRoster {
		t.Errorf("of a fourth party: %v", err)
	}
	if all, err := p.Vault.Accusations(); err != nil || len(all) != 0 || p.Admit(nil) != nil || len(p.cancelled) != 0 {
		t.Errorf("%d accusations, %v, sessions cancelled for %q", len(all), err, p.cancelled)
	}
}

// Under the policy, a convicted party is excluded until an operator pardons it with a reason.
func TestPardon(t *testing.T) {
	p := newParty(t, strict).withAudit(t)
	a, _, err := p.find(p.accuses(t, 1))
	must(t, err)
	lenient := p.Config
	lenient.Policy.OnProvenCheat = config.Report
	b, err := Open(lenient)
	must(t, err)
	must(t, b.Admit(nil))
	s := &Service{Book: p.Book}
	_, err = s.Pardon(operator(), &accusationsv1.PardonRequest{Id: a.ID})
	hasCode(t, "a pardon without a reason", err, rpc.Invalid)
	hasCode(t, "before the pardon", p.Admit(nil), rpc.Excluded)
	_, err = s.Pardon(operator(), &accusationsv1.PardonRequest{Id: a.ID, Reason: "another machine"})
	must(t, err)
	must(t, p.Admit(nil))
	must(t, p.Excluded(2))
}

// The configured number of failures stops generation, also after a restart, until an operator
// clears the failures that the operator has seen.
func TestStop(t *testing.T) {
	p := newParty(t, strict).withAudit(t)
	fails := func() {
		p.Ended(spec(1), round.Digest{}, &runner.Failure{Outcome: runner.Aborted, Check: "mac"})
	}
	fails()
	must(t, p.Admit(nil))
	fails()
	hasCode(t, "after two failures", p.Admit(nil), rpc.Stopped)
	b, err := Open(p.Config)
	must(t, err)
	hasCode(t, "after a restart", b.Admit(nil), rpc.Stopped)
	s := &Service{Book: p.Book}
	_, err = s.ClearFailures(operator(), &accusationsv1.ClearFailuresRequest{Reason: "seen", Last: 1})
	hasCode(t, "with a failure that was not seen", err, rpc.Conflict)
	hasCode(t, "uncleared", p.Admit(nil), rpc.Stopped)
	_, err = s.ClearFailures(operator(), &accusationsv1.ClearFailuresRequest{Reason: "seen", Last: 2})
	must(t, err)
	must(t, p.Admit(nil))
}

// Calls and streams of a convicted party are refused. Its open streams end with the next message.
// It may still offer evidence.
func TestCallsOfTheExcluded(t *testing.T) {
	p := newParty(t, strict)
	in, served := p.Inner(), errors.New("served")
	unary := func(ctx context.Context, method string) error {
		_, err := in.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) { return nil, served })
		return err
	}
	stream := func(ctx context.Context, method string, meanwhile func()) error {
		c := &call{ctx: ctx, sent: make([]*accusationsv1.OfferRequest, 2)}
		return in.Stream(nil, c, &grpc.StreamServerInfo{FullMethod: method}, func(_ any, s grpc.ServerStream) error {
			for range 2 {
				if err := s.RecvMsg(nil); err != nil {
					return err
				}
				meanwhile()
			}
			return served
		})
	}
	const other = "/lodge.exchange.v1.ExchangeService/Exchange"
	accused := false
	if err := stream(peer(2), other, func() {
		if !accused {
			_, _, err := p.find(p.accuses(t, 1))
			must(t, err)
			accused = true
		}
	}); rpc.FromError(err).Code != rpc.Excluded {
		t.Errorf("an open stream: %v", err)
	}
	hasCode(t, "a call", unary(peer(2), other), rpc.Excluded)
	begun := false
	err := in.Stream(nil, &call{ctx: peer(2)}, &grpc.StreamServerInfo{FullMethod: other}, func(any, grpc.ServerStream) error {
		begun = true
		return served
	})
	hasCode(t, "a stream", err, rpc.Excluded)
	if begun {
		t.Error("a message is processed before the stream is refused")
	}
	nothing := func() {}
	for what, err := range map[string]error{
		"a call of another party": unary(peer(1), other), "a stream of another party": stream(peer(1), other, nothing),
		"evidence": stream(peer(2), accusationsv1.AccusationsService_Offer_FullMethodName, nothing),
		"a client": unary(rpc.WithCaller(context.Background(), rpc.Principal{Role: rpc.Client, Party: 2}), other),
	} {
		if !errors.Is(err, served) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
