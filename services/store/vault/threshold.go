package vault

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// The key of a threshold epoch is shared by polynomials, so that any Threshold+1 of its members decrypt with it. What the
// others of a roster are does not matter to it: it serves under every roster that has enough of its members, this party
// among them, wherever they are in it.

// maxMembers bounds the members of an epoch.
const maxMembers = 1000

// checkMembers refuses a new epoch whose members are not as its purpose has them.
func (v *Vault) checkMembers(e *Epoch) error {
	if e.Purpose != PurposeThreshold {
		//lodge:check vault/threshold/of-others [run=TestMembers] keys for triples have a threshold
		if e.Threshold > 0 || len(e.Members) > 0 || e.AnyQuorum {
			return fmt.Errorf("%w: an epoch for %s has no threshold", vaulterr.ErrRange, e.Purpose)
		}
		return nil
	}
	n := len(e.Members)
	//lodge:check vault/threshold/members [run=TestMembers] all members, or none, must take part in
	//  a decryption
	if n > maxMembers || e.Threshold == 0 || uint64(e.Threshold) >= uint64(n) {
		return fmt.Errorf("%w: a threshold of %d with %d members", vaulterr.ErrRange, e.Threshold, n)
	}
	for i, m := range e.Members {
		//lodge:check vault/threshold/members-twice [run=TestMembers] one member holds two shares of
		//  a key
		if len(m) == 0 || hasKey(e.Members[:i], m) {
			return fmt.Errorf("%w: member %d has no key, or that of another", vaulterr.ErrRange, i)
		}
	}
	//lodge:check vault/threshold/member [run=TestMembers] a party that is not a member stores a
	//  share
	if p := v.roster.Load(); p != nil && p.member(e) < 0 {
		return fmt.Errorf("%w: this party is no member of epoch %d", vaulterr.ErrRange, e.ID)
	}
	return nil
}

// Places gives for each member of an epoch its index in the roster that is pinned, or -1.
func (v *Vault) Places(e *Epoch) []int {
	p := v.roster.Load()
	if p == nil {
		p = &pinned{}
	}
	return p.places(e)
}

func (p *pinned) places(e *Epoch) []int {
	at := make([]int, len(e.Members))
	for i, m := range e.Members {
		at[i] = slices.IndexFunc(p.keys, func(k []byte) bool { return bytes.Equal(k, m) })
	}
	return at
}

// member is this party's number among the members of an epoch, or -1.
func (p *pinned) member(e *Epoch) int {
	if p.self < 0 || p.self >= len(p.keys) {
		return -1
	}
	return slices.Index(p.places(e), p.self)
}

// leaves is what the roster leaves of a threshold epoch.
func (p *pinned) leaves(e *Epoch) Standing {
	here := 0
	for _, at := range p.places(e) {
		if at >= 0 {
			here++
		}
	}
	//lodge:check vault/threshold/enough [drop=here <= int(e.Threshold)]
	//  [run=TestStandingOfThreshold] a key is used with too few of its members left
	//lodge:check vault/threshold/self [drop=p.member(e) < 0] [run=TestStandingOfThreshold] a party
	//  that is not a member uses a key
	if here <= int(e.Threshold) || p.member(e) < 0 {
		return OtherParties
	}
	return SameRoster
}

// checkQuorum refuses numbers of members that are not Threshold+1 in ascending order.
func (e *Epoch) checkQuorum(quorum []uint32) error {
	least := int(e.Threshold) + 1
	good := len(quorum) == least || e.AnyQuorum && len(quorum) > least
	for i, q := range quorum {
		//lodge:check vault/threshold/quorum-member [drop=int64(q) < int64(len(e.Members))]
		//  [run=TestMasksOfAQuorum] masks are of parties that are not members
		//lodge:check vault/threshold/quorum-order [drop=(i == 0 || quorum[i-1] < q)]
		//  [run=TestMasksOfAQuorum] a member is twice in a quorum
		good = good && int64(q) < int64(len(e.Members)) && (i == 0 || quorum[i-1] < q)
	}
	//lodge:check vault/threshold/quorum [run=TestMasksOfAQuorum] masks are of an invalid quorum
	if !good {
		return fmt.Errorf("%w: %v is no quorum of epoch %d, which takes %d of %d members in ascending order",
			vaulterr.ErrRange, quorum, e.ID, least, len(e.Members))
	}
	return nil
}

// checkMine refuses what is no quorum, and one that this party is not in.
func (v *Vault) checkMine(e *Epoch, quorum []uint32) error {
	if err := e.checkQuorum(quorum); err != nil {
		return err
	}
	if p := v.roster.Load(); p != nil {
		//lodge:check vault/threshold/quorum-mine [run=TestMasksOfAQuorum] a party stores masks of a
		//  quorum that it is not in
		if self := p.member(e); self < 0 || !slices.Contains(quorum, uint32(self)) {
			return fmt.Errorf("%w: this party is not in the quorum %v of epoch %d", vaulterr.ErrRange, quorum, e.ID)
		}
	}
	return nil
}
