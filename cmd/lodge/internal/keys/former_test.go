package keys_test

import (
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
)

// The spellings of the previous release still work for one release, and no help lists them.
func TestFormerSpellings(t *testing.T) {
	want, err := lodgetest.Run(t, "params", "show", "S14-32", "--field", "p64", "--block", "64")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := lodgetest.Run(t, "params", "show", "S14-32", "--field", "p64", "--dim", "64"); err != nil || got != want {
		t.Errorf("--dim: %v: %s", err, got)
	}
	for former, args := range map[string][]string{"--dim": {"jobs", "submit", "--help"}, "make ": {"mk", "keys", "--help"}} {
		if help, err := lodgetest.Run(t, args...); err != nil || strings.Contains(help, former) {
			t.Errorf("%v lists %q: %v", args, former, err)
		}
	}
	if _, err := lodgetest.Run(t, "mk", "keys", "make", "--help"); err != nil {
		t.Error(err)
	}
}
