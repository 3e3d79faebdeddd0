package threshold_test

import (
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store/disk/disktest"
)

// While the disk of the audit log is full, a party counts no approval, and a decryption spends
// neither masks nor the total of its rule. Both succeed when there is space again.
func TestFullAuditDisk(t *testing.T) {
	dir, audits := disktest.Mount(t, "4m"), ""
	change := func(i int, f *config.PartyFile) {
		r := &f.Threshold.Rules[0]
		r.AnyCiphertexts, r.MaxTotal, r.Approvals = false, 3, 1
		if i == 0 {
			audits = f.AuditDir
		}
	}
	w := newWorld(t, 3, change)
	epoch := w.keys(1)
	w.masks(epoch, 3, "exact", 0, 1)
	k, public := w.key(epoch)
	r := ring(w.encrypt(k, public, want...), 3, 0, 1)
	for p := range 2 {
		_, err := w.raw(t.Context(), p, k, r.Ring[0], func(h *thresholdv1.DecryptHeader) { h.Coefficients = 3 })
		refused(t, err, "approval_needed", "1 other clients")
	}
	approvals := func(party int) (thresholdv1.ThresholdServiceClient, *thresholdv1.Approval) {
		conn := w.connect(devnet.Operator, party)
		t.Cleanup(func() { conn.Close() })
		c := thresholdv1.NewThresholdServiceClient(conn)
		list, err := c.ListApprovals(t.Context(), &thresholdv1.ListApprovalsRequest{}, grpc.WaitForReady(true))
		if err != nil || len(list.GetApprovals()) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		return c, list.GetApprovals()[0]
	}
	approve := func(party int) error {
		c, a := approvals(party)
		_, err := c.ApproveDecryption(t.Context(), &thresholdv1.ApproveDecryptionRequest{Request: a.GetRequest()})
		return err
	}
	free := func() uint64 {
		now, err := w.app.Key(t.Context(), epoch)
		if err != nil || len(now.Masks) != 1 {
			t.Fatalf("%+v, %v", now, err)
		}
		return now.Masks[0].Free
	}
	// fill restarts party 0, whose log then has no blocks allocated for further entries, and fills
	// the disk.
	fill := func(meanwhile func()) (empty func()) {
		w.running[0]()
		meanwhile()
		w.start(0, change)
		approvals(0) // waits until the party serves
		return disktest.Fill(t, dir, 0)
	}

	empty := fill(func() { disktest.Move(t, filepath.Join(audits, "audit-000001.jsonl"), dir) })
	refused(t, approve(0), lodge.DiskLow, "full")
	if _, a := approvals(0); len(a.GetApprovedBy()) != 0 {
		t.Errorf("an approval without an audit entry counts: %v", a)
	}
	empty()
	for p := range 2 {
		if err := approve(p); err != nil {
			t.Fatal(err)
		}
	}

	empty = fill(func() {})
	_, err := w.app.Decrypt(t.Context(), k, r)
	refused(t, err, lodge.DiskLow, "full")
	if n := free(); n != 3 {
		t.Errorf("a decryption without an audit entry left %d masks of 3", n)
	}
	empty()
	w.opens(k, r, want[:3])
	entries, err := audit.Tail(audits, 1)
	if err != nil || len(entries) != 1 || entries[0].Event != audit.Decrypted {
		t.Errorf("%v, %v", entries, err)
	}
}
