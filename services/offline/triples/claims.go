package triples

import (
	"sync"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
)

// slot identifies a combination that has one MAC key at a time.
type slot struct {
	epoch         uint64
	field, tenant string
}

func slotOf(s *jobv1.SessionSpec) slot { return slot{s.GetEpoch(), s.GetField(), s.GetTenant()} }

// claims says which sessions of this party use or make the MAC key of each slot. Under proved keys
// any number of sessions use a MAC key at the same time, because a failed check reveals nothing
// about it. Under keys that are not proved a failure may reveal it, so that one session uses it at
// a time, and stores its batch only after its verdict.
type claims struct {
	vault Vault

	mu      sync.Mutex
	holders map[slot]*holders
}

// holders counts the sessions of a slot: its users, or the one session that makes its MAC key.
type holders struct {
	users int
	maker bool
}

func newClaims(v Vault) *claims {
	return &claims{vault: v, holders: map[slot]*holders{}}
}

var errMACKeyBusy = rpc.Errorf(rpc.Busy, "try again when that session has ended and its result is active",
	"another session makes or uses the MAC key of this epoch, field and tenant")

// claim is one session's part in a slot.
type claim struct {
	of    *claims
	slot  slot
	maker bool
}

// enter admits a session that uses the slot's active MAC key, or that makes one because there is
// none. While one is made, and until it is active or gone, nobody else enters. An exclusive session
// shares the slot with no other session.
func (c *claims) enter(s slot, exclusive bool) (*claim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys, err := c.vault.MACKeys()
	if err != nil {
		return nil, err
	}
	x := &claim{of: c, slot: s, maker: true}
	for _, k := range keys {
		switch {
		case slot{k.Epoch, k.Field, k.Tenant} != s:
		//lodge:check triples/claim-locked [run=TestClaims] a MAC key is used before it is active at
		//  every party
		case k.State == vaultkeys.MACLocked:
			return nil, errMACKeyBusy
		case k.State == vaultkeys.MACActive:
			x.maker = false
		}
	}
	h := c.holders[s]
	switch {
	case h == nil:
		h = new(holders)
		c.holders[s] = h
	//lodge:check triples/claim [run=TestClaims] two sessions make the MAC key of one slot
	case h.maker || x.maker:
		return nil, errMACKeyBusy
	}
	//lodge:check triples/exclusive under unproved keys a batch is accepted under a MAC key that another session reveals
	if exclusive && h.users > 0 {
		return nil, errMACKeyBusy
	}
	if h.maker = x.maker; !x.maker {
		h.users++
	}
	return x, nil
}

// make lets a session make the slot's MAC key that was admitted to use one which not all parties
// hold, unless others use it.
func (x *claim) make() error {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	h := x.of.holders[x.slot]
	switch {
	case x.maker:
		return nil
	//lodge:check triples/claim-users [run=TestClaims] a MAC key is given up while other sessions
	//  use it
	case h.users > 1:
		return errMACKeyBusy
	}
	x.maker, h.maker, h.users = true, true, 0
	return nil
}

func (x *claim) leave() {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	h := x.of.holders[x.slot]
	if x.maker {
		h.maker = false
	} else {
		h.users--
	}
	if *h == (holders{}) {
		delete(x.of.holders, x.slot)
	}
}
