//go:build unix

package main

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
	"github.com/lodge-mpc/lodge/services/rpc"
)

func TestFetchCommand(t *testing.T) {
	l, root := startLive(t), t.TempDir()
	id := strings.TrimSpace(l.ok(append([]string{"reserve"}, class("--count", "40")...)...))
	var dirs []string
	for _, party := range []string{"p0", "1"} {
		dir := filepath.Join(root, party)
		l.shows([]string{"fetch", id, "--party", party, "--out", dir, "--with-mac-key"}, "40 scalar tuples, 1.92 kB, of party p", "[####################] 1.92 kB of 1.92 kB, ")
		dirs = append(dirs, dir)
	}
	if out, err := runLodge(t, append([]string{"verify"}, dirs...)...); err != nil || !strings.HasPrefix(out, "40 of 40 scalar tuples verified") {
		t.Errorf("%v: %s", err, out)
	}
	l.refuses(rpc.Conflict, "holds shares already", "fetch", id, "--party", "p0", "--out", dirs[0])
	l.refuses(rpc.NotFound, "reserve at the coordinator", "fetch", "nope", "--party", "p0", "--out", filepath.Join(root, "x"))
	l.refuses(rpc.Invalid, "write one of p0, p1", "fetch", id, "--out", filepath.Join(root, "x"))

	// without the key, and going on after 13 tuples
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
	l.refuses(rpc.Conflict, "a part of something else", "fetch", id, "--party", "p0", "--out", part, "--with-mac-key")
	r := read[fetchReport](l, "fetch", id, "--party", "p0", "--out", part)
	if r.Resumed != 13 || r.Tuples != 40 || r.Bytes != 40*48 || r.WithMACKey || r.Kind != "scalar" || r.Reservation != id {
		t.Errorf("%+v", r)
	}
	if got, err := os.ReadFile(filepath.Join(part, tuplefile.DataName)); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%v, or other bytes", err)
	}
	if _, err := runLodge(t, "verify", part, dirs[1]); err == nil || !strings.Contains(err.Error(), "was not drawn with the tuples") {
		t.Error(err)
	}
}

// Both parties export two reservations straight into one tree that the independent reader accepts.
func TestExportReservations(t *testing.T) {
	l, out := startLive(t), filepath.Join(t.TempDir(), "out")
	ids := []string{
		strings.TrimSpace(l.ok(append([]string{"reserve"}, class("--count", "60")...)...)), strings.TrimSpace(l.ok(append([]string{"reserve"}, class("--count", "41")...)...)),
	}
	export := []string{"export", "mp-spdz", "--reservation", ids[0], "--reservation", ids[1], "--out", out}
	l.shows(append(export, "--party", "p0", "--dry-run"), "101 records", "would write")
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a dry run: %v", err)
	}
	l.shows([]string{"reservations", "show", ids[0], "--party", "p0"}, "state        reserved")
	for _, party := range []string{"p0", "p1"} {
		l.shows(append(export, "--party", party), "101 records        101 usable", "is consumed: use it once")
	}
	l.shows([]string{"reservations", "show", ids[0], "--party", "p0"}, "state        consumed", "fetched by   client-p0")
	reader := filepath.Join("..", "..", "clients", "python", "tools", "read_mpspdz.py")
	if text, err := exec.Command("python3", "-B", reader, out).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	file := filepath.Join(out, "Player-Data", "2-p-64", "Triples-p-P0")
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.try(append(export, "--party", "p0")...); err == nil || !strings.Contains(err.Error(), file) {
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
	l.shows(append(export, "--party", "p0"), "101 records")
	if !bytes.Equal(<-got, written) {
		t.Error("other bytes through the pipe")
	}
	l.refuses(rpc.NotFound, "no reservation", "export", "mp-spdz", "--reservation", "nope", "--party", "p0", "--out", t.TempDir())
	if _, err := l.try("export", "mp-spdz", "--reservation", ids[0], "--from", out, "--out", out); err == nil || !strings.Contains(err.Error(), "not both") {
		t.Error(err)
	}
}
