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

// The checks of this protocol, in addition to those of package round.
const (
	CheckDegree = "reshare-degree" // dealt sharings have the right degree
	CheckValue  = "reshare-value"  // dealers share their shares of the secrets
)

// Absent stands for an old party that does not take part.
const Absent round.Party = -1

// Group lists the parties that hold the shares: Parties[i], numbered as in the session, holds the
// share of the point i+1.
type Group struct {
	Parties   []round.Party
	Threshold int // t: any t+1 parties determine the secrets; 2t is below the number of parties
}

// index returns a party's place in the group, or -1.
func (g Group) index(p round.Party) int { return slices.Index(g.Parties, p) }

// Part describes one vector of a share: N residues modulo the prime Q.
type Part struct {
	Q uint64
	N int
}

// Config holds the values that all parties of a run agree on, and the party's own values.
type Config struct {
	Session  round.Session // of all parties that take part
	Parts    []Part        // of a share
	Old, New Group
	// Share is this party's share, by part, if it is in Old. The caller keeps ownership.
	Share  []secret.Box[share.Vec]
	Source *sample.Source // this party's randomness
}

// Result is one party's output: its share, by part, if it is one of the new parties, and otherwise
// nothing.
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
		if part.N < 1 || !new(big.Int).SetUint64(part.Q).ProbablyPrime(0) { // exact below 2^64
			return fmt.Errorf("reshare: shares of %d residues modulo %d are not supported", part.N, part.Q)
		}
	}
	present := slices.DeleteFunc(slices.Clone(c.Old.Parties), func(p round.Party) bool { return p == Absent })
	for _, g := range []struct {
		Group
		list []round.Party
	}{{c.Old, present}, {c.New, c.New.Parties}} {
		n, t := len(g.Parties), g.Threshold
		if t < 1 || n < 2*t+1 || n > share.MaxParties {
			return fmt.Errorf("reshare: cannot reshare keys for %d of %d parties: an honest majority is required", t+1, n)
		}
		if len(g.list) < t+1 {
			return fmt.Errorf("reshare: %d of the old parties take part, at least %d must", len(g.list), t+1)
		}
		sorted := slices.Sorted(slices.Values(g.list))
		outside := sorted[0] < 0 || int(sorted[len(sorted)-1]) >= c.Session.Parties
		if outside || len(slices.Compact(sorted)) < len(g.list) {
			return errors.New("reshare: a group contains a party twice, or a party that is not of the session")
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

// checkShare returns an error if Share does not have these parts.
func (c *Config) checkShare() error {
	if len(c.Share) != len(c.Parts) {
		return errors.New("reshare: this party is in the old group but has no share, or one with too few or too many parts")
	}
	for i, part := range c.Parts {
		if c.Share[i].Empty() || len(c.Share[i].Open()) != part.N {
			return errors.New("reshare: this party is in the old group but a part of its share is missing or has the wrong length")
		}
		for _, v := range c.Share[i].Open() {
			if v >= part.Q {
				return errors.New("reshare: a share contains a value that is not a residue")
			}
		}
	}
	return nil
}

// plan holds the public parameters of a run.
type plan struct {
	fields   []field
	primes   []uint64    // of the fields
	n        round.Party // parties of the session
	old, new Group
	dealers  []int // places in Old of the dealers, ascending
}

// field holds the parts modulo one prime. A vector of numbers has a row for each field.
type field struct {
	from, to *share.Shamir
	width    int   // number of values that a dealer shares: those of the parts, and a mask
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

// widths returns the lengths of the rows that a dealer shares. each returns the lengths of rows
// with n values per field.
func (p *plan) widths() (list []int) {
	for _, f := range p.fields {
		list = append(list, f.width)
	}
	return list
}

func (p *plan) each(n int) []int { return slices.Repeat([]int{n}, len(p.fields)) }

// first returns the dealers from whose shares the new shares are made.
func (p *plan) first() []int { return p.dealers[:p.old.Threshold+1] }

// others returns the dealers whose values are compared with those of the first.
func (p *plan) others() []int { return p.dealers[p.old.Threshold+1:] }

// points returns the places in New at which a dealer announces its polynomial, in addition to 0.
func (p *plan) points() []int {
	list := make([]int, p.new.Threshold)
	for i := range list {
		list[i] = i
	}
	return list
}
