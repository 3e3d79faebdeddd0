package config

import (
	"encoding/hex"
)

// Multikey is the context of multi-key ciphertexts: the parameter set, and the public seed of the
// common reference string. A party that chooses the string itself, rather than a seed, could know a
// trapdoor; a party that chooses the seed among many can search for a weak one. So the seed is the
// digest of a fixed sentence, or the result of a coin toss among the parties.
type Multikey struct {
	Set  string `yaml:"set"`
	Seed string `yaml:"seed"` // "standard", or 64 hexadecimal digits, in lower case
}

// StandardSeed names the seed that is the digest of a fixed sentence.
const StandardSeed = "standard"

const multikeySeedSize = 32

// Bytes returns the seed, or reports that it is the standard one. The configuration must have been
// validated.
func (m *Multikey) Bytes() (seed [multikeySeedSize]byte, standard bool) {
	if m.Seed == StandardSeed {
		return seed, true
	}
	b, _ := hex.DecodeString(m.Seed)
	copy(seed[:], b)
	return seed, false
}

// validate checks set and seed. A seed has one spelling, because parties compare it as text.
func (m *Multikey) validate(c *check) {
	if m == nil {
		return
	}
	if m.Set == "" {
		c.failf("multikey.set: missing; `lodge params list` shows the sets for multi-key ciphertexts, M11-4-128 first")
	}
	b, err := hex.DecodeString(m.Seed)
	if m.Seed != StandardSeed && (err != nil || len(b) != multikeySeedSize || hex.EncodeToString(b) != m.Seed) {
		c.failf("multikey.seed: neither %q nor %d hexadecimal digits in lower case", StandardSeed, 2*multikeySeedSize)
	}
}
