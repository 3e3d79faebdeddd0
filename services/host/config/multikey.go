package config

import (
	"encoding/hex"
)

// Multikey is the context of multi-key ciphertexts: the parameter set, and the public seed of the common reference
// string. Who could choose the string, and not the seed, could know a trapdoor; who can choose the seed among many can
// look for a weak one. So it is the digest of a sentence, or what a coin toss among the parties gave.
type Multikey struct {
	Set  string `yaml:"set"`
	Seed string `yaml:"seed"` // "standard", or 64 hexadecimal digits, in lower case
}

// StandardSeed is the name of the seed that is the digest of a sentence.
const StandardSeed = "standard"

const multikeySeedSize = 32

// Bytes are the seed, unless it is the standard one; the file has been validated.
func (m *Multikey) Bytes() (seed [multikeySeedSize]byte, standard bool) {
	if m.Seed == StandardSeed {
		return seed, true
	}
	b, _ := hex.DecodeString(m.Seed)
	copy(seed[:], b)
	return seed, false
}

// validate refuses what is no context. The digits of a seed have one form, as parties compare them.
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
