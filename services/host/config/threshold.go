package config

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"slices"
)

// Threshold says what a party decrypts under threshold keys and multi-key keys, and for whom. Without rules it decrypts
// nothing.
type Threshold struct {
	Rules []DecryptRule `yaml:"rules,omitempty"`
	// Attesters sign where ciphertexts come from. Rules refer to them by name.
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

// DecryptRule allows a client to have ciphertexts decrypted. If several rules match a client and a key, the first one counts.
//
// Decryption of ciphertexts that the client chooses freely reveals the key: one ring ciphertext opens to the secret itself, one
// coefficient a message. So a rule names who vouches for the ciphertexts (Provenance), or how many other clients approve each
// request (Approvals), or says AnyCiphertexts. A rule with none of the three is refused.
type DecryptRule struct {
	Client string `yaml:"client"` // a client's name, or "*"
	// Epochs of the keys; empty means all.
	Epochs []uint64 `yaml:"epochs,omitempty"`
	// Keys are digests of public keys, hexadecimal; empty means all. Shares that are made anew are of the same keys.
	Keys []string `yaml:"keys,omitempty"`
	// Provenance names attesters, one of whom must have signed where the ciphertexts come from.
	Provenance []string `yaml:"provenance,omitempty"`
	// AnyCiphertexts decrypts whatever the client sends, which lets the client read the key. It excludes Provenance, Approvals,
	// AllowFlooding and the client "*".
	AnyCiphertexts bool `yaml:"any_ciphertexts,omitempty"`
	// MaxTotal bounds the messages decrypted for the client under each key, repeats aside, as long as the party's store lasts.
	// 0 means 10,000 with AnyCiphertexts and no bound otherwise.
	MaxTotal uint64 `yaml:"max_total,omitempty"`
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

// defaultMaxTotal bounds the messages of a client and key under a rule with any_ciphertexts. It limits what a misused
// permission reveals, but it is no protection: a few thousand messages reveal a key.
const defaultMaxTotal = 10_000

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

// Fault says why a rule is refused, or is empty. The text begins with the name of a field of the rule.
func (r *DecryptRule) Fault() string {
	guarded := len(r.Provenance) > 0 || r.Approvals > 0
	//lodge:check rules/unguarded [tests=./services/host/config,./services/threshold] [run=TestUnguardedRules|TestUnguardedRuleDecryptsNothing] a rule without attesters or approvals loads, and its client reads the key
	if !guarded && !r.AnyCiphertexts {
		return "provenance: missing; name attesters who must sign where ciphertexts come from, or set approvals to how many other clients approve each request; " +
			"any_ciphertexts: true decrypts whatever the client sends, and so lets it read the key"
	}
	//lodge:check rules/any-and-guarded [tests=./services/host/config] [run=TestUnguardedRules] a rule says both that ciphertexts are vouched for and that they need not be
	if guarded && r.AnyCiphertexts {
		return "any_ciphertexts: the rule also has provenance or approvals; leave out any_ciphertexts to demand them, or leave out the others"
	}
	//lodge:check rules/any-for-everybody [tests=./services/host/config] [run=TestUnguardedRules] one line of configuration lets every client read the key
	if r.AnyCiphertexts && r.Client == Everybody {
		return `any_ciphertexts: not for client "*", because the client can read the key; name one client`
	}
	//lodge:check rules/any-flooding [tests=./services/host/config] [run=TestUnguardedRules] noise of the client's choice exceeds what is flooded, which reveals the key at once
	if r.AnyCiphertexts && r.AllowFlooding {
		return "any_ciphertexts: not together with allow_flooding, which is safe only for ciphertexts whose noise is known; name attesters or set approvals"
	}
	return ""
}

// KeyReaders lists the rules whose clients can read the keys, because the rules say any_ciphertexts.
func (t *Threshold) KeyReaders() (rules []DecryptRule) {
	for _, r := range t.Rules {
		if r.AnyCiphertexts {
			rules = append(rules, r)
		}
	}
	return rules
}

// Warning says what a rule with any_ciphertexts lets its client do.
func (r *DecryptRule) Warning() string {
	return fmt.Sprintf("client %q can read the keys: any_ciphertexts decrypts whatever it sends, up to %d messages a key", r.Client, r.MaxTotal)
}

// names reports whether a rule is for keys with a digest.
func (r *DecryptRule) names(keys [32]byte) bool {
	return len(r.Keys) == 0 || slices.ContainsFunc(r.Keys, func(k string) bool {
		digest, err := hex.DecodeString(k)
		//lodge:check threshold/policy/keys [drop=bytes.Equal(digest, keys[:])]
		//  [run=TestDecryptRules] a rule for some keys opens others
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
		if r.AnyCiphertexts && r.MaxTotal == 0 {
			r.MaxTotal = defaultMaxTotal
		}
		if fault := r.Fault(); fault != "" {
			c.failf("threshold.rules[%d].%s", i, fault)
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
