package keys

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// The key of a threshold epoch is shared by polynomials, so that any Threshold+1 of its members
// decrypt with it. Parties of the roster that are not members do not matter: the key works under
// every roster that has enough of its members, including this party, in any order.

// MaxMembers bounds the members of an epoch.
const MaxMembers = 1000

// CheckMembers refuses a new epoch whose members are not as its purpose has them.
func (v *Keys) CheckMembers(e *Epoch) error {
	if e.Purpose != PurposeThreshold {
		//lodge:check vault/threshold/of-others [tests=./services/store/vault] [run=TestMembers]
		//  keys for triples have a threshold
		if e.Threshold > 0 || len(e.Members) > 0 || e.AnyQuorum {
			return fmt.Errorf("%w: an epoch for %s has no threshold", vaulterr.ErrRange, e.Purpose)
		}
		return nil
	}
	n := len(e.Members)
	//lodge:check vault/threshold/members [tests=./services/store/vault] [run=TestMembers] all
	//  members, or none, must take part in a decryption
	if n > MaxMembers || e.Threshold == 0 || uint64(e.Threshold) >= uint64(n) {
		return fmt.Errorf("%w: a threshold of %d with %d members", vaulterr.ErrRange, e.Threshold, n)
	}
	for i, m := range e.Members {
		//lodge:check vault/threshold/members-twice [tests=./services/store/vault] [run=TestMembers]
		//  one member holds two shares of a key
		if len(m) == 0 || peers.HasKey(e.Members[:i], m) {
			return fmt.Errorf("%w: member %d has no key, or that of another", vaulterr.ErrRange, i)
		}
	}
	//lodge:check vault/threshold/member [tests=./services/store/vault] [run=TestMembers] a party
	//  that is not a member stores a share
	if p := v.roster.Load(); p != nil && p.member(e) < 0 {
		return fmt.Errorf("%w: this party is not a member of epoch %d", vaulterr.ErrRange, e.ID)
	}
	return nil
}

// Places gives for each member of an epoch its index in the roster that is pinned, or -1.
func (v *Keys) Places(e *Epoch) []int {
	p := v.roster.Load()
	if p == nil {
		p = &Pinned{}
	}
	return p.places(e)
}

func (p *Pinned) places(e *Epoch) []int {
	at := make([]int, len(e.Members))
	for i, m := range e.Members {
		at[i] = slices.IndexFunc(p.keys, func(k []byte) bool { return bytes.Equal(k, m) })
	}
	return at
}

// member is this party's number among the members of an epoch, or -1.
func (p *Pinned) member(e *Epoch) int {
	if p.self < 0 || p.self >= len(p.keys) {
		return -1
	}
	return slices.Index(p.places(e), p.self)
}

// leaves returns the standing of a threshold epoch under the roster.
func (p *Pinned) leaves(e *Epoch) Standing {
	here := 0
	for _, at := range p.places(e) {
		if at >= 0 {
			here++
		}
	}
	//lodge:check vault/threshold/enough [tests=./services/store/vault] [drop=here <=
	//  int(e.Threshold)] [run=TestStandingOfThreshold] a key is used with too few of its members
	//  left
	//lodge:check vault/threshold/self [tests=./services/store/vault] [drop=p.member(e) < 0]
	//  [run=TestStandingOfThreshold] a party that is not a member uses a key
	if here <= int(e.Threshold) || p.member(e) < 0 {
		return OtherParties
	}
	return SameRoster
}

// CheckQuorum refuses numbers of members that are not Threshold+1 in ascending order.
func (e *Epoch) CheckQuorum(quorum []uint32) error {
	least := int(e.Threshold) + 1
	good := len(quorum) == least || e.AnyQuorum && len(quorum) > least
	for i, q := range quorum {
		//lodge:check vault/threshold/quorum-member [tests=./services/store/vault] [drop=int64(q) <
		//  int64(len(e.Members))] [run=TestMasksOfAQuorum] masks are of parties that are not
		//  members
		//lodge:check vault/threshold/quorum-order [tests=./services/store/vault] [drop=(i == 0 ||
		//  quorum[i-1] < q)] [run=TestMasksOfAQuorum] a member is twice in a quorum
		good = good && int64(q) < int64(len(e.Members)) && (i == 0 || quorum[i-1] < q)
	}
	//lodge:check vault/threshold/quorum [tests=./services/store/vault] [run=TestMasksOfAQuorum]
	//  masks are of an invalid quorum
	if !good {
		return fmt.Errorf("%w: %v is not a quorum of epoch %d, which needs %d of %d members in ascending order",
			vaulterr.ErrRange, quorum, e.ID, least, len(e.Members))
	}
	return nil
}

// CheckMine returns an error unless quorum is valid and includes this party.
func (v *Keys) CheckMine(e *Epoch, quorum []uint32) error {
	if err := e.CheckQuorum(quorum); err != nil {
		return err
	}
	if p := v.roster.Load(); p != nil {
		//lodge:check vault/threshold/quorum-mine [tests=./services/store/vault]
		//  [run=TestMasksOfAQuorum] a party stores masks of a quorum that it is not in
		if self := p.member(e); self < 0 || !slices.Contains(quorum, uint32(self)) {
			return fmt.Errorf("%w: this party is not in the quorum %v of epoch %d", vaulterr.ErrRange, quorum, e.ID)
		}
	}
	return nil
}
