package process_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/process"
	"github.com/lodge-mpc/lodge/services/host/audit"
)

func TestAuditCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := audit.Open(dir, audit.Options{Party: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var second audit.Head
	for _, e := range []audit.Entry{
		{Event: audit.Reserved, Actor: "mpc", Auth: audit.Token, Objects: []string{"reservation/r-1"}, Count: 100},
		{Event: audit.Delivered, Actor: "mpc", Auth: audit.Token, Tenant: "demo", Objects: []string{"reservation/r-1", "batch/b-2"}},
		{Event: audit.EpochRetired, Objects: []string{"epoch/1"}, Note: "by its operator"},
	} {
		h, err := l.Append(e)
		if err != nil {
			t.Fatal(err)
		}
		if h.Seq == 2 {
			second = h
		}
	}
	head := l.Head().Hash.String() // the log is still open
	out, err := lodgetest.Run(t, "audit", "verify", dir, "--head", second.Hash.String())
	if err != nil || out != "3 entries in 1 files are unbroken; the last is 3 with the hash "+head+"\n" {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = lodgetest.Run(t, "audit", "show", dir, "--tail", "2"); err != nil || strings.Count(out, "\n") != 3 ||
		!strings.Contains(out, "mpc (token)") || !strings.Contains(out, "reservation/r-1 batch/b-2") || !strings.Contains(out, "by its operator") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = lodgetest.Run(t, "audit", "show", dir, "--json")
	lines, rerr := os.ReadFile(filepath.Join(dir, "audit-000001.jsonl"))
	if err != nil || rerr != nil || out != string(lines) {
		t.Errorf("%v: %s", err, out)
	}

	// The report names the place of one changed digit.
	bad := filepath.Join(t.TempDir(), "audit-000001.jsonl")
	if err := os.WriteFile(bad, bytes.Replace(lines, []byte("batch/b-2"), []byte("batch/b-3"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = lodgetest.Run(t, "audit", "verify", bad, "--json")
	var report process.AuditReport
	_, f := lodgetest.Failed(t, out)
	if jerr := json.Unmarshal([]byte(out), &report); jerr != nil || report.OK || report.Entries != 1 || f.Code != cli.CheckFailed || !strings.Contains(f.What, "line 2 was changed") {
		t.Errorf("%v: %s", jerr, out)
	}
	if err == nil {
		t.Error("a changed log verifies")
	}
	for _, args := range [][]string{
		{"audit", "verify", dir, "--head", strings.Repeat("0", 64)},
		{"audit", "verify", dir, "--head", "abc"},
		{"audit", "verify", filepath.Dir(bad), "extra"},
		{"audit", "verify", t.TempDir()},
		{"audit", "show", bad},
		{"audit", "show", dir, "--tail", "0"},
	} {
		if out, err := lodgetest.Run(t, args...); err == nil {
			t.Errorf("lodge %v: %s", args, out)
		}
	}
}
