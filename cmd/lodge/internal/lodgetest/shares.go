package lodgetest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/clients/go/verify"
)

// WithoutKey copies party 0's shares as `lodge fetch` without --with-mac-key writes them.
func WithoutKey(t *testing.T, shares string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keyless")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(shares, "party-0"))); err != nil {
		t.Fatal(err)
	}
	m, err := tuplefile.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.MACKeyShare, m.MACKeyPooled = "", false
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, tuplefile.ManifestName), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ExportTwo writes two parties' shares of triples (i+2)*(i+9), with party 0's shares one each.
func ExportTwo(t *testing.T, tuples int) string {
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

// Pooled marks the shares of ExportTwo as drawn for checking.
func Pooled(t *testing.T, dir string) string {
	t.Helper()
	for party, key := range []string{"11", "22"} {
		if err := tuplefile.AddPooledKey(filepath.Join(dir, fmt.Sprintf("party-%d", party)), key); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
