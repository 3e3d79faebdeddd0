package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/keys"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
)

// What docs/guides/keys.md says to do can be done, in its order, on a cluster that has one epoch.
func TestKeysDocument(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "keys.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := shellLines(string(b))
	if len(lines) < 8 {
		t.Fatalf("%d commands", len(lines))
	}
	l := lodgetest.Start(t)
	for _, line := range lines {
		words := strings.Fields(strings.Replace(line, "--cluster cluster", "", 1))
		if words[0] != "lodge" || len(words) == len(strings.Fields(line)) {
			t.Fatalf("%q is not a command on the cluster", line)
		}
		l.OK(words[1:]...)
	}
	states := ""
	for _, e := range lodgetest.Read[keys.KeysListing](l, "keys", "list").Epochs {
		for _, p := range e.Parties {
			states += p.State + " "
		}
	}
	if states != "retired retired retired retired active active " {
		t.Errorf("the epochs are %s", states)
	}
}
