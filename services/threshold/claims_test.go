package threshold

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A ciphertext belongs to one request at a time.
func TestClaims(t *testing.T) {
	c := &claims{}
	a, b := [32]byte{1}, [32]byte{2}
	done, err := c.claim([][32]byte{a})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.claim([][32]byte{b, a}); rpc.FromError(err) == nil || rpc.FromError(err).Code != rpc.Busy {
		t.Errorf("%v", err)
	}
	other, err := c.claim([][32]byte{b}) // the rejected claim took no ciphertext
	if err != nil {
		t.Fatal(err)
	}
	done()
	if done, err = c.claim([][32]byte{a}); err != nil {
		t.Error(err)
	}
	done()
	other()
	if len(c.open) != 0 {
		t.Errorf("%v remain claimed", c.open)
	}
}

// The state that a request has looked up must be unchanged when it begins: it neither uses state
// that another request is about to change, nor begins ciphertexts again that were recorded since.
func TestFloodsMeanwhile(t *testing.T) {
	v := openVault(t)
	holdFloods(t, v)
	s := &Service{Config: Config{Vault: v}}
	other := ledger.FloodRun{Epoch: 1, Quorum: []uint32{0, 1}, Client: "app", Run: ledger.RunID{1}, Digests: [][32]byte{{7}}}
	q := &request{epoch: keys.Epoch{ID: 1}}
	looked := func() *flood {
		f := &flood{Service: s, request: q, fresh: []int{0}, run: other}
		if err := f.lookUp(); err != nil {
			t.Fatal(err)
		}
		return f
	}
	busy := func(err error) {
		t.Helper()
		if err == nil || rpc.FromError(err).Code != rpc.Busy {
			t.Errorf("%v, want %s", err, rpc.Busy)
		}
	}
	early := looked()
	if err := v.BeginFloods(other); err != nil {
		t.Fatal(err)
	}
	begun := looked()
	done, err := s.floods.claim(other.Digests)
	if err != nil {
		t.Fatal(err)
	}
	busy((&flood{Service: s, request: q, run: other}).lookUp())
	if err := v.RecordFloods(other, [][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	done() // without releasing answers that other parties may have released
	for _, f := range []*flood{early, begun} {
		busy(f.claim())
		f.wipe()
	}
	f := looked()
	if err := f.claim(); err != nil {
		t.Error(err)
	}
	f.wipe()
}

// The number of approvals that a request needs is the number when it was first made, even if the
// rule was relaxed since: recording compares with that number.
func TestApprovalsOfAnEasierRule(t *testing.T) {
	v := openVault(t)
	holdFloods(t, v)
	s := &Service{Config: Config{Vault: v}}
	q := &request{
		header: &thresholdv1.DecryptHeader{Count: 1}, epoch: keys.Epoch{ID: 1}, caller: rpc.Principal{Name: "app"},
		batch: &lweCiphertexts{}, rule: config.DecryptRule{Approvals: 2},
	}
	waits := func() {
		t.Helper()
		if err := rpc.FromError(s.approved(q)); err == nil || err.Code != rpc.ApprovalNeeded || !strings.Contains(err.What, "2 other clients") {
			t.Errorf("%v", err)
		}
	}
	waits()
	q.rule.Approvals = 1
	for _, client := range []string{"one", "two"} {
		waits()
		if _, err := v.Approve(q.asked.Request("app", ""), client); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.approved(q); err != nil {
		t.Error(err)
	}
	q.rule.Approvals = 3
	if err := rpc.FromError(s.approved(q)); err == nil || err.Code != rpc.ApprovalNeeded {
		t.Errorf("a stricter rule: %v", err)
	}
}

func openVault(t *testing.T) *vault.Vault {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := seal.WriteNewKey(path); err != nil {
		t.Fatal(err)
	}
	key, err := seal.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"), key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// holdFloods stores a share of an epoch with flooding at a party.
func holdFloods(t *testing.T, v *vault.Vault) {
	t.Helper()
	members := [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	w, err := v.NewEpoch(keys.Epoch{
		ID: 1, Params: "x", Purpose: keys.PurposeThreshold, RosterHash: [32]byte{1}, Threshold: 1, Members: members, Limit: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []io.Writer{w.Secret, w.Public} {
		if _, err := to.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Commit(), v.ActivateEpoch(1)); err != nil {
		t.Fatal(err)
	}
}

// Errors of the ledger are reported with the next step.
func TestRefusedFloods(t *testing.T) {
	q := &request{epoch: keys.Epoch{ID: 7, Limit: 9}}
	for _, c := range []struct {
		err  error
		code rpc.Code
		says string
	}{
		{vaulterr.ErrSpent, rpc.Burnt, "as many ciphertexts with flooding as they may"},
		{vaulterr.ErrDelivered, rpc.Delivered, "another client"},
		{&ledger.QuorumError{Quorum: []uint32{0, 2}}, rpc.WrongQuorum, "by the holders [0 2]"},
		{vaulterr.ErrReleased, rpc.Conflict, "has left"},
	} {
		if e := rpc.FromError(q.refusedFlood(c.err)); e == nil || e.Code != c.code || !strings.Contains(e.What, c.says) || e.Next == "" {
			t.Errorf("%v: %v", c.err, e)
		}
	}
}

// The number of holders of BGV keys is limited, both for new keys and for new shares.
func TestBGVHolders(t *testing.T) {
	s, err := new(Service).newScheme("insecure-B5-17")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.check(16, []uint32{3}); err != nil {
		t.Error(err)
	}
	if e := rpc.FromError(s.check(17, nil)); e == nil || e.Code != rpc.Invalid || !strings.Contains(e.What, "16 at most") {
		t.Errorf("%v", e)
	}
}
