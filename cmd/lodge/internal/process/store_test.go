package process_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/process"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// stoppedParty is a party of a stopped cluster, with an epoch, a MAC key and a batch.
type stoppedParty struct {
	t      *testing.T
	config string
	file   *config.PartyFile
}

func newStoppedParty(t *testing.T) *stoppedParty {
	t.Helper()
	c, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 3, Params: []string{params.Default}, Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := config.LoadParty(c.Parties[0])
	if err != nil {
		t.Fatal(err)
	}
	return &stoppedParty{t, c.Parties[0], f}
}

func (p *stoppedParty) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *stoppedParty) open() *vault.Vault {
	p.t.Helper()
	key, err := seal.LoadKey(p.file.Vault.KeyFile)
	p.check(err)
	v, err := vault.Open(p.file.Vault.Dir, key)
	p.check(err)
	return v
}

// furnish stores an epoch of each purpose and a batch of a hundred tuples.
func (p *stoppedParty) furnish() {
	p.t.Helper()
	v := p.open()
	for id, purpose := range map[uint64]string{1: "triples", 2: "decryption"} {
		w, err := v.NewEpoch(keys.Epoch{ID: id, Purpose: purpose, Limit: 1001})
		p.check(err)
		_, err = w.Secret.Write([]byte("a share of a key"))
		p.check(err)
		p.check(w.Commit())
		p.check(v.ActivateEpoch(id))
	}
	_, _, err := v.RecordDecryption(ledger.LedgerKey{Epoch: 2, Quorum: []int{0, 1}}, "app", []byte("answer"))
	p.check(err)
	w, err := v.NewBatch(stock.Batch{
		ID: "job-1", Epoch: 1, MACKey: "mac-1", Kind: "matrix", Field: "p128", Params: "set", Rows: 2, Inner: 3, Columns: 4, Tenant: "dev",
		Count: 100, TupleBytes: 1000,
	})
	p.check(err)
	_, err = w.Write(make([]byte, 100_000))
	p.check(err)
	p.check(w.Commit(&keys.NewMACKey{MACKey: keys.MACKey{ID: "mac-1", Epoch: 1, Field: "p128", Tenant: "dev"}, Secret: []byte("alpha")}))
	p.check(v.ActivateBatch("job-1"))
	p.check(v.Close())
}

// run runs `lodge store` with the party's configuration.
func (p *stoppedParty) run(args ...string) (string, error) {
	p.t.Helper()
	var out bytes.Buffer
	cmd := lodgetest.NewLodge()
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	err := cli.Execute(p.t.Context(), cmd, append(append([]string{"store"}, args...), "--config", p.config))
	return out.String(), err
}

// says runs a command and checks its output for words.
func (p *stoppedParty) says(want string, args ...string) {
	p.t.Helper()
	out, err := p.run(args...)
	p.check(err)
	for _, w := range strings.Split(want, "|") {
		if !strings.Contains(out, w) {
			p.t.Errorf("%s: no %q in\n%s", args, w, out)
		}
	}
}

func (p *stoppedParty) refused(code rpc.Code, args ...string) {
	p.t.Helper()
	_, err := p.run(args...)
	var e *rpc.Error
	if !errors.As(err, &e) || e.Code != code || e.Next == "" {
		p.t.Errorf("%s: %v, want %s and what to do", args, err, code)
	}
}

func TestStoreCheckAndStats(t *testing.T) {
	p := newStoppedParty(t)
	p.refused(rpc.NotFound, "check")
	if _, err := os.Stat(p.file.Vault.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a check made a store: %v", err)
	}
	p.furnish()
	p.says(": sound|records|blobs", "check")
	p.says(": sound|2 segments", "check", "--deep")
	p.says("matrix 2x3x4|dev|100|decryption|1001|1 available|1 active|generation", "stats")
	out, err := p.run("stats", "--json")
	p.check(err)
	var s upkeep.Stats
	p.check(json.Unmarshal([]byte(out), &s))
	if len(s.Classes) != 1 || s.Classes[0].Free != 100 || s.Classes[0].Bytes != 100_000 || s.Decryptions != 1 {
		t.Errorf("%+v", s)
	}

	v := p.open()
	for _, args := range [][]string{
		{"check"}, {"stats"}, {"backup", "--out", filepath.Join(t.TempDir(), "b")}, {"quarantine", "--leave"},
		{"rotate-key", "--new-key-file", filepath.Join(t.TempDir(), "k")},
	} {
		p.refused(rpc.Conflict, args...)
	}
	p.check(v.Close())

	blobs, err := filepath.Glob(filepath.Join(p.file.Vault.Dir, "objects", "tuples-*"))
	if err != nil || len(blobs) != 1 {
		t.Fatalf("%v, %v", blobs, err)
	}
	b, err := os.ReadFile(blobs[0])
	p.check(err)
	b[100] ^= 1
	p.check(os.WriteFile(blobs[0], b, 0o600))
	p.check(os.WriteFile(filepath.Join(p.file.Vault.Dir, "objects", "nobodys"), nil, 0o600))
	p.says(": sound|nobodys: no record names it (the next start completes it)", "check")
	out, err = p.run("check", "--deep", "--json")
	if !errors.Is(err, process.ErrUnsound) {
		t.Errorf("got %v", err)
	}
	var r process.CheckReport
	p.check(json.Unmarshal([]byte(out), &r))
	if r.OK || !r.Deep || r.Findings != 1 || len(r.List) != 2 || !strings.Contains(out, "batch/job-1") {
		t.Errorf("%s", out)
	}
}

func TestStoreBackupAndRestore(t *testing.T) {
	p := newStoppedParty(t)
	p.furnish()
	file := filepath.Join(t.TempDir(), "backup")
	p.says("read back|3 blobs|generation", "backup", "--out", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	p.refused(rpc.Conflict, "backup", "--out", file)
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.part")); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	p.says("would restore|3 blobs", "restore", "--in", file, "--dry-run")
	p.refused(rpc.Conflict, "restore", "--in", file) // into a store that is not empty
	p.says(": sound", "check", "--deep")

	b, err := os.ReadFile(file)
	p.check(err)
	cut := filepath.Join(t.TempDir(), "cut")
	p.check(os.WriteFile(cut, b[:len(b)-1], 0o600))
	for _, keep := range []bool{false, true} {
		p.check(os.RemoveAll(p.file.Vault.Dir))
		for _, args := range [][]string{{"restore", "--in", cut}, {"restore", "--in", cut, "--dry-run"}} {
			if _, err := p.run(args...); !errors.Is(err, vaulterr.ErrBackup) {
				t.Errorf("%s: %v", args, err)
			}
		}
		args := []string{"restore", "--in", file}
		want := "restored|3 blobs|retired|quarantine --leave"
		if keep {
			args, want = append(args, "--keep-decryption"), "restored|3 blobs|quarantine --leave"
		}
		p.says(want, args...)
		p.says(": sound", "check", "--deep")
		p.says("QUARANTINE|restored from a backup of|1 burnt", "stats")
		p.says("in quarantine: restored", "quarantine")
		p.says("would end", "quarantine", "--leave", "--dry-run")
		p.says("in quarantine: restored", "quarantine")
		p.says("quarantine ended", "quarantine", "--leave")
		p.says("not in quarantine", "quarantine", "--leave")
		v := p.open()
		e, err := v.Epoch(2)
		p.check(err)
		if want := map[bool]keys.EpochState{false: keys.EpochRetired, true: keys.EpochDraining}[keep]; e.State != want || keep && e.Limit != 501 {
			t.Errorf("%+v", e)
		}
		if batch, err := v.Batch("job-1"); err != nil || batch.State != stock.BatchRevoked {
			t.Errorf("%+v, %v", batch, err)
		}
		p.check(v.Close())
	}
}

func TestStoreRotateKey(t *testing.T) {
	p := newStoppedParty(t)
	p.furnish()
	fresh := filepath.Join(t.TempDir(), "fresh.key")
	p.says("would create", "rotate-key", "--new-key-file", fresh, "--dry-run")
	if _, err := os.Stat(fresh); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dry run made a key: %v", err)
	}
	p.says(": sound", "check")
	p.says("is encrypted under", "rotate-key", "--new-key-file", fresh)
	p.refused(rpc.Invalid, "check") // with the old key
	b, err := os.ReadFile(fresh)
	p.check(err)
	p.check(os.WriteFile(p.file.Vault.KeyFile, b, 0o600))
	p.says(": sound", "check", "--deep")
	bad := filepath.Join(t.TempDir(), "bad.key")
	p.check(os.WriteFile(bad, []byte("short"), 0o600))
	for _, args := range [][]string{{"--dry-run"}, nil} {
		if _, err := p.run(append([]string{"rotate-key", "--new-key-file", bad}, args...)...); err == nil {
			t.Error("sealed under a key that is none")
		}
	}
	p.says("would encrypt", "rotate-key", "--new-key-file", fresh, "--dry-run")
	p.says(": sound", "check")
	if _, err := p.run("rotate-key"); err == nil {
		t.Error("no file was named")
	}
}
