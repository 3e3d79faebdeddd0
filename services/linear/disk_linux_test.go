package linear_test

import (
	"path/filepath"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store/disk/disktest"
)

// While the disk of the audit log is full, a product spends nothing of the clients' statistical
// distance. Products succeed when there is space again.
func TestFullAuditDisk(t *testing.T) {
	dir, audits := disktest.Mount(t, "4m"), ""
	configure := func(f *config.PartyFile) { audits = f.AuditDir }
	w := &world{TB: t, net: cluster(t)}
	stop := w.start(configure)
	w.status() // waits until the party serves
	stop()
	disktest.Move(t, filepath.Join(audits, "audit-000001.jsonl"), dir)
	stop = w.start(configure)
	defer func() { stop() }()
	w.status()
	empty := disktest.Fill(t, dir, 0)
	askErr, answerErr := w.small(devnet.App, matrixClient)
	if code(answerErr) != "disk_low" || askErr == nil {
		t.Errorf("a product on a full disk: %v; %v", askErr, answerErr)
	}
	if list := w.status(); len(list) != 0 {
		t.Errorf("a product without an audit entry spent distance: %v", list)
	}
	empty()
	if askErr, answerErr := w.small(devnet.App, matrixClient); askErr != nil || answerErr != nil {
		t.Fatal(askErr, answerErr)
	}
	if list := w.status(); len(list) != 1 || list[0].GetProducts() != 1 {
		t.Errorf("the status shows %v", list)
	}
}
