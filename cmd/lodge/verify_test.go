package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/engine/params"
)

// exportTwo writes two parties' shares of triples (i+2)*(i+9), with party 0's shares one each.
func exportTwo(t *testing.T, tuples int) string {
	t.Helper()
	p, err := verify.Modulus("S14-32", "p64")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const key0, key1 = 11, 22
	for party, key := range []int64{key0, key1} {
		w, err := tuplefile.Create(filepath.Join(dir, fmt.Sprintf("party-%d", party)), tuplefile.Manifest{
			FormatVersion: 1, Kind: tuplefile.Scalar, Params: "S14-32", Field: "p64", Modulus: p.String(), Parties: 2,
			Party: party, Epoch: 1, Batch: "test", Tuples: int64(tuples), Dims: tuplefile.Dims{M: 1, K: 1, N: 1},
			MACKeyShare: fmt.Sprint(key), KeygenSecurity: "passive",
		}, 8)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(tuples) {
			a, b := i+2, i+9+int64(tuples)
			for _, x := range []int64{a, b, a * b, (key0 + key1) * a, (key0 + key1) * b, (key0 + key1) * a * b} {
				share := big.NewInt(1)
				if party == 1 {
					share.SetInt64(x - 1)
				}
				e := share.FillBytes(make([]byte, 8))
				slices.Reverse(e)
				if _, err := w.Write(e); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pooled says of shares of exportTwo that they were drawn to be checked.
func pooled(t *testing.T, dir string) string {
	t.Helper()
	for party, key := range []string{"11", "22"} {
		if err := tuplefile.AddPooledKey(filepath.Join(dir, fmt.Sprintf("party-%d", party)), key); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func runLodge(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newLodge()
	root.SetOut(&out)
	root.SetErr(&out)
	err := execute(t.Context(), root, args)
	return out.String(), err
}

func TestVerifyCommand(t *testing.T) {
	dir := pooled(t, exportTwo(t, 3))
	out, err := runLodge(t, "verify", filepath.Join(dir, "party-0"), filepath.Join(dir, "party-1"))
	if err != nil || !strings.HasPrefix(out, "3 of 3 scalar tuples verified: 2 parties, S14-32 over p64") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = runLodge(t, "verify", "--json", dir)
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
	dir := pooled(t, exportTwo(t, 3))
	manifest := filepath.Join(dir, "party-1", tuplefile.ManifestName)
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := bytes.Replace(data, []byte(`"mac_key_share": "22"`), []byte(`"mac_key_share": "23"`), 1)
	if err := os.WriteFile(manifest, spoilt, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := runLodge(t, "verify", dir)
	if !errors.Is(err, errUnverified) || !strings.Contains(out, "0 of 3") || !strings.Contains(out, "tuple 2: mac_c") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = runLodge(t, "verify", "--json", dir); !errors.Is(err, errUnverified) || !strings.Contains(out, `"ok": false`) {
		t.Errorf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"verify"}, {"verify", "nowhere"}, {"verify", filepath.Join(dir, "party-0")}, {"nonsense"}} {
		if out, err := runLodge(t, args...); err == nil {
			t.Errorf("%v passes: %s", args, out)
		}
	}
}

// The checker's own table of moduli is the engine's: two copies on purpose, compared here.
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
