package seal

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const (
	IdentityKey = "identity"
	PeerPrefix  = "peer/"
	IDLen       = 16 // bytes of the ids of stores and of starts
)

// Identity distinguishes this store from others, and from itself at an earlier time.
type Identity struct {
	ID         []byte    `json:"id"`
	Created    time.Time `json:"created"`
	Generation uint64    `json:"generation"` // grows with everything that must not be forgotten
	Lineage    string    `json:"lineage,omitempty"`
	Quarantine string    `json:"quarantine,omitempty"` // why nothing may be stored or delivered, or empty
	// Floor is the generation after the last quarantine. A peer is told this generation as the
	// start, or the generation of the last start before which the peer had acknowledged the store.
	// So an old copy cannot catch up with the version that peers have seen, neither by starting
	// again nor by growing while a peer is away.
	Floor uint64                `json:"floor"`
	Peers map[int]*Acknowledged `json:"peers,omitempty"`
}

// Acknowledged is where a peer stands with this store.
type Acknowledged struct {
	First uint64 `json:"first"` // generation of the start that it is told
	Since bool   `json:"since"` // whether it has acknowledged the store since
}

// First is the generation of the start that a peer is told.
func (id *Identity) First(peer int) uint64 {
	if p := id.Peers[peer]; p != nil {
		return max(p.First, id.Floor)
	}
	return id.Floor
}

// Started sets First to the present generation for each peer that has acknowledged the store since
// the start that it was told. It reports whether there is such a peer.
func (id *Identity) Started() (moved bool) {
	for _, p := range id.Peers {
		if p.Since {
			p.First, p.Since, moved = id.Generation, false, true
		}
	}
	return moved
}

// NewIdentity returns the identity of a new store, with a random id.
func (v *Store) NewIdentity() *Identity {
	id := &Identity{ID: make([]byte, IDLen), Created: v.Clock().UTC(), Generation: 1, Floor: 1, Lineage: v.Backend.Lineage()}
	rand.Read(id.ID)
	return id
}

// Update runs a transaction.
func (v *Store) Update(f func(store.Tx) error) error { return v.Backend.Update(f) }

// noting is a transaction that records whether it wrote.
type noting struct {
	store.Tx
	wrote bool
}

func (t *noting) Put(key string, value []byte) error {
	t.wrote = true
	return t.Tx.Put(key, value)
}

func (t *noting) Delete(key string) error {
	t.wrote = true
	return t.Tx.Delete(key)
}

// Advance runs a transaction that changes the state of tuples or keys, and increments the
// generation of the store if the transaction writes anything.
func (v *Store) Advance(f func(store.Tx) error) error {
	return v.Update(func(tx store.Tx) error {
		t := &noting{Tx: tx}
		if err := f(t); err != nil || !t.wrote {
			return err
		}
		id, err := Get[Identity](v, tx, IdentityKey)
		if err != nil {
			return err
		}
		//lodge:check vault/store/generation [tests=./services/store/vault]
		//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage]
		//  changes that must not be forgotten leave the generation as it was
		id.Generation++
		return Put(v, tx, IdentityKey, id)
	})
}

// NextGeneration returns the generation of the store after the transaction of Advance.
func (v *Store) NextGeneration(tx store.Tx) (uint64, error) {
	id, err := Get[Identity](v, tx, IdentityKey)
	if err != nil {
		return 0, err
	}
	return id.Generation + 1, nil
}

// Trusted returns an error if the store is in quarantine.
func (v *Store) Trusted(tx store.Tx) error {
	id, err := Get[Identity](v, tx, IdentityKey)
	//lodge:check vault/store/quarantine [tests=./services/store/vault]
	//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage] a
	//  store in quarantine is used
	if err == nil && id.Quarantine != "" {
		err = fmt.Errorf("%w: %s", vaulterr.ErrQuarantine, id.Quarantine)
	}
	return err
}

func (v *Store) IdentityNow() (Identity, error) {
	return Read(v, func(tx store.Tx) (*Identity, error) { return Get[Identity](v, tx, IdentityKey) })
}

// Generation of this store now.
func (v *Store) Generation() (uint64, error) {
	id, err := v.IdentityNow()
	return id.Generation, err
}

// Quarantined says why this store may neither store nor deliver tuples; empty when it may.
func (v *Store) Quarantined() (reason string, err error) {
	id, err := v.IdentityNow()
	return id.Quarantine, err
}

// StandsWith takes over where a peer stood with this store. A standing with the store before a
// restore does not apply to this store.
func (id *Identity) StandsWith(peer int, a *Acknowledged) (changed bool) {
	now := id.Peers[peer]
	//lodge:check vault/roster/stands [tests=./services/store/vault] [drop=(now.Since || now.First
	//  >= a.First)] [run=TestStoresAreKnown] a peer does not learn from which start it has known
	//  the store
	//lodge:check vault/pin/store-of-now [tests=./services/store/vault] [drop=a.First >
	//  id.Generation] [run=TestWhere] an acknowledgement from before a restore counts
	//lodge:check vault/pin/standing-since [tests=./services/store/vault] [drop=now.Since]
	//  [run=TestWhere] a former standing counts although the peer's store has been replaced
	//lodge:check vault/pin/standing-first [tests=./services/store/vault] [drop=now.First >=
	//  a.First] [run=TestWhere] a former standing counts although the peer's store is older
	if a == nil || a.First > id.Generation || now != nil && (now.Since || now.First >= a.First) {
		return false
	}
	if id.Peers == nil {
		id.Peers = map[int]*Acknowledged{}
	}
	id.Peers[peer] = a
	return true
}
