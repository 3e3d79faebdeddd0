//go:build unix

package tuples_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/keys"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/tuples"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func TestFetchCommand(t *testing.T) {
	l, root := lodgetest.Start(t), t.TempDir()
	id := strings.TrimSpace(l.OK(append([]string{"reserve"}, lodgetest.Class("--count", "40")...)...))
	var dirs []string
	for _, party := range []string{"p0", "1"} {
		dir := filepath.Join(root, party)
		l.Shows([]string{"fetch", id, "--party", party, "--out", dir, "--with-mac-key"}, "40 scalar tuples, 1.92 kB, of party p")
		dirs = append(dirs, dir)
	}
	_, err := lodgetest.Run(t, append([]string{"verify"}, dirs...)...)
	if !errors.Is(err, &rpc.Error{Code: rpc.Invalid}) || !strings.Contains(err.Error(), "drawn for an online phase") {
		t.Error(err)
	}
	if out, err := lodgetest.Run(t, append([]string{"verify", "--retired"}, dirs...)...); err != nil || !strings.HasPrefix(out, "40 of 40 scalar tuples verified") {
		t.Errorf("%v: %s", err, out)
	}
	l.Refuses(rpc.Conflict, "already contains shares", "fetch", id, "--party", "p0", "--out", dirs[0])
	l.Refuses(rpc.NotFound, "reserve at the coordinator", "fetch", "nope", "--party", "p0", "--out", filepath.Join(root, "x"))
	l.Refuses(rpc.Invalid, "write one of p0, p1", "fetch", id, "--out", filepath.Join(root, "x"))

	l.Refuses(rpc.Invalid, "this one needs a directory where", "fetch", id, "--party", "p0", "--out", filepath.Join(dirs[0], tuplefile.DataName, "x"))
	l.Refuses(rpc.Conflict, "the same shares can be downloaded again", "fetch", id, "--party", "p0", "--out", dirs[0], "--with-mac-key")
	again := filepath.Join(root, "again")
	l.Shows([]string{"fetch", id, "--party", "p0", "--out", again}, "warning: party p0 delivered reservation "+id, "use them once")

	// without the key, and continuing after 13 tuples
	whole, err := os.ReadFile(filepath.Join(dirs[0], tuplefile.DataName))
	if err != nil {
		t.Fatal(err)
	}
	m, err := tuplefile.ReadManifest(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(root, "part")
	m.MACKeyShare = ""
	w, _, err := tuplefile.Resume(part, m, 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(whole[:13*48+5]); err != nil {
		t.Fatal(err)
	}
	if err := w.Keep(); err != nil {
		t.Fatal(err)
	}
	l.Refuses(rpc.Conflict, "holds part of other data", "fetch", id, "--party", "p0", "--out", part, "--with-mac-key")
	r := lodgetest.Read[tuples.FetchReport](l, "fetch", id, "--party", "p0", "--out", part)
	if r.Resumed != 13 || r.Tuples != 40 || r.Bytes != 40*48 || r.WithMACKey || r.Kind != "scalar" || r.Reservation != id {
		t.Errorf("%+v", r)
	}
	if got, err := os.ReadFile(filepath.Join(part, tuplefile.DataName)); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%v, or other bytes", err)
	}
	if _, err := lodgetest.Run(t, "verify", part, dirs[1]); err == nil || !strings.Contains(err.Error(), "was not drawn with the tuples") {
		t.Error(err)
	}
}

// To check tuples, all parties' clients fetch them, and then draw their shares of the key for
// pooling, which retires it.
func TestFetchAndPool(t *testing.T) {
	l, root := lodgetest.Start(t), t.TempDir()
	id := strings.TrimSpace(l.OK(append([]string{"reserve"}, lodgetest.Class("--count", "40")...)...))
	dir := func(party string) string { return filepath.Join(root, party) }
	for _, party := range []string{"p0", "p1"} {
		l.OK("fetch", id, "--party", party, "--out", dir(party))
	}
	if _, err := lodgetest.Run(t, "verify", root); err == nil || !strings.Contains(err.Error(), "was not drawn with the tuples") {
		t.Error(err)
	}
	key := lodgetest.Read[struct{ Keys []keys.MacKeyRecord }](l, "mac-keys", "list", "--party", "p0").Keys[0].ID
	draw := func(party string, more ...string) []string {
		return append([]string{"mac-keys", "draw", key, "--party", party}, more...)
	}
	l.Refuses(rpc.Invalid, "--into without --pool", draw("p0", "--into", dir("p0"))...)
	l.Refuses(rpc.Invalid, "use one of the two", draw("p0", "--pool", "--yes")...)
	l.Refuses(rpc.Invalid, "use one of the two", draw("p0", "--pool", "--yes", "--into", dir("p0"), "--out", dir("x"))...)
	l.Refuses(rpc.NotFound, "manifest.json", draw("p0", "--pool", "--yes", "--into", dir("x"))...)
	l.Refuses(rpc.Invalid, "shares of party 1", draw("p0", "--pool", "--yes", "--into", dir("p1"))...)
	for name, change := range map[string]func(m *tuplefile.Manifest){
		"of epoch 7": func(m *tuplefile.Manifest) { m.Epoch = 7 }, "over p128": func(m *tuplefile.Manifest) { m.Field = "p128" },
		"has a share": func(m *tuplefile.Manifest) { m.MACKeyShare = "5" },
	} {
		other := t.TempDir()
		m, err := tuplefile.ReadManifest(dir("p0"))
		if err != nil {
			t.Fatal(err)
		}
		if change(&m); tuplefile.WriteManifest(other, m) != nil {
			t.Fatal(name)
		}
		if _, err := l.Try(draw("p0", "--pool", "--yes", "--into", other)...); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.Shows(draw("p0", "--pool", "--into", dir("p0"), "--dry-run"), "would retire epoch 1")
	for _, party := range []string{"p0", "p1"} {
		l.Shows(draw(party, "--pool", "--into", dir(party), "--yes"), "manifest.json has party "+party+"'s share")
	}
	if out, err := lodgetest.Run(t, "verify", root); err != nil || !strings.HasPrefix(out, "40 of 40 scalar tuples verified") {
		t.Errorf("%v: %s", err, out)
	}
	l.Shows([]string{"epochs", "list", "--party", "p1"}, "retired")
}

// Both parties export two reservations directly into one tree that the independent reader accepts.
func TestExportReservations(t *testing.T) {
	l, out := lodgetest.Start(t), filepath.Join(t.TempDir(), "out")
	ids := []string{
		strings.TrimSpace(l.OK(append([]string{"reserve"}, lodgetest.Class("--count", "60")...)...)), strings.TrimSpace(l.OK(append([]string{"reserve"}, lodgetest.Class("--count", "41")...)...)),
	}
	export := []string{"export", "mp-spdz", "--reservation", ids[0], "--reservation", ids[1], "--out", out}
	l.Shows(append(export, "--party", "p0", "--dry-run"), "101 records", "would write")
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a dry run: %v", err)
	}
	l.Shows([]string{"reservations", "show", ids[0], "--party", "p0"}, "state        reserved")
	for _, party := range []string{"p0", "p1"} {
		out := l.OK(append(export, "--party", party)...)
		if !strings.Contains(out, "101 records        101 usable") || !strings.Contains(out, "are consumed: use them once") || strings.Contains(out, "delivered reservation") ||
			strings.Contains(out, "several parties' shares") != (party == "p1") {
			t.Errorf("%s: %s", party, out)
		}
	}
	l.Shows([]string{"reservations", "show", ids[0], "--party", "p0"}, "state        consumed", "fetched by   client-p0")
	reader := filepath.Join("..", "..", "..", "..", "clients", "python", "tools", "read_mpspdz.py")
	if text, err := exec.Command("python3", "-B", reader, out).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	file := filepath.Join(out, "Player-Data", "2-p-64", "Triples-p-P0")
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Try(append(export, "--party", "p0")...); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("over existing files: %v", err)
	}
	// the same again through a pipe
	if err := errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte)
	go func() {
		f, err := os.Open(file)
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		if err != nil {
			t.Error(err)
		}
		got <- b
	}()
	l.Shows(append(export, "--party", "p0"), "101 records", "warning: party p0 delivered reservation "+ids[0], "warning: party p0 delivered reservation "+ids[1])
	if !bytes.Equal(<-got, written) {
		t.Error("other bytes through the pipe")
	}
	l.Refuses(rpc.NotFound, "no reservation", "export", "mp-spdz", "--reservation", "nope", "--party", "p0", "--out", t.TempDir())
	if _, err := l.Try("export", "mp-spdz", "--reservation", ids[0], "--from", out, "--out", out); err == nil || !strings.Contains(err.Error(), "both --from and --reservation") {
		t.Error(err)
	}
}
