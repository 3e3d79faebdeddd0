// Package registry stores the public keys of all parties of a roster at one of them
// (lodge.multikey.v1.RegistryService), in the version that each owner signed last. There is no
// central server: parties announce records to each other, and fetch keys from each other. A record
// is valid because its owner has signed it, and keys are valid because their digest is in the
// record.
package registry

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	service "github.com/lodge-mpc/lodge/services/multikey"
)

// Source provides this party's own keys.
type Source interface {
	// Records returns the signed records of the party's keys.
	Records() ([][]byte, error)
	// Open returns a reader of keys: the header, the digests of the chunks, and the chunks.
	Open(multikey.KeyID) (io.ReadCloser, error)
}

// Config configures a party's registry.
type Config struct {
	Context *service.Context
	Self    int      // this party's index
	Names   []string // of the parties of the roster, by index
	Signers []ed25519.PublicKey
	Peers   []grpc.ClientConnInterface // by index; nil for this party
	Source  Source
	Dir     string // created if it does not exist
	Limit   int64  // maximum size of other parties' keys in Dir, in bytes
	Metrics *metrics.Metrics
	Log     *slog.Logger
}

// Registry implements the service. It is safe for concurrent use.
type Registry struct {
	multikeyv1.UnsafeRegistryServiceServer
	Config
	disk disk
	wake chan struct{} // holds a token when there is work

	fetches  sync.WaitGroup
	patience time.Duration // for one party that sends keys

	mu       sync.Mutex
	book     *book
	present  map[*Entry]bool // stored keys of other parties
	fetching map[*Entry]context.CancelFunc
	told     map[*Entry]int  // number of the party's own records that were announced
	faults   map[string]bool // faults that were logged
}

const (
	// every is the maximum time between requests for other parties' records.
	every = 30 * time.Second
	// soon is the first retry interval when a party has not responded or keys are missing; it then
	// doubles.
	soon = 500 * time.Millisecond
)

// New opens the registry in a directory.
func New(c Config) (*Registry, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	r := &Registry{
		Config: c, patience: longest, disk: disk{c.Dir, c.Context}, wake: make(chan struct{}, 1), book: newBook(c.Context, c.Signers),
		present: map[*Entry]bool{}, fetching: map[*Entry]context.CancelFunc{}, told: map[*Entry]int{}, faults: map[string]bool{},
	}
	list, err := r.disk.records()
	if err != nil {
		return nil, err
	}
	for _, signed := range list {
		if err := r.book.remember(signed); err != nil { // the context has changed
			c.Log.Warn("a record of multi-key keys is skipped", "error", err)
		}
	}
	if list, err = r.Source.Records(); err == nil {
		r.fault("own", ownFault, r.accept(list))
	}
	if e := r.book.current(r.Self); e != nil && e.Weak() {
		c.Log.Warn("this party's multi-key keys name their owner by only 32 bits: make other keys with `lodge mk keys generate`", "version", e.Version)
	}
	return r, err
}

// ownFault is logged when the party's signing key, or the context, differs from the one under which
// it made keys.
const ownFault = "this party's own multi-key keys are not in its registry"

// own adds the party's own records.
func (r *Registry) own() error {
	list, err := r.Source.Records()
	if err != nil {
		return err
	}
	return r.accept(list)
}

// accept adds records, makes new records durable, and schedules the fetch of their keys. It returns
// the error of the first rejected record; the others are added.
func (r *Registry) accept(list [][]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var refused error
	changed := false
	for _, signed := range list {
		_, more, err := r.book.accept(signed)
		changed = changed || more
		if err != nil && refused == nil {
			refused = err
		}
	}
	if !changed {
		return refused
	}
	r.nudge()
	return errors.Join(r.disk.keep(r.book.records()), refused)
}

func (r *Registry) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Changed tells the registry that the party's own keys have changed. A nil registry does nothing.
func (r *Registry) Changed() {
	if r == nil {
		return
	}
	r.fault("own", ownFault, r.own())
	r.nudge()
}

// Revoked reports whether this party has signed a revocation of its own keys. A nil registry
// returns false.
func (r *Registry) Revoked(id multikey.KeyID) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.book.owners[r.Self], func(e *Entry) bool { return e.Key == id && e.Revocation != nil })
}

// Latest returns the last version of this party's own keys that any party has reported; 0 if there
// is none.
func (r *Registry) Latest() uint64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if list := r.book.owners[r.Self]; len(list) > 0 {
		return list[len(list)-1].Version
	}
	return 0
}

// Owner returns the record of keys; known reports whether there is one.
func (r *Registry) Owner(id multikey.KeyID) (record *service.Record, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.find(id)
	if e == nil {
		return nil, false
	}
	copied := *e.Record
	copied.Revoked = e.Revocation != nil
	return &copied, true
}

// find returns the entry of keys. If several parties claim them, it prefers this party's own, then
// an entry whose keys are stored here. The caller must hold the lock.
func (r *Registry) find(id multikey.KeyID) (found *Entry) {
	for _, e := range r.book.named(id) {
		if found == nil || e.Place == r.Self || r.here(e) && found.Place != r.Self {
			found = e
		}
	}
	return found
}

// disputed returns another entry that claims keys stored here for an owner. Only weak records can
// be in dispute, because the header of their keys fits any signing key with the same OwnerNumber.
// The caller must hold the lock.
func (r *Registry) disputed(e *Entry) (other *Entry) {
	for _, x := range r.book.named(e.Key) {
		if x.Place != e.Place && x.Weak() && e.Weak() && x.Record.Owner() == e.Record.Owner() {
			return x
		}
	}
	return nil
}

// here reports whether keys can be read from this party. The caller must hold the lock.
func (r *Registry) here(e *Entry) bool { return e.Place == r.Self || r.present[e] }

// Name describes an entry's keys and their owner, for messages.
func (r *Registry) name(e *Entry) string {
	return fmt.Sprintf("keys %x, version %d of %s,", e.Key[:4], e.Version, r.Names[e.Place])
}

// Usable returns an error if keys must not be used for new computations. The error is an
// *rpc.Error: unknown_key, retired_key, or unavailable while they are being fetched.
func (r *Registry) Usable(id multikey.KeyID) error {
	_, err := r.usable(id)
	return err
}

func (r *Registry) usable(id multikey.KeyID) (Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.find(id)
	if _, left := r.book.departed[id]; e == nil && left {
		return Entry{}, rpc.Errorf(rpc.UnknownKey, "these keys cannot be used for decryption any more; encrypt under keys of parties of the roster",
			"the owner of keys %x has left the roster", id[:])
	}
	if e == nil {
		return Entry{}, rpc.Errorf(rpc.UnknownKey, "`lodge mk registry list` lists the keys that this party knows; ask their owner whether they are published",
			"no party has published keys %x", id[:])
	}
	//lodge:check registry/disputed [run=TestCollidingOwners] a party whose signing key collides in 32 bits is accepted as the owner of another's keys
	if x := r.disputed(e); x != nil {
		return Entry{}, rpc.Errorf(rpc.Conflict, "have both parties make other keys, whose owners this version distinguishes: `lodge mk keys generate`",
			"%s and %s both claim the keys %x, and the numbers of their signing keys are the same", r.Names[e.Place], r.Names[x.Place], id[:4])
	}
	const next = "encrypt under the owner's current keys; `lodge mk registry list` lists them"
	switch {
	case e.Revocation != nil:
		return Entry{}, rpc.Errorf(rpc.RetiredKey, next, "%s are revoked", r.name(e))
	case e.Superseded:
		list := r.book.owners[e.Place]
		return Entry{}, rpc.Errorf(rpc.RetiredKey, next, "%s are superseded by version %d", r.name(e), list[len(list)-1].Version)
	case !r.here(e):
		return Entry{}, rpc.Errorf(rpc.Unavailable, "try again when they have been fetched; `lodge mk registry list` shows the progress", "%s are not complete at this party yet", r.name(e))
	}
	return *e, nil
}

// open opens the keys with an identifier if they may be used. The error is that of Usable, or says
// that the keys are damaged.
func (r *Registry) open(id multikey.KeyID) (in *reader, owner uint32, done io.Closer, err error) {
	e, err := r.usable(id)
	if err != nil {
		return nil, 0, nil, err
	}
	var f io.ReadCloser
	if e.Place == r.Self {
		f, err = r.Source.Open(e.Key)
	} else {
		f, err = os.Open(r.disk.path(e.Record, keysSuffix))
	}
	if err != nil {
		return nil, 0, nil, err
	}
	if in, err = newReader(r.Context, e.Record, f); err != nil {
		return nil, 0, nil, errors.Join(err, f.Close())
	}
	return in, e.Owner(), f, nil
}

// Load reads the keys with an identifier and checks every chunk. The error is that of Usable, or
// says that the keys are damaged.
func (r *Registry) Load(ctx context.Context, id multikey.KeyID) (*multikey.Keys, error) {
	in, owner, file, err := r.open(id)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	keys, err := r.Context.Receive(owner, in.Header)
	if err != nil {
		return nil, err
	}
	for i := range in.Digests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := in.chunk()
		if err != nil {
			return nil, err
		}
		if err := keys.Put(i, b); err != nil {
			return nil, err
		}
	}
	return keys.Finish(id)
}
