package multikey_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// Bits are decrypted for a recipient if parties require the signature of an attester.
func TestMkSealedCommands(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	made, err := lodgetest.Run(t, "decrypt", "attester", "--out", path("pipeline"))
	_, public, found := strings.Cut(made, "key: ")
	if err != nil || !found {
		t.Fatalf("%s, %v", made, err)
	}
	l := lodgetest.StartBare(t, devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true, Multikey: "insecure-M8-32", MaxMemory: 2 << 30},
		lodgetest.EveryParty(t, func(f *config.PartyFile) {
			f.Threshold.Attesters = append(f.Threshold.Attesters, config.Attester{Name: "pipeline", Key: strings.TrimSpace(public)})
			r := &f.Threshold.Rules[0]
			r.AnyCiphertexts, r.MaxTotal, r.Provenance = false, 0, []string{"pipeline"}
		}))
	for _, p := range []string{"p0", "p1"} {
		l.Shows([]string{"mk", "keys", "make", "--party", p}, "active")
	}
	l.Shows([]string{"keys", "generate", "--params", "insecure-M8-32", "--threshold", "1", "--wait"}, "epoch")
	l.Shows([]string{"keys", "masks", "1", "--every-quorum", "--count", "50", "--wait"}, "made")
	l.OK("mk", "encrypt", "1101", "--party", "p0", "--out", path("a"))
	l.OK("mk", "encrypt", "10", "--party", "p1", "--out", path("b"))
	l.OK("decrypt", "recipient", "--out", path("alice"))

	l.Refuses(rpc.PolicyRefused, "", "mk", "decrypt", path("a"))
	attest := func(file, word string, more ...string) []string {
		return append([]string{"mk", "attest", path(file), "--key", path("pipeline"), "--attester", "pipeline", "--circuit", "a vote", "--out", path(word)}, more...)
	}
	l.Shows(attest("a", "word"), `signature of pipeline that "a vote" made`)
	l.Refuses(rpc.Conflict, "exists", attest("a", "word")...)
	l.OK(attest("b", "other", "--epoch", "1")...)
	if word := lodgetest.Read[threshold.Provenance](l, attest("a", "again")...); word.Epoch != 1 || len(word.Signatures) != 1 {
		t.Errorf("%+v", word)
	}
	l.Refuses(rpc.PolicyRefused, "", "mk", "decrypt", path("a"), "--provenance", path("other"))
	l.Refuses(rpc.Invalid, "another epoch", "mk", "decrypt", path("a"), "--provenance", path("word"), "--epoch", "2")
	l.Refuses(rpc.Invalid, "not an attester's file", "mk", "decrypt", path("a"), "--provenance", path("alice.pub"))
	l.Shows([]string{"mk", "decrypt", path("b"), "--provenance", path("other")}, "10\n")

	l.Refuses(rpc.Invalid, "--out", "mk", "decrypt", path("a"), "--provenance", path("word"), "--recipient", path("alice.pub"))
	l.Refuses(rpc.Conflict, "exists", "mk", "decrypt", path("a"), "--provenance", path("word"), "--recipient", path("alice.pub"), "--out", path("a"))
	l.Shows([]string{"mk", "decrypt", path("a"), "--provenance", path("word"), "--recipient", path("alice.pub"), "--out", path("sealed")}, "for 4 messages")
	l.Refuses("already_delivered", "", "mk", "decrypt", path("a"), "--provenance", path("word"))
	opened, err := lodgetest.Run(t, "decrypt", "open", path("sealed"), "--key", path("alice"))
	if err != nil || opened != "1\n1\n0\n1\n" {
		t.Errorf("%q, %v", opened, err)
	}
	l.OK("decrypt", "recipient", "--out", path("bob"))
	l.Refuses(rpc.Invalid, "belongs to the recipient's public key", "decrypt", "open", path("sealed"), "--key", path("bob"))
}
