package main

import (
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// An epoch is replaced by another, its tuples are used up or erased, and what is secret of it is destroyed; whatever is
// done twice is done once.
func TestKeysCommands(t *testing.T) {
	l := startLive(t)
	listed := func() []keysRecord {
		t.Helper()
		return read[keysListing](l, "keys", "list").Epochs
	}
	l.shows([]string{"keys", "list"}, "1      active  triples  insecure-8  1    proved          present")
	l.ok(append([]string{"stock", "policies", "set", "--epoch", "1"}, class("--low", "10", "--high", "20", "--batch", "10", "--paused")...)...)

	l.shows([]string{"keys", "rotate", "1", "--dry-run"}, "this would make an epoch of insecure-8 for triples, for blocks of up to 1, whose keys are proved")
	if r := read[rotationReport](l, "keys", "rotate", "1", "--dim", "4", "--dry-run"); !r.DryRun || r.Keys.Dim != 4 || r.State != "new" {
		t.Errorf("%+v", r)
	}
	l.refuses(rpc.PassiveKeygen, "has no room for proofs", "keys", "rotate", "1", "--set", "insecure-8-64", "--security", "proved")
	l.refuses(rpc.Invalid, "unknown set", "keys", "rotate", "1", "--set", "S99")
	l.refuses(rpc.PolicyRefused, "not pinned", "keys", "rotate", "1", "--set", "insecure-8-64")
	l.refuses(rpc.NotFound, "no epoch 9", "keys", "rotate", "9")
	l.refuses(rpc.Invalid, `--old "burn"`, "keys", "rotate", "1", "--old", "burn")
	l.refuses(rpc.Invalid, "add --yes", "keys", "rotate", "1", "--destroy-old")
	l.refuses(rpc.Invalid, "is not the number", "keys", "rotate", "first")
	if n := len(listed()); n != 1 {
		t.Fatalf("%d epochs after refusals and dry runs", n)
	}

	for range 2 { // the second time it is done
		l.shows([]string{"keys", "rotate", "1", "--security", "proved"}, "epoch 2 takes the place of epoch 1, and 1 policies have moved", "epoch 1 drains")
	}
	l.shows([]string{"keys", "list"}, "draining", "2      active")
	if e := listed(); len(e) != 2 || e[0].Rotation.Successor != 2 || len(e[0].Parties) != 2 || e[0].Parties[1].State != "draining" || e[0].Parties[1].Successor != 2 {
		t.Fatalf("%+v", e)
	}
	l.shows([]string{"keys", "rotate", "1", "--security", "proved", "--dry-run"}, "epoch 1 is replaced by epoch 2 already")
	l.refuses(rpc.Conflict, "rotate epoch 2", "keys", "rotate", "1", "--dim", "4")
	type policies struct{ Policies []policyRecord }
	if p := read[policies](l, "stock", "policies", "list").Policies; len(p) != 1 || p[0].Epoch != 2 {
		t.Errorf("%+v", p)
	}
	l.refuses(rpc.Conflict, "use epoch 2", "jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", liveField, "--epoch", "1", "--count", "5")
	l.ok(append([]string{"reserve", "--epoch", "1"}, class("--count", "5")...)...)
	l.ok("jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", liveField, "--epoch", "2", "--count", "5", "--wait")

	l.shows([]string{"keys", "rotate", "2", "--old", "revoke", "--dry-run"}, "burn the MAC keys of epoch 2", "p1     active  1")
	r := read[rotationReport](l, "keys", "rotate", "2", "--old", "revoke", "--yes")
	if r.Successor != 3 || r.Old != "revoke" || len(r.Parties) != 2 || r.Parties[0].State != "draining" || r.Parties[0].Erased != 1 {
		t.Errorf("%+v", r)
	}
	l.shows([]string{"mac-keys", "list", "--party", "p1"}, "burnt")

	l.shows([]string{"keys", "destroy", "1", "--dry-run"}, "erase the secrets of epoch 1", "p0     draining  1")
	l.refuses(rpc.Invalid, "add --yes", "keys", "destroy", "1")
	l.refuses(rpc.Invalid, `--party "p9"`, "keys", "destroy", "1", "--party", "p9")
	l.refuses(rpc.NotFound, "no epoch 9", "keys", "destroy", "9", "--yes")
	l.shows([]string{"keys", "destroy", "1", "--party", "p1", "--yes"}, "party p1: epoch 1 is retired, and 1 batches under it are erased")
	l.shows([]string{"keys", "list"}, "p0 draining, p1 retired")
	if d := read[endingReport](l, "keys", "destroy", "1", "--yes"); len(d.Parties) != 2 || d.Parties[0].Erased != 1 || d.Parties[1].Erased != 0 || d.Action != "destroy" {
		t.Errorf("%+v", d)
	}
	if e := listed(); e[0].Parties[0].State != "retired" || e[0].Parties[0].Successor != 2 || e[2].Parties[0].State != "active" {
		t.Errorf("%+v", e)
	}
	l.completes([]string{"keys", "rotate", ""}, "3")
	l.completes([]string{"keys", "destroy", ""}, "1")

	l.stop[2]() // p1
	l.refuses(rpc.Unavailable, "", "keys", "destroy", "2", "--yes")
	if e := listed(); e[1].Parties[0].State != "draining" {
		t.Errorf("it was begun although a party cannot be asked: %+v", e[1])
	}

	l.stop[1]() // p0, too; each then has an epoch 9 of its own, as one that has come from another cluster
	for i := range 2 {
		l.others(i, 9)
		l.party(i)
	}
	l.eventually(func() bool {
		_, err := l.try("keys", "destroy", "9", "--dry-run")
		return !errors.Is(err, &rpc.Error{Code: rpc.Unavailable})
	})
	l.refuses(rpc.Conflict, "is another than that of party p0", "keys", "destroy", "9", "--yes")
	l.refuses(rpc.Conflict, "the parties differ about epoch 9", "keys", "rotate", "9")
	l.shows([]string{"keys", "destroy", "9", "--party", "p1", "--yes"}, "party p1: epoch 9 is retired")
	l.shows([]string{"keys", "list"}, "p0 active, p1 retired")
}

// others puts an epoch of another cluster into a party that is stopped.
func (l *live) others(party int, epoch uint64) {
	l.t.Helper()
	check := func(err error) {
		l.t.Helper()
		if err != nil {
			l.t.Fatal(err)
		}
	}
	f, err := config.LoadParty(l.net.Parties[party])
	check(err)
	key, err := seal.LoadKey(f.Vault.KeyFile)
	check(err)
	v, err := vault.Open(f.Vault.Dir, key)
	check(err)
	defer v.Close()
	w, err := v.NewEpoch(keys.Epoch{ID: epoch, Params: "insecure-8", Purpose: "triples", Dim: 1, Digest: [32]byte{byte(party)}, RosterHash: [32]byte{9}})
	check(err)
	check(w.Commit())
	check(v.ActivateEpoch(epoch))
}
