package config

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"slices"
)

// Threshold configures decryption under threshold and multi-key keys: for which clients, and within
// which limits. Without rules it decrypts nothing.
type Threshold struct {
	// Rules allow clients to decrypt; without a rule nothing is decrypted.
	Rules []DecryptRule `yaml:"rules,omitempty"`
	// Attesters sign the origin of ciphertexts. Rules refer to them by name.
	Attesters []Attester `yaml:"attesters,omitempty"`
	// Reshare limits the parties that receive new shares.
	Reshare Reshare `yaml:"reshare,omitempty"`
}

// Reshare limits the parties that may receive new shares of a secret. Without it, only the present
// holders may, and the threshold may not decrease.
type Reshare struct {
	// Holders are parties that may receive shares, in addition to the present holders.
	Holders []string `yaml:"holders,omitempty"`
	// MinThreshold is the lowest threshold of new shares; 0 means the threshold of the old shares.
	MinThreshold uint32 `yaml:"min_threshold,omitempty"`
}

// Everybody is the client name in a rule that stands for all clients with the permission "decrypt".
const Everybody = "*"

// DecryptRule allows a client to request decryptions. The first rule that matches a client and a
// key applies.
//
// Decryption of freely chosen ciphertexts reveals the key: one ring ciphertext opens to the secret
// itself, one coefficient a message. So a rule must name attesters (Provenance), or require
// approvals by other clients (Approvals), or say AnyCiphertexts. A rule with none of the three is
// rejected.
type DecryptRule struct {
	Client string `yaml:"client"` // a client with the permission decrypt, or "*"
	// Epochs are the epochs of the keys; empty means all, also later ones. A number that is not
	// taken yet matches any keys that get it later.
	Epochs []uint64 `yaml:"epochs,omitempty"`
	// Keys are digests of public keys, hexadecimal; empty means all. They match the same keys after
	// resharing.
	Keys []string `yaml:"keys,omitempty"`
	// Provenance names attesters, one of whom must have signed the ciphertexts.
	Provenance []string `yaml:"provenance,omitempty"`
	// AnyCiphertexts decrypts anything that the client sends, which lets the client read the key.
	// It excludes provenance, approvals, allow_flooding and the client "*".
	AnyCiphertexts bool `yaml:"any_ciphertexts,omitempty"`
	// MaxTotal limits the messages for the client under each key, without repeats, for the life of
	// the store; 0 means 10,000 with any_ciphertexts and no limit otherwise.
	MaxTotal uint64 `yaml:"max_total,omitempty"`
	// MessagesPerHour limits the messages in any hour, without repeats. A restart resets it.
	MessagesPerHour int `yaml:"messages_per_hour"`
	// MaxMessages limits the messages of one request, up to 1048576; default 65536.
	MaxMessages int `yaml:"max_messages,omitempty"`
	// Approvals is the number of other clients, with the permission approve, that must approve each
	// request.
	Approvals int `yaml:"approvals,omitempty"`
	// AllowPaperForm accepts masks that sometimes fail, and then reveal something about the noise.
	AllowPaperForm bool `yaml:"allow_paper_form,omitempty"`
	// AllowFlooding accepts decryption of whole BGV ciphertexts with flooding. This is safe only if
	// all parties followed key generation and the noise of every ciphertext is within the bound of
	// its set: noise beyond it reveals something about the key. It needs provenance or approvals.
	AllowFlooding bool `yaml:"allow_flooding,omitempty"`
	// AllowMultikey accepts multi-key ciphertexts under this party's own keys.
	AllowMultikey bool `yaml:"allow_multikey,omitempty"`
}

// Attester signs the provenance of ciphertexts.
type Attester struct {
	Name string `yaml:"name"` // name in rules and requests
	Key  string `yaml:"key"`  // Ed25519 public key, 64 hexadecimal digits
}

// Default and largest sizes of a request.
const (
	defaultMaxMessages = 1 << 16
	mostMessages       = 1 << 20
)

// defaultMaxTotal is the default of MaxTotal with any_ciphertexts. It limits the damage of a
// misused permission, but it does not protect the key: a few thousand messages reveal it.
const defaultMaxTotal = 10_000

// Public returns the attester's key. The file must have been validated.
func (a Attester) Public() ed25519.PublicKey {
	b, _ := hex.DecodeString(a.Key)
	return b
}

// Attester returns the attester with this name.
func (t *Threshold) Attester(name string) (Attester, bool) {
	i := slices.IndexFunc(t.Attesters, func(a Attester) bool { return a.Name == name })
	if i < 0 {
		return Attester{}, false
	}
	return t.Attesters[i], true
}

// Rule returns the first rule for a client, an epoch and the digest of its keys.
func (t *Threshold) Rule(client string, epoch uint64, keys [32]byte) (DecryptRule, bool) {
	for _, r := range t.Rules {
		if (r.Client == client || r.Client == Everybody) && (len(r.Epochs) == 0 || slices.Contains(r.Epochs, epoch)) && r.names(keys) {
			return r, true
		}
	}
	return DecryptRule{}, false
}

// Fault returns the reason why a rule is rejected, or "". The text begins with the name of a field
// of the rule.
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
		return "any_ciphertexts: not together with allow_flooding, which is safe only for ciphertexts with known noise; name attesters or set approvals"
	}
	return ""
}

// KeyReaders returns the rules with any_ciphertexts, whose clients can read the keys.
func (t *Threshold) KeyReaders() (rules []DecryptRule) {
	for _, r := range t.Rules {
		if r.AnyCiphertexts {
			rules = append(rules, r)
		}
	}
	return rules
}

// Warning describes the risk of a rule with any_ciphertexts.
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

// within rejects holders that are not in the roster.
func (r *Reshare) within(c *check, roster *Roster) {
	for _, name := range r.Holders {
		if _, known := roster.Index(name); !known {
			c.failf("threshold.reshare.holders: the roster has no party %q", name)
		}
	}
}

// validate sets defaults and rejects contradictory rules.
func (t *Threshold) validate(c *check, clients []Client) {
	for i, a := range t.Attesters {
		c.name("threshold.attesters", a.Name)
		if b, err := hex.DecodeString(a.Key); err != nil || len(b) != ed25519.PublicKeySize {
			c.failf("threshold.attesters[%d].key: not 64 hexadecimal digits of an Ed25519 key", i)
		}
		if j := slices.IndexFunc(t.Attesters, func(b Attester) bool { return b.Name == a.Name }); j < i {
			c.failf("threshold.attesters[%d].name: %q occurs twice", i, a.Name)
		}
	}
	for i := range t.Rules {
		r := &t.Rules[i]
		known := func(x Client) bool { return x.Name == r.Client && slices.Contains(x.Permissions, PermDecrypt) }
		if r.Client != Everybody && !slices.ContainsFunc(clients, known) {
			c.failf("threshold.rules[%d].client: no client %q has the permission %q", i, r.Client, PermDecrypt)
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
			c.failf("threshold.rules[%d].approvals: %d approvals are needed, and only %d other clients have the permission %q", i, r.Approvals, others, PermApprove)
		}
	}
}
