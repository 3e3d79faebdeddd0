// Package keys serves a party's own multi-key keys: it makes and destroys them, and encrypts under
// them for the party's own clients. Secret keys stay in the vault. The party gives out public
// keys, encryptions, and the openings that package threshold computes together with the other
// owners of a ciphertext's keys.
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
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/session/job"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const prefix = "/lodge.multikey.v1.KeysService/"

// Rules maps each method to the permission that a caller needs.
var Rules = rpc.Rules{
	prefix + "MakeKeys":    rpc.Allow(rpc.Client).With(config.PermOperate),
	prefix + "ListKeys":    rpc.Allow(rpc.Coordinator, rpc.Client),
	prefix + "DestroyKeys": rpc.Allow(rpc.Client).With(config.PermRetire),
	prefix + "Encrypt":     rpc.Allow(rpc.Client).With(config.PermEncrypt),
}

// Config configures the service for a party's own keys.
type Config struct {
	Vault   Vault
	Audit   *audit.Log
	Gate    *job.Gate
	Log     *slog.Logger
	Context *multikey.Context  // nil if the roster pins no context
	Party   int                // its index in the roster
	Signer  ed25519.PrivateKey // signs the party's records
	Workers int
	Metrics *metrics.Metrics
	// Tenants lists the tenants of the party's policy. Its multi-key keys serve all these tenants.
	Tenants []string
	Known   Known // nil: nothing is known
	// AllowLegacy allows new keys of legacy sets. Only tests of existing legacy keys set it; no
	// configuration does.
	AllowLegacy bool
	// Changed, if not nil, is called after keys were made or retired.
	Changed func()
}

// Known returns this party's signed records that the other parties remember. The party's own store
// may lack records if it was restored from a backup.
type Known interface {
	// Revoked reports whether the keys were revoked.
	Revoked(mk.KeyID) bool
	// Latest returns the last known version, or 0.
	Latest() uint64
}

// nothing is a Known without records.
type nothing struct{}

func (nothing) Revoked(mk.KeyID) bool { return false }
func (nothing) Latest() uint64        { return 0 }

// Store manages a party's own keys, and implements lodge.multikey.v1.KeysService.
type Store struct {
	multikeyv1.UnsafeKeysServiceServer
	Config

	mu      sync.Mutex
	making  *making // nil if no keys are being made
	working sync.WaitGroup
}

// New returns the service for a party's own keys.
func New(c Config) *Store {
	s := &Store{Config: c}
	if s.Known == nil {
		s.Known = nothing{}
	}
	s.measure()
	return s
}

// measure updates the metrics of the keys. It ignores errors of the vault, which other code
// reports.
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
		if k.State == vaultkeys.MultikeyActive {
			active++
		}
	}
	s.Metrics.Set(metrics.MultikeyOwn, float64(active), "active")
	s.Metrics.Set(metrics.MultikeyOwn, float64(len(all)-active), "retired")
}

// Wait returns when no keys are being made.
func (s *Store) Wait() { s.working.Wait() }

// Own returns this party's keys by version, including retired ones.
func (s *Store) Own() ([]vaultkeys.MultikeyKey, error) { return s.Vault.MultikeyKeys() }

// name returns the name of a version of this party's keys for error messages.
func (s *Store) name(version uint64) string {
	return fmt.Sprintf("version %d of the multi-key keys of party %d", version, s.Party)
}

// Find returns this party's keys with the given identifier, including retired ones.
func (s *Store) Find(id mk.KeyID) (k vaultkeys.MultikeyKey, found bool, err error) {
	all, err := s.Own()
	for _, x := range all {
		if x.Key == id {
			return x, true, err
		}
	}
	return k, false, err
}

// Usable returns an error if keys are retired, if the other parties know that they were retired
// before this store was restored, or if they are not of the pinned context.
func (s *Store) Usable(k *vaultkeys.MultikeyKey) error {
	switch {
	case s.Context == nil:
		return multikey.NotConfigured()
	case k.State == vaultkeys.MultikeyRetired:
		return rpc.Errorf(rpc.RetiredKey, "encrypt the inputs again under current keys", "%s (%.8x) is retired, and its secret is erased", s.name(k.Version), k.Key)
	case s.Known.Revoked(k.Key):
		return rpc.Errorf(rpc.RetiredKey, "destroy it again with `lodge mk keys destroy`, and encrypt the inputs again under current keys",
			"%s (%.8x) was destroyed after the backup from which this store was restored: the party has signed its revocation", s.name(k.Version), k.Key)
	}
	if err := s.Context.Same(k.ParamsHash, k.CRS); err != nil {
		what := "common reference string"
		if errors.Is(err, mk.ErrSet) {
			what = "parameter set"
		}
		return rpc.Errorf(rpc.Foreign, "make keys of the context that the roster pins now", "%s (%.8x) has another %s than the roster pins", s.name(k.Version), k.Key, what)
	}
	return nil
}

// Secret loads the secret of usable keys. The caller must wipe it. The error is an *rpc.Error, with
// unknown_key if this party has no keys with this identifier.
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

// Unknown returns the error for keys that this party does not have.
func (s *Store) Unknown(id mk.KeyID) *rpc.Error {
	return rpc.Errorf(rpc.UnknownKey, "check whose keys these are; `lodge mk keys list` lists the keys of a party", "party %d has no multi-key keys %.8x", s.Party, id[:])
}

func (s *Store) load(k *vaultkeys.MultikeyKey) (*mk.Secret, error) {
	if err := s.Usable(k); err != nil {
		return nil, err
	}
	in, err := s.Vault.OpenMultikeySecret(k.Version)
	if err != nil {
		return nil, vaulterr.RPC(err, s.name(k.Version))
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
		err = vaulterr.ErrCorrupt
	}
	return secret, err
}

// record returns the party's signed record of keys.
func (s *Store) record(k *vaultkeys.MultikeyKey, when time.Time, revoked bool) []byte {
	r := multikey.Record{
		Version: k.Version, Set: k.ParamsHash, CRS: k.CRS, Key: k.Key, Size: k.Size, Created: when.UTC().Truncate(time.Second),
		Revoked: revoked,
	}
	if len(k.Salt) == len(r.Salt) {
		r.Bound, r.Salt = true, [32]byte(k.Salt)
	}
	return r.Sign(s.Signer)
}

// changed calls Changed if it is set.
func (s *Store) changed() {
	s.measure()
	if s.Changed != nil {
		s.Changed()
	}
}

// note appends to the audit log.
func (s *Store) note(caller rpc.Principal, event audit.Event, k *vaultkeys.MultikeyKey, note string) error {
	_, err := s.Audit.Append(audit.Entry{
		Event: event, Actor: caller.Name, Auth: audit.Auth(caller.Auth), Digest: k.Key, Note: note, Objects: []string{fmt.Sprintf("multikey/%d", k.Version)},
	})
	return err
}
