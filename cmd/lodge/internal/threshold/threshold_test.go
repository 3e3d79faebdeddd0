package threshold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/keys"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	thresholdroom "github.com/lodge-mpc/lodge/cmd/lodge/internal/threshold"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// Threshold keys are generated, shown, downloaded, used and destroyed; two of three decrypt, also
// if one party is unavailable.
func TestThresholdCommands(t *testing.T) {
	l, dir := lodgetest.StartThreshold(t), t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	generate := []string{"keys", "generate", "--params", lodgetest.ThresholdSet}
	l.Refuses(rpc.Invalid, "no honest majority", append(generate, "--threshold", "2")...)
	l.Refuses(rpc.Invalid, "no honest majority", append(generate, "--holders", "p0,p1")...)
	l.Refuses(rpc.Invalid, `there is no party "p7"`, append(generate, "--holders", "p0,p1,p7")...)
	l.Refuses(rpc.Invalid, "names p1 twice", append(generate, "--holders", "p0,p1,1")...)
	l.Refuses(rpc.Invalid, "is a set for keys", "keys", "generate", "--params", "S14-32")
	l.Refuses(rpc.Invalid, "no parameter set", "keys", "generate", "--params", "B99")
	l.Refuses(rpc.Invalid, "have no slots", append(generate, "--rotations", "1")...)
	l.Refuses(rpc.Invalid, "--rotations 16", "keys", "generate", "--params", lodgetest.BgvSet, "--rotations", "1,16")
	l.Refuses(rpc.Invalid, "lodge keys masks", "jobs", "submit", "--kind", "masks")
	l.Refuses(rpc.Invalid, "lodge keys reshare", "jobs", "submit", "--kind", "reshare")
	l.Refuses(rpc.Invalid, "lodge keys generate", "jobs", "submit", "--kind", "keys", "--purpose", "threshold")
	l.Refuses(rpc.NotFound, "no party has threshold keys of epoch 1", "keys", "show", "1")
	l.Refuses(rpc.NotFound, "no party has threshold keys of epoch 1", "keys", "masks", "1", "--every-quorum")

	l.Shows(append(generate, "--wait"), "key generation  passive", "purpose         threshold", "epoch           1", "any 2 of 3 decrypt")
	l.Shows([]string{"keys", "list"}, "active  threshold  insecure-L8-50  -    passive")
	l.Shows([]string{"keys", "show", "1"}, "any 2 of 3 holders decrypt", "no masks", "never fails", "fails with probability", "0      p0     yes  0")
	l.Refuses(rpc.Invalid, "--every-quorum", "keys", "masks", "1")
	l.Refuses(rpc.WrongQuorum, "names 3 parties", "keys", "masks", "1", "--quorum", "0,1,2")
	l.Refuses(rpc.Invalid, `--form "odd"`, "keys", "masks", "1", "--quorum", "0,1", "--form", "odd")
	l.Refuses(rpc.Invalid, "--count 0", "keys", "masks", "1", "--quorum", "0,1", "--count", "0")
	l.Refuses(rpc.Invalid, "up to 1000 jobs", "keys", "masks", "1", "--quorum", "0,1", "--count", "1000000000")
	l.Shows([]string{"keys", "masks", "1", "--every-quorum", "--count", "64", "--wait"}, "asked 192, made 192")
	l.Shows([]string{"keys", "masks", "1", "--quorum", "p0,2", "--count", "10", "--form", "paper", "--wait"}, "masks           paper", "parties         0 2")
	k := lodgetest.Read[keys.ThresholdRecord](l, "keys", "show", "1")
	if k.Quorum != 2 || len(k.Masks) != 4 || k.Masks[0].Free != 64 || k.Forms[1].FailureProbability <= 0 || k.Holders[2].Party != "p2" {
		t.Errorf("%+v", k)
	}
	l.Refuses(rpc.KeyPurpose, "lodge keys reshare", "keys", "rotate", "1")
	l.Completes([]string{"keys", "masks", ""}, "1")
	l.Completes([]string{"keys", "masks", "1", "--quorum", "p0,"}, "p0,p1", "p0,p2")
	l.Completes([]string{"keys", "generate", "--params", ""}, "T11-4")

	encrypts(l, path)
	decrypts(l, path)
	streams(l)

	l.Stop[1]() // p0
	l.Shows([]string{"keys", "show", "1"}, "0      p0     no   ")
	l.Shows([]string{"decrypt", path("lookup")}, "3\n1\n4\n")
	l.Refuses(rpc.OutOfStock, "paper", "decrypt", path("own"), "--paper")
	l.Party(0)
	l.Eventually(func() bool { return len(lodgetest.Read[keys.ThresholdRecord](l, "keys", "show", "1").Masks) == 4 })

	reshares(l, path)
}

// encrypts makes files of ciphertexts.
func encrypts(l *lodgetest.Live, path func(string) string) {
	l.T.Helper()
	l.Refuses(rpc.Invalid, "from 0 to 15", "keys", "encrypt", "1", "16", "--out", path("x"))
	l.Refuses(rpc.Invalid, "from 0 to 1", "keys", "encrypt", "1", "2", "--encoding", "boolean", "--out", path("x"))
	l.Refuses(rpc.Invalid, `encoding "round"`, "keys", "encrypt", "1", "2", "--encoding", "round", "--out", path("x"))
	l.Refuses(rpc.NotFound, "no such file", "keys", "encrypt", "1", "1", "--out", path("x"), "--keys", path("none"))
	l.Shows([]string{"keys", "encrypt", "1", "3", "0x0", "15", "--out", path("own")}, "3 plain messages under epoch 1")
	l.Refuses(rpc.Conflict, "exists", "keys", "encrypt", "1", "3", "--out", path("own"))
	l.Shows([]string{"keys", "fetch", "1", "--out", path("public")}, "the public key of epoch 1")
	l.Shows([]string{"keys", "encrypt", "1", "3", "1", "4", "--encoding", "padded", "--keys", path("public"), "--out", path("lookup")}, "3 padded messages")
	l.Shows([]string{"keys", "encrypt", "1", "1", "0", "--encoding", "boolean", "--keys", path("public"), "--out", path("bits")}, "2 boolean messages")
	l.Refuses(rpc.Conflict, "has the keys of epoch 1", "keys", "encrypt", "2", "1", "--keys", path("public"), "--out", path("x"))

	// an interrupted download is continued, and a corrupt part is downloaded again
	l.OK("keys", "fetch", "1", "--evaluation", "--out", path("all"))
	whole, err := os.ReadFile(path("all"))
	if err != nil {
		l.T.Fatal(err)
	}
	for i := range 4 {
		part := slices.Clone(whole[:rand.IntN(len(whole))])
		if i%2 == 1 {
			part[len(part)/2] ^= 1
		}
		if err := os.WriteFile(path("again.part"), part, 0o600); err != nil {
			l.T.Fatal(err)
		}
		l.OK("keys", "fetch", "1", "--evaluation", "--out", path("again"))
		if got, err := os.ReadFile(path("again")); err != nil || !bytes.Equal(got, whole) {
			l.T.Errorf("cut at %d: %d of %d bytes, %v", len(part), len(got), len(whole), err)
		}
		if err := os.Remove(path("again")); err != nil {
			l.T.Fatal(err)
		}
	}
	f, err := threshold.ReadKeys(bytes.NewReader(whole))
	if err != nil || f.Evaluation == nil || f.Key.Epoch != 1 {
		l.T.Fatalf("%+v, %v", f, err)
	}
	changed := slices.Clone(whole)
	changed[len(changed)-9] ^= 0xff
	for _, wrong := range [][]byte{whole[:len(whole)-1], append(slices.Clone(whole), 0), changed} {
		if f, err := threshold.ReadKeys(bytes.NewReader(wrong)); err == nil {
			l.T.Errorf("%d bytes are read: %+v", len(wrong), f)
		}
	}
	if _, err := os.Lstat(path("x")); err == nil {
		l.T.Error("a command that failed left a file")
	}
}

// decrypts checks decryption by different quorums and for different recipients.
func decrypts(l *lodgetest.Live, path func(string) string) {
	l.T.Helper()
	decrypts := func(want []uint64, quorum string, args ...string) {
		l.T.Helper()
		r := lodgetest.Read[cli.OpenedReport](l, append([]string{"decrypt"}, args...)...)
		if !slices.Equal(r.Values, want) || quorum != "" && fmt.Sprint(r.Quorums) != "[["+quorum+"]]" {
			l.T.Errorf("%v: %+v", args, r)
		}
	}
	decrypts([]uint64{3, 0, 15}, "p0 p2", path("own"), "--quorum", "p2,p0")
	l.OK("keys", "encrypt", "1", "9", "--out", path("paper"))
	decrypts([]uint64{9}, "p0 p2", path("paper"), "--quorum", "0,2", "--paper")
	decrypts([]uint64{3, 1, 4}, "p1 p2", path("lookup"), "--quorum", "1,p2", "--batch", "3")
	decrypts([]uint64{1, 0}, "", path("bits"))
	l.Refuses(rpc.Invalid, "2 messages at a time", "decrypt", path("lookup"), "--batch", "2")
	l.Refuses(rpc.WrongQuorum, "names 1 parties", "decrypt", path("own"), "--quorum", "0")
	l.Refuses(rpc.NotFound, "no such file", "decrypt", path("none"))
	l.Refuses(rpc.Invalid, "not a file of ciphertexts under threshold keys", "decrypt", path("public"))
	l.Refuses(rpc.NotFound, "", "decrypt", path("own"), "--epoch", "5")
	operator := filepath.Join(l.Net.Dir, "clients", "operator.yaml")
	l.Refuses(rpc.Forbidden, `lacks the permission "decrypt"`, "decrypt", path("own"), "--client", operator)
	l.Shows([]string{"decrypt", "approvals", "--client", operator}, "")
	l.Refuses(rpc.NotFound, "request", "decrypt", "approve", strings.Repeat("ab", 32), "--client", operator)
	l.Refuses(rpc.Forbidden, `lacks the permission "approve"`, "decrypt", "approve", strings.Repeat("ab", 32))
	l.Refuses(rpc.Invalid, "is not 64 hexadecimal digits", "decrypt", "approve", "first")

	l.Shows([]string{"decrypt", "recipient", "--out", path("alice")}, "alice.pub")
	if info, err := os.Stat(path("alice")); err != nil || info.Mode().Perm() != 0o600 {
		l.T.Errorf("%v, %v", info, err)
	}
	l.Refuses(rpc.Conflict, "exists", "decrypt", "recipient", "--out", path("alice"))
	l.Refuses(rpc.Invalid, "must be written to a file", "decrypt", path("own"), "--recipient", path("alice.pub"))
	l.Refuses(rpc.Invalid, "want a file of one LODGE RECIPIENT PUBLIC KEY", "decrypt", path("own"), "--recipient", path("alice"), "--out", path("sealed"))
	l.Refuses(rpc.Delivered, "for only one client and recipient", "decrypt", path("own"), "--recipient", path("alice.pub"), "--out", path("sealed"), "--quorum", "p0,p2")
	l.OK("keys", "encrypt", "1", "7", "8", "--encoding", "padded", "--out", path("hers"))
	l.Shows([]string{"decrypt", path("hers"), "--recipient", path("alice.pub"), "--out", path("sealed")}, "sealed answers of")
	l.Shows([]string{"decrypt", "open", path("sealed"), "--key", path("alice")}, "7\n8\n")
	l.Refuses(rpc.Invalid, "want a file of one LODGE RECIPIENT PRIVATE KEY", "decrypt", "open", path("sealed"), "--key", path("alice.pub"))
	l.OK("decrypt", "recipient", "--out", path("bob"))
	l.Refuses(rpc.Invalid, "not sealed to this recipient", "decrypt", "open", path("sealed"), "--key", path("bob"))
	l.Refuses(rpc.Invalid, "not a file of sealed answers", "decrypt", "open", path("own"), "--key", path("alice"))
	l.OK("decrypt", "open", path("sealed"), "--key", path("alice"), "--out", path("values"))
	if info, err := os.Stat(path("values")); err != nil || info.Mode().Perm() != 0o600 {
		l.T.Errorf("%v, %v", info, err)
	}
}

// streams computes with the output of `lodge keys encrypt` and decrypts the results as they arrive.
func streams(l *lodgetest.Live) {
	l.T.Helper()
	ctx := l.T.Context()
	check := func(err error) {
		l.T.Helper()
		if err != nil {
			l.T.Fatal(err)
		}
	}
	config, err := lodge.Load(filepath.Join(l.Net.Dir, "clients", devnet.App+".yaml"))
	check(err)
	c, err := threshold.Dial(config)
	check(err)
	defer c.Close()
	k, err := c.Key(ctx, 1)
	check(err)
	public, err := c.PublicKey(ctx, k)
	check(err)
	want := []uint64{5, 4, 3, 2, 1, 0, 15}
	rings, err := threshold.Encrypt(k, public, want, lwe.Plain)
	check(err)
	list, err := threshold.NewFile(k, rings, len(want), lwe.Plain).Extract()
	check(err)
	in := make(chan *lwe.LWE)
	go func() {
		defer close(in)
		for _, x := range list {
			in <- x
		}
	}()
	var got []uint64
	batches := 0
	for m, err := range c.Stream(ctx, k, in, 3, func(*threshold.Request) error { batches++; return nil }) {
		check(err)
		got = append(got, m)
	}
	if !slices.Equal(got, want) || batches < 3 {
		l.T.Errorf("%v in %d batches", got, batches)
	}
	one := make(chan *lwe.LWE, 1)
	one <- list[0]
	ended := errors.New("not signed")
	for m, err := range c.Stream(ctx, k, one, 3, func(*threshold.Request) error { return ended }) {
		if !errors.Is(err, ended) {
			l.T.Errorf("%d, %v", m, err)
		}
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	for m, err := range c.Stream(done, k, make(chan *lwe.LWE), 3, nil) {
		if !errors.Is(err, context.Canceled) {
			l.T.Errorf("%d, %v", m, err)
		}
	}
}

// reshares makes new shares of the secrets and destroys the old ones.
func reshares(l *lodgetest.Live, path func(string) string) {
	l.T.Helper()
	l.Refuses(rpc.Invalid, "no honest majority", "keys", "reshare", "1", "--threshold", "2")
	l.Refuses(rpc.NotFound, "epoch 9", "keys", "reshare", "9")
	l.Shows([]string{"keys", "reshare", "1", "--wait"}, "epoch           2", "from            epoch 1")
	l.OK("keys", "masks", "2", "--quorum", "0,1", "--count", "16", "--wait")
	l.Shows([]string{"decrypt", path("lookup"), "--epoch", "2"}, "3\n1\n4\n")
	l.Shows([]string{"keys", "destroy", "1", "--dry-run"}, "its masks", "p0     active  1", "MASKS THAT ARE NOT SPENT")
	l.Shows([]string{"epochs", "retire", "1", "--party", "p1", "--dry-run"}, "its shares of threshold keys", " masks")
	l.Shows([]string{"keys", "destroy", "1", "--yes"}, "party p2: epoch 1 is retired")
	l.Shows([]string{"decrypt", path("own")}, "3\n0\n15\n") // by the holders of the new shares
	l.OK("keys", "generate", "--params", lodgetest.ThresholdSet, "--threshold", "1", "--wait")
	l.Refuses(rpc.Foreign, "epoch 3 has", "decrypt", path("own"), "--epoch", "3")
}

// The signature of an attester allows the decryptions that the parties' rules require one for, and
// no others.
func TestProvenanceCommands(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	made, err := lodgetest.Run(t, "decrypt", "attester", "--out", path("pipeline"))
	_, public, found := strings.Cut(made, "key: ")
	if err != nil || !found {
		t.Fatalf("%s, %v", made, err)
	}
	l := lodgetest.StartThreshold(t, lodgetest.EveryParty(t, func(f *config.PartyFile) {
		f.Threshold.Attesters = append(f.Threshold.Attesters, config.Attester{Name: "pipeline", Key: strings.TrimSpace(public)})
		r := &f.Threshold.Rules[0]
		r.AnyCiphertexts, r.MaxTotal, r.Provenance = false, 0, []string{"pipeline"}
	}))
	if info, err := os.Stat(path("pipeline")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	l.Refuses(rpc.Conflict, "exists", "decrypt", "attester", "--out", path("pipeline"))
	l.OK("keys", "generate", "--params", lodgetest.ThresholdSet, "--wait")
	l.OK("keys", "masks", "1", "--quorum", "0,1", "--count", "20", "--wait")
	for _, encoding := range []string{"plain", "padded"} {
		l.OK("keys", "encrypt", "1", "3", "1", "4", "--encoding", encoding, "--out", path(encoding))
	}
	attest := func(file, out string, more ...string) []string {
		return append([]string{"decrypt", "attest", path(file), "--key", path("pipeline"), "--attester", "pipeline", "--circuit", "sums of 3", "--out", path(out)}, more...)
	}
	l.Refuses("policy_refused", "must be signed", "decrypt", path("plain"))
	l.Shows(attest("plain", "word"), `signature of pipeline that "sums of 3" made`, "under epoch 1")
	l.Refuses(rpc.Conflict, "exists", attest("plain", "word")...)
	l.Shows([]string{"decrypt", path("plain"), "--provenance", path("word")}, "3\n1\n4\n")
	l.Refuses("policy_refused", "has not signed", "decrypt", path("padded"), "--provenance", path("word"))
	l.OK(attest("padded", "word of padded")...)
	l.Shows([]string{"decrypt", path("padded"), "--provenance", path("word of padded")}, "3\n1\n4\n")

	l.OK(attest("plain", "of epoch 2", "--epoch", "2")...)
	l.Refuses(rpc.NotFound, "", "decrypt", path("plain"), "--provenance", path("of epoch 2"))
	l.Refuses(rpc.Invalid, "is for epoch 2", "decrypt", path("plain"), "--provenance", path("of epoch 2"), "--epoch", "1")
	l.Refuses(rpc.Invalid, "messages per request", "decrypt", path("plain"), "--provenance", path("word"), "--batch", "7")
	l.Refuses(rpc.Invalid, "not an attester's file", "decrypt", path("plain"), "--provenance", path("pipeline"))
	l.OK("decrypt", "attester", "--out", path("other"))
	l.OK("decrypt", "attest", path("plain"), "--key", path("other"), "--attester", "pipeline", "--circuit", "sums of 3", "--out", path("forged"))
	l.Refuses("policy_refused", "has not signed", "decrypt", path("plain"), "--provenance", path("forged"))
	l.OK("decrypt", "recipient", "--out", path("alice"))
	l.Refuses(rpc.Invalid, "PRIVATE KEY", "decrypt", "attest", path("plain"), "--key", path("alice.pub"), "--attester", "pipeline", "--circuit", "x", "--out", path("none"))
}

// A decryption that needs approval waits for it, and each approval is for one request.
func TestApprovalCommands(t *testing.T) {
	l := lodgetest.StartThreshold(t, lodgetest.EveryParty(t, func(f *config.PartyFile) {
		r := &f.Threshold.Rules[0]
		r.AnyCiphertexts, r.MaxTotal, r.Approvals = false, 0, 1
		for i := range f.Clients {
			if f.Clients[i].Name == devnet.Operator {
				f.Clients[i].Permissions = append(f.Clients[i].Permissions, config.PermApprove)
			}
		}
	}))
	secret := filepath.Join(t.TempDir(), "secret")
	officer := []string{"--client", filepath.Join(l.Net.Dir, "clients", devnet.Operator+".yaml")}
	l.OK("keys", "generate", "--params", lodgetest.ThresholdSet, "--wait")
	l.OK("keys", "masks", "1", "--quorum", "0,1", "--count", "20", "--wait")
	l.OK("keys", "encrypt", "1", "3", "1", "--out", secret)
	l.Shows(append([]string{"decrypt", "approvals"}, officer...), "no requests wait")
	l.Refuses(rpc.NotFound, "", append([]string{"decrypt", "approve", strings.Repeat("ab", 32)}, officer...)...)
	l.Eventually(func() bool { // until both parties of the quorum have the request
		l.Refuses(rpc.ApprovalNeeded, "lodge decrypt approve", "decrypt", secret)
		list := lodgetest.Read[thresholdroom.ApprovalsReport](l, append([]string{"decrypt", "approvals"}, officer...)...).Approvals
		return len(list) == 1 && len(list[0].Parties) == 2
	})
	a := lodgetest.Read[thresholdroom.ApprovalsReport](l, append([]string{"decrypt", "approvals"}, officer...)...).Approvals[0]
	if a.Client != devnet.App || a.Messages != 2 || a.Needed != 1 || len(a.ApprovedBy) != 0 {
		t.Errorf("%+v", a)
	}
	l.Shows(append([]string{"decrypt", "approvals"}, officer...), a.Request, "0 of 1", "p0 p1")
	l.Shows(append([]string{"decrypt", "approve", a.Request}, officer...), "party p0: approved, 1 of 1", "party p1: approved, 1 of 1")
	l.Shows([]string{"decrypt", secret}, "3\n1\n")
	l.Shows(append([]string{"decrypt", "approvals"}, officer...), "1 of 1 (operator), used")
	l.Shows([]string{"decrypt", secret}, "3\n1\n") // the same answers again
	l.OK("keys", "encrypt", "1", "3", "1", "--out", secret+"2")
	l.Refuses(rpc.ApprovalNeeded, "lodge decrypt approve", "decrypt", secret+"2")
}
