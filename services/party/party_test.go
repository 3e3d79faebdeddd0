package party

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/engine/params"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// Keys, scalar and matrix triples under one MAC key, delivery to one client once, and the end of
// the epoch.
func TestTriples(t *testing.T) {
	n := newNetwork(t, func(_ int, f *config.PartyFile) {
		f.Clients[1].Permissions = append(f.Clients[1].Permissions, config.PermFetch) // without mac_key
		f.Clients[1].Kinds = []string{"scalar"}
	})
	n.keys(1, forKeys)
	scalar := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	matrix := n.complete(n.spec(jobv1.Kind_KIND_MATRIX, 1))
	if scalar.GetKeygenSecurity() != "proved" || scalar.GetStatisticalSecurityBits() == 0 || scalar.GetRounds() == 0 {
		t.Errorf("status %v", scalar)
	}
	ctx := n.context()
	for _, b := range []*jobv1.SessionStatus{scalar, matrix} {
		var dirs []string
		id := n.reserve(b.GetBatchId())
		for i, x := range n.nodes {
			dir := filepath.Join(t.TempDir(), strconv.Itoa(i))
			if err := lodge.FetchDir(ctx, x.client, id, dir, lodge.Origin{Parties: 3, Party: i, KeygenSecurity: "proved", Pooled: true}); err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, dir)
		}
		r, err := verify.Dirs(ctx, dirs, verify.Options{})
		if err != nil || uint64(r.Verified) != b.GetCount() || b.GetCount() < 2 {
			t.Errorf("%d of %d tuples verified: %v", r.Verified, b.GetCount(), err)
		}
	}

	x := n.nodes[0]
	first, key, err := fetch(ctx, x.client, "r-"+scalar.GetBatchId(), true)
	if err != nil {
		t.Fatal(err)
	}
	again, other, err := fetch(ctx, x.client, "r-"+matrix.GetBatchId(), true)
	if err != nil || !bytes.Equal(key, other) || len(again) == 0 {
		t.Errorf("two batches of a tenant lie under different MAC keys (%v)", err)
	}
	again, _, err = fetch(ctx, x.client, "r-"+scalar.GetBatchId(), false)
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("the same client asked again and got other bytes (%v)", err)
	}
	_, _, err = fetch(ctx, x.app, "r-"+scalar.GetBatchId(), false)
	refused(t, err, rpc.Delivered)
	_, _, err = fetch(ctx, x.app, "r-"+matrix.GetBatchId(), false)
	refused(t, err, rpc.Forbidden)
	_, err = tuplesv1.NewTuplesServiceClient(x.app).DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{Purpose: tuplesv1.Purpose_PURPOSE_ONLINE})
	refused(t, err, rpc.Forbidden)
	_, _, err = fetch(ctx, x.client, "nothing-1", false)
	refused(t, err, rpc.NotFound)
	_, _, err = fetch(ctx, x.coordinator, "r-"+scalar.GetBatchId(), false)
	refused(t, err, rpc.Forbidden)

	retired, err := keygenv1.NewKeygenServiceClient(x.client).RetireEpoch(ctx, &keygenv1.RetireEpochRequest{Epoch: 1, Reason: "test"})
	if err != nil || retired.GetErasedBatches() != 2 || retired.GetEpoch().GetState() != keygenv1.EpochState_EPOCH_STATE_RETIRED {
		t.Errorf("retiring: %v, %v", retired, err)
	}
	_, _, err = fetch(ctx, x.client, "r-"+scalar.GetBatchId(), false)
	refused(t, err, rpc.Burnt)
	_, err = x.begin(ctx, n.spec(jobv1.Kind_KIND_SCALAR, 1))
	refused(t, err, rpc.Burnt)
}

// Without a sacrifice, which the parties' policies must allow, batches are another class, and
// manifests say so.
func TestTriplesWithoutSacrifice(t *testing.T) {
	n := newNetwork(t, func(_ int, f *config.PartyFile) { f.Policy.AllowNoSacrifice = true })
	n.keys(1, forKeys)
	ctx := n.context()
	for _, kind := range []jobv1.Kind{jobv1.Kind_KIND_SCALAR, jobv1.Kind_KIND_MATRIX, jobv1.Kind_KIND_CONVOLUTION} {
		s := n.spec(kind, 1)
		s.NoSacrifice = true
		b := n.complete(s)
		p := n.proposal(b.GetBatchId())
		if !p.GetClass().GetNoSacrifice() {
			t.Errorf("a batch without a sacrifice is %v", p.GetClass())
		}
		p.Class.NoSacrifice = false
		for _, x := range n.nodes {
			refused(t, x.propose(n, p), rpc.Invalid)
		}
		id := n.reserve(b.GetBatchId())
		var dirs []string
		for i, x := range n.nodes {
			dir := filepath.Join(t.TempDir(), strconv.Itoa(i))
			if err := lodge.FetchDir(ctx, x.client, id, dir, lodge.Origin{Parties: 3, Party: i, KeygenSecurity: "passive", Pooled: true}); err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, dir)
		}
		r, err := verify.Dirs(ctx, dirs, verify.Options{})
		if err != nil || uint64(r.Verified) != b.GetCount() || !r.NoSacrifice {
			t.Errorf("%v, %v", r, err)
		}
	}
	without := n.spec(jobv1.Kind_KIND_SCALAR, 1)
	without.NoSacrifice = true
	plain, b := n.complete(without), n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	if n.proposal(b.GetBatchId()).GetClass().GetNoSacrifice() || b.GetRounds() <= plain.GetRounds() {
		t.Errorf("%d rounds with a sacrifice and %d without", b.GetRounds(), plain.GetRounds())
	}
}

// Every refusal of a party before a session begins.
func TestRefusals(t *testing.T) {
	n := newNetwork(t, func(_ int, f *config.PartyFile) {
		f.Policy.MaxCount, f.Policy.MaxDim, f.Policy.MaxMemory = 5000, 64, 8<<20
		f.Policy.Fields = []string{"p128", "p256"}
	})
	n.keys(1, forKeys)
	n.keys(2, jobv1.Purpose_PURPOSE_DECRYPTION)
	for _, c := range []struct {
		name   string
		change func(s *jobv1.SessionSpec)
		want   rpc.Code
	}{
		{"another roster", func(s *jobv1.SessionSpec) { s.RosterHash[0]++ }, rpc.PinMismatch},
		{"another parameter hash", func(s *jobv1.SessionSpec) { s.ParamsHash[0]++ }, rpc.PinMismatch},
		{"another protocol version", func(s *jobv1.SessionSpec) { s.ProtocolVersion++ }, rpc.PinMismatch},
		{"a set that is not pinned", func(s *jobv1.SessionSpec) { s.Params = "S14-32" }, rpc.PolicyRefused},
		{"a field outside the policy", func(s *jobv1.SessionSpec) { s.Field = "p512" }, rpc.PolicyRefused},
		{"somebody else's tenant", func(s *jobv1.SessionSpec) { s.Tenant = "other" }, rpc.PolicyRefused},
		{"too many", func(s *jobv1.SessionSpec) { s.Count = 5001 }, rpc.PolicyRefused},
		{"too large", func(s *jobv1.SessionSpec) {
			s.Kind, s.Dim, s.Shape = jobv1.Kind_KIND_MATRIX, 4, &jobv1.Shape{Rows: 65, Inner: 4, Columns: 4}
		}, rpc.PolicyRefused},
		{"blocks beyond the rotation keys", func(s *jobv1.SessionSpec) {
			s.Kind, s.Dim, s.Shape = jobv1.Kind_KIND_MATRIX, 8, &jobv1.Shape{Rows: 8, Inner: 8, Columns: 8}
		}, rpc.Invalid},
		{"no sacrifice", func(s *jobv1.SessionSpec) { s.NoSacrifice = true }, rpc.PolicyRefused},
		{"input masks of no party", func(s *jobv1.SessionSpec) { s.Kind, s.InputParty = jobv1.Kind_KIND_INPUT, uint32(len(n.nodes)) }, rpc.Invalid},
		{"triples of one party", func(s *jobv1.SessionSpec) { s.InputParty = 1 }, rpc.Invalid},
		{"an epoch that does not exist", func(s *jobv1.SessionSpec) { s.Epoch = 9 }, rpc.NotFound},
		{"keys for decryption", func(s *jobv1.SessionSpec) { s.Epoch = 2 }, rpc.KeyPurpose},
		{"keys for decryption, said so", func(s *jobv1.SessionSpec) { s.Epoch, s.Purpose = 2, jobv1.Purpose_PURPOSE_DECRYPTION }, rpc.KeyPurpose},
		{"a deadline that is over", func(s *jobv1.SessionSpec) { s.Deadline = timestamppb.New(time.Now().Add(-time.Second)) }, rpc.TimedOut},
		{"no name", func(s *jobv1.SessionSpec) { s.Ref.JobId = "../x" }, rpc.Invalid},
		{"more memory than allowed", func(s *jobv1.SessionSpec) {
			s.Kind, s.Dim, s.Shape = jobv1.Kind_KIND_MATRIX, 4, &jobv1.Shape{Rows: 64, Inner: 64, Columns: 64}
		}, rpc.PolicyRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := n.spec(jobv1.Kind_KIND_SCALAR, 1)
			c.change(s)
			_, err := n.nodes[0].begin(n.context(), s)
			refused(t, err, c.want)
			_, err = triplesv1.NewTriplesServiceClient(n.nodes[0].coordinator).Estimate(n.context(), &triplesv1.EstimateRequest{Spec: s})
			refused(t, err, c.want)
		})
	}
	t.Run("a spec for another service", func(t *testing.T) {
		s := n.spec(jobv1.Kind_KIND_KEYS, 3)
		_, err := triplesv1.NewTriplesServiceClient(n.nodes[0].coordinator).Start(n.context(), &jobv1.StartRequest{Spec: s})
		refused(t, err, rpc.Invalid)
		_, err = triplesv1.NewTriplesServiceClient(n.nodes[0].coordinator).Estimate(n.context(), &triplesv1.EstimateRequest{Spec: s})
		refused(t, err, rpc.Invalid)
	})
	t.Run("an epoch that exists", func(t *testing.T) {
		_, err := n.nodes[0].begin(n.context(), n.spec(jobv1.Kind_KIND_KEYS, 1))
		refused(t, err, rpc.Conflict)
	})
	t.Run("a client starts a session", func(t *testing.T) {
		s := n.spec(jobv1.Kind_KIND_SCALAR, 1)
		_, err := triplesv1.NewTriplesServiceClient(n.nodes[0].client).Start(n.context(), &jobv1.StartRequest{Spec: s})
		refused(t, err, rpc.Forbidden)
		_, err = triplesv1.NewTriplesServiceClient(n.nodes[0].client).Estimate(n.context(), &triplesv1.EstimateRequest{Spec: s})
		refused(t, err, rpc.Forbidden)
	})
	t.Run("another spec under the same name", func(t *testing.T) {
		s := n.spec(jobv1.Kind_KIND_SCALAR, 1)
		n.complete(s)
		if st, err := n.nodes[0].begin(n.context(), s); err != nil || st.GetState() != completed {
			t.Errorf("the same spec again: %v, %v", st, err)
		}
		other := proto.Clone(s).(*jobv1.SessionSpec)
		other.Count++
		_, err := n.nodes[0].begin(n.context(), other)
		refused(t, err, rpc.Conflict)
	})
	t.Run("a digest that is not the party's", func(t *testing.T) {
		s := n.spec(jobv1.Kind_KIND_SCALAR, 1)
		all := n.run(s)
		_, err := n.nodes[0].activate(n.context(), s.GetRef(), make([]byte, 32))
		refused(t, err, rpc.Conflict)
		reserved := n.proposal(all[0].GetBatchId())
		refused(t, n.nodes[0].propose(n, reserved), rpc.Conflict) // locked
		_, err = triplesv1.NewTriplesServiceClient(n.nodes[0].coordinator).Cancel(n.context(), &jobv1.CancelRequest{Ref: s.GetRef(), Reason: "test"})
		if err != nil {
			t.Fatal(err)
		}
		refused(t, n.nodes[0].propose(n, reserved), rpc.Burnt)
		_, err = n.nodes[0].activate(n.context(), s.GetRef(), all[0].GetDigest())
		refused(t, err, rpc.Burnt)
	})
}

func TestPassiveKeygenIsRefused(t *testing.T) {
	unproved, err := params.Lookup("insecure-8-64")
	if err != nil {
		t.Fatal(err)
	}
	hash := unproved.Hash()
	n := newNetwork(t, func(_ int, f *config.PartyFile) {
		f.AllowPassiveKeygen = false
		f.Policy.Params = append(f.Policy.Params, config.ParamsPin{Name: unproved.Name, Hash: hex.EncodeToString(hash[:])})
	})
	s := n.spec(jobv1.Kind_KIND_KEYS, 1)
	s.Params, s.ParamsHash = unproved.Name, hash[:]
	_, err = n.nodes[0].begin(n.context(), s)
	refused(t, err, rpc.PassiveKeygen)
	n.keys(1, forKeys) // whose set has room for proofs
}

func TestPartyDoesNotStart(t *testing.T) {
	n := newNetwork(t, nil)
	for name, change := range map[string]func(f *config.PartyFile){
		"insecure set": func(f *config.PartyFile) { f.AllowInsecureParams = false },
		"other hash": func(f *config.PartyFile) {
			f.Policy.Params = []config.ParamsPin{{Name: set, Hash: f.Policy.Params[0].Hash[2:] + "00"}}
		},
		"unknown set": func(f *config.PartyFile) {
			f.Policy.Params = []config.ParamsPin{{Name: "S99", Hash: f.Policy.Params[0].Hash}}
		},
		"vault in use": func(*config.PartyFile) {},
	} {
		f := *n.nodes[0].file
		change(&f)
		if p, err := newParty(&f, "test", n.nodes[0].party.log); err == nil {
			p.close()
			t.Errorf("%s: the party starts", name)
		}
	}
}

// Results that were stored and not activated survive a restart, also when two were in flight; a
// session that was not finished does not.
func TestRestart(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)) // makes the MAC key
	both := []*jobv1.SessionSpec{n.spec(jobv1.Kind_KIND_SCALAR, 1), n.spec(jobv1.Kind_KIND_MATRIX, 1)}
	var all [][]*jobv1.SessionStatus
	for _, s := range both {
		n.beginAll(s)
	}
	for _, s := range both {
		all = append(all, n.endAll(s))
	}
	unfinished := n.spec(jobv1.Kind_KIND_SCALAR, 1)
	if _, err := n.nodes[0].begin(n.context(), unfinished); err != nil { // its peers do not start it
		t.Fatal(err)
	}
	for i, x := range n.nodes {
		x.stop()
		n.start(i)
	}
	for i, x := range n.nodes {
		for k, s := range both {
			st, err := x.await(n.context(), s.GetRef())
			if err != nil || !bytes.Equal(st.GetDigest(), all[k][0].GetDigest()) || st.GetState() != jobv1.JobState_JOB_STATE_ACTIVATING {
				t.Fatalf("party %d after the restart: %v, %v", i, st, err)
			}
			for range 2 { // again
				if _, err := x.activate(n.context(), s.GetRef(), st.GetDigest()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	_, err := n.nodes[0].await(n.context(), unfinished.GetRef())
	refused(t, err, rpc.NotFound)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
}

func TestCancelOfARunningSession(t *testing.T) {
	n := newNetwork(t, nil)
	s := n.spec(jobv1.Kind_KIND_KEYS, 1)
	x := n.nodes[1]
	if _, err := x.begin(n.context(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := keygenv1.NewKeygenServiceClient(x.coordinator).Cancel(n.context(), &jobv1.CancelRequest{Ref: s.GetRef(), Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	st, err := x.await(n.context(), s.GetRef())
	if err != nil || st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED {
		t.Fatalf("%v, %v", st, err)
	}
}

// macKeys returns the states of a party's MAC keys by id.
func (x *node) macKeys(t *testing.T) map[string]keys.MACState {
	t.Helper()
	all, err := x.party.vault.MACKeys()
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]keys.MACState{}
	for _, k := range all {
		states[k.ID] = k.State
	}
	return states
}

// A MAC key that not all parties hold is retired for a new one.
func TestMACKeyThatAPartyLost(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	lost := n.reserve(n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId())
	old, err := n.nodes[1].party.vault.FindMACKey(1, "p128", devnet.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.nodes[1].party.vault.BurnMACKey(old.ID, "test"); err != nil {
		t.Fatal(err)
	}
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	var id string
	for i, x := range n.nodes {
		state := keys.MACRetired
		if i == 1 {
			state = keys.MACBurnt
		}
		k, err := x.party.vault.FindMACKey(1, "p128", devnet.Tenant)
		if err != nil || k.ID == old.ID || id != "" && k.ID != id || x.macKeys(t)[old.ID] != state {
			t.Errorf("party %d uses MAC key %q after %q (%v)", i, k.ID, old.ID, err)
		}
		id = k.ID
		if _, _, err = fetch(n.context(), x.client, lost, false); i == 1 {
			refused(t, err, rpc.Burnt)
		} else if err != nil {
			t.Errorf("party %d does not deliver tuples released under the old key: %v", i, err)
		}
	}
}

// A failed MAC check drops only the batch. Three failures in a row retire the MAC key, because a
// share may be wrong: the next job makes a new key, and tuples released under the old key are still
// delivered.
func TestMACCheckFails(t *testing.T) {
	n := newNetwork(t, func(_ int, f *config.PartyFile) { f.Accusations.MaxUnnamedFailures = 10 })
	n.keys(1, forKeys)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	for i, x := range n.nodes {
		x.plant(t, 1, i == 2)
	}
	reserved := n.reserve("planted-1")
	for failed := 1; failed <= keys.MaxFailedInARow; failed++ {
		for i, st := range n.run(n.spec(jobv1.Kind_KIND_SCALAR, 1)) {
			if st.GetState() != jobv1.JobState_JOB_STATE_FAILED || st.GetFailure().GetCheck() != "mac" {
				t.Fatalf("party %d: %v", i, st)
			}
		}
		want := keys.MACActive
		if failed == keys.MaxFailedInARow {
			want = keys.MACRetired
		}
		for i, x := range n.nodes {
			if k, err := x.party.vault.MACKey("mac-planted-1"); err != nil || k.State != want || k.Failed != failed {
				t.Errorf("party %d after %d failures: %+v, %v", i, failed, k, err)
			}
		}
	}
	for _, x := range n.nodes {
		if _, _, err := fetch(n.context(), x.client, reserved, false); err != nil {
			t.Error(err)
		}
		events := map[audit.Event]int{}
		list, err := x.party.audit.Entries(1, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			events[e.Event]++
		}
		if events[audit.MACCheckFailed] != keys.MaxFailedInARow || events[audit.MACKeyRetired] != 1 {
			t.Errorf("the audit log has %v", events)
		}
	}
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
}

// plant copies the active MAC key under another name, perhaps with a share that is wrong, and burns
// the old one.
func (x *node) plant(t *testing.T, number int, wrong bool) {
	t.Helper()
	v := x.party.vault
	batch, key := fmt.Sprintf("planted-%d", number), fmt.Sprintf("mac-planted-%d", number)
	k, err := v.FindMACKey(1, "p128", devnet.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	in, err := v.OpenMACKey(k.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var secret bytes.Buffer
	if _, err := secret.ReadFrom(in); err != nil {
		t.Fatal(err)
	}
	if wrong {
		secret.Bytes()[0] ^= 1
	}
	w, err := v.NewBatch(stock.Batch{ID: batch, Epoch: 1, MACKey: key, Params: set, Field: "p128", Kind: "scalar",
		Tenant: devnet.Tenant, Count: 1, TupleBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	k2 := k
	k2.ID = key
	if err := w.Commit(&keys.NewMACKey{MACKey: k2, Secret: secret.Bytes()}); err != nil {
		t.Fatal(err)
	}
	if err := v.ActivateBatch(batch); err != nil {
		t.Fatal(err)
	}
	if _, err := v.BurnMACKey(k.ID, "test"); err != nil {
		t.Fatal(err)
	}
}

// The joint proof of plaintext knowledge as a separate session.
func TestJointProof(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	all := n.run(n.spec(jobv1.Kind_KIND_PROOF, 1))
	for i, st := range all {
		if st.GetState() != completed || !bytes.Equal(st.GetDigest(), all[0].GetDigest()) {
			t.Errorf("party %d: %v", i, st)
		}
	}
	_, err := popkv1.NewPopkServiceClient(n.nodes[0].client).Cancel(n.context(), &jobv1.CancelRequest{Ref: all[0].GetRef()})
	refused(t, err, rpc.Forbidden)
}

func TestStatus(t *testing.T) {
	n := newNetwork(t, func(i int, f *config.PartyFile) { f.Reflection = i == 1 })
	for i, x := range n.nodes {
		s, err := statusv1.NewStatusServiceClient(x.client).GetStatus(n.context(), &statusv1.GetStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		hash := n.cluster.Roster.Hash()
		if s.GetName() != x.file.Name || s.Party == nil || int(s.GetParty()) != i || !bytes.Equal(s.GetRosterHash(), hash[:]) || !s.GetReady() ||
			len(s.GetParams()) != 1 || s.GetParams()[0].GetName() != set || s.GetRssBytes() == 0 {
			t.Errorf("status %v", s)
		}
		want := codes.PermissionDenied
		if i == 1 {
			want = codes.OK
		}
		ctx, cancel := context.WithCancel(n.context())
		stream, err := grpc_reflection_v1.NewServerReflectionClient(x.client).ServerReflectionInfo(ctx)
		if err == nil {
			_ = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{ // Recv says why, when it is refused
				MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
			})
			_, err = stream.Recv()
		}
		cancel()
		if got := status.Code(err); got != want && (want == codes.OK || got != codes.Unimplemented) {
			t.Errorf("party %d: reflection gives %v", i, err)
		}
	}
}

// A client neither sees nor draws batches of a tenant that is not its own, whatever its
// permissions.
func TestTenants(t *testing.T) {
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		f.Policy.Tenants = append(f.Policy.Tenants, "rival")
		if i == 0 {
			f.Clients[0].Tenants = []string{"rival"}
		}
	})
	n.keys(1, forKeys)
	ours := n.spec(jobv1.Kind_KIND_SCALAR, 1)
	batch := n.complete(ours).GetBatchId()
	x := n.nodes[0]
	list, err := tuplesv1.NewTuplesServiceClient(x.client).ListBatches(n.context(), &tuplesv1.ListBatchesRequest{})
	if err != nil || len(list.GetBatches()) != 0 {
		t.Errorf("another tenant's batches are listed: %v, %v", list, err)
	}
	id := n.reserve(batch)
	_, _, err = fetch(n.context(), x.client, id, true)
	refused(t, err, rpc.NotFound)
	if _, _, err = fetch(n.context(), n.nodes[1].client, id, true); err != nil {
		t.Errorf("the tenant's own client: %v", err)
	}
	theirs := n.spec(jobv1.Kind_KIND_SCALAR, 1)
	theirs.Tenant = "rival"
	if _, _, err = fetch(n.context(), x.client, n.reserve(n.complete(theirs).GetBatchId()), true); err != nil {
		t.Errorf("the other tenant's own client: %v", err)
	}
}

// Fetching a MAC-key share for pooling ends the sessions under its epoch before the share is sent,
// and no share is sent twice.
func TestPoolingEndsSessions(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	x := n.nodes[0]
	k, err := x.party.vault.FindMACKey(1, "p128", devnet.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	running := n.spec(jobv1.Kind_KIND_SCALAR, 1)
	if _, err := x.begin(n.context(), running); err != nil { // its peers do not start it
		t.Fatal(err)
	}
	tuples := tuplesv1.NewTuplesServiceClient(x.client)
	pool := &tuplesv1.DrawMacKeyRequest{MacKeyId: k.ID, Purpose: tuplesv1.Purpose_PURPOSE_VERIFY}
	if r, err := tuples.DrawMacKey(n.context(), pool); err != nil || len(r.GetShare()) == 0 {
		t.Fatalf("%v, %v", r, err)
	}
	st, err := x.await(n.context(), running.GetRef())
	if err != nil || st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED || !strings.Contains(st.GetFailure().GetReason(), "retired") {
		t.Errorf("the running session: %v, %v", st, err)
	}
	_, err = tuples.DrawMacKey(n.context(), pool)
	refused(t, err, rpc.Burnt)
	if e, err := x.party.vault.Epoch(1); err != nil || e.State != keys.EpochRetired {
		t.Errorf("epoch 1 is %s, %v", e.State, err)
	}
}

// Retiring an epoch cancels its sessions, and none of their results can be activated afterwards.
func TestRetiringEndsSessions(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)) // makes the MAC key, after which sessions may run concurrently
	stored := n.spec(jobv1.Kind_KIND_SCALAR, 1)
	all := n.run(stored)
	running := n.spec(jobv1.Kind_KIND_SCALAR, 1)
	x := n.nodes[0]
	if _, err := x.begin(n.context(), running); err != nil { // its peers do not start it
		t.Fatal(err)
	}
	for st := (*jobv1.SessionStatus)(nil); st.GetState() != jobv1.JobState_JOB_STATE_GENERATING; time.Sleep(time.Millisecond) {
		r, err := triplesv1.NewTriplesServiceClient(x.coordinator).GetStatus(n.context(), &jobv1.GetStatusRequest{Ref: running.GetRef()})
		if st = r.GetStatus(); err != nil || job.Final(st.GetState()) { // it has keys and waits
			t.Fatalf("%v, %v", st, err)
		}
	}
	if _, err := keygenv1.NewKeygenServiceClient(x.client).RetireEpoch(n.context(), &keygenv1.RetireEpochRequest{Epoch: 1, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	st, err := x.await(n.context(), running.GetRef())
	if err != nil || st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED || !strings.Contains(st.GetFailure().GetReason(), "retired") {
		t.Errorf("the running session: %v, %v", st, err)
	}
	if _, err := x.activate(n.context(), stored.GetRef(), all[0].GetDigest()); err == nil {
		t.Error("a batch of a retired epoch was activated")
	}
	if st, err := x.await(n.context(), stored.GetRef()); err != nil || !job.Final(st.GetState()) {
		t.Errorf("the stored session: %v, %v", st, err)
	}
	long := strings.Repeat("x", 1001)
	_, err = keygenv1.NewKeygenServiceClient(n.nodes[1].client).RetireEpoch(n.context(), &keygenv1.RetireEpochRequest{Epoch: 1, Reason: long})
	refused(t, err, rpc.TooLarge)
}
