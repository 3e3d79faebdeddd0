package circuit

import (
	"github.com/lodge-mpc/lodge/engine/multikey"
)

// A literal refers to a bit of a program: twice a node, plus 1 if the bit is negated. Node 0 is
// false, nodes 1 to inputs are the inputs, followed by the gates.
type literal uint32

func (l literal) node() uint32   { return uint32(l >> 1) }
func (l literal) inverted() bool { return l&1 == 1 }
func (l literal) of(b bool) bool { return b != l.inverted() }
func literalOf(n uint32) literal { return literal(n << 1) }
func (l literal) flip(b bool) literal {
	if b {
		return l ^ 1
	}
	return l
}

// node is a gate that needs bootstrapping: And, AndNot, NotAnd, Or or Xor of two nodes, which are
// false if both nodes are, or Mux of three, of which only the second and third may be inverted.
type node struct {
	gate    multikey.Gate
	a, b, c literal
}

// Program is a compiled netlist. It is immutable.
type Program struct {
	inputs  int
	nodes   []node    // in ascending order of levels
	outputs []literal // may name the same node more than once
	levels  []int     // end of each level of nodes
}

// InputBits returns the number of input ciphertexts.
func (p *Program) InputBits() int { return p.inputs }

// OutputBits returns the number of output ciphertexts.
func (p *Program) OutputBits() int { return len(p.outputs) }

// Gates returns the number of gates that are computed.
func (p *Program) Gates() int { return len(p.nodes) }

// Depth returns the number of levels, which are computed sequentially.
func (p *Program) Depth() int { return len(p.levels) }

// Bootstraps returns the number of bootstraps: one for each gate, and two for a multiplexer.
func (p *Program) Bootstraps() (n int) {
	for _, x := range p.nodes {
		n++
		if x.gate == multikey.Mux {
			n++
		}
	}
	return n
}

// Compile checks and prepares a netlist. The error is Check's.
func (n *Netlist) Compile() (*Program, error) {
	if err := n.Check(); err != nil {
		return nil, err
	}
	c := compiler{inputs: uint32(n.InputBits()), known: map[node]literal{}}
	wires := make([]literal, n.Wires)
	for i := range c.inputs {
		wires[i] = literalOf(1 + i)
	}
	for _, g := range n.Gates {
		a := wires[g.In[0]]
		switch g.Op {
		case Inv:
			a ^= 1
		case Copy:
		case False, True:
			a = literal(0).flip(g.Op == True)
		default:
			a = c.gate(multikey.Gate(g.Op), [3]literal{a, wires[g.In[1]], wires[g.In[2]]})
		}
		wires[g.Out] = a
	}
	return c.program(wires[n.Wires-n.OutputBits():]), nil
}

// compiler collects the gates of a program.
type compiler struct {
	inputs uint32
	nodes  []node
	known  map[node]literal // gates that compute the same are merged
}

// gate returns the literal of a gate of literals.
func (c *compiler) gate(g multikey.Gate, in [3]literal) literal {
	var roots []uint32 // the nodes it depends on, ascending, at most three
	for _, l := range in[:g.Operands()] {
		roots = insert(roots, l.node())
	}
	if len(roots) == 3 {
		return c.mux(in)
	}
	// The gate as a function of two roots, one of which may be missing: bit 2x+y is its value at x
	// and y.
	table := 0
	for i := range 4 {
		bits := [3]bool{}
		for j, l := range in[:g.Operands()] {
			bits[j] = l.of(len(roots) > 0 && l.node() == roots[0] && i&2 != 0 || len(roots) > 1 && l.node() == roots[1] && i&1 != 0)
		}
		if g.Bit(bits[0], bits[1], bits[2]) {
			table |= 1 << i
		}
	}
	inverted := table&1 == 1
	if inverted {
		table ^= 15
	}
	var x, y literal
	if len(roots) > 0 {
		x = literalOf(roots[0])
	}
	if len(roots) > 1 {
		y = literalOf(roots[1])
	}
	var out literal
	switch table {
	case 0:
	case 12:
		out = x
	case 10:
		out = y
	default:
		out = c.node(node{gate: twoBits[table], a: x, b: y})
	}
	return out.flip(inverted)
}

// twoBits lists, by their tables, the gates that depend on two bits and are false if both are.
var twoBits = map[int]multikey.Gate{
	2: multikey.NotAnd, 4: multikey.AndNot, 6: multikey.Xor, 8: multikey.And, 14: multikey.Or,
}

// insert inserts a root in order, unless it is already present or false.
func insert(roots []uint32, r uint32) []uint32 {
	at := 0
	for ; at < len(roots) && roots[at] <= r; at++ {
		if roots[at] == r {
			return roots
		}
	}
	if r == 0 {
		return roots
	}
	roots = append(roots, 0)
	copy(roots[at+1:], roots[at:])
	roots[at] = r
	return roots
}

// mux returns the literal of a multiplexer of three nodes.
func (c *compiler) mux(in [3]literal) literal {
	if in[0].inverted() {
		in = [3]literal{in[0] ^ 1, in[2], in[1]}
	}
	inverted := in[1].inverted()
	in[1], in[2] = in[1].flip(inverted), in[2].flip(inverted)
	return c.node(node{multikey.Mux, in[0], in[1], in[2]}).flip(inverted)
}

func (c *compiler) node(n node) literal {
	l, ok := c.known[n]
	if !ok {
		c.nodes = append(c.nodes, n)
		l = literalOf(c.inputs + uint32(len(c.nodes)))
		c.known[n] = l
	}
	return l
}

// operands returns the literals that a node uses.
func (n *node) operands() []literal {
	return []literal{n.a, n.b, n.c}[:n.gate.Operands()]
}

// program drops nodes that no output depends on, and sorts the others by level.
func (c *compiler) program(outputs []literal) *Program {
	first := c.inputs + 1
	used := make([]bool, int(first)+len(c.nodes))
	for _, l := range outputs {
		used[l.node()] = true
	}
	for i := len(c.nodes) - 1; i >= 0; i-- {
		if used[int(first)+i] {
			for _, l := range c.nodes[i].operands() {
				used[l.node()] = true
			}
		}
	}
	level, counts := make([]int, len(used)), []int{}
	for i := range c.nodes {
		at := int(first) + i
		if !used[at] {
			continue
		}
		for _, l := range c.nodes[i].operands() {
			level[at] = max(level[at], level[l.node()]+1)
		}
		if level[at] > len(counts) {
			counts = append(counts, 0)
		}
		counts[level[at]-1]++
	}
	p := &Program{inputs: int(c.inputs)}
	places, total := make([]int, len(counts)), 0 // position of the next node of each level
	for l, n := range counts {
		places[l] = total
		total += n
		p.levels = append(p.levels, total)
	}
	p.nodes = make([]node, total)
	now := make([]literal, len(used)) // of each node, in the new order
	for i := range first {
		now[i] = literalOf(i)
	}
	for i, n := range c.nodes {
		at := int(first) + i
		if !used[at] {
			continue
		}
		place := &places[level[at]-1]
		now[at] = literalOf(first + uint32(*place))
		for _, l := range []*literal{&n.a, &n.b, &n.c}[:n.gate.Operands()] {
			*l = now[l.node()].flip(l.inverted())
		}
		p.nodes[*place] = n
		*place++
	}
	for _, l := range outputs {
		p.outputs = append(p.outputs, now[l.node()].flip(l.inverted()))
	}
	return p
}
