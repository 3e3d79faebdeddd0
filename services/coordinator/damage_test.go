package coordinator

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// writeJobs fills the records of a stopped coordinator, so that they have several pages and free
// pages, and returns the file's path and bytes.
func (f *fakeNet) writeJobs() (path string, whole []byte) {
	f.Helper()
	path = filepath.Join(f.file.DataDir, "jobs.db")
	r, err := openRecords(path)
	if err != nil {
		f.Fatal(err)
	}
	var drop []string
	for i := range 60 {
		j := &coordinatorv1.Job{Id: fmt.Sprintf("j%013d-%04d", i, i), Request: keysJob(), State: failed, Reason: strings.Repeat("=", 300)}
		if err := r.put(j, "operator/key"); err != nil {
			f.Fatal(err)
		}
		if i%3 == 0 {
			drop = append(drop, j.GetId())
		}
	}
	if err := r.drop(drop); err != nil {
		f.Fatal(err)
	}
	if err := r.putRotation(&coordinatorv1.Rotation{Epoch: 1}); err != nil {
		f.Fatal(err)
	}
	r.close()
	if whole, err = os.ReadFile(path); err != nil {
		f.Fatal(err)
	}
	return path, whole
}

// A coordinator whose jobs.db is damaged does not panic. It starts, or reports check_failed with
// the next step.
func TestDamagedJobs(t *testing.T) {
	f := newNet(t, 2)
	f.stop()
	path, whole := f.writeJobs()
	start := func(b []byte) error {
		defer func() {
			if p := recover(); p != nil { // it may hold the lock of the file
				t.Fatalf("panic: %v", p)
			}
		}()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := open(f.file, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err == nil {
			c.close()
		}
		return err
	}
	if err := start(whole); err != nil {
		t.Fatal(err)
	}
	tried, found := 0, 0
	try := func(name string, must bool, b []byte) {
		t.Helper()
		tried++
		err := start(b)
		if err == nil && !must {
			return
		}
		found++
		if e := rpc.FromError(err); e == nil || e.Code != rpc.CheckFailed || !strings.Contains(e.Next, "docs/operations/losing-the-coordinator.md") {
			t.Errorf("%s: %v", name, err)
		}
	}
	page, pages := os.Getpagesize(), 0
	for at := 0; at+page <= len(whole) && pages < 24; at += page {
		if len(bytes.Trim(whole[at:at+page], "\x00")) == 0 {
			continue
		}
		pages++
		for _, offset := range []int{0, 8, 10, 12, 16, 20, 24, 28, 32, 40, 56, 72, 200, 1000} { // of the header, the first elements, and data
			b := bytes.Clone(whole)
			b[at+offset] ^= 0x41
			try(fmt.Sprintf("byte %d of page %d", offset, at/page), at < 2*page && offset >= 16 && offset < 80, b)
		}
		b := bytes.Clone(whole)
		clear(b[at : at+page])
		try(fmt.Sprintf("zeroed page %d", at/page), at < 2*page, b)
		try(fmt.Sprintf("cut off in page %d", at/page), true, whole[:at+100])
	}
	if pages < 5 || found < tried/4 {
		t.Errorf("%d of %d faults in %d pages were found", found, tried, pages)
	}
	t.Logf("%d of %d faults in %d pages were found", found, tried, pages)

	// Values that bbolt reads without an error.
	for name, change := range map[string]func(r *records) error{
		"a truncated job": func(r *records) error { return r.write(bucket, "j0000000000001-0001", []byte{1, 0}) },
		"a job under the name of another": func(r *records) error {
			v, err := encodeRecord(record{job: &coordinatorv1.Job{Id: "j0000000000001-0001", Request: keysJob()}})
			if err != nil {
				return err
			}
			return r.write(bucket, "j0000000000002-0002", v)
		},
		"a rotation": func(r *records) error { return r.write(ofRotations, "epoch", []byte{0xff}) },
	} {
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := openRecords(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(r); err != nil {
			t.Fatal(err)
		}
		r.close()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		try(name, true, b)
	}
}
