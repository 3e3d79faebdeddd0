package config

// MultikeyService limits the multi-key service: the public keys of all parties, and evaluations for
// clients. The roster has the parameter set and the reference string.
type MultikeyService struct {
	// Dir stores the other parties' public keys and records; default "multikey" in vault.dir, or in
	// audit_dir.
	Dir string `yaml:"dir,omitempty" check:"path?"`
	// MaxKeys limits the files there; default 8GiB.
	MaxKeys Bytes `yaml:"max_keys,omitempty" default:"8GiB" range:"1MiB.."`
	// MaxKeysMemory limits the keys that are ready for computing; default 2GiB.
	MaxKeysMemory Bytes `yaml:"max_keys_memory,omitempty" default:"2GiB" range:"1MiB.."`
	// MaxMemory limits the estimated memory of netlists, inputs and ciphertexts, half of it for one
	// client; default 1GiB.
	MaxMemory Bytes `yaml:"max_memory,omitempty" default:"1GiB" range:"1MiB.."`
	// MaxResults limits the stored results; the oldest of the client with most are dropped first;
	// default 256MiB.
	MaxResults Bytes `yaml:"max_results,omitempty" default:"256MiB" range:"1MiB.."`
	// KeepResults is how long results are kept; default 24h.
	KeepResults Duration `yaml:"keep_results,omitempty" default:"24h" range:"1m.."`
	// MaxPerClient limits the evaluations of a client that wait or run; default 4.
	MaxPerClient int `yaml:"max_per_client,omitempty" default:"4" range:"1.."`
	// MaxBootstraps limits one evaluation; default 1000000.
	MaxBootstraps int `yaml:"max_bootstraps,omitempty" default:"1000000" range:"1.."`
}

// Memory returns the memory that the process plans with: the limits for sessions and calls, plus
// those for multi-key keys and evaluations if the roster has a context for multi-key ciphertexts.
func (f *PartyFile) Memory() Bytes {
	m := f.Policy.MaxMemory
	if f.Roster.Multikey != nil {
		m += f.Multikey.MaxKeysMemory + f.Multikey.MaxMemory + f.Multikey.MaxResults
	}
	return m
}
