package threshold_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/disk/disktest"
)

// A decryption whose audit entry has no space is refused before it spends anything: the client's total is whole, and the
// same request succeeds when there is space.
func TestNoRoomForTheEntry(t *testing.T) {
	const page = 4096
	dir := disktest.Mount(t, "4m")
	w := newWorld(t, 3, func(i int, f *config.PartyFile) {
		f.Threshold.Rules[0].MaxTotal = uint64(len(want))
		if i == 0 {
			f.AuditDir, f.Disk.MinFree = filepath.Join(dir, "audit"), 1 // so that the disk is not low with a page free
		}
	})
	epoch := w.keys(1)
	w.masks(epoch, 600, "exact", 0, 1)
	k, public := w.key(epoch)
	// An entry with a note reserves more than 6000 bytes. Beyond the middle of a page, that is two new pages.
	for {
		log, err := os.Stat(filepath.Join(dir, "audit", "audit-000001.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if n := log.Size() % page; n > page/2 && n < page-1500 {
			break
		}
		w.keys(1)
	}
	empty := disktest.Fill(t, dir, page)
	request := ring(w.encrypt(k, public, want...), len(want), 0, 1)
	_, err := w.app.Decrypt(t.Context(), k, request)
	refused(t, err, lodge.DiskLow, "full")
	empty()
	time.Sleep(1200 * time.Millisecond) // a look at the disk is believed for a second
	w.opens(k, request, want)
}
