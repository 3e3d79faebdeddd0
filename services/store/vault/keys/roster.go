package keys

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Shares are additive among the parties of one roster, so that nothing can be made, and nothing
// decrypted, with the keys of an epoch under another. An epoch records under which roster it was
// made, and MAC keys and batches belong to an epoch. Existing tuples may still be delivered to
// clients while the holders of all shares are the same: the same signing keys in the same order.
// Names, certificates and the coordinator's identity may change meanwhile.

// Roster is the part of a roster that matters for stored data.
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
		//lodge:check vault/roster/holders-keys [tests=./services/store/vault] [run=TestStanding]
		//  the holders of keys are not bound to their signing keys
		h.Write(sum[:])
	}
	return [32]byte(h.Sum(nil))
}

// Pinned is a roster with values computed from it.
type Pinned struct {
	hash, holders [32]byte
	keys          [][]byte
	self          int
}

// Pin says under which roster this process works, from now on. The records of the peers follow
// their signing keys when the order of the parties changes, or parties join or leave. A party pins
// its roster before it serves anything; tools that only look at a store pin none.
func (v *Keys) Pin(r Roster) error {
	p := &Pinned{hash: r.Hash, holders: r.Holders(), keys: r.Keys, self: r.Self}
	err := v.Update(func(tx store.Tx) error {
		old, err := seal.Get[peers.RosterRecord](v.Store, tx, peers.RosterKey)
		switch {
		case errors.Is(err, vaulterr.ErrNotFound):
			old = &peers.RosterRecord{}
		case err != nil:
			return err
		case old.Hash == r.Hash:
			return nil
		default:
			//lodge:check vault/pin/rearranges [tests=./services/store/vault]
			//  [swap=v.peers.Rearrange(tx, old, r.Keys)=>error(nil)] [run=TestPeers] the record of
			//  a peer stays at its number when the roster is rearranged
			if err := v.peers.Rearrange(tx, old, r.Keys); err != nil {
				return err
			}
		}
		if err := v.nameHolders(tx, p); err != nil {
			return err
		}
		old.Hash, old.Keys = r.Hash, r.Keys
		return seal.Put(v.Store, tx, peers.RosterKey, old)
	})
	if err == nil {
		v.roster.Store(p)
	}
	return err
}

// nameHolders completes the records of epochs that were made under this roster before holders were
// recorded.
func (v *Keys) nameHolders(tx store.Tx, p *Pinned) error {
	epochs, err := seal.List[Epoch](v.Store, tx, EpochPrefix)
	if err != nil {
		return err
	}
	for _, e := range epochs {
		//lodge:check vault/roster/holders-of-before [tests=./services/store/vault]
		//  [drop=e.RosterHash != p.hash] [run=TestHolders] keys of another roster get the present
		//  parties as holders when the store is opened
		//lodge:check vault/roster/holders-stay [tests=./services/store/vault] [drop=e.Holders !=
		//  [32]byte{}] [run=TestHolders|TestStanding] [redundant=the same roster has the same
		//  holders] the holders of keys change
		if e.Holders != [32]byte{} || e.RosterHash != p.hash || e.Purpose == PurposeThreshold {
			continue
		}
		e.Holders = p.holders
		if err := seal.Put(v.Store, tx, EpochKey(e.ID), e); err != nil {
			return err
		}
	}
	return nil
}

// Standing tells how far an epoch can be used under the present roster.
type Standing int

// The standings, each with less than the one before.
const (
	SameRoster   Standing = iota // all
	SameParties                  // existing tuples may go to clients; nothing is made or decrypted
	OtherParties                 // records alone
)

// Standing of an epoch under the roster that is pinned.
func (v *Keys) Standing(e *Epoch) Standing {
	p := v.roster.Load()
	switch {
	case p == nil:
		return SameRoster
	case e.Purpose == PurposeThreshold:
		return p.leaves(e)
	//lodge:check vault/roster/hash [tests=./services/store/vault] [swap=e.RosterHash ==
	//  p.hash=>len(e.RosterHash) == len(p.hash)] [run=TestStanding] keys of another roster are used
	case e.RosterHash == p.hash:
		return SameRoster
	//lodge:check vault/roster/holders [tests=./services/store/vault] [swap=e.Holders ==
	//  p.holders=>p != nil] [run=TestStanding] shares are delivered although their holders have
	//  changed
	case e.Holders == p.holders:
		return SameParties
	}
	return OtherParties
}

// Works refuses an epoch whose keys must not be used under the present roster.
func (v *Keys) Works(e *Epoch) error {
	//lodge:check vault/roster/works [tests=./services/store/vault] [run=TestStanding] keys of
	//  another roster make tuples or decrypt
	if v.Standing(e) != SameRoster {
		return fmt.Errorf("%w: epoch %d", vaulterr.ErrRoster, e.ID)
	}
	return nil
}

// Gives refuses an epoch whose shares must not go to clients under the present roster.
func (v *Keys) Gives(tx store.Tx, id uint64) error {
	e, err := v.EpochIn(tx, id)
	if err != nil {
		return err
	}
	//lodge:check vault/roster/gives [tests=./services/store/vault] [swap=v.Standing(e) ==
	//  OtherParties=>v.Standing(e) > OtherParties] [run=TestStanding] shares of other parties are
	//  delivered
	if v.Standing(e) == OtherParties {
		return fmt.Errorf("%w, of other parties: epoch %d", vaulterr.ErrRoster, id)
	}
	return nil
}
