package reshare

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
)

// The checks of this protocol, beside those of package round.
const (
	CheckDegree = "reshare-degree" // dealt sharings are of their degree
	CheckValue  = "reshare-value"  // what is shared are shares of the secrets
)

// Absent stands for an old party that does not take part.
const Absent round.Party = -1

// Group is who has the shares: Parties[i], in the numbering of the session, that of the point i+1.
type Group struct {
	Parties   []round.Party
	Threshold int // t: any t+1 have the secrets; 2t is below the number of parties
}

// index is a party's place in the group, or -1.
func (g Group) index(p round.Party) int { return slices.Index(g.Parties, p) }

// Part is one vector of a share: N residues modulo the prime Q.
type Part struct {
	Q uint64
	N int
}

// Config is what all parties of a run agree on, and what is this party's own.
type Config struct {
	Session  round.Session // of all who take part
	Parts    []Part        // that a share has
	Old, New Group
	// Share is this party's, by part, if it is one of Old; it stays the caller's.
	Share  []secret.Box[share.Vec]
	Source *sample.Source // this party's randomness
}

// Result is one party's outcome: its share, by part, if it is one of the new parties, and otherwise nothing.
type Result struct{ Share []secret.Box[share.Vec] }

// Wipe erases the share.
func (r *Result) Wipe() {
	for i := range r.Share {
		r.Share[i].Wipe()
	}
}

func (c *Config) check() error {
	if len(c.Parts) == 0 || c.Source == nil {
		return errors.New("reshare: configuration without parts or a source")
	}
	for _, part := range c.Parts {
		if part.N < 1 || !new(big.Int).SetUint64(part.Q).ProbablyPrime(0) { // exact under 2^64
			return fmt.Errorf("reshare: no shares of %d residues modulo %d", part.N, part.Q)
		}
	}
	present := slices.DeleteFunc(slices.Clone(c.Old.Parties), func(p round.Party) bool { return p == Absent })
	for _, g := range []struct {
		Group
		list []round.Party
	}{{c.Old, present}, {c.New, c.New.Parties}} {
		n, t := len(g.Parties), g.Threshold
		if t < 1 || n < 2*t+1 || n > share.MaxParties {
			return fmt.Errorf("reshare: no keys for %d of %d parties: there must be an honest majority", t+1, n)
		}
		if len(g.list) < t+1 {
			return fmt.Errorf("reshare: %d of the old parties take part, and %d must", len(g.list), t+1)
		}
		sorted := slices.Sorted(slices.Values(g.list))
		outside := sorted[0] < 0 || int(sorted[len(sorted)-1]) >= c.Session.Parties
		if outside || len(slices.Compact(sorted)) < len(g.list) {
			return errors.New("reshare: a group has a party twice, or one that is not of the session")
		}
	}
	for p := range round.Party(c.Session.Parties) {
		if c.Old.index(p) < 0 && c.New.index(p) < 0 {
			return fmt.Errorf("reshare: party %d is in neither group", p)
		}
	}
	if c.Old.index(c.Session.Self) < 0 {
		return nil
	}
	return c.checkShare()
}

// checkShare refuses what is no share of these parts.
func (c *Config) checkShare() error {
	if len(c.Share) != len(c.Parts) {
		return errors.New("reshare: an old party without its shares")
	}
	for i, part := range c.Parts {
		if c.Share[i].Empty() || len(c.Share[i].Open()) != part.N {
			return errors.New("reshare: an old party without its shares")
		}
		for _, v := range c.Share[i].Open() {
			if v >= part.Q {
				return errors.New("reshare: a share that is no residue")
			}
		}
	}
	return nil
}

// plan is what is public about a run.
type plan struct {
	fields   []field
	primes   []uint64    // of the fields
	n        round.Party // parties of the session
	old, new Group
	dealers  []int // places in Old of those that take part, ascending
}

// field has the parts modulo one prime. A vector of numbers has a row for each field.
type field struct {
	from, to *share.Shamir
	width    int   // values that a dealer shares: those of the parts, and a mask
	parts    []int // places in Config.Parts
}

func newPlan(c *Config) (*plan, error) {
	p := &plan{n: round.Party(c.Session.Parties), old: c.Old, new: c.New}
	for i, part := range c.Parts {
		k := slices.Index(p.primes, part.Q)
		if k < 0 {
			from, err := share.New(part.Q, len(c.Old.Parties))
			if err != nil {
				return nil, err
			}
			to, err := share.New(part.Q, len(c.New.Parties))
			if err != nil {
				return nil, err
			}
			k = len(p.fields)
			p.fields, p.primes = append(p.fields, field{from: from, to: to, width: 1}), append(p.primes, part.Q)
		}
		p.fields[k].width += part.N
		p.fields[k].parts = append(p.fields[k].parts, i)
	}
	for i, party := range c.Old.Parties {
		if party != Absent {
			p.dealers = append(p.dealers, i)
		}
	}
	return p, nil
}

// widths are the lengths of the rows of what a dealer shares, and each those of so many values in each field.
func (p *plan) widths() (list []int) {
	for _, f := range p.fields {
		list = append(list, f.width)
	}
	return list
}

func (p *plan) each(n int) []int { return slices.Repeat([]int{n}, len(p.fields)) }

// first are the dealers of whose shares the new ones are made.
func (p *plan) first() []int { return p.dealers[:p.old.Threshold+1] }

// others are the dealers whose values are held against those of the first.
func (p *plan) others() []int { return p.dealers[p.old.Threshold+1:] }

// points are the places in New at which a dealer announces its polynomial, beside 0.
func (p *plan) points() []int {
	list := make([]int, p.new.Threshold)
	for i := range list {
		list[i] = i
	}
	return list
}
