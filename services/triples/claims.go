package triples

import (
	"context"
	"sync"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/vault"
)

// slot is what has one MAC key at a time.
type slot struct {
	epoch         uint64
	field, tenant string
}

func slotOf(s *jobv1.SessionSpec) slot { return slot{s.GetEpoch(), s.GetField(), s.GetTenant()} }

// claims are what the sessions of this party that run beside each other must know of each other: who uses and who makes
// the MAC key of a slot, and whose MAC check may have told a key to a cheating peer and has no verdict yet.
type claims struct {
	vault *vault.Vault

	mu      sync.Mutex
	holders map[slot]*holders
	exposed map[string]map[string]chan struct{} // by MAC key and session, closed when the key is settled or burnt
}

// holders are the sessions of a slot: some that use its MAC key, or one that makes it.
type holders struct {
	users int
	maker bool
}

func newClaims(v *vault.Vault) *claims {
	return &claims{vault: v, holders: map[slot]*holders{}, exposed: map[string]map[string]chan struct{}{}}
}

var errMACKeyBusy = rpc.Errorf(rpc.Busy, "try again when that session has ended and its result is active",
	"another session makes or uses the MAC key of this epoch, field and tenant")

// claim is one session's part in a slot.
type claim struct {
	of    *claims
	slot  slot
	maker bool
}

// enter admits a session that uses the slot's active MAC key, or that makes one because there is none. While one is
// made, and until it is active or gone, nobody else enters.
func (c *claims) enter(s slot) (*claim, error) {
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
		case k.State == vault.MACLocked:
			return nil, errMACKeyBusy
		case k.State == vault.MACActive:
			x.maker = false
		}
	}
	h := c.holders[s]
	switch {
	case h == nil:
		h = new(holders)
		c.holders[s] = h
	case h.maker || x.maker:
		return nil, errMACKeyBusy
	}
	if h.maker = x.maker; !x.maker {
		h.users++
	}
	return x, nil
}

// make lets a session make the slot's MAC key that was admitted to use one which not all parties hold, unless others
// use it.
func (x *claim) make() error {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	h := x.of.holders[x.slot]
	switch {
	case x.maker:
		return nil
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

// expose notes a session that is about to open its part of a MAC check.
func (c *claims) expose(key, session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exposed[key] == nil {
		c.exposed[key] = map[string]chan struct{}{}
	}
	c.exposed[key][session] = make(chan struct{})
}

// settle notes that a session's check has passed, or that its key is burnt, and gives the sessions whose checks of the
// same key have no verdict at this moment.
func (c *claims) settle(key, session string) (others []<-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.exposed[key]
	if own := all[session]; own != nil {
		close(own)
		delete(all, session)
	}
	for _, other := range all {
		others = append(others, other)
	}
	if len(all) == 0 {
		delete(c.exposed, key)
	}
	return others
}

// await returns when the others have a verdict. They do not wait for us in turn: we have ours.
func await(ctx context.Context, others []<-chan struct{}) error {
	for _, other := range others {
		select {
		case <-other:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
