package config

import (
	"errors"
	"os"
	"testing"
)

// A process can be queried from its own machine, whatever address it listens on. The rest of its
// configuration does not matter.
func TestHealthOf(t *testing.T) {
	dir := t.TempDir()
	for listen, want := range map[string]string{
		"127.0.0.1:7199": "127.0.0.1:7199", "0.0.0.0:7199": "127.0.0.1:7199", "':7199'": "127.0.0.1:7199", "'[::]:7199'": "[::1]:7199",
		"p0:7199": "p0:7199", "'[fd00::1]:7199'": "[fd00::1]:7199",
	} {
		got, err := HealthOf(write(t, dir, "party.yaml", "name: alice\nhealth_listen: "+listen+"\nlater: [1, 2]\n"))
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", listen, got, err, want)
		}
	}
	if got, err := HealthOf(write(t, dir, "party.yaml", partyYAML)); err != nil || got != HealthAddress {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := HealthOf(write(t, dir, "c.yaml", coordinatorYAML)); !errors.Is(err, ErrNoHealth) {
		t.Errorf("without: %v", err)
	}
	t.Setenv(EnvPrefix+"HEALTH_LISTEN", "0.0.0.0:7299")
	if got, err := HealthOf(write(t, dir, "party.yaml", partyYAML)); err != nil || got != "127.0.0.1:7299" {
		t.Errorf("set in the environment: %q, %v", got, err)
	}
	os.Unsetenv(EnvPrefix + "HEALTH_LISTEN")
	for _, bad := range []string{"health_listen: nothing\n", "health_listen: [\n"} {
		if got, err := HealthOf(write(t, dir, "c.yaml", bad)); err == nil {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}
