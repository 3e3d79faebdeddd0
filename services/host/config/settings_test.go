package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A flag overrides the environment, which overrides the file.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	path := write(t, dir, "party.yaml", partyYAML)
	t.Setenv("LODGE_CONFIG_POLICY_MAX_MEMORY", "2GiB")
	t.Setenv("LODGE_CONFIG_POLICY_KINDS", "[keys, scalar]")
	t.Setenv("LODGE_CONFIG_LIMITS_IDLE", "5s")
	t.Setenv("LODGE_CONFIG_METRICS_LISTEN", "")
	t.Setenv("LODGE_CONFIG_VAULT_DIR", "other")
	f, err := LoadParty(path, "policy.max_memory=1GiB", "accusations.max_unnamed_failures=7", "reflection=true")
	if err != nil {
		t.Fatal(err)
	}
	if f.Policy.MaxMemory != 1<<30 || len(f.Policy.Kinds) != 2 || f.Limits.Idle != Duration(5*time.Second) || f.MetricsListen != "" ||
		f.Vault.Dir != filepath.Join(dir, "other") || f.Accusations.MaxUnnamedFailures != 7 || !f.Reflection {
		t.Errorf("%+v", f)
	}
	if f.Policy.MaxDim != 512 || f.Name != "alice" || len(f.Clients) != 1 {
		t.Errorf("values without a setting changed: %+v", f)
	}
	if n := len(f.Settings); n != 8 || f.Settings[n-1].From != "--set reflection" {
		t.Errorf("settings: %v", f.Settings)
	}
}

func TestSettingsAreRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	path := write(t, dir, "party.yaml", partyYAML)
	for set, says := range map[string]string{
		"policy.max_memry=1GiB":   "is not KEY=VALUE",
		"policy.max_memory":       "is not KEY=VALUE",
		"policy=x":                "is not KEY=VALUE",
		"policy.max_memory=much":  "not an amount of bytes",
		"policy.kinds=[":          "is not YAML",
		"policy.kinds=[nonsense]": "not one of",
		"limits.idle=-5s":         "not a positive time span",
		"listen=":                 "not host:port",
		"name=[a, b]":             "cannot unmarshal",
	} {
		if _, err := LoadParty(path, set); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", set, err)
		}
	}
	aliased := write(t, dir, "aliased.yaml", strings.Replace(partyYAML, "vault:\n", "limits: &l {idle: 1m}\nvault:\n", 1)+"accusations: *l\n")
	if _, err := LoadParty(aliased, "accusations.within=2h"); err == nil || !strings.Contains(err.Error(), "field idle not found") {
		t.Error(err)
	}
	t.Setenv("LODGE_CONFIG_POLICY_MAX_MEMRY", "1GiB")
	if _, err := LoadParty(path); err == nil || !strings.Contains(err.Error(), "LODGE_CONFIG_POLICY_MAX_MEMRY names no key") {
		t.Error(err)
	}
}

// Each key has a different variable.
func TestKeys(t *testing.T) {
	for _, file := range []any{new(PartyFile), new(CoordinatorFile)} {
		seen := map[string]string{}
		for _, k := range Keys(file) {
			if other, ok := seen[k.Variable]; ok {
				t.Errorf("%s is %s and %s", k.Variable, other, k.Name)
			}
			seen[k.Variable] = k.Name
		}
		if seen["LODGE_CONFIG_TLS_CLIENT_CA"] != "tls.client_ca" || len(seen) < 15 {
			t.Errorf("keys: %v", seen)
		}
	}
}
