package config

import (
	"cmp"
	"path/filepath"
	"time"
)

// MultikeyService limits the multi-key service: the public keys of all parties, and evaluations for
// clients. The roster has the parameter set and the reference string.
type MultikeyService struct {
	// Dir stores the other parties' public keys and records; default "multikey" in vault.dir, or in
	// audit_dir.
	Dir string `yaml:"dir,omitempty"`
	// MaxKeys limits the files there; default 8GiB.
	MaxKeys Bytes `yaml:"max_keys,omitempty"`
	// MaxKeysMemory limits the keys that are ready for computing; default 2GiB.
	MaxKeysMemory Bytes `yaml:"max_keys_memory,omitempty"`
	// MaxMemory limits the estimated memory of netlists, inputs and ciphertexts, half of it for one
	// client; default 1GiB.
	MaxMemory Bytes `yaml:"max_memory,omitempty"`
	// MaxResults limits the stored results; the oldest of the client with most are dropped first;
	// default 256MiB.
	MaxResults Bytes `yaml:"max_results,omitempty"`
	// KeepResults is how long results are kept; default 24h.
	KeepResults Duration `yaml:"keep_results,omitempty"`
	// MaxPerClient limits the evaluations of a client that wait or run; default 4.
	MaxPerClient int `yaml:"max_per_client,omitempty"`
	// MaxBootstraps limits one evaluation; default 1000000.
	MaxBootstraps int `yaml:"max_bootstraps,omitempty"`
}

const (
	defaultMultikeyKeys    = Bytes(8 << 30)
	defaultMultikeyMemory  = Bytes(2 << 30)
	defaultMultikeyJobs    = Bytes(1 << 30)
	defaultMultikeyResults = Bytes(256 << 20)
	defaultKeepResults     = Duration(24 * time.Hour)
	defaultPerClient       = 4
	defaultBootstraps      = 1000000
)

// Memory returns the memory that the process plans with: the limits for sessions and calls, plus
// those for multi-key keys and evaluations if the roster has a context for multi-key ciphertexts.
func (f *PartyFile) Memory() Bytes {
	m := f.Policy.MaxMemory
	if f.Roster.Multikey != nil {
		m += f.Multikey.MaxKeysMemory + f.Multikey.MaxMemory + f.Multikey.MaxResults
	}
	return m
}

// fill sets defaults and validates the values.
func (m *MultikeyService) fill(c *check, dir string, f *PartyFile) {
	if m.Dir == "" {
		m.Dir = filepath.Join(cmp.Or(f.Vault.Dir, f.AuditDir), "multikey")
	}
	c.path(dir, "multikey.dir", &m.Dir, false)
	for _, b := range []struct {
		key    string
		at     *Bytes
		normal Bytes
	}{
		{"max_keys", &m.MaxKeys, defaultMultikeyKeys}, {"max_keys_memory", &m.MaxKeysMemory, defaultMultikeyMemory},
		{"max_memory", &m.MaxMemory, defaultMultikeyJobs}, {"max_results", &m.MaxResults, defaultMultikeyResults},
	} {
		*b.at = cmp.Or(*b.at, b.normal)
		if *b.at < 1<<20 {
			c.failf("multikey.%s: %d; must be at least 1MiB", b.key, *b.at)
		}
	}
	m.KeepResults = cmp.Or(m.KeepResults, defaultKeepResults)
	m.MaxPerClient, m.MaxBootstraps = cmp.Or(m.MaxPerClient, defaultPerClient), cmp.Or(m.MaxBootstraps, defaultBootstraps)
	if m.KeepResults < Duration(time.Minute) {
		c.failf("multikey.keep_results: %s; must be at least 1m", time.Duration(m.KeepResults))
	}
	if m.MaxPerClient < 1 || m.MaxBootstraps < 1 {
		c.failf("multikey.max_per_client and multikey.max_bootstraps: %d and %d; must be at least 1", m.MaxPerClient, m.MaxBootstraps)
	}
}
