package peers

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const RosterKey = "roster"

// RosterRecord is the roster that a store was last opened under.
type RosterRecord struct {
	Hash [32]byte `json:"hash"`
	Keys [][]byte `json:"keys"`
	// Away holds the records of parties that have left, by signing key in hexadecimal: if they
	// return, their stores must not be older.
	Away map[string]*awayPeer `json:"away,omitempty"`
	// Former are the keys of rosters before, the latest: two that were in one are of two parties.
	Former [][][]byte `json:"former,omitempty"`
}

// maxRosters bounds how many rosters are remembered.
const maxRosters = 200

// replaced notes that another roster follows.
func (r *RosterRecord) replaced() {
	same := func(keys [][]byte) bool { return slices.EqualFunc(keys, r.Keys, bytes.Equal) }
	r.Former = append(slices.DeleteFunc(r.Former, same), r.Keys)
	r.Former = r.Former[max(0, len(r.Former)-maxRosters):]
}

// together reports whether two keys, in hexadecimal, were ever in one roster.
func (r *RosterRecord) together(a, b string) bool {
	x, _ := hex.DecodeString(a)
	y, _ := hex.DecodeString(b)
	return slices.ContainsFunc(r.Former, func(keys [][]byte) bool { return HasKey(keys, x) && HasKey(keys, y) })
}

func HasKey(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}

type awayPeer struct {
	Peer         *Peer              `json:"peer,omitempty"`
	Acknowledged *seal.Acknowledged `json:"acknowledged,omitempty"`
}

// Rearrange moves the record of each peer with its signing key. A new key that replaces a removed
// key at the same index inherits the record of that key: a party that replaced its key still has
// its store, and for a different party this does no harm. A key that returns also inherits newer
// records of its party's store under other keys.
func (v *Peers) Rearrange(tx store.Tx, old *RosterRecord, keys [][]byte) error {
	if slices.EqualFunc(old.Keys, keys, bytes.Equal) {
		return nil
	}
	id, err := seal.Get[seal.Identity](v.Store, tx, seal.IdentityKey)
	if err != nil {
		return err
	}
	if old.Away == nil {
		old.Away = map[string]*awayPeer{}
	}
	for i, k := range old.Keys {
		p, err := seal.Get[Peer](v.Store, tx, peerKey(i))
		if err != nil && !errors.Is(err, vaulterr.ErrNotFound) {
			return err
		}
		if p != nil || id.Peers[i] != nil {
			//lodge:check vault/pin/away [tests=./services/store/vault]
			//  [run=TestPeers|TestStoresAre] a party that returns has no record
			old.Away[hex.EncodeToString(k)] = &awayPeer{p, id.Peers[i]}
		}
		//lodge:check vault/pin/forgets-numbers [tests=./services/store/vault]
		//  [swap=tx.Delete(peerKey(i))=>error(nil)] [run=TestPeers|TestNobody] a party inherits the
		//  record of the party it replaced
		if err := tx.Delete(peerKey(i)); err != nil {
			return fmt.Errorf("vault: %w", err)
		}
	}
	//lodge:check vault/pin/acknowledged [tests=./services/store/vault] [run=TestPeers]
	//  acknowledgements of former peers count for new ones
	id.Peers = nil
	//lodge:check vault/pin/rosters [tests=./services/store/vault] [run=TestNobody] a replaced
	//  roster is forgotten, so a party has a say about another's store
	old.replaced()
	gone := maps.Clone(old.Away)
	for i, k := range keys {
		name := hex.EncodeToString(k)
		x := gone[name]
		//lodge:check vault/pin/new-key-of-who-moved [tests=./services/store/vault]
		//  [drop=!HasKey(old.Keys, k)] [run=TestAnotherParty] a party that moved inherits the
		//  record of one that left
		//lodge:check vault/pin/new-key-of-who-left [tests=./services/store/vault]
		//  [drop=!HasKey(keys, old.Keys[i])] [run=TestAnotherParty] a new party inherits the record
		//  of one that moved
		if x == nil && i < len(old.Keys) && !HasKey(old.Keys, k) && !HasKey(keys, old.Keys[i]) {
			//lodge:check vault/pin/new-key [tests=./services/store/vault]
			//  [swap=hex.EncodeToString(old.Keys[i])=>name] [run=TestAReplaced|TestAPeer] a party
			//  with a new signing key loses its record
			if y := gone[hex.EncodeToString(old.Keys[i])]; y != nil { // it may be the same party and store, with another key
				//lodge:check vault/pin/new-key-standing [tests=./services/store/vault]
				//  [drop=Acknowledged: y.Acknowledged] [run=TestAPeer] a party with a new signing
				//  key is not known to have acknowledged this store
				x = &awayPeer{Acknowledged: y.Acknowledged}
				//lodge:check vault/pin/new-key-store [tests=./services/store/vault]
				//  [run=TestAReplaced] a party with a new signing key loses its store's record
				if y.Peer != nil {
					//lodge:check vault/pin/new-key-guessed [tests=./services/store/vault]
					//  [drop=Guessed: true] [run=TestStoresAre] a guessed record of a store counts
					//  against another store
					//lodge:check vault/pin/new-key-former [tests=./services/store/vault]
					//  [drop=Former: y.Peer.Former] [run=TestAReplaced] a replaced store comes back
					//  under a new signing key
					x.Peer = &Peer{Version: y.Peer.Version, Former: y.Peer.Former, Guessed: true}
				}
			}
		}
		if x == nil {
			continue
		}
		delete(old.Away, name)
		if x.Peer != nil {
			if err := seal.Put(v.Store, tx, peerKey(i), x.Peer); err != nil {
				return err
			}
		}
		id.StandsWith(i, x.Acknowledged)
		if x.Peer != nil && !x.Peer.Guessed {
			//lodge:check vault/pin/recall [tests=./services/store/vault] [as={}] [run=TestAPeer] a
			//  store is known by the latest key of its party only
			if _, err := v.recall(tx, id, old, i, name, x.Peer.ID); err != nil {
				return err
			}
		}
	}
	return seal.Put(v.Store, tx, seal.IdentityKey, id)
}

// ForgetStanding forgets where parties that have left stood with the store that this one is
// restored from.
func (v *Peers) ForgetStanding(tx store.Tx) error {
	r, err := seal.Get[RosterRecord](v.Store, tx, RosterKey)
	if errors.Is(err, vaulterr.ErrNotFound) || err == nil && len(r.Away) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, x := range r.Away {
		x.Acknowledged = nil
	}
	return seal.Put(v.Store, tx, RosterKey, r)
}

// recall applies the record of a store under keys that have left the roster to the peer that has
// the store now: the peer may have replaced its key, at another index, or use its old key again.
// Keys that were in one roster with its own are others', who have no say about it. It reports
// whether id has changed.
func (v *Peers) recall(tx store.Tx, id *seal.Identity, r *RosterRecord, party int, key string, stored []byte) (changed bool, err error) {
	now, err := seal.Get[Peer](v.Store, tx, peerKey(party))
	switch {
	case errors.Is(err, vaulterr.ErrNotFound):
		now = &Peer{}
	case err != nil:
		return false, err
	//lodge:check vault/pin/recall-formerly [tests=./services/store/vault] [run=TestAReplaced] a
	//  store that was replaced under another key is accepted
	case now.formerly(stored):
		return false, nil // which is refused
	}
	further := false
	for other, x := range r.Away {
		//lodge:check vault/pin/recall-other [tests=./services/store/vault]
		//  [drop=!bytes.Equal(x.Peer.ID, stored)] [run=TestStoresAre] a party is held to the store
		//  of another party
		//lodge:check vault/pin/recall-together [tests=./services/store/vault] [drop=r.together(key,
		//  other)] [run=TestNobody] a party has a say about the store of another party of its
		//  roster
		//lodge:check vault/pin/recall-guessed [tests=./services/store/vault] [drop=x.Peer.Guessed]
		//  [run=TestAnotherParty] a guessed record counts against another store
		if x.Peer == nil || x.Peer.Guessed || !bytes.Equal(x.Peer.ID, stored) || r.together(key, other) {
			continue
		}
		changed = id.StandsWith(party, x.Acknowledged) || changed
		//lodge:check vault/roster/further [tests=./services/store/vault] [drop=now.Generation >=
		//  x.Peer.Generation] [run=TestStoresAreKnown] of two records of a store the older one
		//  counts
		//lodge:check vault/pin/recall-further [tests=./services/store/vault] [run=TestStoresAre] an
		//  old copy of a store passes because an older key knew it
		if now.Same(x.Peer.Version) && now.Generation >= x.Peer.Generation {
			continue
		}
		p := &Peer{Version: x.Peer.Version, Former: slices.Clone(x.Peer.Former)}
		former := append(slices.Clone(now.Former), now.ID)
		if now.Guessed {
			former = nil
		}
		for _, f := range former {
			if len(f) > 0 && !bytes.Equal(f, stored) && !p.formerly(f) && len(p.Former) < maxFormer {
				//lodge:check vault/pin/recall-former [tests=./services/store/vault]
				//  [run=TestAReplaced] a replaced store comes back under an older key
				p.Former = append(p.Former, f)
			}
		}
		now, further = p, true
	}
	if !further {
		return changed, nil
	}
	return changed, seal.Put(v.Store, tx, peerKey(party), now)
}
