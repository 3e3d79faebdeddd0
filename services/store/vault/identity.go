package vault

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const (
	identityKey = "identity"
	peerPrefix  = "peer/"
	idLen       = 16 // bytes of the ids of stores and of starts
)

// identity is what tells this store from another, and from itself at an earlier time.
type identity struct {
	ID         []byte    `json:"id"`
	Created    time.Time `json:"created"`
	Generation uint64    `json:"generation"` // grows with everything that must not be forgotten
	Lineage    string    `json:"lineage,omitempty"`
	Quarantine string    `json:"quarantine,omitempty"` // why nothing may be stored or delivered, or empty
	// Floor is the generation after the last quarantine. A start is told to a peer as of this generation, or as of that
	// of the last start before which the peer had acknowledged the store: so a store that was put back cannot catch up
	// with what was seen of it, neither by starting again nor by growing while a peer is away.
	Floor uint64                `json:"floor"`
	Peers map[int]*acknowledged `json:"peers,omitempty"`
}

// acknowledged is where a peer stands with this store.
type acknowledged struct {
	First uint64 `json:"first"` // generation of the start that it is told
	Since bool   `json:"since"` // whether it has acknowledged the store since
}

// first is the generation of the start that a peer is told.
func (id *identity) first(peer int) uint64 {
	if p := id.Peers[peer]; p != nil {
		return max(p.First, id.Floor)
	}
	return id.Floor
}

// started moves on the start that peers are told who have acknowledged the last, and reports whether there is one.
func (id *identity) started() (moved bool) {
	for _, p := range id.Peers {
		if p.Since {
			p.First, p.Since, moved = id.Generation, false, true
		}
	}
	return moved
}

// Version says which store this is, since which start, and how far it is. Peers remember the highest generation that
// they have seen: a store that is not as far was put back, and has forgotten whom it gave tuples to.
type Version struct {
	ID          []byte    `json:"id"`
	Incarnation []byte    `json:"incarnation"` // fresh at every Open
	Started     time.Time `json:"started"`
	First       uint64    `json:"first"` // generation of the start, as one peer is told
	Generation  uint64    `json:"generation"`
	Signature   []byte    `json:"signature,omitempty"` // by the party whose store it is, who checks it
}

// same reports whether two versions are of one store.
func (x Version) same(y Version) bool { return bytes.Equal(x.ID, y.ID) }

// Succeeds reports whether what this party once said to a peer of a store of its own shows that this store was put back
// since: it was further then, or it had been replaced by a later one.
func (v *Vault) Succeeds(peer int, said Version) (bool, error) {
	id, err := v.identity()
	if err != nil {
		return false, err
	}
	if bytes.Equal(said.ID, id.ID) {
		now := v.start.Load()
		//lodge:check vault/store/succeeds [swap=said.Generation > id.first(peer) &&
		//  !bytes.Equal(said.Incarnation, now.incarnation)=>now != nil] [run=TestSucceeds] a lying
		//  peer puts a store into quarantine
		return said.Generation > id.first(peer) && !bytes.Equal(said.Incarnation, now.incarnation), nil
	}
	return said.Started.After(id.Created), nil
}

// start of this process, or of what follows a quarantine.
type start struct {
	incarnation []byte
	at          time.Time
}

func (v *Vault) begin() {
	s := &start{incarnation: make([]byte, idLen), at: v.now().UTC()}
	rand.Read(s.incarnation)
	v.start.Store(s)
}

// newIdentity is that of a store that begins now.
func (v *Vault) newIdentity() *identity {
	id := &identity{ID: make([]byte, idLen), Created: v.now().UTC(), Generation: 1, Floor: 1, Lineage: v.store.Lineage()}
	rand.Read(id.ID)
	return id
}

// identify makes the identity of a fresh store, or finds that the storage was failed over or put back. A start is no
// generation: a store that was put back must not catch up with what was seen of it by starting again and again.
func (v *Vault) identify() error {
	var objects []string
	err := v.update(func(tx store.Tx) error {
		objects = nil
		id, err := get[identity](v, tx, identityKey)
		switch {
		case errors.Is(err, vaulterr.ErrNotFound):
			id = v.newIdentity()
			err = put(v, tx, identityKey, id)
		case err == nil && id.Lineage != v.store.Lineage():
			objects, err = v.quarantine(tx, id, 0, fmt.Sprintf(
				"the storage's history was %q and is %q: it was failed over or put back", id.Lineage, v.store.Lineage()), false)
		case err == nil && id.started():
			err = put(v, tx, identityKey, id)
		}
		return err
	})
	if err == nil {
		v.begin()
	}
	return v.eraseAfter(err, objects)
}

// update runs a transaction.
func (v *Vault) update(f func(store.Tx) error) error { return v.store.Update(f) }

// noting is a transaction that knows whether it wrote.
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

// advance runs a transaction that changes the fate of tuples or keys, which makes a generation.
func (v *Vault) advance(f func(store.Tx) error) error {
	return v.update(func(tx store.Tx) error {
		t := &noting{Tx: tx}
		if err := f(t); err != nil || !t.wrote {
			return err
		}
		id, err := get[identity](v, tx, identityKey)
		if err != nil {
			return err
		}
		//lodge:check vault/store/generation
		//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage]
		//  changes that must not be forgotten leave the generation as it was
		id.Generation++
		return put(v, tx, identityKey, id)
	})
}

// next is the generation that a transaction of advance makes.
func (v *Vault) next(tx store.Tx) (uint64, error) {
	id, err := get[identity](v, tx, identityKey)
	if err != nil {
		return 0, err
	}
	return id.Generation + 1, nil
}

// trusted refuses in quarantine.
func (v *Vault) trusted(tx store.Tx) error {
	id, err := get[identity](v, tx, identityKey)
	//lodge:check vault/store/quarantine
	//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage] a
	//  store in quarantine is used
	if err == nil && id.Quarantine != "" {
		err = fmt.Errorf("%w: %s", vaulterr.ErrQuarantine, id.Quarantine)
	}
	return err
}

func (v *Vault) identity() (out identity, err error) {
	err = v.store.View(func(tx store.Tx) error {
		id, err := get[identity](v, tx, identityKey)
		if err == nil {
			out = *id
		}
		return err
	})
	return out, err
}

// Version of this store now, as a peer is told.
func (v *Vault) Version(peer int) (Version, error) {
	now := v.start.Load() // before what may be later
	id, err := v.identity()
	if err != nil {
		return Version{}, err
	}
	return Version{ID: id.ID, Incarnation: now.incarnation, Started: now.at, First: id.first(peer), Generation: id.Generation}, nil
}

// Generation of this store now.
func (v *Vault) Generation() (uint64, error) {
	id, err := v.identity()
	return id.Generation, err
}

// AcknowledgedBy records that a peer has acknowledged this start.
func (v *Vault) AcknowledgedBy(peer int) error {
	return v.update(func(tx store.Tx) error {
		id, err := get[identity](v, tx, identityKey)
		if err != nil || id.Peers[peer] != nil && id.Peers[peer].Since {
			return err
		}
		if id.Peers == nil {
			id.Peers = map[int]*acknowledged{}
		}
		id.Peers[peer] = &acknowledged{First: id.first(peer), Since: true}
		return put(v, tx, identityKey, id)
	})
}

// Quarantined says why this store may neither store nor deliver tuples; empty when it may.
func (v *Vault) Quarantined() (reason string, err error) {
	id, err := v.identity()
	return id.Quarantine, err
}

// Quarantine is for a store that may have been put back: nothing in it can prove that a tuple was not delivered
// before, that a MAC key was not burnt, that a ciphertext was not decrypted, or how many were under an epoch. It revokes
// every batch, burns every MAC key and retires every epoch, and refuses tuples and decryptions until LeaveQuarantine.
// beyond is the highest generation that somebody has seen of it.
func (v *Vault) Quarantine(reason string, beyond uint64) error {
	var objects []string
	err := v.update(func(tx store.Tx) error {
		objects = nil
		id, err := get[identity](v, tx, identityKey)
		if err == nil {
			objects, err = v.quarantine(tx, id, beyond, reason, false)
		}
		return err
	})
	if err == nil {
		v.begin() // as which peers acknowledge it again
	}
	return v.eraseAfter(err, objects)
}

// maxGeneration keeps a generation that a peer makes up from wrapping around.
const maxGeneration = 1 << 62

// quarantine records all that Quarantine does, at once, and names the blobs to erase. With keep the epochs for
// decryption drain, with what putBack leaves them.
func (v *Vault) quarantine(tx store.Tx, id *identity, beyond uint64, reason string, keep bool) (objects []string, err error) {
	why := "quarantine: " + reason
	id.Quarantine, id.Lineage = reason, v.store.Lineage()
	//lodge:check vault/store/largest-generation [swap=min(beyond, maxGeneration)=>beyond]
	//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage] an
	//  invented generation overflows
	id.Generation = max(id.Generation, min(beyond, maxGeneration)) + 1
	id.Floor, id.Peers = id.Generation, nil
	if err := put(v, tx, identityKey, id); err != nil {
		return nil, err
	}
	//lodge:check vault/approval/restored [swap=v.dropApprovals(tx, func(*Approval) bool {return
	//  true })=>error(nil)] [run=TestApprovalsAndBackups] a used approval comes back with a restore
	if err := v.dropApprovals(tx, func(*Approval) bool { return true }); err != nil {
		return nil, err
	}
	if err := v.loseDistances(tx); err != nil {
		return nil, err
	}
	epochs, err := list[Epoch](v, tx, epochPrefix)
	if err != nil {
		return nil, err
	}
	if err := v.closeBudgets(tx, epochs); err != nil {
		return nil, err
	}
	for _, e := range epochs {
		//lodge:check vault/restore/flooding-retired [swap=e.Purpose == PurposeThreshold=>e.Purpose
		//  == PurposeThreshold && e.State != EpochRetired]
		//  [run=TestFloodingUnderNewSharesAfterRestore] a restored store answers again for a
		//  retired epoch that it has forgotten
		if e.Purpose == PurposeThreshold {
			e.putBack()
		}
		if e.State == EpochRetired {
			if err := put(v, tx, epochKey(e.ID), e); err != nil {
				return nil, err
			}
			continue
		}
		//lodge:check vault/restore/epochs [drop=e.decrypts()] [run=TestRestore$] [redundant=a
		//  backup marks all other epochs as retired] keys other than those for decryption are
		//  restored
		if keep && e.decrypts() && e.State != EpochLocked {
			//lodge:check vault/restore/halved [run=TestRestore$] a restored key forgets the
			//  decryptions since the backup
			if e.Purpose != PurposeThreshold {
				e.putBack()
			}
			e.State = EpochDraining // it may drain since, or be destroyed elsewhere: nobody is to encrypt under it
			if err := put(v, tx, epochKey(e.ID), e); err != nil {
				return nil, err
			}
			continue
		}
		more, _, err := v.retire(tx, e, why)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	//lodge:check vault/store/quarantine-batches [swap=true=>false] [run=TestQuarantine]
	//  [redundant=every epoch is retired in the same transaction, with its batches] batches survive
	//  a quarantine
	revoked, _, err := v.revoke(tx, func(*Batch) bool { return true }, why)
	if err != nil {
		return nil, err
	}
	burnt, err := v.burn(tx, func(*MACKey) bool { return true }, why)
	return append(append(objects, revoked...), burnt...), err
}

// LeaveQuarantine is the operator's word that the reason is known and mended. What was revoked stays so.
func (v *Vault) LeaveQuarantine() error {
	return v.advance(func(tx store.Tx) error {
		id, err := get[identity](v, tx, identityKey)
		if err != nil {
			return err
		}
		id.Quarantine = ""
		return put(v, tx, identityKey, id)
	})
}

// peer is what this party remembers of a peer's stores.
type peer struct {
	Version          // the last
	Former  [][]byte `json:"former,omitempty"` // ids of the stores that it had before
	// Guessed is set where it is what was remembered of another key at the same place, until the peer says which store it has.
	Guessed bool `json:"guessed,omitempty"`
}

// maxFormer bounds how many former stores of a peer are remembered.
const maxFormer = 1000

// formerly reports whether a store is one that the peer had before.
func (p *peer) formerly(id []byte) bool {
	return slices.ContainsFunc(p.Former, func(f []byte) bool { return bytes.Equal(f, id) })
}

func peerKey(party int) string { return fmt.Sprintf("%s%04d", peerPrefix, party) }

// Acknowledge remembers the version of a peer's store. It refuses with ErrRolledBack one that is not as far as it was,
// or was replaced by another, and gives what was seen last.
func (v *Vault) Acknowledge(party int, now Version) (seen Version, err error) {
	//lodge:check vault/store/version-form
	//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage] a
	//  malformed store version is accepted
	if len(now.ID) != idLen || len(now.Incarnation) != idLen || now.First > now.Generation {
		return seen, fmt.Errorf("%w: the version of a store is malformed", vaulterr.ErrRange)
	}
	v.acknowledging.Lock() // so that what is heard and what is recorded have one order
	defer v.acknowledging.Unlock()
	//lodge:check vault/roster/recall [swap=v.meet(party, now.ID)=>error(nil)]
	//  [run=TestStoresAreKnown] a store is forgotten when its party has a new signing key
	if err := v.meet(party, now.ID); err != nil {
		return seen, err
	}
	err = v.update(func(tx store.Tx) error {
		p, err := get[peer](v, tx, peerKey(party))
		if errors.Is(err, vaulterr.ErrNotFound) {
			seen = now
			return put(v, tx, peerKey(party), &peer{Version: now})
		}
		if err != nil {
			return err
		}
		seen = p.Version
		//lodge:check vault/store/heard
		//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage]
		//  what a peer reported about a store is ignored
		if last, ok := v.heard(party); ok && last.same(seen) && last.Generation > seen.Generation {
			seen = last
		}
		again := bytes.Equal(seen.Incarnation, now.Incarnation)
		switch {
		//lodge:check vault/store/former
		//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage]
		//  a replaced store comes back
		case p.formerly(now.ID):
			return fmt.Errorf("%w: it had been replaced by another", vaulterr.ErrRolledBack)
		case !seen.same(now):
			if len(p.Former) == maxFormer {
				return fmt.Errorf("%w: more than %d stores", vaulterr.ErrState, maxFormer)
			}
			//lodge:check vault/store/remembered
			//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage]
			//  replaced stores are forgotten
			p.Former = append(p.Former, p.ID)
		//lodge:check vault/store/rolled-back
		//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage]
		//  an old copy of a store goes unnoticed
		case !again && now.First < seen.Generation:
			return fmt.Errorf("%w: it started at generation %d and had been at %d", vaulterr.ErrRolledBack, now.First, seen.Generation)
		case again && now.Generation <= seen.Generation:
			return nil
		}
		seen, p.Version, p.Guessed = now, now, false
		return put(v, tx, peerKey(party), p)
	})
	if err == nil {
		v.peers.Store(party, &seen)
	}
	return seen, err
}

// meet recalls the store of a peer, also if it is then refused: whoever it is, it must hear from which start on it has
// known this store.
func (v *Vault) meet(party int, stored []byte) error {
	var r *rosterRecord
	err := v.store.View(func(tx store.Tx) (err error) {
		r, err = get[rosterRecord](v, tx, rosterKey)
		return err
	})
	if errors.Is(err, vaulterr.ErrNotFound) || err == nil && party >= len(r.Keys) {
		return nil
	}
	if err == nil {
		err = v.store.View(func(tx store.Tx) error { return v.anothers(tx, r, party, stored) })
	}
	if err != nil || len(r.Away) == 0 {
		return err
	}
	return v.update(func(tx store.Tx) error {
		id, err := get[identity](v, tx, identityKey)
		if err != nil {
			return err
		}
		changed, err := v.recall(tx, id, r, party, hex.EncodeToString(r.Keys[party]), stored)
		if err != nil || !changed {
			return err
		}
		return put(v, tx, identityKey, id)
	})
}

// anothers refuses a store that is known as that of another party: who says that it has it could otherwise have the other
// refused. A party of which no store is known may have that of one that has left: it is taken to be the same.
func (v *Vault) anothers(tx store.Tx, r *rosterRecord, party int, stored []byte) error {
	known := func(p *peer) bool { return p != nil && !p.Guessed }
	for i := range r.Keys {
		p, err := get[peer](v, tx, peerKey(i))
		if err != nil && !errors.Is(err, vaulterr.ErrNotFound) {
			return err
		}
		if i != party {
			//lodge:check vault/roster/anothers [run=TestNobodySpeaks] a party speaks for the store
			//  of another
			if known(p) && bytes.Equal(p.ID, stored) {
				return fmt.Errorf("%w: this is the store of party %d", vaulterr.ErrState, i)
			}
			continue
		}
		for name, x := range r.Away {
			//lodge:check vault/pin/anothers-unknown [drop=known(p)] [drop=!bytes.Equal(p.ID,
			//  stored)] [run=TestNobody] a party without a known store cannot return under a new
			//  key
			if known(p) && !bytes.Equal(p.ID, stored) && known(x.Peer) && bytes.Equal(x.Peer.ID, stored) &&
				//lodge:check vault/pin/anothers-left
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
func (v *Vault) heard(party int) (Version, bool) {
	if p, ok := v.peers.Load(party); ok {
		return *p.(*Version), true
	}
	return Version{}, false
}

// Heard notes how far a peer's store says that it is, between its calls of Acknowledge, and reports whether it is the
// store that was acknowledged last, since the same start. What it notes is durable with the next call of RememberPeers.
func (v *Vault) Heard(party int, now Version) bool {
	for {
		p, ok := v.peers.Load(party)
		if !ok || !bytes.Equal(p.(*Version).Incarnation, now.Incarnation) || !p.(*Version).same(now) {
			return false
		}
		if p.(*Version).Generation >= now.Generation || v.peers.CompareAndSwap(party, p, &now) {
			return true
		}
	}
}

// RememberPeers makes durable what Heard has noted.
func (v *Vault) RememberPeers() error {
	heard := map[int]Version{}
	v.peers.Range(func(party, now any) bool {
		heard[party.(int)] = *now.(*Version)
		return true
	})
	return v.update(func(tx store.Tx) error {
		for party, now := range heard {
			p, err := get[peer](v, tx, peerKey(party))
			if err != nil {
				return err
			}
			if !p.same(now) || !bytes.Equal(p.Incarnation, now.Incarnation) || p.Generation >= now.Generation {
				continue
			}
			p.Version = now
			if err := put(v, tx, peerKey(party), p); err != nil {
				return err
			}
		}
		return nil
	})
}
