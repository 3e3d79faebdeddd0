package config

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"slices"
)

// Threshold is what a party decrypts under threshold keys, and for whom. Without rules it decrypts nothing.
type Threshold struct {
	Rules []DecryptRule `yaml:"rules,omitempty"`
	// Attesters are those whose word rules take for where a ciphertext comes from.
	Attesters []Attester `yaml:"attesters,omitempty"`
	// Reshare is to whom this party gives new shares of what it holds.
	Reshare Reshare `yaml:"reshare,omitempty"`
}

// Reshare bounds who may get shares of a secret. Without it those who hold it already may get new ones, with a threshold
// that is no lower.
type Reshare struct {
	// Holders are parties that may get shares, beside those that hold them.
	Holders []string `yaml:"holders,omitempty"`
	// MinThreshold is how low the threshold may become; 0: no lower than it is.
	MinThreshold uint32 `yaml:"min_threshold,omitempty"`
}

// Everybody is the name of all clients that may decrypt, in a rule.
const Everybody = "*"

// DecryptRule allows a client decryptions. Of several rules for one client and key the first counts.
type DecryptRule struct {
	Client string `yaml:"client"` // a client's name, or "*"
	// Epochs of the keys; empty means all.
	Epochs []uint64 `yaml:"epochs,omitempty"`
	// Keys are digests of public keys, hexadecimal; empty means all. Shares that are made anew are of the same keys.
	Keys []string `yaml:"keys,omitempty"`
	// Provenance names the attesters of whom one must have signed where the ciphertexts come from; empty means that
	// nobody need.
	Provenance []string `yaml:"provenance,omitempty"`
	// MessagesPerHour bounds the messages that are decrypted for the client in any hour.
	MessagesPerHour int `yaml:"messages_per_hour"`
	// MaxMessages bounds those of one request; default 65536.
	MaxMessages int `yaml:"max_messages,omitempty"`
	// Approvals is how many other clients, with the permission "approve", must approve each request first.
	Approvals int `yaml:"approvals,omitempty"`
	// AllowPaperForm lets the client ask for masks that fail now and then, which tells about the noise when they do.
	AllowPaperForm bool `yaml:"allow_paper_form,omitempty"`
	// AllowFlooding lets the client have whole BGV ciphertexts decrypted with noise added in place of masks. That is safe
	// while the noise of every ciphertext is within the bound of its set, and the keys were made by parties that followed the
	// protocol: what is beyond the bound shows, and tells about the key. So it is for programs whose circuits are known.
	AllowFlooding bool `yaml:"allow_flooding,omitempty"`
	// AllowMultikey lets the client have ciphertexts decrypted that are under this party's own keys, and those of others.
	AllowMultikey bool `yaml:"allow_multikey,omitempty"`
}

// Attester signs where ciphertexts come from.
type Attester struct {
	Name string `yaml:"name"`
	Key  string `yaml:"key"` // Ed25519, 64 hexadecimal digits
}

// What a request may have by default, and at most.
const (
	defaultMaxMessages = 1 << 16
	mostMessages       = 1 << 20
)

// Public is the attester's key; the file has been validated.
func (a Attester) Public() ed25519.PublicKey {
	b, _ := hex.DecodeString(a.Key)
	return b
}

// Attester finds one by name.
func (t *Threshold) Attester(name string) (Attester, bool) {
	i := slices.IndexFunc(t.Attesters, func(a Attester) bool { return a.Name == name })
	if i < 0 {
		return Attester{}, false
	}
	return t.Attesters[i], true
}

// Rule is the first for a client, an epoch and the digest of its keys.
func (t *Threshold) Rule(client string, epoch uint64, keys [32]byte) (DecryptRule, bool) {
	for _, r := range t.Rules {
		if (r.Client == client || r.Client == Everybody) && (len(r.Epochs) == 0 || slices.Contains(r.Epochs, epoch)) && r.names(keys) {
			return r, true
		}
	}
	return DecryptRule{}, false
}

// names reports whether a rule is for keys with a digest.
func (r *DecryptRule) names(keys [32]byte) bool {
	return len(r.Keys) == 0 || slices.ContainsFunc(r.Keys, func(k string) bool {
		digest, err := hex.DecodeString(k)
		return err == nil && bytes.Equal(digest, keys[:])
	})
}

// within refuses holders who are not in the roster.
func (r *Reshare) within(c *check, roster *Roster) {
	for _, name := range r.Holders {
		if _, known := roster.Index(name); !known {
			c.failf("threshold.reshare.holders: %q is no party of the roster", name)
		}
	}
}

// validate completes the rules and refuses those that mean nothing.
func (t *Threshold) validate(c *check, clients []Client) {
	for i, a := range t.Attesters {
		c.name("threshold.attesters", a.Name)
		if b, err := hex.DecodeString(a.Key); err != nil || len(b) != ed25519.PublicKeySize {
			c.failf("threshold.attesters[%d].key: not 64 hexadecimal digits of an Ed25519 key", i)
		}
		if j := slices.IndexFunc(t.Attesters, func(b Attester) bool { return b.Name == a.Name }); j < i {
			c.failf("threshold.attesters[%d].name: %q is there twice", i, a.Name)
		}
	}
	for i := range t.Rules {
		r := &t.Rules[i]
		known := func(x Client) bool { return x.Name == r.Client && slices.Contains(x.Permissions, PermDecrypt) }
		if r.Client != Everybody && !slices.ContainsFunc(clients, known) {
			c.failf("threshold.rules[%d].client: %q is no client with the permission %q", i, r.Client, PermDecrypt)
		}
		for _, k := range r.Keys {
			if b, err := hex.DecodeString(k); err != nil || len(b) != 32 {
				c.failf("threshold.rules[%d].keys: %.80q is not the 64 hexadecimal digits of a digest", i, k)
			}
		}
		for _, name := range r.Provenance {
			if _, ok := t.Attester(name); !ok {
				c.failf("threshold.rules[%d].provenance: %q is not among threshold.attesters", i, name)
			}
		}
		if r.MaxMessages == 0 {
			r.MaxMessages = defaultMaxMessages
		}
		if r.MessagesPerHour <= 0 || r.MaxMessages < 0 || r.MaxMessages > mostMessages || r.Approvals < 0 {
			c.failf("threshold.rules[%d]: messages_per_hour is missing, max_messages is above %d, or a number is negative", i, mostMessages)
		}
		others := 0
		for _, x := range clients {
			if x.Name != r.Client && slices.Contains(x.Permissions, PermApprove) {
				others++
			}
		}
		if r.Approvals > others {
			c.failf("threshold.rules[%d].approvals: %d, and %d other clients have the permission %q", i, r.Approvals, others, PermApprove)
		}
	}
}
