package tuples_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/tuples"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Both parties' exports of directories, by flag and as arguments, make a tree that the independent
// reader accepts.
func TestExportMPSPDZ(t *testing.T) {
	shares, out := lodgetest.ExportTwo(t, 150), t.TempDir()
	for i, args := range [][]string{
		{"--from", filepath.Join(shares, "party-0"), "--dry-run"}, {"--from", filepath.Join(shares, "party-0")},
		{filepath.Join(shares, "party-1"), "--json"},
	} {
		text, err := lodgetest.Run(t, append([]string{"export", "mp-spdz", "--out", out}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			for _, want := range []string{"150 records", "134 usable", "101 shares at a time", []string{"would write", "are consumed"}[i]} {
				if !strings.Contains(text, want) {
					t.Errorf("%v: no %q in %s", args, want, text)
				}
			}
			if _, err := os.Stat(filepath.Join(out, "Player-Data")); (i == 0) != errors.Is(err, os.ErrNotExist) {
				t.Errorf("%v: %v", args, err)
			}
			continue
		}
		var r tuples.ExportReport
		if at := strings.Index(text, "{"); at < 0 || json.Unmarshal([]byte(text[at:]), &r) != nil || r.Report == nil {
			t.Fatalf("written %q", text)
		}
		if r.Party != 1 || r.Parties != 2 || r.PrimeBits != 64 || len(r.Files) != 1 || r.Files[0].Records != 150 || r.Files[0].Usable != 134 {
			t.Errorf("%+v", *r.Report)
		}
	}
	reader := filepath.Join("..", "..", "..", "..", "clients", "python", "tools", "read_mpspdz.py")
	if text, err := exec.Command("python3", "-B", reader, out).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

func TestExportMPSPDZRefuses(t *testing.T) {
	shares, out := lodgetest.ExportTwo(t, 3), t.TempDir()
	party := filepath.Join(shares, "party-0")
	if _, err := lodgetest.Run(t, "export", "mp-spdz", "--from", party, "--out", out); err != nil {
		t.Fatal(err)
	}
	if text, err := lodgetest.Run(t, "export", "mp-spdz", "--from", party, "--out", out, "--force"); err != nil || strings.Contains(text, "warning") {
		t.Errorf("with force: %v: %s", err, text)
	}
	fresh := func(party string) string { return filepath.Join(lodgetest.ExportTwo(t, 3), party) }
	if _, err := lodgetest.Run(t, "export", "mp-spdz", "--from", fresh("party-0"), "--out", out, "--suffix", "-T0"); err != nil {
		t.Error(err)
	}
	text, err := lodgetest.Run(t, "export", "mp-spdz", "--from", fresh("party-1"), "--out", out, "--dry-run")
	if err != nil || !strings.Contains(text, "several parties' shares of the MAC key") {
		t.Errorf("%v: %s", err, text)
	}
	for want, args := range map[string][]string{
		"name directories of":        {"--out", out},
		`required flag(s) "out" not`: {"--from", party},
		mpspdz.ErrExists.Error():     {"--from", fresh("party-0"), "--out", out},
		" went to " + out:            {"--from", party, "--out", t.TempDir()},
		"each party's shares on":     {"--from", shares, "--out", t.TempDir()},
		"write -T0":                  {"--from", fresh("party-0"), "--out", t.TempDir(), "--suffix", "T0"},
	} {
		if _, err := lodgetest.Run(t, append([]string{"export", "mp-spdz"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
	text, err = lodgetest.Run(t, "export", "mp-spdz", "--from", party, "--out", out, "--json")
	if _, f := lodgetest.Failed(t, text); err == nil || f.Code != rpc.Conflict || !strings.Contains(err.Error(), f.What) {
		t.Errorf("%v, written %q", err, text)
	}
}
