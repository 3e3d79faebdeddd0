package accusations

import (
	"context"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Inner returns an interceptor that refuses the calls of excluded parties, and ends their streams
// with the next message. Excluded parties may still offer evidence, because evidence counts whoever
// sends it.
func (b *Book) Inner() rpc.Inner {
	return rpc.Inner{
		Unary: func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			//lodge:check accusations/refuse/call [run=TestCallsOfTheExcluded] calls of a convicted
			//  party are served
			if err := b.refuses(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return handle(ctx, req)
		},
		Stream: func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			//lodge:check accusations/refuse/stream [run=TestCallsOfTheExcluded] streams of a
			//  convicted party are opened
			if err := b.refuses(s.Context(), info.FullMethod); err != nil {
				return err
			}
			return handle(srv, &watched{s, b, info.FullMethod})
		},
	}
}

func (b *Book) refuses(ctx context.Context, method string) error {
	p, ok := rpc.Caller(ctx)
	//lodge:check accusations/refuse/evidence [drop=method ==
	//  accusationsv1.AccusationsService_Offer_FullMethodName] [run=TestCallsOfTheExcluded] an
	//  excluded party cannot show evidence against others
	if !ok || p.Role != rpc.Peer || method == accusationsv1.AccusationsService_Offer_FullMethodName {
		return nil
	}
	return b.Excluded(round.Party(p.Party))
}

// watched is the stream of a caller that may be excluded while the stream is open.
type watched struct {
	grpc.ServerStream
	book   *Book
	method string
}

func (w *watched) RecvMsg(m any) error {
	if err := w.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	//lodge:check accusations/refuse/open-stream [swap=w.book.refuses(w.Context(), w.method)=>nil]
	//  [run=TestCallsOfTheExcluded] streams that a convicted party opened before stay open
	return w.book.refuses(w.Context(), w.method)
}
