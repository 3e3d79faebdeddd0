package session

import (
	"crypto/ed25519"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// Group lists the parties of a session. The session numbers them in the order of the roster.
type Group struct {
	Parties []round.Party // of the roster
	Self    round.Party   // within the group
	Names   []string
	Keys    []ed25519.PublicKey
}

// group makes a group of these parties of the roster, or of all if there are none.
func (c *Config) group(parties []uint32) (Group, error) {
	if len(parties) == 0 {
		for i := range c.Names {
			parties = append(parties, uint32(i))
		}
	}
	g := Group{Self: -1}
	for i, p := range parties {
		if int(p) >= len(c.Names) || i > 0 && p <= parties[i-1] {
			return Group{}, fmt.Errorf("session: %d are not parties of the roster in order", parties)
		}
		if round.Party(p) == c.Self {
			g.Self = round.Party(i)
		}
		g.Parties, g.Names, g.Keys = append(g.Parties, round.Party(p)), append(g.Names, c.Names[p]), append(g.Keys, c.Keys[p])
	}
	if g.Self < 0 {
		return Group{}, fmt.Errorf("session: %d is not a valid group of party %d", parties, c.Self)
	}
	return g, nil
}

// whole reports whether the group is the roster.
func (g Group) whole(c *Config) bool { return len(g.Parties) == len(c.Names) }

// roster returns the roster index of a party of the group. Indexes outside the group are returned
// unchanged.
func (g Group) roster(p round.Party) round.Party {
	if p < 0 || int(p) >= len(g.Parties) {
		return p
	}
	return g.Parties[p]
}

// renumber converts the parties in a failure from indexes of the group to indexes of the roster.
func (g Group) renumber(f *runner.Failure) {
	f.Party = g.roster(f.Party)
	suspects := make([]round.Party, len(f.Suspects))
	for i, p := range f.Suspects {
		suspects[i] = g.roster(p)
	}
	f.Suspects = suspects
}
