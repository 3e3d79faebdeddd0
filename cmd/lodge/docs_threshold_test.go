package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// TestThresholdDocument runs the commands of docs/guides/threshold.md in their order on a new
// cluster, and checks the decrypted values.
func TestThresholdDocument(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "threshold.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := shellLines(string(b))
	if len(lines) < 18 {
		t.Fatalf("%d commands", len(lines))
	}
	l := lodgetest.StartThreshold(t)
	t.Chdir(t.TempDir())
	decrypted, opened := 0, 0
	for _, line := range lines {
		if line = strings.Replace(line, "--params B13-17", "--params "+lodgetest.BgvSet, 1); !strings.Contains(line, "--params") { // in no time
			line = strings.Replace(line, "keys generate", "keys generate --params "+lodgetest.ThresholdSet, 1)
		}
		line = strings.ReplaceAll(line, " cluster/", " "+l.Net.Dir+"/")
		words := strings.Fields(strings.Replace(line, "--cluster cluster", "", 1))
		out := l.OK(words[1:]...)
		switch {
		case strings.Contains(line, "decrypt open"):
			if !strings.Contains(out, "2\n7\n") {
				t.Errorf("%s: %s", line, out)
			}
		case strings.Contains(line, "lodge decrypt") && !strings.Contains(line, "attest ") && strings.Contains(line, ".bgv"):
			if opened++; !strings.Contains(out, "2\n7\n1\n8\n") {
				t.Errorf("%s: %s", line, out)
			}
		case strings.Contains(line, "decrypt secret.lwe"):
			if decrypted++; !strings.Contains(out, "3\n1\n4\n1\n5\n") {
				t.Errorf("%s: %s", line, out)
			}
		}
	}
	if decrypted != 4 || opened != 3 {
		t.Errorf("%d and %d decryptions", decrypted, opened)
	}
}

// TestThresholdConfiguration loads the configuration that docs/guides/threshold.md shows.
func TestThresholdConfiguration(t *testing.T) {
	_, plain, shown := configured(t, "threshold.md", 1, func(c *devnet.Cluster) string { return c.Parties[0] }, config.LoadParty)
	if plain.AllowPassiveThreshold || len(plain.Threshold.Rules) != 0 {
		t.Error("a party allows threshold keys by itself")
	}
	if r, ok := shown.Threshold.Rule(devnet.App, 2, [32]byte{}); !shown.AllowPassiveThreshold || !ok || r.MessagesPerHour != 10000 || len(shown.Threshold.Attesters) != 1 {
		t.Errorf("%+v", shown.Threshold)
	}
}
