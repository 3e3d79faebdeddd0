package party

import (
	"bytes"
	"strings"
	"testing"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// beginAll starts a session at all parties.
func (n *network) beginAll(s *jobv1.SessionSpec) {
	n.t.Helper()
	for i, x := range n.nodes {
		if _, err := x.begin(n.context(), s); err != nil {
			n.t.Fatalf("party %d: %v", i, err)
		}
	}
}

// endAll waits for a session's result or end at all parties.
func (n *network) endAll(s *jobv1.SessionSpec) (all []*jobv1.SessionStatus) {
	n.t.Helper()
	for i, x := range n.nodes {
		st, err := x.await(n.context(), s.GetRef())
		if err != nil {
			n.t.Fatalf("party %d: %v", i, err)
		}
		all = append(all, st)
	}
	return all
}

func (x *node) cancel(t *testing.T, s *jobv1.SessionSpec) {
	t.Helper()
	if _, err := triplesv1.NewTriplesServiceClient(x.coordinator).Cancel(t.Context(), &jobv1.CancelRequest{Ref: s.GetRef(), Reason: "test"}); err != nil {
		t.Fatal(err)
	}
}

// active lists a party's active MAC keys.
func (x *node) active(t *testing.T) (ids []string) {
	t.Helper()
	for id, state := range x.macKeys(t) {
		if state == keys.MACActive {
			ids = append(ids, id)
		}
	}
	return ids
}

// Only one session at a time makes a MAC key, and parties reject the others until that key is
// active; then sessions run concurrently.
func TestOneSessionMakesTheMACKey(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	first, second := n.spec(jobv1.Kind_KIND_SCALAR, 1), n.spec(jobv1.Kind_KIND_SCALAR, 1)
	n.beginAll(first)
	for _, x := range n.nodes {
		_, err := x.begin(n.context(), second)
		refused(t, err, rpc.Busy)
	}
	all := n.endAll(first)
	for _, x := range n.nodes { // it is locked
		_, err := x.begin(n.context(), second)
		refused(t, err, rpc.Busy)
	}
	if _, err := n.nodes[0].activate(n.context(), first.GetRef(), all[0].GetDigest()); err != nil {
		t.Fatal(err)
	}
	if _, err := n.nodes[0].begin(n.context(), second); err != nil {
		t.Errorf("where the key is active: %v", err)
	}
	_, err := n.nodes[1].begin(n.context(), second)
	refused(t, err, rpc.Busy)
	n.nodes[0].cancel(t, second)
	for _, x := range n.nodes[1:] {
		if _, err := x.activate(n.context(), first.GetRef(), all[0].GetDigest()); err != nil {
			t.Fatal(err)
		}
	}
	third, fourth := n.spec(jobv1.Kind_KIND_SCALAR, 1), n.spec(jobv1.Kind_KIND_MATRIX, 1)
	n.beginAll(third)
	n.beginAll(fourth)
	for _, s := range []*jobv1.SessionSpec{third, fourth} {
		ends := n.endAll(s)
		for i, st := range ends {
			if st.GetState() != jobv1.JobState_JOB_STATE_ACTIVATING || !bytes.Equal(st.GetDigest(), ends[0].GetDigest()) {
				t.Fatalf("party %d: %v", i, st)
			}
		}
	}
	for i, x := range n.nodes {
		if ids := x.active(t); len(ids) != 1 {
			t.Errorf("party %d has the MAC keys %v", i, ids)
		}
	}
}

// A MAC key that not all parties hold is not given up while another session uses it: the session
// that would is refused.
func TestAMACKeyInUseIsNotGivenUp(t *testing.T) {
	n := newNetwork(t, nil)
	n.keys(1, forKeys)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	k, err := n.nodes[0].party.vault.FindMACKey(1, "p128", devnet.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	user := n.spec(jobv1.Kind_KIND_SCALAR, 1)
	if _, err := n.nodes[0].begin(n.context(), user); err != nil { // its peers do not start it
		t.Fatal(err)
	}
	for _, x := range n.nodes[1:] {
		if _, err := x.party.vault.BurnMACKey(k.ID, "test"); err != nil {
			t.Fatal(err)
		}
	}
	st := n.run(n.spec(jobv1.Kind_KIND_SCALAR, 1))[0]
	if f := st.GetFailure(); st.GetState() != jobv1.JobState_JOB_STATE_FAILED || f.GetOutcome() != "refused" || f.GetCheck() != string(rpc.Busy) {
		t.Errorf("%v", st)
	}
	if ids := n.nodes[0].active(t); len(ids) != 1 || ids[0] != k.ID {
		t.Errorf("the key in use was erased: %v", ids)
	}
	n.nodes[0].cancel(t, user)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	for i, x := range n.nodes {
		if ids := x.active(t); len(ids) != 1 || ids[0] == k.ID {
			t.Errorf("party %d has the MAC keys %v after %s", i, ids, k.ID)
		}
	}
}

// Two batches are in flight under a MAC key with one wrong share. Neither is stored, and the key
// and the tuples released under it stay.
func TestMACCheckFailsWithTwoInFlight(t *testing.T) {
	n := newNetwork(t, func(_ int, f *config.PartyFile) { f.Policy.MaxConcurrent = 3 })
	n.keys(1, forKeys)
	n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1))
	for i, x := range n.nodes {
		x.plant(t, 1, i == 2)
	}
	both := []*jobv1.SessionSpec{n.spec(jobv1.Kind_KIND_SCALAR, 1), n.spec(jobv1.Kind_KIND_MATRIX, 1)}
	for _, s := range both {
		n.beginAll(s)
	}
	checks := ""
	for _, s := range both {
		for i, st := range n.endAll(s) {
			if st.GetState() != jobv1.JobState_JOB_STATE_FAILED {
				t.Errorf("party %d: %v", i, st)
			}
			checks += st.GetFailure().GetCheck() + " "
		}
	}
	if !strings.Contains(checks, "mac") {
		t.Errorf("no check failed: %s", checks)
	}
	for i, x := range n.nodes {
		if k, err := x.party.vault.MACKey("mac-planted-1"); err != nil || k.State != keys.MACActive || k.Failed != 2 || len(k.Checks) > 0 {
			t.Errorf("party %d: %+v, %v", i, k, err)
		}
		all, err := x.party.vault.Batches()
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range all {
			if want := b.MACKey == "mac-planted-1"; (b.State == stock.BatchAvailable) != want {
				t.Errorf("party %d: batch %s is %s", i, b.ID, b.State)
			}
			if b.ID != "planted-1" && b.MACKey == "mac-planted-1" {
				t.Errorf("party %d: batch %s is stored", i, b.ID)
			}
		}
	}
}

// A session that is rejected for lack of memory can start later, and a session that ends releases
// all its resources before its end becomes visible.
func TestRefusedForRoomLeavesNothing(t *testing.T) {
	n := newNetwork(t, func(_ int, f *config.PartyFile) { f.Policy.MaxConcurrent = 1 })
	n.keys(1, forKeys)
	x := n.nodes[0]
	first, second := n.spec(jobv1.Kind_KIND_SCALAR, 1), n.spec(jobv1.Kind_KIND_SCALAR, 1)
	second.Field = "p256"
	if _, err := x.begin(n.context(), first); err != nil { // its peers do not start it
		t.Fatal(err)
	}
	_, err := x.begin(n.context(), second)
	refused(t, err, rpc.Busy)
	x.cancel(t, first)
	if _, err := x.begin(n.context(), second); err != nil {
		t.Fatal(err)
	}
	x.cancel(t, second)
	for range 3 { // at once after the other
		s := n.spec(jobv1.Kind_KIND_SCALAR, 1)
		n.complete(s)
	}
}
