package party

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A Seam contains what tests change in a party. Run uses the zero Seam, which changes nothing, and
// no configuration sets another one.
type Seam struct {
	// Cheat changes a session of the party before its first message.
	Cheat func(s *round.Session)
	// Streams intercepts the streams to a peer, by its index.
	Streams func(peer int) grpc.StreamClientInterceptor
	// LegacyKeys lets the party make keys of legacy sets, as it did before a set was legacy.
	LegacyKeys bool
}

// RunWith is Run for a party with a test's changes.
func RunWith(ctx context.Context, f *config.PartyFile, version string, log *slog.Logger, s Seam, inner ...rpc.Inner) error {
	return run(ctx, f, version, log, s, inner)
}

// dialling returns options for the connection to a peer.
func (s Seam) dialling(peer int) (list []rpc.DialOption) {
	if s.Streams == nil {
		return nil
	}
	return []rpc.DialOption{func(o *[]grpc.DialOption) { *o = append(*o, grpc.WithChainStreamInterceptor(s.Streams(peer))) }}
}
