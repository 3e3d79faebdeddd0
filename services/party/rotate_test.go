package party

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/params"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// drain asks a party, as its coordinator or client.
func (x *node) drain(n *network, asClient bool, q *keygenv1.DrainEpochRequest) (*keygenv1.DrainEpochResponse, error) {
	conn := x.coordinator
	if asClient {
		conn = x.client
	}
	return keygenv1.NewKeygenServiceClient(conn).DrainEpoch(n.context(), q)
}

// epoch as a party lists it.
func (x *node) epoch(n *network, id uint64) *keygenv1.Epoch {
	n.t.Helper()
	r, err := keygenv1.NewKeygenServiceClient(x.client).ListEpochs(n.context(), &keygenv1.ListEpochsRequest{})
	if err != nil {
		n.t.Fatal(err)
	}
	for _, e := range r.GetEpochs() {
		if e.GetEpoch() == id {
			return e
		}
	}
	n.t.Fatalf("party %s has no epoch %d", x.file.Name, id)
	return nil
}

// again stops all parties, has their files changed, and starts them.
func (n *network) again(change func(i int, f *config.PartyFile)) {
	n.t.Helper()
	for i, x := range n.nodes {
		x.stop()
		change(i, x.file)
	}
	for i := range n.nodes {
		n.start(i)
	}
}

// A draining epoch generates no new tuples and delivers existing ones, also after a restart; its
// MAC keys differ from those of its successor; and revoked tuples are erased, while the epoch stays
// until it is retired.
func TestDrain(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	old := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	more := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	n.keys(2, forKeys)
	n.keys(3, jobv1.Purpose_PURPOSE_DECRYPTION)
	x := n.nodes[0]
	for name, c := range map[string]struct {
		asClient bool
		q        *keygenv1.DrainEpochRequest
		want     rpc.Code
	}{
		"no such epoch":          {false, &keygenv1.DrainEpochRequest{Epoch: 9, Successor: 2}, rpc.NotFound},
		"no successor":           {false, &keygenv1.DrainEpochRequest{Epoch: 1}, rpc.Invalid},
		"a successor not there":  {true, &keygenv1.DrainEpochRequest{Epoch: 1, Successor: 9}, rpc.Invalid},
		"itself":                 {true, &keygenv1.DrainEpochRequest{Epoch: 1, Successor: 1}, rpc.Invalid},
		"for another purpose":    {false, &keygenv1.DrainEpochRequest{Epoch: 1, Successor: 3}, rpc.Invalid},
		"revoked by coordinator": {false, &keygenv1.DrainEpochRequest{Epoch: 1, Successor: 2, Revoke: true}, rpc.Forbidden},
		"a long reason":          {true, &keygenv1.DrainEpochRequest{Epoch: 1, Reason: strings.Repeat("x", 1001)}, rpc.TooLarge},
	} {
		if _, err := x.drain(n, c.asClient, c.q); rpc.FromError(err) == nil || rpc.FromError(err).Code != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if e := x.epoch(n, 1); e.GetState() != keygenv1.EpochState_EPOCH_STATE_ACTIVE {
		t.Fatalf("refusals drained it: %v", e)
	}
	for range 2 { // and once more
		for _, x := range n.nodes {
			r, err := x.drain(n, false, &keygenv1.DrainEpochRequest{Epoch: 1, Successor: 2, Reason: "rotated"})
			if e := r.GetEpoch(); err != nil || e.GetState() != keygenv1.EpochState_EPOCH_STATE_DRAINING || e.GetSuccessor() != 2 {
				t.Fatalf("%v, %v", r, err)
			}
		}
	}
	n.again(func(int, *config.PartyFile) {})

	_, err := x.begin(n.context(), n.spec(jobv1.Kind_KIND_SCALAR, 1))
	refused(t, err, rpc.Conflict)
	if e := rpc.FromError(err); e == nil || !strings.Contains(e.Next, "epoch 2") {
		t.Errorf("it does not name its successor: %v", err)
	}
	id := n.reserve(old.GetBatchId())
	for _, x := range n.nodes {
		if b, key, err := fetch(n.context(), x.client, id, true); err != nil || len(b) == 0 || len(key) == 0 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	fresh := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 2))
	a, b := n.proposal(more.GetBatchId()), n.proposal(fresh.GetBatchId())
	if a.GetMacKeyId() == b.GetMacKeyId() {
		t.Error("two epochs share a MAC key")
	}
	both := n.proposal(more.GetBatchId())
	both.Id, both.Ranges = "both", append(both.Ranges, b.Ranges...)
	refused(t, x.propose(n, both), rpc.Invalid)

	r, err := x.drain(n, true, &keygenv1.DrainEpochRequest{Epoch: 1, Revoke: true, Reason: "revoked"})
	if err != nil || r.GetErasedBatches() != 2 || r.GetEpoch().GetState() != keygenv1.EpochState_EPOCH_STATE_DRAINING {
		t.Errorf("%v, %v", r, err)
	}
	refused(t, x.propose(n, a), rpc.Burnt)
	_, _, err = fetch(n.context(), x.client, id, false)
	refused(t, err, rpc.Burnt)
	if err := x.propose(n, b); err != nil {
		t.Error("its successor's tuples: ", err)
	}
	if _, err := keygenv1.NewKeygenServiceClient(x.client).RetireEpoch(n.context(), &keygenv1.RetireEpochRequest{Epoch: 1}); err != nil {
		t.Error(err)
	}
	_, err = x.drain(n, true, &keygenv1.DrainEpochRequest{Epoch: 1})
	refused(t, err, rpc.Burnt)
	var events []audit.Event
	x.stop()
	entries, err := audit.Tail(x.file.AuditDir, 100)
	check(t, err)
	for _, e := range entries {
		if slices.Contains(e.Objects, "epoch/1") {
			events = append(events, e.Event)
		}
	}
	if !slices.Equal(events, []audit.Event{audit.EpochDrained, audit.Revoked, audit.EpochRetired}) {
		t.Errorf("the audit log says %v", events)
	}
}

// A draining decryption key decrypts existing ciphertexts, and is no longer handed out for
// encryption.
func TestDrainDecryption(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, jobv1.Purpose_PURPOSE_DECRYPTION)
	st, _ := newStatement(t, n, n.nodes[0].app, 1)
	for _, x := range n.nodes {
		if _, err := x.drain(n, true, &keygenv1.DrainEpochRequest{Epoch: 1}); err != nil {
			t.Fatal(err)
		}
	}
	x := n.nodes[0]
	if r, err := verifyProof(n.context(), x.app, st.header, st.ciphertext, st.proof); err != nil || !r.GetAccepted() {
		t.Errorf("%v, %v", r, err)
	}
	for _, x := range n.nodes {
		if share, _, err := decrypt(n.context(), x.app, st.ask(), st.ciphertext, st.proof); err != nil || len(share) == 0 {
			t.Errorf("%d bytes, %v", len(share), err)
		}
	}
	_, _, err := prove(n.context(), x.app, st.header, make([]byte, 16))
	refused(t, err, rpc.Conflict)
	stream, err := keygenv1.NewKeygenServiceClient(x.app).GetPublicKey(n.context(), &keygenv1.GetPublicKeyRequest{Epoch: 1})
	if err == nil {
		_, err = stream.Recv()
	}
	refused(t, err, rpc.Conflict)
}

// A party that does not allow unproved keys never uses them, whatever the coordinator requests, and
// tuples generated under such keys are labelled.
func TestPassiveKeysAreNotUsed(t *testing.T) {
	const unproved = "insecure-8-64"
	n := newNetwork(t, func(_ int, f *config.PartyFile) {
		f.Policy.Params = append(f.Policy.Params, config.ParamsPin{Name: unproved, Hash: hex.EncodeToString(pinOf(t, unproved))})
	})
	s := n.spec(jobv1.Kind_KIND_KEYS, 1)
	s.Params, s.ParamsHash = unproved, pinOf(t, unproved)
	n.complete(s)
	scalar := func() *jobv1.SessionSpec {
		s := n.spec(jobv1.Kind_KIND_SCALAR, 1)
		s.Params, s.ParamsHash, s.Field = unproved, pinOf(t, unproved), "p128"
		return s
	}
	made := n.complete(scalar())
	n.keys(2, forKeys)
	proved := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 2))
	n.again(func(_ int, f *config.PartyFile) { f.AllowPassiveKeygen = false })
	x := n.nodes[0]
	_, err := x.begin(n.context(), scalar())
	refused(t, err, rpc.PassiveKeygen)
	if e := rpc.FromError(err); e == nil || !strings.Contains(e.Next, "lodge keys rotate") {
		t.Errorf("it does not say what to do: %v", err)
	}
	list, err := tuplesv1.NewTuplesServiceClient(x.client).ListBatches(n.context(), &tuplesv1.ListBatchesRequest{})
	check(t, err)
	for _, b := range list.GetBatches() {
		want := map[string]string{made.GetBatchId(): "passive", proved.GetBatchId(): params.Proved}[b.GetId()]
		if b.GetKeygenSecurity() != want {
			t.Errorf("batch %s is said to be of keys that are %q, want %q", b.GetId(), b.GetKeygenSecurity(), want)
		}
	}
	r := n.proposal(proved.GetBatchId())
	r.Ranges = append(r.Ranges, n.proposal(made.GetBatchId()).GetRanges()...)
	refused(t, x.propose(n, r), rpc.Invalid)
	if id := n.reserve(made.GetBatchId()); id == "" { // what was made while it was allowed may be used up
		t.Error("no reservation")
	}
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 2))
	_, err = x.drain(n, false, &keygenv1.DrainEpochRequest{Epoch: 2, Successor: 1})
	refused(t, err, rpc.Invalid)
}

// pinOf is the hash of a set.
func pinOf(t *testing.T, name string) []byte {
	t.Helper()
	set, err := params.Lookup(name)
	check(t, err)
	h := set.Hash()
	return h[:]
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Where only names change, of the parties that hold the shares, what there is goes to clients, and
// nothing new is made.
func TestRosterOfTheSameParties(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	n.keys(2, jobv1.Purpose_PURPOSE_DECRYPTION)
	st, _ := newStatement(t, n, n.nodes[0].app, 2)
	batch := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	rename := func(r *config.Roster) { r.Parties[2].Name = "renamed" }
	rename(n.cluster.Roster)
	n.again(func(i int, f *config.PartyFile) {
		rename(f.Roster)
		if i == 2 {
			f.Name = "renamed"
		}
	})
	x := n.nodes[0]
	if e := x.epoch(n, 1); e.GetStanding() != keygenv1.RosterStanding_ROSTER_STANDING_SAME_PARTIES {
		t.Errorf("%v", e)
	}
	_, err := x.begin(n.context(), n.spec(jobv1.Kind_KIND_SCALAR, 1))
	refused(t, err, rpc.PinMismatch)
	_, _, err = decrypt(n.context(), x.app, st.ask(), st.ciphertext, st.proof)
	refused(t, err, rpc.PinMismatch)
	id := n.reserve(batch.GetBatchId())
	for _, x := range n.nodes {
		if b, key, err := fetch(n.context(), x.client, id, true); err != nil || len(b) == 0 || len(key) == 0 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	n.keys(3, forKeys)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 3))
	// No caller can replace a usable key by an unusable one.
	for _, asClient := range []bool{false, true} {
		_, err = x.drain(n, asClient, &keygenv1.DrainEpochRequest{Epoch: 3, Successor: 1})
		refused(t, err, rpc.Invalid)
	}
	_, err = x.drain(n, false, &keygenv1.DrainEpochRequest{Epoch: 1, Successor: 3})
	check(t, err)
}

// After a change to other parties the old records stay readable and other calls are rejected with
// the next step; new keys work; and a party that returns finds its peers' records unchanged.
func TestRosterOfOtherParties(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	before := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	half := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	reserved := n.reserve(half.GetBatchId())
	all, full := n.nodes, n.cluster.Roster.Parties

	all[0].stop() // p0 leaves, so that the others' numbers change
	n.nodes = all[1:]
	n.members(full[1:])
	x := n.nodes[0]
	if e := x.epoch(n, 1); e.GetStanding() != keygenv1.RosterStanding_ROSTER_STANDING_OTHER || e.GetState() != keygenv1.EpochState_EPOCH_STATE_ACTIVE {
		t.Errorf("%v", e)
	}
	_, err := x.begin(n.context(), n.spec(jobv1.Kind_KIND_SCALAR, 1))
	refused(t, err, rpc.PinMismatch)
	if e := rpc.FromError(err); e == nil || !strings.Contains(e.Next, "lodge keys rotate") {
		t.Errorf("it does not say what to do: %v", err)
	}
	r := n.proposal(before.GetBatchId())
	refused(t, x.propose(n, r), rpc.PinMismatch)
	_, _, err = fetch(n.context(), x.client, reserved, false)
	refused(t, err, rpc.PinMismatch)
	_, err = tuplesv1.NewTuplesServiceClient(x.client).DrawMacKey(n.context(), &tuplesv1.DrawMacKeyRequest{MacKeyId: r.GetMacKeyId(), Purpose: tuplesv1.Purpose_PURPOSE_ONLINE})
	refused(t, err, rpc.PinMismatch)
	list, err := tuplesv1.NewTuplesServiceClient(x.client).ListBatches(n.context(), &tuplesv1.ListBatchesRequest{Epoch: 1})
	if err != nil || len(list.GetBatches()) != 2 || !list.GetBatches()[0].GetStranded() || len(list.GetBatches()[0].GetFree()) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	n.keys(2, forKeys)
	n.drawAll(n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 2)).GetBatchId())

	n.nodes = all // p0 comes back
	n.members(full)
	if e := x.epoch(n, 2); e.GetStanding() != keygenv1.RosterStanding_ROSTER_STANDING_OTHER {
		t.Errorf("%v", e)
	}
	n.drawAll(before.GetBatchId())
	n.keys(3, forKeys)
	n.drawAll(n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 3)).GetBatchId())

	key, public, err := pki.NewSigningKey() // p2 loses its key
	check(t, err)
	path := filepath.Join(t.TempDir(), "signing.key")
	check(t, os.WriteFile(path, key, 0o600))
	held := all[2].file.SigningKey
	all[2].file.SigningKey = path
	other := slices.Clone(full)
	other[2].SigningKey = public
	n.members(other)
	if e := x.epoch(n, 3); e.GetStanding() != keygenv1.RosterStanding_ROSTER_STANDING_OTHER {
		t.Errorf("%v", e)
	}
	retired, err := keygenv1.NewKeygenServiceClient(x.client).RetireEpoch(n.context(), &keygenv1.RetireEpochRequest{Epoch: 3})
	if err != nil || retired.GetErasedBatches() != 1 {
		t.Errorf("%v, %v", retired, err)
	}
	n.keys(4, forKeys)
	n.drawAll(n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 4)).GetBatchId())

	all[2].file.SigningKey = held // p2 finds its key, and all know each other's stores still
	n.members(full)
	if e := x.epoch(n, 4); e.GetStanding() != keygenv1.RosterStanding_ROSTER_STANDING_OTHER {
		t.Errorf("%v", e)
	}
	n.keys(5, forKeys)
	n.drawAll(n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 5)).GetBatchId())
}

// A store that is put back is quarantined by its party's own word also when the roster has changed
// since it was given.
func TestPutBackAcrossRosters(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	n.drawAll(n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId())
	all, full := n.nodes, n.cluster.Roster.Parties
	x := all[0]
	x.stop()
	old := filepath.Join(t.TempDir(), "old")
	check(t, os.CopyFS(old, os.DirFS(x.file.Vault.Dir)))
	n.start(0)
	n.drawAll(n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId())
	x.stop()
	check(t, os.RemoveAll(x.file.Vault.Dir))
	check(t, os.Rename(old, x.file.Vault.Dir))
	n.nodes = []*node{all[1], all[2], x}
	list := []config.Member{full[1], full[2], full[0]}
	list[0].Name = "renamed"
	all[1].file.Name = "renamed"
	n.members(list)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if why, err := x.party.vault.Quarantined(); err != nil || why != "" {
			check(t, err)
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it is in no quarantine: %s", x.log)
		}
	}
	for _, other := range n.nodes[:2] {
		if why, err := other.party.vault.Quarantined(); err != nil || why != "" {
			t.Errorf("%s is in quarantine: %s, %v", other.file.Name, why, err)
		}
	}
}

// members starts the nodes again as the parties of a roster, in order.
func (n *network) members(list []config.Member) {
	n.t.Helper()
	parties := slices.Clone(list)
	for i := range parties {
		parties[i].ID = i
	}
	n.cluster.Roster.Parties = parties
	n.again(func(i int, f *config.PartyFile) {
		r := *f.Roster
		r.Parties = parties
		f.Roster, f.Index = &r, i
	})
}

// drawAll reserves a batch and has every party's client fetch it.
func (n *network) drawAll(batch string) {
	n.t.Helper()
	id := n.reserve(batch)
	var shares [][]byte
	for _, x := range n.nodes {
		b, _, err := fetch(n.context(), x.client, id, false)
		if err != nil || len(b) == 0 || slices.ContainsFunc(shares, func(s []byte) bool { return bytes.Equal(s, b) }) {
			n.t.Errorf("party %s gives %d bytes, %v", x.file.Name, len(b), err)
		}
		shares = append(shares, b)
	}
}
