package config

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// MaxParties is the largest number of parties in a roster.
const MaxParties = 64

// Roster lists the parties and the coordinator. All processes pin the same one.
type Roster struct {
	Parties     []Member    `yaml:"parties"`
	Coordinator Coordinator `yaml:"coordinator"`
	// Multikey is the context that all keys of multi-key ciphertexts share. Without it there is no
	// multi-key service.
	Multikey *Multikey `yaml:"multikey,omitempty"`
}

// Member is one party of the roster; its ID is its index.
type Member struct {
	ID         int    `yaml:"id"`
	Name       string `yaml:"name"`
	Address    string `yaml:"address"`     // host:port of its gRPC server
	Identity   string `yaml:"identity"`    // URI or DNS name in its certificate
	SigningKey string `yaml:"signing_key"` // Ed25519, 32 bytes in base64
}

// Coordinator is the process that may request sessions from parties.
type Coordinator struct {
	Address  string `yaml:"address"`
	Identity string `yaml:"identity"`
}

// LoadRoster reads and validates a roster.
func LoadRoster(path string) (*Roster, error) {
	r := new(Roster)
	if err := decode(path, r); err != nil {
		return nil, err
	}
	c := new(check)
	r.validate(c)
	if err := c.err(path); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Roster) validate(c *check) {
	if len(r.Parties) < 2 || len(r.Parties) > MaxParties {
		c.failf("parties: %d entries; a roster has 2 to %d", len(r.Parties), MaxParties)
	}
	seen := map[string]string{}
	once := func(key, kind, v string) {
		if other, ok := seen[kind+v]; ok {
			c.failf("%s: %q is also %s", key, v, other)
		}
		seen[kind+v] = key
	}
	for i, p := range r.Parties {
		key := fmt.Sprintf("parties[%d]", i)
		if p.ID != i {
			c.failf("%s.id: %d; ids run from 0 in order", key, p.ID)
		}
		if c.name(key+".name", p.Name); p.Name == CoordinatorName {
			c.failf("%s.name: %q is reserved for the coordinator", key, p.Name)
		}
		once(key+".name", "name", p.Name)
		c.address(key+".address", p.Address)
		if p.Identity == "" {
			c.failf("%s.identity: missing; write the URI or DNS name of the party's certificate", key)
		}
		once(key+".identity", "identity", p.Identity)
		if _, err := pki.ParsePublic(p.SigningKey); err != nil {
			c.failf("%s.signing_key: not 32 bytes in base64", key)
		}
		once(key+".signing_key", "key", p.SigningKey)
	}
	if r.Coordinator.Identity == "" {
		c.failf("coordinator.identity: missing; write the URI or DNS name of the coordinator's certificate")
	}
	once("coordinator.identity", "identity", r.Coordinator.Identity)
	c.address("coordinator.address", r.Coordinator.Address)
	r.Multikey.validate(c)
}

// Hash binds everything that parties must agree on: ids, names, certificate identities and signing
// keys, the coordinator's identity, and the context of multi-key ciphertexts if there is one.
// Addresses are left out: they may differ between parties.
func (r *Roster) Hash() [32]byte {
	h := sha256.New()
	put := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	put("lodge roster v1")
	for _, p := range r.Parties {
		put(fmt.Sprint(p.ID))
		put(p.Name)
		put(p.Identity)
		put(p.SigningKey)
	}
	put(r.Coordinator.Identity)
	if m := r.Multikey; m != nil {
		put("multikey")
		put(m.Set)
		put(m.Seed)
	}
	return [32]byte(h.Sum(nil))
}

// Index returns the index of the party with this name.
func (r *Roster) Index(name string) (int, bool) {
	for i, p := range r.Parties {
		if p.Name == name {
			return i, true
		}
	}
	return 0, false
}

// SigningKeys returns the keys of all parties by index. The roster must have been validated.
func (r *Roster) SigningKeys() []ed25519.PublicKey {
	keys := make([]ed25519.PublicKey, len(r.Parties))
	for i, p := range r.Parties {
		keys[i], _ = pki.ParsePublic(p.SigningKey)
	}
	return keys
}

// directory returns the callers that a process of this roster accepts.
func (r *Roster) directory(self string, clients []Client) (*rpc.Directory, error) {
	d := rpc.NewDirectory()
	for i, p := range r.Parties {
		role := rpc.Peer
		if p.Name == self {
			role = rpc.Self
		}
		if err := d.Add(p.Identity, rpc.Principal{Role: role, Name: p.Name, Party: i}); err != nil {
			return nil, err
		}
	}
	role := rpc.Coordinator
	if self == CoordinatorName {
		role = rpc.Self
	}
	if err := d.Add(r.Coordinator.Identity, rpc.Principal{Role: role, Name: CoordinatorName, Party: -1}); err != nil {
		return nil, err
	}
	for _, c := range clients {
		if err := c.add(d); err != nil {
			return nil, err
		}
	}
	return d, nil
}
