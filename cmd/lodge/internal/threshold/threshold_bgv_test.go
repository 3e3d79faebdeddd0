package threshold_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/keys"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// BGV keys are generated, shown and downloaded, and files of ciphertexts are decrypted with masks
// and with flooding, also for a recipient.
func TestBGVCommands(t *testing.T) {
	l, dir := lodgetest.StartThreshold(t), t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	words := 0
	flooding := func(file string, more ...string) []string { // arguments, with the signature of the cluster's attester
		words++
		word, batch := path(fmt.Sprintf("word-%d", words)), []string{}
		if i := slices.Index(more, "--batch"); i >= 0 {
			batch = more[i : i+2]
		}
		l.OK(append([]string{"decrypt", "attest", file, "--flooding", "--key", l.Net.AttesterKeyFile(), "--attester", devnet.Attester, "--circuit", "none",
			"--out", word}, batch...)...)
		client := filepath.Join(l.Net.Dir, "clients", devnet.Attested+".yaml")
		return append([]string{"decrypt", file, "--flooding", "--provenance", word, "--client", client}, more...)
	}
	l.Shows([]string{"keys", "generate", "--params", lodgetest.BgvSet, "--rotations", "1,-1,1", "--rotate-rows", "--wait"}, "epoch           1")
	l.Shows([]string{"keys", "masks", "1", "--every-quorum", "--count", "40", "--wait"}, "asked 120, made 120")
	l.Refuses(rpc.Invalid, "other form", "keys", "masks", "1", "--quorum", "0,1", "--form", "paper")
	l.Shows([]string{"keys", "show", "1"}, "for 3 automorphisms", "flooding        0 of the 524288", "exact masks     never fails")
	if k := lodgetest.Read[keys.ThresholdRecord](l, "keys", "show", "1"); len(k.Galois) != 3 || k.Sizes.BGV == 0 || len(k.Forms) != 1 || k.FloodingLimit != 524288 {
		t.Errorf("%+v", k)
	}
	for _, evaluation := range []string{"--evaluation=false", "--evaluation"} {
		file := path("keys" + evaluation)
		l.OK("keys", "fetch", "1", "--out", file, evaluation)
		l.Shows([]string{"keys", "encrypt", "1", "5", "65536", "0", "--keys", file, "--out", file + ".bgv"}, "3 slots messages under epoch 1")
		l.Shows(flooding(file+".bgv"), "5\n65536\n0\n")
	}
	l.Refuses(rpc.Invalid, "value 1 is too large", "keys", "encrypt", "1", "1", "65537", "--out", path("none"))
	l.Refuses(rpc.Invalid, `encoding "plain"`, "keys", "encrypt", "1", "1", "--encoding", "plain", "--out", path("none"))
	l.OK("keys", "encrypt", "1", "3", "1", "4", "--encoding", "coefficients", "--out", path("some"))
	l.Shows([]string{"decrypt", path("some"), "--quorum", "p0,p2"}, "3\n1\n4\n")
	l.Shows(flooding(path("some"), "--quorum", "p0,p2"), "3\n1\n4\n")
	l.Refuses(rpc.WrongQuorum, "by the holders [0 2]", flooding(path("some"), "--quorum", "p0,p1")...)
	l.Shows(flooding(path("some")), "3\n1\n4\n")                                          // by these holders
	l.Refuses(rpc.PolicyRefused, "allow_flooding", "decrypt", path("some"), "--flooding") // the application may not do this
	many := make([]string, 40)
	for i := range many {
		many[i] = []string{"7", "8", "9"}[i%3]
	}
	for _, encoding := range keys.BgvEncodingNames { // two ciphertexts
		file := path("many-" + encoding)
		l.OK(append([]string{"keys", "encrypt", "1", "--encoding", encoding, "--out", file}, many...)...)
		l.Shows(flooding(file, "--batch", "32"), strings.Join(many, "\n")+"\n")
	}
	l.OK("decrypt", "recipient", "--out", path("alice"))
	for _, flood := range []bool{true, false} {
		file := path(fmt.Sprintf("sealed-%v", flood))
		l.OK("keys", "encrypt", "1", "6", "2", "--encoding", "coefficients", "--out", file)
		ask := []string{"decrypt", file}
		if flood {
			ask = flooding(file)
		}
		l.OK(append(ask, "--recipient", path("alice.pub"), "--out", file+".answers")...)
		l.Shows([]string{"decrypt", "open", file + ".answers", "--key", path("alice")}, "6\n2\n")
	}
	l.Refuses(rpc.OutOfStock, "", "decrypt", path("many-slots"), "--quorum", "p1,p2") // the limit is 64
	l.Shows([]string{"keys", "reshare", "1", "--wait"}, "epoch           2", "from            epoch 1")
	k := lodgetest.Read[keys.ThresholdRecord](l, "keys", "show", "2")
	if old := lodgetest.Read[keys.ThresholdRecord](l, "keys", "show", "1"); k.Digest != old.Digest || len(k.Galois) != 3 || k.FloodingLimit == 0 || k.FloodingLimit > old.FloodingLimit/2 || len(k.Flooders) != 3 {
		t.Errorf("%+v", k)
	}
	l.OK("keys", "masks", "2", "--quorum", "1,2", "--count", "6", "--wait")
	l.OK("keys", "encrypt", "2", "6", "5", "4", "--encoding", "coefficients", "--out", path("moved"))
	l.Shows([]string{"decrypt", path("moved")}, "6\n5\n4\n")
	l.Shows([]string{"decrypt", path("some"), "--epoch", "2"}, "3\n1\n4\n") // from before
	l.OK("keys", "generate", "--params", lodgetest.ThresholdSet, "--wait")
	l.OK("keys", "encrypt", "3", "1", "--out", path("lwe"))
	l.Refuses(rpc.Invalid, "without flooding", "decrypt", path("lwe"), "--flooding")
}
