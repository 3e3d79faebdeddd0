package multikey_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	multikeyroom "github.com/lodge-mpc/lodge/cmd/lodge/internal/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// Two parties generate keys and encrypt, and one of them computes. Everything but the keys uses
// commands.
func TestMkEvaluate(t *testing.T) {
	l := lodgetest.StartBare(t, devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true, Multikey: "insecure-M8-32"})
	dir := t.TempDir()
	var files []string
	for i, name := range []string{"p0", "p1"} {
		o := &cli.Operator{Cluster: l.Net.Dir, Party: name}
		c, err := o.DialParty()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Conn.Close()
		pinned, err := multikeyroom.MkContext(o)
		if err != nil {
			t.Fatal(err)
		}
		keys := multikeyv1.NewKeysServiceClient(c.Conn)
		if _, err := keys.MakeKeys(t.Context(), &multikeyv1.MakeKeysRequest{RequestId: make([]byte, 16)}, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
		m, err := keys.Encrypt(t.Context(), &multikeyv1.EncryptRequest{Count: 3, Bits: []byte{byte(i + 4)}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := pinned.DecodeBatch(m.GetBatch())
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := mkclient.Write(&text, pinned.Scheme, []mkclient.Group{{Batch: b}}); err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(dir, name+".mk"))
		if err := os.WriteFile(files[i], text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.Eventually(func() bool {
		list := lodgetest.Read[multikeyroom.PublishedList](l, "mk", "registry", "list", "--party", "p1").Keys
		return len(list) == 2 && list[0].Present && list[1].Present && list[0].State == "current"
	})
	netlist, out := filepath.Join(dir, "adder"), filepath.Join(dir, "sum.mk")
	if _, err := lodgetest.Run(t, "mk", "netlist", "example", "adder", "3", "--out", netlist); err != nil {
		t.Fatal(err)
	}
	text, err := lodgetest.Run(t, "mk", "netlist", "check", netlist)
	if err != nil || !bytes.Contains([]byte(text), []byte("digest")) {
		t.Errorf("%v: %s", err, text)
	}
	cost := lodgetest.Read[multikeyroom.CostRecord](l, "mk", "evaluate", netlist, "--in", files[0], "--in", files[1], "--party", "p1", "--estimate")
	if cost.Bootstraps == 0 || cost.Seconds <= 0 {
		t.Errorf("the estimate is %+v", cost)
	}
	r := lodgetest.Read[multikeyroom.EvaluationRecord](l, "mk", "evaluate", netlist, "--in", files[0], "--in", files[1], "--party", "p1", "--out", out)
	if r.State != "done" || r.Cost.Bootstraps != cost.Bootstraps || len(r.Result) != 64 {
		t.Errorf("the evaluation is %+v", r)
	}
	pinned, err := multikeyroom.MkContext((&cli.Operator{Cluster: l.Net.Dir}))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := multikeyroom.ReadMultikey(pinned, []string{out})
	if err != nil || len(mkclient.Ciphertexts(groups)) != 4 || len(groups[len(groups)-1].Keys()) != 2 {
		t.Errorf("%d groups come out: %v", len(groups), err)
	}
	jobs := lodgetest.Read[map[string][]multikeyroom.EvaluationRecord](l, "mk", "jobs", "--party", "p1")["evaluations"]
	if len(jobs) != 1 || jobs[0].Request != r.Request {
		t.Errorf("the jobs are %+v", jobs)
	}
	_, err = l.Try("mk", "evaluate", netlist, "--in", files[0], "--party", "p1", "--estimate")
	if e := rpc.FromError(err); err == nil || e.Code != rpc.Invalid {
		t.Errorf("with one input: %v", err)
	}
	_, err = l.Try("mk", "evaluate", netlist, "--in", netlist, "--party", "p1", "--estimate")
	if e := rpc.FromError(err); err == nil || e.Code != rpc.Invalid {
		t.Errorf("with a netlist as input: %v", err)
	}
	id := groups[len(groups)-1].Keys()[0]
	file := filepath.Join(dir, "keys")
	l.OK("mk", "registry", "fetch", hex.EncodeToString(id[:]), "--party", "p1", "--out", file)
	if info, err := os.Stat(file); err != nil || info.Size() != int64(pinned.KeySize()+32*pinned.Chunks()) {
		t.Errorf("the file of keys: %v", err)
	}
	if _, err := l.Try("mk", "registry", "fetch", "00", "--party", "p1", "--out", file+"2"); rpc.FromError(err) == nil || rpc.FromError(err).Code != rpc.Invalid {
		t.Errorf("a name that is none: %v", err)
	}
	// Clients can download a party's keys, which are verified.
	o := &cli.Operator{Cluster: l.Net.Dir, Party: "p1"}
	p, _, c, err := multikeyroom.MkParty(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Conn.Close()
	k, err := p.Keys(t.Context(), id, nil)
	if err != nil || k.ID() != id {
		t.Errorf("keys: %v", err)
	}
	if _, err := p.Keys(t.Context(), multikey.KeyID{1}, nil); err == nil {
		t.Error("keys of nobody are fetched")
	}
}

func TestMkNetlistRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "netlist")
	if err := os.WriteFile(path, []byte("1 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mk", "netlist", "check", path},
		{"mk", "netlist", "example", "lottery", "1", "--out", filepath.Join(dir, "x")},
		{"mk", "netlist", "example", "adder", "x", "--out", filepath.Join(dir, "x")},
		{"mk", "netlist", "example", "adder", "0", "--out", filepath.Join(dir, "x")},
	} {
		if e, _ := lodgetest.Fails(t, args...); e.Code != rpc.Invalid {
			t.Errorf("%v: %v", args, e)
		}
	}
}
