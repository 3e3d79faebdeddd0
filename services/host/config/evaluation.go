package config

import (
	"cmp"
	"path/filepath"
	"time"
)

// MultikeyService is how a party keeps the public keys of all parties, and computes with them for its clients. The set and
// the reference string are the roster's.
type MultikeyService struct {
	// Dir has other parties' public keys and what was signed of them; default "multikey" in vault.dir, or in audit_dir.
	Dir string `yaml:"dir,omitempty"`
	// MaxKeys bounds the files there; default 8GiB.
	MaxKeys Bytes `yaml:"max_keys,omitempty"`
	// MaxKeysMemory bounds the keys that are ready to compute with; default 2GiB.
	MaxKeysMemory Bytes `yaml:"max_keys_memory,omitempty"`
	// MaxMemory bounds what evaluations take beside them, by estimate: their netlists, inputs and ciphertexts; one
	// client has half of it at most; default 1GiB.
	MaxMemory Bytes `yaml:"max_memory,omitempty"`
	// MaxResults bounds the results that are kept for clients, and KeepResults how long; of the client that has most, the
	// oldest make room; default 256MiB and 24 h.
	MaxResults  Bytes    `yaml:"max_results,omitempty"`
	KeepResults Duration `yaml:"keep_results,omitempty"`
	// MaxPerClient bounds the evaluations of a client that wait or run; default 4.
	MaxPerClient int `yaml:"max_per_client,omitempty"`
	// MaxBootstraps bounds one evaluation; default 1000000.
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

// Memory is what the process is to keep within: what sessions and calls have, and, where the roster has a context for
// multi-key ciphertexts, what those have beside it.
func (f *PartyFile) Memory() Bytes {
	m := f.Policy.MaxMemory
	if f.Roster.Multikey != nil {
		m += f.Multikey.MaxKeysMemory + f.Multikey.MaxMemory + f.Multikey.MaxResults
	}
	return m
}

// fill fills in and checks.
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
			c.failf("multikey.%s: %d; at least 1MiB", b.key, *b.at)
		}
	}
	m.KeepResults = cmp.Or(m.KeepResults, defaultKeepResults)
	m.MaxPerClient, m.MaxBootstraps = cmp.Or(m.MaxPerClient, defaultPerClient), cmp.Or(m.MaxBootstraps, defaultBootstraps)
	if m.KeepResults < Duration(time.Minute) {
		c.failf("multikey.keep_results: %s; at least 1m", time.Duration(m.KeepResults))
	}
	if m.MaxPerClient < 1 || m.MaxBootstraps < 1 {
		c.failf("multikey.max_per_client and multikey.max_bootstraps: %d and %d; at least 1", m.MaxPerClient, m.MaxBootstraps)
	}
}
