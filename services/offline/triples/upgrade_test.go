package triples

import (
	"archive/tar"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/internal/testnet"
	"github.com/lodge-mpc/lodge/services/offline/keyring"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const oldSet = "insecure-6"

// oldStores unpacks the stores that protocol version 12 wrote; see testdata/version12/README.md.
func oldStores(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/version12/stores.tar.gz")
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	dir := t.TempDir()
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		must(t, err)
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			must(t, os.MkdirAll(path, 0o700))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		b, err := io.ReadAll(in)
		must(t, err)
		must(t, os.WriteFile(path, b, 0o600))
	}
}

// openOld opens such a store a little after it was written, when its reservations are still open.
func openOld(t *testing.T, dir string) *vault.Vault {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(path, []byte(strings.Repeat("0", 64)), 0o600))
	k, err := seal.LoadKey(path)
	must(t, err)
	s, err := store.OpenDir(dir)
	must(t, err)
	written := time.Date(2026, 11, 24, 23, 0, 0, 0, time.UTC)
	v, err := vault.OpenAt(s, k, func() time.Time { return written })
	must(t, err)
	t.Cleanup(func() { v.Close() })
	return v
}

// Stores of the protocol version before the hiding MAC check stay usable: released tuples verify,
// the MAC key makes batches with the new check, and a key that a check of the old version may have
// revealed is burnt.
func TestUpgradeFromVersion12(t *testing.T) {
	dir := oldStores(t)
	exposed := openOld(t, filepath.Join(dir, "exposed"))
	keys, err := exposed.MACKeys()
	must(t, err)
	if len(keys) != 1 || keys[0].State != vaultkeys.MACBurnt {
		t.Errorf("an exposed key: %+v", keys)
	}
	if _, _, err := exposed.Deliver("kept", "client", 0); !errors.Is(err, vaulterr.ErrErased) {
		t.Errorf("a tuple under an exposed key is given: %v", err)
	}

	n := upgraded(t, dir)
	var shares [][]byte
	var macs []field.Vec
	f := n.services[0].scheme(t)
	for i, s := range n.services {
		r, _, err := s.whole().Deliver("kept", "client", i)
		must(t, err)
		in, _, err := s.whole().Shares(&r, 0)
		must(t, err)
		b, err := io.ReadAll(in)
		must(t, err)
		must(t, in.Close())
		share, err := s.MACKeyShare(n.key(i))
		must(t, err)
		m := f.NewVec(1)
		must(t, f.DecodeVec(m, share))
		shares, macs = append(shares, b), append(macs, m)
	}
	verifyScalars(t, f, shares, macs)

	before := n.batches(0)
	spec := n.spec()
	spec.Params = oldSet
	n.start(0, spec)
	n.start(1, spec)
	for i := range n.services {
		n.ends(i, spec)
		if k := n.key(i); n.batches(i) != before+1 || k.State != vaultkeys.MACActive || len(k.Checks) > 0 || k.Failed > 0 {
			t.Errorf("party %d: %+v", i, k)
		}
	}
}

// scheme gives the field of the parties' tuples.
func (s *Service) scheme(t *testing.T) *field.Field {
	t.Helper()
	x, err := s.ring.Scheme(oldSet, liveField)
	must(t, err)
	return x.Field
}

// verifyScalars checks triples and their MACs against the pooled shares.
func verifyScalars(t *testing.T, f *field.Field, shares [][]byte, macs []field.Vec) {
	t.Helper()
	count := len(shares[0]) / f.Size()
	sum, v, alpha := f.NewVec(count), f.NewVec(count), f.NewVec(1)
	for i, b := range shares {
		must(t, f.DecodeVec(v, b))
		f.AddVec(sum, sum, v)
		f.AddVec(alpha, alpha, macs[i])
	}
	if count == 0 || count%6 != 0 || f.IsZero(alpha.At(0)) {
		t.Fatalf("%d elements", count)
	}
	for k := 0; k < count; k += 6 { // a, b, c and their MACs
		x := f.NewElement()
		if f.Mul(x, sum.At(k), sum.At(k+1)); !f.Equal(x, sum.At(k+2)) {
			t.Errorf("tuple %d: c is not a b", k/6)
		}
		for j := range 3 {
			if f.Mul(x, sum.At(k+j), alpha.At(0)); !f.Equal(x, sum.At(k+j+3)) {
				t.Errorf("tuple %d: MAC %d is wrong", k/6, j)
			}
		}
	}
}

// upgraded is two parties with the old stores.
func upgraded(t *testing.T, dir string) *live {
	t.Helper()
	set, err := params.Lookup(oldSet)
	must(t, err)
	n, hash := &live{t: t, set: set}, set.Hash()
	policy := config.Policy{
		Params: []config.ParamsPin{{Name: oldSet, Hash: hex.EncodeToString(hash[:])}}, Kinds: []string{"scalar"}, Fields: []string{liveField},
		Purposes: []string{"triples"}, Tenants: []string{"dev"}, MaxCount: 100, JobsPerHour: 100, MaxConcurrent: 2, MaxMemory: 1 << 30,
	}
	net := testnet.New(t, 2, testnet.Options{})
	for i, p := range net.Parties {
		v := openOld(t, filepath.Join(dir, []string{"party0", "party1"}[i]))
		sessions := session.NewRegistry(session.Config{
			Gate:     job.NewGate(job.Terms{Policy: policy, RosterHash: [32]byte{1}, AllowInsecureParams: true}),
			Exchange: p.Exchange, Self: round.Party(i), Names: net.Names, Signer: p.Signer, Keys: net.Keys, Roster: [32]byte{1},
			Limits:  runner.Limits{Idle: time.Minute, Compute: time.Minute, MinRate: 1},
			Metrics: metrics.New("test", metrics.Both), Log: slog.New(slog.DiscardHandler),
		})
		t.Cleanup(sessions.Close)
		n.services = append(n.services, New(sessions, keyring.New(v, 1, true), v, 2, nil, nil))
		keys, err := v.MACKeys()
		must(t, err)
		n.macKey = keys[0].ID
	}
	n.jobs = 100
	return n
}
