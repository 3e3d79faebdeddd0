package party

import (
	"testing"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// A client with the permission retire that acts for one of two tenants cannot drain, revoke or
// retire the epoch that both use, nor end it by pooling a MAC key. It still revokes its own
// tenant's batches. Once it acts for both, it retires it.
func TestRetireNeedsEveryTenant(t *testing.T) {
	const second = "second"
	n := newNetwork(t, func(_ int, f *config.PartyFile) {
		f.Policy.Tenants = append(f.Policy.Tenants, second)
	})
	n.keys(1, forKeys)
	n.keys(2, forKeys)
	ours := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	spec := n.spec(jobv1.Kind_KIND_SCALAR, 1)
	spec.Tenant = second
	theirs := n.complete(spec)
	x := n.nodes[0]
	keys, tuples := keygenv1.NewKeygenServiceClient(x.client), tuplesv1.NewTuplesServiceClient(x.client)
	own, err := x.party.vault.FindMACKey(1, "p128", devnet.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"retire": func() error {
			_, err := keys.RetireEpoch(n.context(), &keygenv1.RetireEpochRequest{Epoch: 1})
			return err
		},
		"drain": func() error {
			_, err := x.drain(n, true, &keygenv1.DrainEpochRequest{Epoch: 1})
			return err
		},
		"drain and revoke": func() error {
			_, err := x.drain(n, true, &keygenv1.DrainEpochRequest{Epoch: 1, Revoke: true})
			return err
		},
		"an epoch without tuples": func() error {
			_, err := keys.RetireEpoch(n.context(), &keygenv1.RetireEpochRequest{Epoch: 2})
			return err
		},
		"pool": func() error {
			r, err := tuples.DrawMacKey(n.context(), &tuplesv1.DrawMacKeyRequest{MacKeyId: own.ID, Purpose: tuplesv1.Purpose_PURPOSE_VERIFY})
			if len(r.GetShare()) > 0 {
				t.Error("a MAC-key share left the party")
			}
			return err
		},
	} {
		if err := try(); rpc.FromError(err) == nil || rpc.FromError(err).Code != rpc.Forbidden {
			t.Errorf("%s: %v, want %s", name, err, rpc.Forbidden)
		}
	}
	for _, epoch := range []uint64{1, 2} {
		if e, err := x.party.vault.Epoch(epoch); err != nil || e.State != vaultkeys.EpochActive {
			t.Errorf("epoch %d is %s, %v", epoch, e.State, err)
		}
	}
	for _, id := range []string{ours.GetBatchId(), theirs.GetBatchId()} {
		if b, err := x.party.vault.Batch(id); err != nil || b.State != stock.BatchAvailable {
			t.Errorf("batch %s is %s, %v", id, b.State, err)
		}
	}
	if _, err := tuples.Revoke(n.context(), &tuplesv1.RevokeRequest{BatchIds: []string{theirs.GetBatchId()}}); rpc.FromError(err) == nil || rpc.FromError(err).Code != rpc.NotFound {
		t.Errorf("revoking the other tenant's batch: %v", err)
	}
	if _, err := tuples.Revoke(n.context(), &tuplesv1.RevokeRequest{BatchIds: []string{ours.GetBatchId()}}); err != nil {
		t.Errorf("revoking its own batch: %v", err)
	}
	n.again(func(_ int, f *config.PartyFile) {
		f.Policy.Tenants = []string{devnet.Tenant} // the second tenant has left the policy, and its tuples have not
	})
	_, err = keys.RetireEpoch(n.context(), &keygenv1.RetireEpochRequest{Epoch: 1})
	refused(t, err, rpc.Forbidden)
	n.again(func(_ int, f *config.PartyFile) { f.Clients[0].Tenants = append(f.Clients[0].Tenants, second) })
	if _, err := keys.RetireEpoch(n.context(), &keygenv1.RetireEpochRequest{Epoch: 1}); err != nil {
		t.Errorf("a client of both tenants: %v", err)
	}
}
