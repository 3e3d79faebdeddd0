package tuples

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// version is that of this party's store now, signed for a peer.
func (p *Peers) version(peer int) (*tuplesv1.StoreVersion, error) {
	v, err := p.Vault.Version(peer)
	if err != nil {
		return nil, err
	}
	return p.sign(peer, v), nil
}

func (p *Peers) sign(peer int, v peers.Version) *tuplesv1.StoreVersion {
	v.Signature = ed25519.Sign(p.Signer, p.statement(p.Self, peer, v))
	return wireVersion(v)
}

// statement returns the bytes that a party signs about its store for a peer. It names both parties
// by their signing keys, and no roster, so that a statement stays a proof under the next roster.
func (p *Peers) statement(party, peer int, v peers.Version) []byte {
	//lodge:check tuples/version/party [swap=append(append([]byte("lodge store version v2\x00"),
	//  p.Keys[party]...), p.Keys[peer]...)=>append(append([]byte("lodge store version v2\x00"),
	//  p.Keys[peer]...))] [run=TestStatements] a signed version does not bind its party
	//lodge:check tuples/version/peer [swap=append(append([]byte("lodge store version v2\x00"),
	//  p.Keys[party]...), p.Keys[peer]...)=>append(append([]byte("lodge store version v2\x00"),
	//  p.Keys[party]...))] [run=TestStatements] a signed version does not bind its receiver
	b := append(append([]byte("lodge store version v2\x00"), p.Keys[party]...), p.Keys[peer]...)
	//lodge:check tuples/version/first [drop=v.First] [run=TestStatements] a signed version does not
	//  bind its first generation
	//lodge:check tuples/version/generation [drop=v.Generation] [run=TestStatements] a signed
	//  version does not bind its generation
	//lodge:check tuples/version/started [drop=uint64(v.Started.UnixNano())] [run=TestStatements] a
	//  signed version does not bind its start time
	for _, n := range []uint64{v.First, v.Generation, uint64(v.Started.UnixNano())} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	//lodge:check tuples/version/store [swap=append(b, v.ID...)=>b] [run=TestStatements] a signed
	//  version does not bind the store
	//lodge:check tuples/version/incarnation [swap=append(append(b, v.ID...),
	//  v.Incarnation...)=>append(b, v.ID...)] [run=TestStatements] a signed version does not bind
	//  the incarnation
	return append(append(b, v.ID...), v.Incarnation...)
}

func wireVersion(v peers.Version) *tuplesv1.StoreVersion {
	return &tuplesv1.StoreVersion{StoreId: v.ID, Incarnation: v.Incarnation, Started: timestamppb.New(v.Started), First: v.First,
		Generation: v.Generation, Signature: v.Signature}
}

// read checks the signature of a party under a version of its store that is for a peer.
func (p *Peers) read(party, peer int, w *tuplesv1.StoreVersion) (peers.Version, error) {
	v := peers.Version{ID: w.GetStoreId(), Incarnation: w.GetIncarnation(), Started: w.GetStarted().AsTime(), First: w.GetFirst(),
		Generation: w.GetGeneration(), Signature: w.GetSignature()}
	if party < 0 || party >= len(p.Keys) || len(v.ID) != 16 || len(v.Incarnation) != 16 || w.GetStarted().CheckValid() != nil ||
		//lodge:check tuples/version/signature [drop=!ed25519.Verify(p.Keys[party],
		//  p.statement(party, peer, v), v.Signature)] [run=TestForged] a store version need not be
		//  signed by its party
		!ed25519.Verify(p.Keys[party], p.statement(party, peer, v), v.Signature) {
		return v, rpc.Errorf(rpc.Invalid, "", "the version of the store of party %d is malformed, or not signed by it", party)
	}
	return v, nil
}

// Acknowledge implements the service.
func (s *Service) Acknowledge(ctx context.Context, r *tuplesv1.AcknowledgeRequest) (*tuplesv1.AcknowledgeResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	version, err := s.Peers.read(p.Party, s.Peers.Self, r.GetStore())
	if err != nil {
		return nil, err
	}
	seen, err := s.Vault.Acknowledge(p.Party, version)
	if errors.Is(err, vaulterr.ErrRolledBack) {
		s.Log.Error("a peer's store was put back", "peer", p.Name, "error", err)
		return &tuplesv1.AcknowledgeResponse{Reason: err.Error(), Seen: wireVersion(seen)}, nil
	}
	return &tuplesv1.AcknowledgeResponse{Accepted: err == nil}, vaulterr.RPC(err, "the version of a store")
}

// hello introduces this party's store to a peer until it is acknowledged.
func (p *Peers) hello(ctx context.Context, peer int) {
	for {
		call, cancel := context.WithTimeout(ctx, callTime)
		err := p.introduce(call, peer)
		cancel()
		if err == nil {
			return
		}
		if e := rpc.FromError(err); e.Code != rpc.Unavailable && e.Code != rpc.TimedOut {
			p.Log.Error("a peer does not acknowledge this party's store", "peer", p.List[peer].Name, "error", err)
		}
		select {
		case <-time.After(helloEvery):
		case <-ctx.Done():
			return
		}
	}
}

// introduce says to a peer which store this party has. A peer that can show that this party has
// said before that it was further puts it into quarantine.
func (p *Peers) introduce(ctx context.Context, peer int) error {
	v, err := p.Vault.Version(peer)
	if err != nil {
		return err
	}
	// The peer first hears the version at the start of this store. It hears later versions only
	// after its acknowledgement is recorded here: after an earlier crash, the peer knows nothing
	// that this store does not.
	v.Generation = v.First
	now := p.sign(peer, v)
	r, err := tuplesv1.NewTuplesServiceClient(p.List[peer].Conn).Acknowledge(ctx, &tuplesv1.AcknowledgeRequest{Store: now})
	if err != nil {
		return err
	}
	if r.GetAccepted() {
		if err := p.Vault.AcknowledgedBy(peer); err != nil { // before it hears of more
			return err
		}
		p.remembered(peer, now.GetGeneration())
		return nil
	}
	said, err := p.read(p.Self, peer, r.GetSeen())
	//lodge:check tuples/introduce/proof [run=TestALying|TestForged] a peer puts this party into
	//  quarantine without this party's own signature
	if err != nil {
		return fmt.Errorf("it says %q without a proof", r.GetReason())
	}
	behind, err := p.Vault.Succeeds(peer, said)
	if err != nil {
		return err
	}
	//lodge:check tuples/introduce/behind [run=TestALying] a peer puts this party into quarantine
	//  with a version that proves nothing
	if !behind {
		return fmt.Errorf("it says %q, which its evidence does not prove", r.GetReason())
	}
	reason := fmt.Sprintf("party %d (%s) has seen generation %d of store %x, started %s; this is generation %d of store %x: an older copy was put back",
		peer, p.List[peer].Name, said.Generation, said.ID, said.Started.Format(time.RFC3339), now.GetGeneration(), now.GetStoreId())
	p.Log.Error("quarantine: every tuple is revoked", "reason", reason)
	if err := p.Vault.Quarantine(reason, said.Generation); err != nil {
		return err
	}
	for i := range p.List {
		p.forget(i)
	}
	_, err = p.Audit.Append(audit.Entry{Event: audit.Quarantined, Actor: p.List[peer].Name, Auth: audit.Certificate, Note: reason})
	return err
}
