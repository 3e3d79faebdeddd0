// Package keys serves a party's own keys for multi-key ciphertexts: it makes and destroys them, and encrypts under them for
// the party's own clients. Secrets are in the vault; what leaves the party of them is encryptions, and what package threshold
// opens together with the other owners of the keys of a ciphertext.
package keys

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	mk "github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/audit"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/keyring"
	"github.com/lodge-mpc/lodge/services/metrics"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/vault"
)

const prefix = "/lodge.multikey.v1.KeysService/"

// Rules say who may call what.
var Rules = rpc.Rules{
	prefix + "MakeKeys":    rpc.Allow(rpc.Client).With(config.PermOperate),
	prefix + "ListKeys":    rpc.Allow(rpc.Coordinator, rpc.Client),
	prefix + "DestroyKeys": rpc.Allow(rpc.Client).With(config.PermRetire),
	prefix + "Encrypt":     rpc.Allow(rpc.Client).With(config.PermEncrypt),
}

// Config of a party's own keys.
type Config struct {
	Vault   *vault.Vault
	Audit   *audit.Log
	Gate    *job.Gate
	Log     *slog.Logger
	Context *multikey.Context  // nil where the roster pins none
	Party   int                // its place in the roster
	Signer  ed25519.PrivateKey // of its records
	Workers int
	Metrics *metrics.Metrics
	// Tenants are those of the party's policy. Its multi-key keys serve all of them.
	Tenants []string
	Known   Known // nil: nothing is known
	// AllowLegacy allows new keys of legacy sets. Only tests of existing legacy keys set it; no configuration does.
	AllowLegacy bool
	// Changed is called after keys were made or retired; nil: nobody wants to know.
	Changed func()
}

// Known is what others remember that this party has signed of its keys. A store that comes of a backup may not.
type Known interface {
	// Revoked says whether keys were.
	Revoked(mk.KeyID) bool
	// Latest is the last version that there was, or 0.
	Latest() uint64
}

// nothing is known.
type nothing struct{}

func (nothing) Revoked(mk.KeyID) bool { return false }
func (nothing) Latest() uint64        { return 0 }

// Store has a party's own keys, and implements lodge.multikey.v1.KeysService.
type Store struct {
	multikeyv1.UnsafeKeysServiceServer
	Config

	mu      sync.Mutex
	making  *making // or nil
	working sync.WaitGroup
}

// New serves a party's own keys.
func New(c Config) *Store {
	s := &Store{Config: c}
	if s.Known == nil {
		s.Known = nothing{}
	}
	s.measure()
	return s
}

// measure tells metrics what keys there are. Of a vault that cannot be read others say that.
func (s *Store) measure() {
	if s.Metrics == nil {
		return
	}
	all, err := s.Own()
	if err != nil {
		return
	}
	active := 0
	for _, k := range all {
		if k.State == vault.MultikeyActive {
			active++
		}
	}
	s.Metrics.MultikeyOwn(active, len(all)-active)
}

// Wait returns when nothing is being made any more.
func (s *Store) Wait() { s.working.Wait() }

// Own lists this party's keys by version, retired ones included.
func (s *Store) Own() ([]vault.MultikeyKey, error) { return s.Vault.MultikeyKeys() }

// name is how errors call a version of this party's keys.
func (s *Store) name(version uint64) string {
	return fmt.Sprintf("version %d of the multi-key keys of party %d", version, s.Party)
}

// Find gives this party's keys of a name, retired ones too.
func (s *Store) Find(id mk.KeyID) (k vault.MultikeyKey, found bool, err error) {
	all, err := s.Own()
	for _, x := range all {
		if x.Key == id {
			return x, true, err
		}
	}
	return k, false, err
}

// Usable refuses keys that are retired, or were when the store that has them was another, or are not of the pinned context.
func (s *Store) Usable(k *vault.MultikeyKey) error {
	switch {
	case s.Context == nil:
		return multikey.NotConfigured()
	case k.State == vault.MultikeyRetired:
		return rpc.Errorf(rpc.RetiredKey, "have the inputs encrypted anew, under keys that are in use", "%s (%.8x) is retired, and its secret is erased", s.name(k.Version), k.Key)
	case s.Known.Revoked(k.Key):
		return rpc.Errorf(rpc.RetiredKey, "destroy it again with `lodge mk keys destroy`, and have the inputs encrypted anew, under keys that are in use",
			"%s (%.8x) was destroyed after the backup that this store comes of: the party has signed that it is revoked", s.name(k.Version), k.Key)
	}
	if err := s.Context.Same(k.ParamsHash, k.CRS); err != nil {
		what := "common reference string"
		if errors.Is(err, mk.ErrSet) {
			what = "parameter set"
		}
		return rpc.Errorf(rpc.Foreign, "make keys of the context that the roster pins now", "%s (%.8x) is of another %s than the roster pins", s.name(k.Version), k.Key, what)
	}
	return nil
}

// Secret loads the secret of keys that may be used. The caller wipes it. The error is an *rpc.Error, with unknown_key if this
// party has no keys of that name.
func (s *Store) Secret(id mk.KeyID) (*mk.Secret, error) {
	k, found, err := s.Find(id)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, s.Unknown(id)
	}
	return s.load(&k)
}

// Unknown says that this party has no keys of that name.
func (s *Store) Unknown(id mk.KeyID) *rpc.Error {
	return rpc.Errorf(rpc.UnknownKey, "see whose they are; `lodge mk keys list` shows the keys of a party", "party %d has no multi-key keys %.8x", s.Party, id[:])
}

func (s *Store) load(k *vault.MultikeyKey) (*mk.Secret, error) {
	if err := s.Usable(k); err != nil {
		return nil, err
	}
	in, err := s.Vault.OpenMultikeySecret(k.Version)
	if err != nil {
		return nil, keyring.Refused(err, s.name(k.Version))
	}
	defer in.Close()
	b := make([]byte, s.Context.SecretSize())
	defer clear(b)
	if err := readAll(in, b); err != nil {
		return nil, fmt.Errorf("multikey: secret of %s: %w", s.name(k.Version), err)
	}
	secret, err := s.Context.DecodeSecret(b)
	if err == nil && secret.ID() != k.Key {
		secret.Wipe()
		err = vault.ErrCorrupt
	}
	return secret, err
}

// record is what the party signs of keys.
func (s *Store) record(k *vault.MultikeyKey, when time.Time, revoked bool) []byte {
	r := multikey.Record{
		Version: k.Version, Set: k.ParamsHash, CRS: k.CRS, Key: k.Key, Size: k.Size, Created: when.UTC().Truncate(time.Second),
		Revoked: revoked,
	}
	if len(k.Salt) == len(r.Salt) {
		r.Bound, r.Salt = true, [32]byte(k.Salt)
	}
	return r.Sign(s.Signer)
}

// changed tells whoever wants to know.
func (s *Store) changed() {
	s.measure()
	if s.Changed != nil {
		s.Changed()
	}
}

// note appends to the audit log.
func (s *Store) note(caller rpc.Principal, event audit.Event, k *vault.MultikeyKey, note string) error {
	_, err := s.Audit.Append(audit.Entry{
		Event: event, Actor: caller.Name, Auth: audit.Auth(caller.Auth), Digest: k.Key, Note: note, Objects: []string{fmt.Sprintf("multikey/%d", k.Version)},
	})
	return err
}
