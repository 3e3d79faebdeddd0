package circuit

import (
	"fmt"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/multikey"
)

// MaxKeys is the maximal number of keys of all inputs of one evaluation; one ciphertext can be
// under fewer.
const MaxKeys = 64

// Cost is the cost of a program with inputs under given keys.
type Cost struct {
	Gates int
	Depth int
	// Bootstraps is the number of bootstraps by number of parties, [0, MaxParties].
	Bootstraps []int
	// Switches is the number of key switches, each of one party's part.
	Switches int
	// Held is the maximal size in bytes of results held at a time. Output is the size of the
	// encoded outputs.
	Held, Output int
}

// Total returns the number of bootstraps.
func (c *Cost) Total() int { return sum(c.Bootstraps) }

// Rotations returns the number of rotations, each for one party, which dominate the computing time.
func (c *Cost) Rotations() (n int) {
	for k, count := range c.Bootstraps {
		n += k * count
	}
	return n
}

// keySet has a bit for each key of a ciphertext.
type keySet uint64

func (k keySet) size() int { return bits.OnesCount64(uint64(k)) }

// Cost returns the cost of a program with inputs under given keys. It rejects a program that
// combines too many parties, before anything is computed. The error wraps ErrInputs, ErrKeys, or
// multikey.ErrParties.
func (p *Program) Cost(s *multikey.Scheme, inputs [][]multikey.KeyID) (*Cost, error) {
	sets, err := p.keySets(s, inputs)
	if err != nil {
		return nil, err
	}
	c := &Cost{Gates: len(p.nodes), Depth: p.Depth(), Bootstraps: make([]int, multikey.MaxParties+1)}
	for i, n := range p.nodes {
		a, b := sets[n.a.node()], sets[n.b.node()]
		c.Bootstraps[(a|b).size()]++
		if n.gate == multikey.Mux {
			c.Bootstraps[(a|sets[n.c.node()]).size()]++
		}
		c.Switches += sets[1+p.inputs+i].size()
	}
	for _, l := range p.outputs {
		c.Output += s.CiphertextSize(sets[l.node()].size())
	}
	c.Held = p.held(func(node uint32) int { return memory(s, sets[node].size()) })
	return c, nil
}

// memory returns the approximate size of a ciphertext of k parties.
func memory(s *multikey.Scheme, k int) int { return 48 + k*(64+4*s.Dim) }

// keySets returns the keys of each node.
func (p *Program) keySets(s *multikey.Scheme, inputs [][]multikey.KeyID) ([]keySet, error) {
	if len(inputs) != p.inputs {
		return nil, fmt.Errorf("%w: there are %d, want %d", ErrInputs, len(inputs), p.inputs)
	}
	places := map[multikey.KeyID]int{}
	sets := make([]keySet, 1+p.inputs+len(p.nodes))
	for i, ids := range inputs {
		for _, id := range ids {
			at, ok := places[id]
			if !ok {
				at = len(places)
				places[id] = at
			}
			if at >= MaxKeys {
				return nil, fmt.Errorf("%w: at most %d", ErrKeys, MaxKeys)
			}
			sets[1+i] |= 1 << at
		}
		if n := sets[1+i].size(); n > s.Parties {
			return nil, fmt.Errorf("%w: input %d has %d, but %s supports %d", multikey.ErrParties, i, n, s.Name, s.Parties)
		}
	}
	for i := range p.nodes {
		n, at := &p.nodes[i], 1+p.inputs+i
		for _, l := range n.operands() {
			sets[at] |= sets[l.node()]
		}
		if k := sets[at].size(); k > s.Parties {
			return nil, fmt.Errorf("%w: a gate of level %d combines %d parties, but %s supports %d", multikey.ErrParties, p.level(i), k, s.Name, s.Parties)
		}
	}
	return sets, nil
}

// level returns the level of a node, from 1.
func (p *Program) level(i int) int {
	for l, end := range p.levels {
		if i < end {
			return l + 1
		}
	}
	return len(p.levels)
}

// slabSize is the number of gates of a level that are computed before unused results are dropped.
const slabSize = 1024

// slabs calls f with pieces [from, to) of the nodes, of one level each.
func (p *Program) slabs(f func(from, to int) error) error {
	from := 0
	for _, end := range p.levels {
		for from < end {
			to := min(from+slabSize, end)
			if err := f(from, to); err != nil {
				return err
			}
			from = to
		}
	}
	return nil
}

// lastUses returns for each node the node in whose slab it is last used; outputs are kept.
func (p *Program) lastUses() []int {
	last := make([]int, 1+p.inputs+len(p.nodes))
	for i := range p.nodes {
		for _, l := range p.nodes[i].operands() {
			last[l.node()] = i
		}
	}
	for _, l := range p.outputs {
		last[l.node()] = len(p.nodes)
	}
	return last
}

// held returns the maximal size of results held at a time.
func (p *Program) held(size func(node uint32) int) (most int) {
	last, now := p.lastUses(), 0
	for _, l := range p.outputs {
		now += size(l.node()) // outputs that are copies; a gate's own result counts twice
	}
	forget := make([][]uint32, len(p.nodes)+1)
	for node := 1 + p.inputs; node < len(last); node++ {
		forget[last[node]] = append(forget[last[node]], uint32(node))
	}
	_ = p.slabs(func(from, to int) error { // the callback returns no error
		for i := from; i < to; i++ {
			now += size(uint32(1 + p.inputs + i))
		}
		most = max(most, now)
		for i := from; i < to; i++ {
			for _, node := range forget[i] {
				now -= size(node)
			}
		}
		return nil
	})
	return max(most, now)
}
