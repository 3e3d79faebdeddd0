package party

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// Deviation is how a party that is made for tests deviates: in its sessions, and in what it sends to a peer.
type Deviation struct {
	Sessions runner.Deviation
	// Sends is around the streams to a peer, by its index.
	Sends func(peer int) grpc.StreamClientInterceptor
	// LegacyKeys makes keys of legacy sets, as parties did before a set was legacy.
	LegacyKeys bool
}

// Deviate is Run for such a party. A configuration cannot ask for it.
func Deviate(ctx context.Context, f *config.PartyFile, version string, log *slog.Logger, d *Deviation, inner ...rpc.Inner) error {
	return run(ctx, f, version, log, d, inner)
}

// dialling is what the deviation adds to the connection to a peer.
func (d *Deviation) dialling(peer int) (list []rpc.DialOption) {
	if d == nil || d.Sends == nil {
		return nil
	}
	return []rpc.DialOption{func(o *[]grpc.DialOption) { *o = append(*o, grpc.WithChainStreamInterceptor(d.Sends(peer))) }}
}

// sessions is the part for the sessions.
func (d *Deviation) sessions() *runner.Deviation {
	if d == nil || d.Sessions.Session == nil {
		return nil
	}
	return &d.Sessions
}
