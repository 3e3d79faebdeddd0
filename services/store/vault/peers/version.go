package peers

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Version says which store this is, since which start, and how far it is. Peers remember the
// highest generation that they have seen: a store that is not as far was put back, and has
// forgotten whom it gave tuples to.
type Version struct {
	ID          []byte    `json:"id"`
	Incarnation []byte    `json:"incarnation"` // fresh at every Open
	Started     time.Time `json:"started"`
	First       uint64    `json:"first"` // generation of the start, as one peer is told
	Generation  uint64    `json:"generation"`
	Signature   []byte    `json:"signature,omitempty"` // by the party whose store it is, who checks it
}

// Same reports whether two versions are of one store.
func (x Version) Same(y Version) bool { return bytes.Equal(x.ID, y.ID) }

// Succeeds reports whether a version that this party once told to a peer shows that this store was
// put back since: the store was further then, or a later store had replaced it.
func (v *Peers) Succeeds(peer int, said Version) (bool, error) {
	id, err := v.IdentityNow()
	if err != nil {
		return false, err
	}
	if bytes.Equal(said.ID, id.ID) {
		now := v.start.Load()
		//lodge:check vault/store/succeeds [tests=./services/store/vault] [swap=said.Generation >
		//  id.First(peer) && !bytes.Equal(said.Incarnation, now.incarnation)=>now != nil]
		//  [run=TestSucceeds] a lying peer puts a store into quarantine
		return said.Generation > id.First(peer) && !bytes.Equal(said.Incarnation, now.incarnation), nil
	}
	return said.Started.After(id.Created), nil
}

// Start of this process, or of the time after a quarantine.
type Start struct {
	incarnation []byte
	at          time.Time
}

func (v *Peers) Begin() {
	s := &Start{incarnation: make([]byte, seal.IDLen), at: v.Clock().UTC()}
	rand.Read(s.incarnation)
	v.start.Store(s)
}

// Version of this store now, as a peer is told.
func (v *Peers) Version(peer int) (Version, error) {
	now := v.start.Load() // before the identity, which may be later
	id, err := v.IdentityNow()
	if err != nil {
		return Version{}, err
	}
	return Version{ID: id.ID, Incarnation: now.incarnation, Started: now.at, First: id.First(peer), Generation: id.Generation}, nil
}

// AcknowledgedBy records that a peer has acknowledged this start.
func (v *Peers) AcknowledgedBy(peer int) error {
	return v.Update(func(tx store.Tx) error {
		id, err := seal.Get[seal.Identity](v.Store, tx, seal.IdentityKey)
		if err != nil || id.Peers[peer] != nil && id.Peers[peer].Since {
			return err
		}
		if id.Peers == nil {
			id.Peers = map[int]*seal.Acknowledged{}
		}
		id.Peers[peer] = &seal.Acknowledged{First: id.First(peer), Since: true}
		return seal.Put(v.Store, tx, seal.IdentityKey, id)
	})
}

// Peer is this party's record of a peer's stores.
type Peer struct {
	Version          // the last
	Former  [][]byte `json:"former,omitempty"` // ids of the stores that it had before
	// Guessed marks a record of another key at the same index, until the peer says which store it
	// has.
	Guessed bool `json:"guessed,omitempty"`
}

// maxFormer bounds how many former stores of a peer are remembered.
const maxFormer = 1000

// formerly reports whether the peer had a store before.
func (p *Peer) formerly(id []byte) bool {
	return slices.ContainsFunc(p.Former, func(f []byte) bool { return bytes.Equal(f, id) })
}

func peerKey(party int) string { return fmt.Sprintf("%s%04d", seal.PeerPrefix, party) }

// Acknowledge remembers the version of a peer's store. It returns ErrRolledBack for a store that is
// behind its last version or was replaced by another, and returns the last version.
func (v *Peers) Acknowledge(party int, now Version) (seen Version, err error) {
	//lodge:check vault/store/version-form [tests=./services/store/vault]
	//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage] a
	//  malformed store version is accepted
	if len(now.ID) != seal.IDLen || len(now.Incarnation) != seal.IDLen || now.First > now.Generation {
		return seen, fmt.Errorf("%w: the version of a store is malformed", vaulterr.ErrRange)
	}
	v.acknowledging.Lock() // so that received and recorded versions have one order
	defer v.acknowledging.Unlock()
	//lodge:check vault/roster/recall [tests=./services/store/vault] [swap=v.meet(party,
	//  now.ID)=>error(nil)] [run=TestStoresAreKnown] a store is forgotten when its party has a new
	//  signing key
	if err := v.meet(party, now.ID); err != nil {
		return seen, err
	}
	err = v.Update(func(tx store.Tx) error {
		p, err := seal.Get[Peer](v.Store, tx, peerKey(party))
		if errors.Is(err, vaulterr.ErrNotFound) {
			seen = now
			return seal.Put(v.Store, tx, peerKey(party), &Peer{Version: now})
		}
		if err != nil {
			return err
		}
		seen = p.Version
		//lodge:check vault/store/heard [tests=./services/store/vault]
		//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage]
		//  what a peer reported about a store is ignored
		if last, ok := v.heard(party); ok && last.Same(seen) && last.Generation > seen.Generation {
			seen = last
		}
		again := bytes.Equal(seen.Incarnation, now.Incarnation)
		switch {
		//lodge:check vault/store/former [tests=./services/store/vault]
		//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage]
		//  a replaced store comes back
		case p.formerly(now.ID):
			return fmt.Errorf("%w: it had been replaced by another", vaulterr.ErrRolledBack)
		case !seen.Same(now):
			if len(p.Former) == maxFormer {
				return fmt.Errorf("%w: more than %d stores", vaulterr.ErrState, maxFormer)
			}
			//lodge:check vault/store/remembered [tests=./services/store/vault]
			//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage]
			//  replaced stores are forgotten
			p.Former = append(p.Former, p.ID)
		//lodge:check vault/store/rolled-back [tests=./services/store/vault]
		//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage]
		//  an old copy of a store goes unnoticed
		case !again && now.First < seen.Generation:
			return fmt.Errorf("%w: it started at generation %d and had been at %d", vaulterr.ErrRolledBack, now.First, seen.Generation)
		case again && now.Generation <= seen.Generation:
			return nil
		}
		seen, p.Version, p.Guessed = now, now, false
		return seal.Put(v.Store, tx, peerKey(party), p)
	})
	if err == nil {
		v.peers.Store(party, &seen)
	}
	return seen, err
}

// meet recalls the store of a peer, also if it is then refused: whoever it is, it must hear from
// which start on it has known this store.
func (v *Peers) meet(party int, stored []byte) error {
	var r *RosterRecord
	err := v.Backend.View(func(tx store.Tx) (err error) {
		r, err = seal.Get[RosterRecord](v.Store, tx, RosterKey)
		return err
	})
	if errors.Is(err, vaulterr.ErrNotFound) || err == nil && party >= len(r.Keys) {
		return nil
	}
	if err == nil {
		err = v.Backend.View(func(tx store.Tx) error { return v.anothers(tx, r, party, stored) })
	}
	if err != nil || len(r.Away) == 0 {
		return err
	}
	return v.Update(func(tx store.Tx) error {
		id, err := seal.Get[seal.Identity](v.Store, tx, seal.IdentityKey)
		if err != nil {
			return err
		}
		changed, err := v.recall(tx, id, r, party, hex.EncodeToString(r.Keys[party]), stored)
		if err != nil || !changed {
			return err
		}
		return seal.Put(v.Store, tx, seal.IdentityKey, id)
	})
}

// anothers refuses a store that is known as that of another party: who says that it has it could
// otherwise have the other refused. A party without a known store may have the store of a party
// that has left: the two count as the same party.
func (v *Peers) anothers(tx store.Tx, r *RosterRecord, party int, stored []byte) error {
	known := func(p *Peer) bool { return p != nil && !p.Guessed }
	for i := range r.Keys {
		p, err := seal.Get[Peer](v.Store, tx, peerKey(i))
		if err != nil && !errors.Is(err, vaulterr.ErrNotFound) {
			return err
		}
		if i != party {
			//lodge:check vault/roster/anothers [tests=./services/store/vault]
			//  [run=TestNobodySpeaks] a party speaks for the store of another
			if known(p) && bytes.Equal(p.ID, stored) {
				return fmt.Errorf("%w: this is the store of party %d", vaulterr.ErrState, i)
			}
			continue
		}
		for name, x := range r.Away {
			//lodge:check vault/pin/anothers-unknown [tests=./services/store/vault] [drop=known(p)]
			//  [drop=!bytes.Equal(p.ID, stored)] [run=TestNobody] a party without a known store
			//  cannot return under a new key
			if known(p) && !bytes.Equal(p.ID, stored) && known(x.Peer) && bytes.Equal(x.Peer.ID, stored) &&
				//lodge:check vault/pin/anothers-left [tests=./services/store/vault]
				//  [swap=r.together(hex.EncodeToString(r.Keys[party]), name)=>name == ""]
				//  [run=TestNobody] a party has another one rejected that has left
				r.together(hex.EncodeToString(r.Keys[party]), name) {
				return fmt.Errorf("%w: this is the store of a party that has left", vaulterr.ErrState)
			}
		}
	}
	return nil
}

// heard is the last version of a peer's store that this process has heard of.
func (v *Peers) heard(party int) (Version, bool) {
	if p, ok := v.peers.Load(party); ok {
		return *p.(*Version), true
	}
	return Version{}, false
}

// Heard notes how far a peer's store says that it is, between its calls of Acknowledge, and reports
// whether it is the store that was acknowledged last, since the same start. RememberPeers makes the
// noted version durable.
func (v *Peers) Heard(party int, now Version) bool {
	for {
		p, ok := v.peers.Load(party)
		if !ok || !bytes.Equal(p.(*Version).Incarnation, now.Incarnation) || !p.(*Version).Same(now) {
			return false
		}
		if p.(*Version).Generation >= now.Generation || v.peers.CompareAndSwap(party, p, &now) {
			return true
		}
	}
}

// RememberPeers makes durable what Heard has noted.
func (v *Peers) RememberPeers() error {
	heard := map[int]Version{}
	v.peers.Range(func(party, now any) bool {
		heard[party.(int)] = *now.(*Version)
		return true
	})
	return v.Update(func(tx store.Tx) error {
		for party, now := range heard {
			p, err := seal.Get[Peer](v.Store, tx, peerKey(party))
			if err != nil {
				return err
			}
			if !p.Same(now) || !bytes.Equal(p.Incarnation, now.Incarnation) || p.Generation >= now.Generation {
				continue
			}
			p.Version = now
			if err := seal.Put(v.Store, tx, peerKey(party), p); err != nil {
				return err
			}
		}
		return nil
	})
}
