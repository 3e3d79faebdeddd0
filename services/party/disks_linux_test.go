package party

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/disk"
	"github.com/lodge-mpc/lodge/services/store/disk/disktest"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// soon waits until the party's look at its disks is of now.
func soon() { time.Sleep(1200 * time.Millisecond) }

// A party with a full audit disk delivers and consumes no tuples: a fetch fails with disk_low, the
// reservation stays complete, new work is rejected, and the party is not ready. When there is space
// again it continues without a restart.
func TestFullAuditDisk(t *testing.T) {
	dir := disktest.Mount(t, "4m")
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		if i == 0 {
			f.AuditDir = filepath.Join(dir, "audit")
		}
	})
	n.keys(1, forKeys)
	one, two := n.reserve(n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId()), n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId()
	x := n.nodes[0]
	for round := range 2 {
		empty := disktest.Fill(t, dir, 0)
		soon()
		var data []byte
		var err error
		for range 100 * round { // until the last block of the log is used up
			if _, _, err = fetch(n.context(), x.client, one, false); err != nil {
				break
			}
		}
		data, _, err = fetch(n.context(), x.client, one, false)
		if refused(t, err, rpc.DiskLow); len(data) > 0 {
			t.Error("shares left without an audit entry")
		}
		want := stock.Reserved
		if round > 0 {
			want = stock.Consumed
		}
		if r, err := x.party.vault.Reservation(one); err != nil || r.State != want {
			t.Errorf("round %d: a failed fetch leaves the reservation %s, %v", round, r.State, err)
		}
		if round == 0 {
			refused(t, x.propose(n, n.proposal(two)), rpc.DiskLow)
			_, err = x.begin(n.context(), n.spec(jobv1.Kind_KIND_SCALAR, 1))
			refused(t, err, rpc.DiskLow)
			if x.party.usable() {
				t.Error("the party is ready")
			}
			low := false
			for _, v := range getStatus(n.context(), t, x.client).GetVolumes() {
				low = low || v.GetName() == disk.Audit && v.GetLow()
			}
			if !low {
				t.Error("its status shows no volume that is low")
			}
		}
		empty()
		soon()
		if !x.party.usable() {
			t.Errorf("there is space, and the party is not ready: %v, %v", x.party.audit.Fault(), x.party.disks.Low())
		}
		if data, _, err = fetch(n.context(), x.client, one, false); err != nil || len(data) == 0 {
			t.Fatalf("round %d: there is space, and a fetch fails: %d bytes, %v", round, len(data), err)
		}
		// Use up the blocks allocated after the log, so that the next round finds none.
		x.stop()
		n.start(0)
	}
	if err := x.propose(n, n.proposal(two)); err != nil {
		t.Errorf("there is space, and new work is refused: %v", err)
	}
}

// A delivery that was promised its entry is recorded although the disk fills in between.
func TestHeldEntryOnAFullDisk(t *testing.T) {
	dir := disktest.Mount(t, "4m")
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		if i == 0 {
			f.AuditDir = filepath.Join(dir, "audit")
		}
	})
	n.keys(1, forKeys)
	id := n.reserve(n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId())
	if _, _, err := fetch(n.context(), n.nodes[0].client, id, false); err != nil {
		t.Fatal(err)
	}
	disktest.Fill(t, dir, 0)
	for range 20 { // the blocks allocated after the log suffice for them
		if data, _, err := fetch(n.context(), n.nodes[0].client, id, false); err != nil || len(data) == 0 {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
	}
}

// A decryption is not used up by a request whose audit entry has no space: afterwards any client
// may still ask for it.
func TestFullAuditDiskDecryption(t *testing.T) {
	dir := disktest.Mount(t, "4m")
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		f.Clients[0].Permissions = append(f.Clients[0].Permissions, config.PermDecrypt)
		if i == 0 {
			f.AuditDir = filepath.Join(dir, "audit")
		}
	})
	n.keys(1, forDecryption)
	x := n.nodes[0]
	s, _ := newStatement(t, n, x.app, 1)
	soon()
	if x.party.disks.Low() != nil { // which is believed for a second, in which the disk fills
		t.Fatal("the disk is low before it is full")
	}
	empty := disktest.Fill(t, dir, 0)
	var err error
	for err == nil { // until the blocks allocated after the log are used up
		_, err = x.party.audit.Append(audit.Entry{Event: audit.PolicySet, Actor: "test", Auth: audit.Local, Note: strings.Repeat("x", 1000)})
	}
	_, digest, err := decrypt(n.context(), x.app, s.ask(), s.ciphertext, s.proof)
	if refused(t, err, rpc.DiskLow); len(digest) > 0 {
		t.Error("an answer left without an audit entry")
	}
	empty()
	soon()
	freed := time.Now()
	_, digest, err = decrypt(n.context(), x.app, s.ask(), s.ciphertext, s.proof)
	if err != nil {
		t.Fatalf("there is space: %v", err)
	}
	e, err := x.party.vault.Decryption(ledger.LedgerKey{Epoch: 1, Digest: [32]byte(digest), Quorum: []int{0, 1, 2}})
	if err != nil || e.When.Before(freed) {
		t.Errorf("the request that was refused used the decryption up: %+v, %v", e.When, err)
	}
}

// A party whose store's disk is full records nothing and consumes nothing, and goes on when there
// is space.
func TestFullStoreDisk(t *testing.T) {
	dir := disktest.Mount(t, "64m")
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		if i == 0 {
			f.Vault.Dir = filepath.Join(dir, "vault")
		}
	})
	n.keys(1, forKeys)
	one, two := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId(), n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId()
	id, x := n.reserve(one), n.nodes[0]
	empty := disktest.Fill(t, dir, 0)
	soon()
	refused(t, x.propose(n, n.proposal(two)), rpc.DiskLow)
	if x.party.usable() {
		t.Error("the party is ready")
	}
	// An operation that is not refused beforehand, because it is needed to free space, must write
	// until no page is left.
	var err error
	for i := 0; err == nil && i < 10_000; i++ {
		_, err = x.party.vault.NewEpoch(keys.Epoch{ID: uint64(1000 + i), Purpose: "triples", Params: set})
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the full disk fails no write: %v", err)
	}
	empty()
	soon()
	if data, _, err := fetch(n.context(), x.client, id, false); err != nil || len(data) == 0 || !x.party.usable() {
		t.Errorf("there is space: %d bytes, %v; ready: %v", len(data), err, x.party.usable())
	}
	if err := x.propose(n, n.proposal(two)); err != nil {
		t.Errorf("there is space, and new work is refused: %v", err)
	}
}
