package tuples

import (
	"context"
	"errors"
	"fmt"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// maxReason bounds a client's reason for the log, in bytes.
const maxReason = 1000

// macKey returns a MAC key of one of the caller's tenants. Other MAC keys are not found.
func (s *Service) macKey(p rpc.Principal, id string) (keys.MACKey, error) {
	k, err := s.Vault.MACKey(id)
	//lodge:check tuples/mac-key/tenant [run=TestDrawMacKey|TestReport] a client sees the MAC keys
	//  of other tenants
	if err == nil && !sees(p, k.Tenant) {
		err = vaulterr.ErrNotFound
	}
	if errors.Is(err, vaulterr.ErrNotFound) {
		return k, rpc.Errorf(rpc.NotFound, "`lodge mac-keys list` names those of the tenants that this client serves", "no MAC key %q at this party", id)
	}
	return k, err
}

// DrawMacKey implements the service.
func (s *Service) DrawMacKey(ctx context.Context, r *tuplesv1.DrawMacKeyRequest) (*tuplesv1.DrawMacKeyResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	k, err := s.macKey(p, r.GetMacKeyId())
	if err != nil {
		return nil, err
	}
	switch r.GetPurpose() {
	case tuplesv1.Purpose_PURPOSE_ONLINE:
	case tuplesv1.Purpose_PURPOSE_VERIFY:
		//lodge:check tuples/mac-key/pooled [run=TestDrawMacKey] a client without permission to
		//  retire epochs pools MAC-key shares
		if !p.May(config.PermRetire) {
			return nil, rpc.Errorf(rpc.Forbidden, "add the permission to this client in the party's configuration",
				"client %s lacks the permission %q: pooled key shares end their epoch", p.Name, config.PermRetire)
		}
		//lodge:check tuples/pool-tenants run=TestPoolNeedsEveryTenant one tenant's client erases an epoch by pooling its own MAC key
		if err := s.MayRetire(ctx, k.Epoch); err != nil {
			return nil, err
		}
	default:
		return nil, rpc.Errorf(rpc.Invalid, "say PURPOSE_ONLINE or PURPOSE_VERIFY", "no purpose")
	}
	//lodge:check tuples/mac-key/announced [swap=s.Peers.Announced(ctx)=>error(nil)]
	//  [run=TestNoShare|TestDrawMacKey] a share of a MAC key leaves before peers know the
	//  generation of this store
	if err := s.Peers.Announced(ctx); err != nil { // or an old copy would not know that the key was burnt
		return nil, err
	}
	//lodge:check tuples/pooled-once run=TestDrawMacKeyOnce two calls at the same time both get the share that is given once
	if r.GetPurpose() == tuplesv1.Purpose_PURPOSE_VERIFY {
		leave, err := s.pool(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	share, err := s.MACKeyShare(k)
	if err != nil {
		return nil, vaulterr.RPC(err, "MAC key "+k.ID)
	}
	e := entry(audit.MACKeyDrawn, p, k.Tenant, "mac_key/"+k.ID)
	if r.GetPurpose() == tuplesv1.Purpose_PURPOSE_VERIFY {
		e.Note = "to be pooled"
	}
	if _, err := s.Audit.Append(e); err != nil {
		clear(share)
		return nil, err
	}
	out := &tuplesv1.DrawMacKeyResponse{Key: wireMACKey(&k), Params: k.Params, Share: share}
	if r.GetPurpose() == tuplesv1.Purpose_PURPOSE_VERIFY {
		//lodge:check tuples/mac-key/retired [as=var err error] [run=TestDrawMacKey] an epoch stays
		//  in use after its MAC-key shares were pooled
		_, err := s.Retire(ctx, k.Epoch, "its MAC-key shares are pooled to verify")
		if err == nil {
			err = s.Peers.Announced(ctx)
		}
		if err != nil {
			clear(share)
			return nil, err
		}
	}
	return out, nil
}

// pool lets one call at a time take a share that is to be pooled: its key must be retired before
// the next call looks at it.
func (s *Service) pool(ctx context.Context) (leave func(), err error) {
	select {
	case s.pooling <- struct{}{}:
		return func() { <-s.pooling }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ReportFailedCheck implements the service.
func (s *Service) ReportFailedCheck(ctx context.Context, r *tuplesv1.ReportFailedCheckRequest) (*tuplesv1.ReportFailedCheckResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	if len(r.GetReason()) > maxReason {
		return nil, rpc.Errorf(rpc.TooLarge, "", "a reason has at most %d bytes", maxReason)
	}
	k, err := s.macKey(p, r.GetMacKeyId())
	if err != nil {
		return nil, err
	}
	n, err := s.Vault.BurnMACKey(k.ID, fmt.Sprintf("client %s reports a failed online check: %s", p.Name, r.GetReason()))
	if err != nil {
		return nil, vaulterr.RPC(err, "MAC key "+k.ID)
	}
	s.Metrics.Count(metrics.MACCheckFailures, 1, "online")
	s.Log.Warn("a client reports a failed online check: MAC key burnt", "mac_key", k.ID, "client", p.Name, "batches", n)
	e := entry(audit.MACKeyBurnt, p, k.Tenant, "mac_key/"+k.ID)
	if e.Note = r.GetReason(); e.Note == "" {
		e.Note = "a failed online check"
	}
	if _, err := s.Audit.Append(e); err != nil {
		return nil, err
	}
	if err := s.Peers.Announced(ctx); err != nil {
		return nil, err
	}
	if k, err = s.Vault.MACKey(k.ID); err != nil {
		return nil, err
	}
	return &tuplesv1.ReportFailedCheckResponse{Key: wireMACKey(&k), Batches: uint32(n)}, nil
}

// Revoke implements the service.
func (s *Service) Revoke(ctx context.Context, r *tuplesv1.RevokeRequest) (*tuplesv1.RevokeResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	const most = 1000
	switch {
	case (len(r.GetBatchIds()) > 0) == (r.GetMacKeyId() != ""):
		return nil, rpc.Errorf(rpc.Invalid, "name batches, or a MAC key", "neither or both of batch_ids and mac_key_id are given")
	case len(r.GetBatchIds()) > most || len(r.GetReason()) > maxReason:
		return nil, rpc.Errorf(rpc.TooLarge, "", "at most %d batches, and a reason of %d bytes", most, maxReason)
	}
	asked := map[string]bool{}
	for _, id := range r.GetBatchIds() {
		asked[id] = true
	}
	if r.GetMacKeyId() != "" {
		if _, err := s.macKey(p, r.GetMacKeyId()); err != nil {
			return nil, err
		}
	}
	all, err := s.Vault.Batches()
	if err != nil {
		return nil, err
	}
	out, found := &tuplesv1.RevokeResponse{}, map[string]bool{}
	for _, b := range all {
		if !sees(p, b.Tenant) || !asked[b.ID] && (r.GetMacKeyId() == "" || b.MACKey != r.GetMacKeyId()) {
			continue
		}
		found[b.ID] = true
		delete(asked, b.ID)
		if b.State != stock.BatchRevoked && b.State != stock.BatchConsumed {
			out.Batches++
			out.Tuples += b.Count - b.Gone.Count()
		}
	}
	if len(asked) > 0 {
		return nil, rpc.Errorf(rpc.NotFound, "`lodge batches list` names those that there are", "no batch %q at this party", ids(asked)[0])
	}
	if r.GetDryRun() {
		return out, nil
	}
	if err := s.revoke(r, p, ids(found)); err != nil {
		return nil, err
	}
	return out, s.Peers.Announced(ctx)
}

func (s *Service) revoke(r *tuplesv1.RevokeRequest, p rpc.Principal, batches []string) error {
	reason := fmt.Sprintf("revoked by %s: %s", p.Name, r.GetReason())
	if r.GetMacKeyId() != "" {
		if _, err := s.Vault.BurnMACKey(r.GetMacKeyId(), reason); err != nil {
			return vaulterr.RPC(err, "MAC key "+r.GetMacKeyId())
		}
		_, err := s.Audit.Append(entry(audit.MACKeyBurnt, p, "", "mac_key/"+r.GetMacKeyId()))
		return err
	}
	for _, id := range batches {
		if err := s.Vault.RevokeBatch(id, reason); err != nil {
			return vaulterr.RPC(err, "batch "+id)
		}
		if _, err := s.Audit.Append(entry(audit.Revoked, p, "", "batch/"+id)); err != nil {
			return err
		}
	}
	return nil
}
