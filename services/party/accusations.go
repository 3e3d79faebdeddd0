package party

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/accusations"
	"github.com/lodge-mpc/lodge/services/session/evidence"
)

// openBook opens the book of accusations. It needs the connections to the peers.
func (p *party) openBook() (*accusations.Book, error) {
	f := p.file
	c := accusations.Config{
		Vault: p.vault, Audit: p.audit, Metrics: p.metrics, Log: p.log, Roster: f.Roster, Self: round.Party(f.Index), Policy: f.Accusations,
		Verify:    evidence.Verify,
		CancelAll: func(reason string) { p.sessions.CancelAll(reason) },
		DrainEpoch: func(ctx context.Context, epoch uint64, reason string) {
			p.sessions.DrainEpoch(ctx, epoch, reason)
		},
	}
	for i, m := range f.Roster.Parties {
		peer := rpc.PeerConn{Name: m.Name}
		if p.conns[i] != nil {
			peer.Conn = p.conns[i]
		}
		c.Peers = append(c.Peers, peer)
	}
	return accusations.Open(c)
}
