package multikey_test

import (
	"path/filepath"
	"testing"

	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/multikey"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// Two parties generate keys and encrypt, one of them adds the numbers, and both decrypt the sum,
// using commands only.
func TestMkCommands(t *testing.T) {
	l := lodgetest.StartBare(t, devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true, Multikey: "insecure-M8-32", MaxMemory: 2 << 30})
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	l.Shows([]string{"mk", "keys", "list", "--party", "p0"}, "no keys")
	for _, p := range []string{"p0", "p1"} {
		l.Shows([]string{"mk", "keys", "make", "--party", p}, "active  insecure-M8-32")
	}
	if k := lodgetest.Read[mkclient.OwnKeys](l, "mk", "keys", "make", "--party", "p0"); k.Version != 2 || !k.Pinned || len(k.Name) != 64 {
		t.Errorf("%+v", k)
	}
	l.Refuses(rpc.Invalid, "other characters than 0 and 1", "mk", "encrypt", "012", "--party", "p0", "--out", path("none"))
	l.Refuses(rpc.Invalid, "no --out", "mk", "encrypt", "01", "--party", "p0")
	l.Refuses(rpc.NotFound, "version 7", "mk", "encrypt", "01", "--party", "p0", "--version", "7", "--out", path("none"))
	l.OK("mk", "encrypt", "110", "--party", "p0", "--out", path("a")) // 3, the lowest bit first
	l.OK("mk", "encrypt", "101", "--party", "p1", "--out", path("b")) // 5
	l.Refuses(rpc.Conflict, "exists", "mk", "encrypt", "1", "--party", "p0", "--out", path("a"))
	l.Refuses(rpc.NotFound, "in a group", "mk", "decrypt", path("a"))

	l.Refuses(rpc.Invalid, "separate keys", "keys", "generate", "--params", "insecure-M8-32", "--threshold", "2")
	l.Shows([]string{"keys", "generate", "--params", "insecure-M8-32", "--wait"}, "epoch           1")
	l.Refuses(rpc.Invalid, "other form", "keys", "masks", "1", "--quorum", "0,1", "--form", "paper")
	l.Refuses(rpc.WrongQuorum, "--quorum names 1 parties", "keys", "masks", "1", "--quorum", "0")
	l.Shows([]string{"keys", "masks", "1", "--every-quorum", "--count", "20", "--wait"}, "made            20")
	l.Shows([]string{"keys", "show", "1"}, "2 parties decrypt ciphertexts under their own keys", "p0 p1   exact  20")
	l.OK("keys", "list")

	if _, err := lodgetest.Run(t, "mk", "netlist", "example", "adder", "3", "--out", path("adder")); err != nil {
		t.Fatal(err)
	}
	l.Eventually(func() bool {
		return len(lodgetest.Read[multikey.PublishedList](l, "mk", "registry", "list", "--party", "p1").Keys) == 3
	})
	l.Eventually(func() bool {
		_, err := l.Try("mk", "evaluate", path("adder"), "--in", path("a"), "--in", path("b"), "--party", "p1", "--out", path("sum"))
		return err == nil // when the keys have arrived
	})
	l.Shows([]string{"mk", "decrypt", path("sum")}, "0001\n") // 8
	if r := lodgetest.Read[multikey.MkDecryptReport](l, "mk", "decrypt", path("sum"), "--quorum", "p0,p1", "--epoch", "1"); r.Bits != "0001" || r.Epoch != 1 || len(r.Quorums) == 0 {
		t.Errorf("%+v", r)
	}
	l.Shows([]string{"mk", "decrypt", path("a")}, "110\n")
	l.Refuses(rpc.Invalid, "nothing was changed", "mk", "keys", "destroy", "1", "--party", "p1")
	l.Refuses(rpc.NotFound, "version 9", "mk", "keys", "destroy", "9", "--party", "p1", "--yes")
	l.Shows([]string{"mk", "keys", "destroy", "1", "--party", "p1", "--reason", "leaked", "--yes"}, "retired", "leaked")
	l.Refuses("retired_key", "version 1 of the multi-key keys of party 1", "mk", "decrypt", path("b"))
	l.Refuses("retired_key", "", "mk", "decrypt", path("sum"))
}
