package tuples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/engine/params"
)

func TestVerifyCommand(t *testing.T) {
	dir := lodgetest.Pooled(t, lodgetest.ExportTwo(t, 3))
	out, err := lodgetest.Run(t, "verify", filepath.Join(dir, "party-0"), filepath.Join(dir, "party-1"))
	if err != nil || !strings.HasPrefix(out, "3 of 3 scalar tuples verified: 2 parties, S14-32 over p64") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = lodgetest.Run(t, "verify", "--json", dir)
	var report struct {
		OK       bool
		Verified int
		Failures []verify.Failure
	}
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || !report.OK || report.Verified != 3 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestVerifyCommandFails(t *testing.T) {
	dir := lodgetest.Pooled(t, lodgetest.ExportTwo(t, 3))
	manifest := filepath.Join(dir, "party-1", tuplefile.ManifestName)
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := bytes.Replace(data, []byte(`"mac_key_share": "22"`), []byte(`"mac_key_share": "23"`), 1)
	if err := os.WriteFile(manifest, spoilt, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := lodgetest.Run(t, "verify", dir)
	if !errors.Is(err, cli.ErrUnverified) || !strings.Contains(out, "0 of 3") || !strings.Contains(out, "tuple 2: mac_c") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = lodgetest.Run(t, "verify", "--json", dir); !errors.Is(err, cli.ErrUnverified) || !strings.Contains(out, `"ok": false`) {
		t.Errorf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"verify"}, {"verify", "nowhere"}, {"verify", filepath.Join(dir, "party-0")}, {"nonsense"}} {
		if out, err := lodgetest.Run(t, args...); err == nil {
			t.Errorf("%v passes: %s", args, out)
		}
	}
}

// The checker's own table of moduli equals the engine's: two separate copies on purpose.
func TestCheckerKnowsEveryField(t *testing.T) {
	for _, s := range params.Sets() {
		for _, f := range s.Fields {
			want := new(big.Int).Exp(f.B, big.NewInt(int64(f.M)), nil)
			want.Add(want, big.NewInt(1))
			if got, err := verify.Modulus(s.Name, f.Name); err != nil || got.Cmp(want) != 0 {
				t.Errorf("%s of %s: %v, %v", f.Name, s.Name, got, err)
			}
		}
	}
}
