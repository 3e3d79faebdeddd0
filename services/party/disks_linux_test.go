package party

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/disk"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/vault"
)

// smallDisk mounts a file system of so many bytes. Without root nobody can mount one, and the test is skipped; a CI that
// is root must be able to.
func smallDisk(t *testing.T, bytes string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+bytes+",mode=700"); err != nil {
		if os.Getuid() == 0 && os.Getenv("CI") != "" {
			t.Fatalf("root in CI cannot mount a tmpfs: %v", err)
		}
		t.Skipf("a tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all space of a disk, until empty is called.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range [][]byte{make([]byte, 1<<20), make([]byte, 4<<10)} {
		for err = nil; err == nil; {
			_, err = f.Write(piece)
		}
	}
	f.Close()
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// soon waits until the party's look at its disks is of now.
func soon() { time.Sleep(1200 * time.Millisecond) }

// A party whose audit disk is full gives nothing and consumes nothing: a fetch fails with disk_low, the reservation stays
// whole, new work is refused, and the party is not ready. When there is space it goes on without a restart.
func TestFullAuditDisk(t *testing.T) {
	dir := smallDisk(t, "4m")
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		if i == 0 {
			f.AuditDir = filepath.Join(dir, "audit")
		}
	})
	n.keys(1, forKeys)
	one, two := n.reserve(n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId()), n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId()
	x := n.nodes[0]
	for round := range 2 {
		empty := fill(t, dir)
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
		want := vault.Reserved
		if round > 0 {
			want = vault.Consumed
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
		// Use up what is allocated behind the log, so that the next round finds none.
		x.stop()
		n.start(0)
	}
	if err := x.propose(n, n.proposal(two)); err != nil {
		t.Errorf("there is space, and new work is refused: %v", err)
	}
}

// A delivery that was promised its entry is recorded although the disk fills in between.
func TestHeldEntryOnAFullDisk(t *testing.T) {
	dir := smallDisk(t, "4m")
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
	fill(t, dir)
	for range 20 { // what was allocated behind the log has space for them
		if data, _, err := fetch(n.context(), n.nodes[0].client, id, false); err != nil || len(data) == 0 {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
	}
}

// A party whose store's disk is full records nothing and consumes nothing, and goes on when there is space.
func TestFullStoreDisk(t *testing.T) {
	dir := smallDisk(t, "64m")
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		if i == 0 {
			f.Vault.Dir = filepath.Join(dir, "vault")
		}
	})
	n.keys(1, forKeys)
	one, two := n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId(), n.complete(n.spec(jobv1.Kind_KIND_SCALAR, 1)).GetBatchId()
	id, x := n.reserve(one), n.nodes[0]
	empty := fill(t, dir)
	soon()
	refused(t, x.propose(n, n.proposal(two)), rpc.DiskLow)
	if x.party.usable() {
		t.Error("the party is ready")
	}
	var err error
	for range 50 { // until the pages that are free in the records' file are used up
		if _, _, err = fetch(n.context(), x.client, id, false); err != nil {
			break
		}
	}
	if err != nil {
		refused(t, err, rpc.DiskLow)
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
