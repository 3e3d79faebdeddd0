package evidence_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// forger makes the culprit send party 0 a second version of one message under a valid signature.
type forger struct {
	culprit int
	signer  ed25519.PrivateKey

	mu        sync.Mutex
	name      string // the name of a message of one frame; empty while the culprit is honest
	at        int    // the byte to change
	envelopes map[string]exchange.Envelope
}

// cheat returns a hook that records what the cheating party signs, to make the second version.
func (f *forger) cheat(name string, at int) func(*round.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.name, f.at, f.envelopes = name, at, map[string]exchange.Envelope{}
	return func(s *round.Session) {
		cheattest.On(s, "envelope", func(e *exchange.Envelope) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.envelopes[key(e.Round, e.Name)] = *e
		})
	}
}

func key(index uint32, name string) string { return string(round.Uint(uint64(index))) + name }

func (f *forger) sends(from, to int) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
		st, err := open(ctx, desc, cc, method, o...)
		if err != nil || from != f.culprit || to != 0 {
			return st, err
		}
		return &forged{st, f}, nil
	}
}

type forged struct {
	grpc.ClientStream
	f *forger
}

func (s *forged) SendMsg(m any) error {
	if r, ok := m.(interface{ GetFrame() *exchangev1.Frame }); ok && r.GetFrame() != nil {
		if other := s.f.other(r.GetFrame()); other != nil {
			m = &exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: other}}
		}
	}
	return s.ClientStream.SendMsg(m)
}

// other returns the second version of a frame, once.
func (f *forger) other(frame *exchangev1.Frame) *exchangev1.Frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.name == "" || frame.GetStart().GetRound() < 2 || frame.GetStart().GetName() != f.name || frame.GetEnd() == nil || f.at >= len(frame.GetData()) {
		return nil
	}
	e, ok := f.envelopes[key(frame.GetStart().GetRound(), f.name)]
	if !ok {
		return nil
	}
	other := proto.Clone(frame).(*exchangev1.Frame)
	other.Data = bytes.Clone(frame.GetData())
	other.Data[f.at] ^= 1
	h := round.NewHasher(f.name)
	h.Frame(other.Data)
	e.Digest = h.Sum()
	other.End = &exchangev1.End{Digest: e.Digest[:], Signature: e.Sign(f.signer)}
	f.name = ""
	return other
}
