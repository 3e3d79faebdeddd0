package keys_test

import (
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/jobs"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/keys"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// An epoch is replaced by another, its tuples are used up or erased, and its secrets are destroyed.
// Repeating a command has no further effect.
func TestKeysCommands(t *testing.T) {
	l := lodgetest.Start(t)
	listed := func() []keys.KeysRecord {
		t.Helper()
		return lodgetest.Read[keys.KeysListing](l, "keys", "list").Epochs
	}
	l.Shows([]string{"keys", "list"}, "1      active  triples  insecure-8  1    proved          present")
	l.OK(append([]string{"stock", "policies", "set", "--epoch", "1"}, lodgetest.Class("--low", "10", "--high", "20", "--batch", "10", "--paused")...)...)

	l.Shows([]string{"keys", "rotate", "1", "--dry-run"}, "this would make an epoch of insecure-8 for triples, for blocks of up to 1, whose keys are proved")
	if r := lodgetest.Read[keys.RotationReport](l, "keys", "rotate", "1", "--dim", "4", "--dry-run"); !r.DryRun || r.Keys.Dim != 4 || r.State != "new" {
		t.Errorf("%+v", r)
	}
	l.Refuses(rpc.PassiveKeygen, "do not allow proofs", "keys", "rotate", "1", "--set", "insecure-8-64", "--security", "proved")
	l.Refuses(rpc.Invalid, "unknown set", "keys", "rotate", "1", "--set", "S99")
	l.Refuses(rpc.PolicyRefused, "not pinned", "keys", "rotate", "1", "--set", "insecure-8-64")
	l.Refuses(rpc.NotFound, "epoch 9", "keys", "rotate", "9")
	l.Refuses(rpc.Invalid, `--old "burn"`, "keys", "rotate", "1", "--old", "burn")
	l.Refuses(rpc.Invalid, "add --yes", "keys", "rotate", "1", "--destroy-old")
	l.Refuses(rpc.Invalid, "is not the number", "keys", "rotate", "first")
	if n := len(listed()); n != 1 {
		t.Fatalf("%d epochs after refusals and dry runs", n)
	}

	for range 2 { // the second time
		l.Shows([]string{"keys", "rotate", "1", "--security", "proved"}, "epoch 2 replaces epoch 1, and 1 policies have moved", "epoch 1 drains")
	}
	l.Shows([]string{"keys", "list"}, "draining", "2      active")
	if e := listed(); len(e) != 2 || e[0].Rotation.Successor != 2 || len(e[0].Parties) != 2 || e[0].Parties[1].State != "draining" || e[0].Parties[1].Successor != 2 {
		t.Fatalf("%+v", e)
	}
	l.Shows([]string{"keys", "rotate", "1", "--security", "proved", "--dry-run"}, "epoch 1 is already replaced by epoch 2")
	l.Refuses(rpc.Conflict, "rotate epoch 2", "keys", "rotate", "1", "--dim", "4")
	type policies struct{ Policies []jobs.PolicyRecord }
	if p := lodgetest.Read[policies](l, "stock", "policies", "list").Policies; len(p) != 1 || p[0].Epoch != 2 {
		t.Errorf("%+v", p)
	}
	l.Refuses(rpc.Conflict, "use epoch 2", "jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", lodgetest.LiveField, "--epoch", "1", "--count", "5")
	l.OK(append([]string{"reserve", "--epoch", "1"}, lodgetest.Class("--count", "5")...)...)
	l.OK("jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", lodgetest.LiveField, "--epoch", "2", "--count", "5", "--wait")

	l.Shows([]string{"keys", "rotate", "2", "--old", "revoke", "--dry-run"}, "burn the MAC keys of epoch 2", "p1     active  1")
	r := lodgetest.Read[keys.RotationReport](l, "keys", "rotate", "2", "--old", "revoke", "--yes")
	if r.Successor != 3 || r.Old != "revoke" || len(r.Parties) != 2 || r.Parties[0].State != "draining" || r.Parties[0].Erased != 1 {
		t.Errorf("%+v", r)
	}
	l.Shows([]string{"mac-keys", "list", "--party", "p1"}, "burnt")

	l.Shows([]string{"keys", "destroy", "1", "--dry-run"}, "erase the secrets of epoch 1", "p0     draining  1")
	l.Refuses(rpc.Invalid, "add --yes", "keys", "destroy", "1")
	l.Refuses(rpc.Invalid, `--party "p9"`, "keys", "destroy", "1", "--party", "p9")
	l.Refuses(rpc.NotFound, "epoch 9", "keys", "destroy", "9", "--yes")
	l.Shows([]string{"keys", "destroy", "1", "--party", "p1", "--yes"}, "party p1: epoch 1 is retired, and 1 batches under it are erased")
	l.Shows([]string{"keys", "list"}, "p0 draining, p1 retired")
	if d := lodgetest.Read[keys.EndingReport](l, "keys", "destroy", "1", "--yes"); len(d.Parties) != 2 || d.Parties[0].Erased != 1 || d.Parties[1].Erased != 0 || d.Action != "destroy" {
		t.Errorf("%+v", d)
	}
	if e := listed(); e[0].Parties[0].State != "retired" || e[0].Parties[0].Successor != 2 || e[2].Parties[0].State != "active" {
		t.Errorf("%+v", e)
	}
	l.Completes([]string{"keys", "rotate", ""}, "3")
	l.Completes([]string{"keys", "destroy", ""}, "1")

	l.Stop[2]() // p1
	l.Refuses(rpc.Unavailable, "", "keys", "destroy", "2", "--yes")
	if e := listed(); e[1].Parties[0].State != "draining" {
		t.Errorf("it was begun although a party cannot be asked: %+v", e[1])
	}

	l.Stop[1]() // p0 too; each then has a separate epoch 9, like a party that joined from another cluster
	for i := range 2 {
		others(l, i, 9)
		l.Party(i)
	}
	l.Eventually(func() bool {
		_, err := l.Try("keys", "destroy", "9", "--dry-run")
		return !errors.Is(err, &rpc.Error{Code: rpc.Unavailable})
	})
	l.Refuses(rpc.Conflict, "differs from that of party p0", "keys", "destroy", "9", "--yes")
	l.Refuses(rpc.Conflict, "the parties differ about epoch 9", "keys", "rotate", "9")
	l.Shows([]string{"keys", "destroy", "9", "--party", "p1", "--yes"}, "party p1: epoch 9 is retired")
	l.Shows([]string{"keys", "list"}, "p0 active, p1 retired")
}

// others stores an epoch of another cluster in a stopped party.
func others(l *lodgetest.Live, party int, epoch uint64) {
	l.T.Helper()
	check := func(err error) {
		l.T.Helper()
		if err != nil {
			l.T.Fatal(err)
		}
	}
	f, err := config.LoadParty(l.Net.Parties[party])
	check(err)
	key, err := seal.LoadKey(f.Vault.KeyFile)
	check(err)
	v, err := vault.Open(f.Vault.Dir, key)
	check(err)
	defer v.Close()
	w, err := v.NewEpoch(vaultkeys.Epoch{ID: epoch, Params: "insecure-8", Purpose: "triples", Dim: 1, Digest: [32]byte{byte(party)}, RosterHash: [32]byte{9}})
	check(err)
	check(w.Commit())
	check(v.ActivateEpoch(epoch))
}
