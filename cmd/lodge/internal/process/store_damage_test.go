package process_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// If records.db is damaged, `lodge party` and `lodge store check` fail with check_failed and the
// next step, without a panic.
func TestDamagedRecords(t *testing.T) {
	p := newStoppedParty(t)
	p.furnish()
	path := filepath.Join(p.file.Vault.Dir, "records.db")
	whole, err := os.ReadFile(path)
	p.check(err)
	party := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		cmd := lodgetest.NewLodge()
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(&bytes.Buffer{})
		return cli.Execute(ctx, cmd, []string{"party", "--config", p.config})
	}
	for name, damage := range damages() {
		p.check(os.WriteFile(path, damage(bytes.Clone(whole)), 0o600))
		p.refused(rpc.CheckFailed, "check")
		if e := rpc.FromError(party()); e == nil || e.Code != rpc.CheckFailed || !strings.Contains(e.Next, "docs/operations/disaster-recovery.md") {
			t.Errorf("%s: lodge party: %v", name, e)
		}
	}
	p.check(os.WriteFile(path, whole, 0o600))
	p.says(": sound", "check", "--deep")
}

// damages returns ways to damage a database of bbolt.
func damages() map[string]func(b []byte) []byte {
	page := os.Getpagesize()
	return map[string]func(b []byte) []byte{
		"both meta pages":   func(b []byte) []byte { clear(b[:2*page]); return b },
		"one meta page":     func(b []byte) []byte { b[page+40] ^= 4; return b },
		"all pages of data": func(b []byte) []byte { clear(b[2*page:]); return b },
		"cut off":           func(b []byte) []byte { return b[:3*page+100] },
		"the page's flags": func(b []byte) []byte {
			for at := 2 * page; at < len(b); at += page {
				b[at+8] ^= 0x40
			}
			return b
		},
		"the page's entries": func(b []byte) []byte {
			for at := 2 * page; at < len(b); at += page {
				b[at+20] ^= 0xff
			}
			return b
		},
	}
}

// A damaged jobs.db ends `lodge coordinator` with check_failed and the next step.
func TestDamagedJobs(t *testing.T) {
	cluster, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{params.Default}, Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	run := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		cmd := lodgetest.NewLodge()
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(&bytes.Buffer{})
		return cli.Execute(ctx, cmd, []string{"coordinator", "--config", cluster.Coordinator})
	}
	if err := run(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	f, err := config.LoadCoordinator(cluster.Coordinator)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.DataDir, "jobs.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range damages() {
		if err := os.WriteFile(path, damage(bytes.Clone(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		if e := rpc.FromError(run(10 * time.Second)); e == nil || e.Code != rpc.CheckFailed || !strings.Contains(e.Next, "docs/operations/losing-the-coordinator.md") {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// `lodge store check` verifies the chain of the audit log, and that it contains the entry that the
// store remembers.
func TestStoreCheckAudit(t *testing.T) {
	p := newStoppedParty(t)
	p.furnish()
	dir := p.file.AuditDir
	l, err := audit.Open(dir, audit.Options{Party: p.file.Name})
	p.check(err)
	for range 3 {
		_, err = l.Append(audit.Entry{Event: audit.Reserved})
		p.check(err)
	}
	head := l.Head()
	p.check(l.Close())
	v := p.open()
	p.check(v.RememberAudit(head.Hash.String()))
	p.check(v.Close())
	p.says("3 entries of the audit log|: sound", "check")
	path := filepath.Join(dir, "audit-000001.jsonl")
	whole, err := os.ReadFile(path)
	p.check(err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	changed := bytes.Clone(whole)
	changed[len(changed)/2] ^= 1
	for name, b := range map[string][]byte{"changed": changed, "cut": bytes.Join(lines[:2], nil), "emptied": nil} {
		p.check(os.WriteFile(path, b, 0o600))
		out, err := p.run("check")
		if e := rpc.FromError(err); e == nil || e.Code != rpc.CheckFailed || !strings.Contains(out, "audit: ") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	p.check(os.WriteFile(path, append(whole, "torn"...), 0o600))
	p.says("the next start completes it|: sound", "check")
	p.check(os.RemoveAll(dir))
	p.refused(rpc.CheckFailed, "check")
}
