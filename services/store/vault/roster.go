package vault

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Shares are additive among the parties of one roster, so that nothing can be made, and nothing decrypted, with the keys
// of an epoch under another. An epoch records under which roster it was made, and MAC keys and batches belong to an epoch.
// What was made already may still go to clients while the holders of all shares are who they were: the same signing keys
// in the same order. Names, certificates and the coordinator's identity may change meanwhile.

// Roster is who takes part, as far as it matters to what is stored.
type Roster struct {
	Hash [32]byte // of all that parties must agree on
	Keys [][]byte // the parties' signing keys, in order
	Self int      // this party's index
}

// Holders binds the signing keys in their order.
func (r Roster) Holders() [32]byte {
	h := sha256.New()
	h.Write([]byte("lodge holders v1\x00"))
	for _, k := range r.Keys {
		sum := sha256.Sum256(k)
		//lodge:check vault/roster/holders-keys [run=TestStanding] the holders of keys are not bound
		//  to their signing keys
		h.Write(sum[:])
	}
	return [32]byte(h.Sum(nil))
}

// pinned is a roster with what is computed of it.
type pinned struct {
	hash, holders [32]byte
	keys          [][]byte
	self          int
}

const rosterKey = "roster"

// rosterRecord is the roster that a store was last opened under.
type rosterRecord struct {
	Hash [32]byte `json:"hash"`
	Keys [][]byte `json:"keys"`
	// Away is what is remembered of parties that have left, by signing key in hexadecimal: should they come back, their
	// stores must not be older.
	Away map[string]*awayPeer `json:"away,omitempty"`
	// Former are the keys of rosters before, the latest: two that were in one are of two parties.
	Former [][][]byte `json:"former,omitempty"`
}

// maxRosters bounds how many rosters are remembered.
const maxRosters = 200

// replaced notes that another roster follows.
func (r *rosterRecord) replaced() {
	same := func(keys [][]byte) bool { return slices.EqualFunc(keys, r.Keys, bytes.Equal) }
	r.Former = append(slices.DeleteFunc(r.Former, same), r.Keys)
	r.Former = r.Former[max(0, len(r.Former)-maxRosters):]
}

// together reports whether two keys, in hexadecimal, were ever in one roster.
func (r *rosterRecord) together(a, b string) bool {
	x, _ := hex.DecodeString(a)
	y, _ := hex.DecodeString(b)
	return slices.ContainsFunc(r.Former, func(keys [][]byte) bool { return hasKey(keys, x) && hasKey(keys, y) })
}

func hasKey(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

type awayPeer struct {
	Peer         *peer         `json:"peer,omitempty"`
	Acknowledged *acknowledged `json:"acknowledged,omitempty"`
}

// Pin says under which roster this process works, from now on. What is remembered of the peers follows their signing keys
// when their order changes, or some come or go. A party pins its roster before it serves anything; tools that only look at
// a store pin none.
func (v *Vault) Pin(r Roster) error {
	p := &pinned{hash: r.Hash, holders: r.Holders(), keys: r.Keys, self: r.Self}
	err := v.update(func(tx store.Tx) error {
		old, err := get[rosterRecord](v, tx, rosterKey)
		switch {
		case errors.Is(err, vaulterr.ErrNotFound):
			old = &rosterRecord{}
		case err != nil:
			return err
		case old.Hash == r.Hash:
			return nil
		default:
			//lodge:check vault/pin/rearranges [swap=v.rearrange(tx, old, r.Keys)=>error(nil)]
			//  [run=TestPeers] the record of a peer stays at its number when the roster is
			//  rearranged
			if err := v.rearrange(tx, old, r.Keys); err != nil {
				return err
			}
		}
		if err := v.nameHolders(tx, p); err != nil {
			return err
		}
		old.Hash, old.Keys = r.Hash, r.Keys
		return put(v, tx, rosterKey, old)
	})
	if err == nil {
		v.roster.Store(p)
	}
	return err
}

// nameHolders completes the records of epochs that were made under this roster before holders were recorded.
func (v *Vault) nameHolders(tx store.Tx, p *pinned) error {
	epochs, err := list[Epoch](v, tx, epochPrefix)
	if err != nil {
		return err
	}
	for _, e := range epochs {
		//lodge:check vault/roster/holders-of-before [drop=e.RosterHash != p.hash] [run=TestHolders]
		//  keys of another roster get the present parties as holders when the store is opened
		//lodge:check vault/roster/holders-stay [drop=e.Holders != [32]byte{}]
		//  [run=TestHolders|TestStanding] [redundant=the same roster has the same holders] the
		//  holders of keys change
		if e.Holders != [32]byte{} || e.RosterHash != p.hash || e.Purpose == PurposeThreshold {
			continue
		}
		e.Holders = p.holders
		if err := put(v, tx, epochKey(e.ID), e); err != nil {
			return err
		}
	}
	return nil
}

// rearrange has what is remembered of each peer follow its signing key. A new key in the place of one that is gone has
// what is remembered of that one: a party that has replaced its key has its store yet, and to another that does no harm.
// A key that comes back has also what was learnt of its party's store under others meanwhile.
func (v *Vault) rearrange(tx store.Tx, old *rosterRecord, keys [][]byte) error {
	if slices.EqualFunc(old.Keys, keys, bytes.Equal) {
		return nil
	}
	id, err := get[identity](v, tx, identityKey)
	if err != nil {
		return err
	}
	if old.Away == nil {
		old.Away = map[string]*awayPeer{}
	}
	for i, k := range old.Keys {
		p, err := get[peer](v, tx, peerKey(i))
		if err != nil && !errors.Is(err, vaulterr.ErrNotFound) {
			return err
		}
		if p != nil || id.Peers[i] != nil {
			//lodge:check vault/pin/away [run=TestPeers|TestStoresAre] a party that returns has no
			//  record
			old.Away[hex.EncodeToString(k)] = &awayPeer{p, id.Peers[i]}
		}
		//lodge:check vault/pin/forgets-numbers [swap=tx.Delete(peerKey(i))=>error(nil)]
		//  [run=TestPeers|TestNobody] a party inherits the record of the party it replaced
		if err := tx.Delete(peerKey(i)); err != nil {
			return fmt.Errorf("vault: %w", err)
		}
	}
	//lodge:check vault/pin/acknowledged [run=TestPeers] acknowledgements of former peers count for
	//  new ones
	id.Peers = nil
	//lodge:check vault/pin/rosters [run=TestNobody] a replaced roster is forgotten, so a party has
	//  a say about another's store
	old.replaced()
	gone := maps.Clone(old.Away)
	for i, k := range keys {
		name := hex.EncodeToString(k)
		x := gone[name]
		//lodge:check vault/pin/new-key-of-who-moved [drop=!hasKey(old.Keys, k)]
		//  [run=TestAnotherParty] a party that moved inherits the record of one that left
		//lodge:check vault/pin/new-key-of-who-left [drop=!hasKey(keys, old.Keys[i])]
		//  [run=TestAnotherParty] a new party inherits the record of one that moved
		if x == nil && i < len(old.Keys) && !hasKey(old.Keys, k) && !hasKey(keys, old.Keys[i]) {
			//lodge:check vault/pin/new-key [swap=hex.EncodeToString(old.Keys[i])=>name]
			//  [run=TestAReplaced|TestAPeer] a party with a new signing key loses its record
			if y := gone[hex.EncodeToString(old.Keys[i])]; y != nil { // it may be the same party and store, with another key
				//lodge:check vault/pin/new-key-standing [drop=Acknowledged: y.Acknowledged]
				//  [run=TestAPeer] a party with a new signing key is not known to have acknowledged
				//  this store
				x = &awayPeer{Acknowledged: y.Acknowledged}
				//lodge:check vault/pin/new-key-store [run=TestAReplaced] a party with a new signing
				//  key loses its store's record
				if y.Peer != nil {
					//lodge:check vault/pin/new-key-guessed [drop=Guessed: true] [run=TestStoresAre]
					//  a guessed record of a store counts against another store
					//lodge:check vault/pin/new-key-former [drop=Former: y.Peer.Former]
					//  [run=TestAReplaced] a replaced store comes back under a new signing key
					x.Peer = &peer{Version: y.Peer.Version, Former: y.Peer.Former, Guessed: true}
				}
			}
		}
		if x == nil {
			continue
		}
		delete(old.Away, name)
		if x.Peer != nil {
			if err := put(v, tx, peerKey(i), x.Peer); err != nil {
				return err
			}
		}
		id.standsWith(i, x.Acknowledged)
		if x.Peer != nil && !x.Peer.Guessed {
			//lodge:check vault/pin/recall [as={}] [run=TestAPeer] a store is known by the latest
			//  key of its party only
			if _, err := v.recall(tx, id, old, i, name, x.Peer.ID); err != nil {
				return err
			}
		}
	}
	return put(v, tx, identityKey, id)
}

// standsWith takes over where a peer stood with this store. What is of a store before a restore is not of this one.
func (id *identity) standsWith(peer int, a *acknowledged) (changed bool) {
	now := id.Peers[peer]
	//lodge:check vault/roster/stands [drop=(now.Since || now.First >= a.First)]
	//  [run=TestStoresAreKnown] a peer does not learn from which start it has known the store
	//lodge:check vault/pin/store-of-now [drop=a.First > id.Generation] [run=TestWhere] an
	//  acknowledgement from before a restore counts
	//lodge:check vault/pin/standing-since [drop=now.Since] [run=TestWhere] a former standing counts
	//  although the peer's store has been replaced
	//lodge:check vault/pin/standing-first [drop=now.First >= a.First] [run=TestWhere] a former
	//  standing counts although the peer's store is older
	if a == nil || a.First > id.Generation || now != nil && (now.Since || now.First >= a.First) {
		return false
	}
	if id.Peers == nil {
		id.Peers = map[int]*acknowledged{}
	}
	id.Peers[peer] = a
	return true
}

// forgetStanding forgets where parties that have left stood with the store that this one is restored from.
func (v *Vault) forgetStanding(tx store.Tx) error {
	r, err := get[rosterRecord](v, tx, rosterKey)
	if errors.Is(err, vaulterr.ErrNotFound) || err == nil && len(r.Away) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, x := range r.Away {
		x.Acknowledged = nil
	}
	return put(v, tx, rosterKey, r)
}

// recall has what is remembered of a store under keys that are not in the roster any more count for the peer that has it
// now: it may have replaced its key, at another place, or have its old key again. Keys that were in one roster with its own
// are others', who have no say about it. It reports whether id has changed.
func (v *Vault) recall(tx store.Tx, id *identity, r *rosterRecord, party int, key string, stored []byte) (changed bool, err error) {
	now, err := get[peer](v, tx, peerKey(party))
	switch {
	case errors.Is(err, vaulterr.ErrNotFound):
		now = &peer{}
	case err != nil:
		return false, err
	//lodge:check vault/pin/recall-formerly [run=TestAReplaced] a store that was replaced under
	//  another key is accepted
	case now.formerly(stored):
		return false, nil // which is refused
	}
	further := false
	for other, x := range r.Away {
		//lodge:check vault/pin/recall-other [drop=!bytes.Equal(x.Peer.ID, stored)]
		//  [run=TestStoresAre] a party is held to the store of another party
		//lodge:check vault/pin/recall-together [drop=r.together(key, other)] [run=TestNobody] a
		//  party has a say about the store of another party of its roster
		//lodge:check vault/pin/recall-guessed [drop=x.Peer.Guessed] [run=TestAnotherParty] a
		//  guessed record counts against another store
		if x.Peer == nil || x.Peer.Guessed || !bytes.Equal(x.Peer.ID, stored) || r.together(key, other) {
			continue
		}
		changed = id.standsWith(party, x.Acknowledged) || changed
		//lodge:check vault/roster/further [drop=now.Generation >= x.Peer.Generation]
		//  [run=TestStoresAreKnown] of two records of a store the older one counts
		//lodge:check vault/pin/recall-further [run=TestStoresAre] an old copy of a store passes
		//  because an older key knew it
		if now.same(x.Peer.Version) && now.Generation >= x.Peer.Generation {
			continue
		}
		p := &peer{Version: x.Peer.Version, Former: slices.Clone(x.Peer.Former)}
		former := append(slices.Clone(now.Former), now.ID)
		if now.Guessed {
			former = nil
		}
		for _, f := range former {
			if len(f) > 0 && !bytes.Equal(f, stored) && !p.formerly(f) && len(p.Former) < maxFormer {
				//lodge:check vault/pin/recall-former [run=TestAReplaced] a replaced store comes
				//  back under an older key
				p.Former = append(p.Former, f)
			}
		}
		now, further = p, true
	}
	if !further {
		return changed, nil
	}
	return changed, put(v, tx, peerKey(party), now)
}

// Standing is what the present roster leaves of an epoch.
type Standing int

// The standings, each with less than the one before.
const (
	SameRoster   Standing = iota // all
	SameParties                  // what was made already may go to clients; nothing is made or decrypted
	OtherParties                 // records alone
)

// Standing of an epoch under the roster that is pinned.
func (v *Vault) Standing(e *Epoch) Standing {
	p := v.roster.Load()
	switch {
	case p == nil:
		return SameRoster
	case e.Purpose == PurposeThreshold:
		return p.leaves(e)
	//lodge:check vault/roster/hash [swap=e.RosterHash == p.hash=>len(e.RosterHash) == len(p.hash)]
	//  [run=TestStanding] keys of another roster are used
	case e.RosterHash == p.hash:
		return SameRoster
	//lodge:check vault/roster/holders [swap=e.Holders == p.holders=>p != nil] [run=TestStanding]
	//  shares are delivered although their holders have changed
	case e.Holders == p.holders:
		return SameParties
	}
	return OtherParties
}

// works refuses an epoch whose keys must not be used under the present roster.
func (v *Vault) works(e *Epoch) error {
	//lodge:check vault/roster/works [run=TestStanding] keys of another roster make tuples or
	//  decrypt
	if v.Standing(e) != SameRoster {
		return fmt.Errorf("%w: epoch %d", vaulterr.ErrRoster, e.ID)
	}
	return nil
}

// gives refuses an epoch whose shares must not go to clients under the present roster.
func (v *Vault) gives(tx store.Tx, id uint64) error {
	e, err := get[Epoch](v, tx, epochKey(id))
	if err != nil {
		return fmt.Errorf("%w: epoch %d", err, id)
	}
	//lodge:check vault/roster/gives [swap=v.Standing(e) == OtherParties=>v.Standing(e) >
	//  OtherParties] [run=TestStanding] shares of other parties are delivered
	if v.Standing(e) == OtherParties {
		return fmt.Errorf("%w, of other parties: epoch %d", vaulterr.ErrRoster, id)
	}
	return nil
}
