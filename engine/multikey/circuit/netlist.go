package circuit

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/multikey"
)

// What can be wrong with a netlist, its inputs, or their keys. Errors wrap one of these.
var (
	ErrSyntax = errors.New("circuit: malformed netlist")
	ErrTooBig = errors.New("circuit: a netlist beyond its bounds")
	ErrWire   = errors.New("circuit: a wire that cannot be")
	ErrInputs = errors.New("circuit: other inputs than the netlist has")
	ErrKeys   = errors.New("circuit: inputs under too many keys")
)

// Bounds of a netlist.
const (
	MaxWires = 1 << 20  // so that gates are fewer, too
	MaxText  = 64 << 20 // bytes
)

// An Op is what a netlist's gate does. The first ones are package multikey's gates.
type Op uint8

// The other ones.
const (
	Inv   Op = iota + 128
	Copy     // of a wire
	False    // the constants
	True
)

// operands is how many wires go in.
func (o Op) operands() int {
	switch o {
	case Inv, Copy:
		return 1
	case False, True:
		return 0
	}
	return multikey.Gate(o).Operands()
}

// A Gate sets the wire Out. It takes as many wires as its Op has operands, the others are 0.
type Gate struct {
	Op  Op
	In  [3]uint32
	Out uint32
}

// Netlist is a circuit as its author wrote it.
type Netlist struct {
	Inputs  []int // bits of each value
	Outputs []int
	Wires   int
	Gates   []Gate // in an order in which they can be computed
}

// InputBits is the number of bits of all inputs.
func (n *Netlist) InputBits() int { return sum(n.Inputs) }

// OutputBits is the number of bits of all outputs.
func (n *Netlist) OutputBits() int { return sum(n.Outputs) }

func sum(list []int) (total int) {
	for _, x := range list {
		total += x
	}
	return total
}

// Check refuses what is no netlist. The error wraps ErrTooBig, ErrSyntax, or ErrWire.
func (n *Netlist) Check() error {
	if n.Wires < 1 || n.Wires > MaxWires {
		return fmt.Errorf("%w: %d wires, from 1 to %d can be", ErrTooBig, n.Wires, MaxWires)
	}
	for what, list := range map[string][]int{"input": n.Inputs, "output": n.Outputs} {
		total := 0
		for i, bits := range list {
			if bits < 1 || bits > n.Wires-total {
				return fmt.Errorf("%w: %s %d has %d bits", ErrSyntax, what, i, bits)
			}
			total += bits
		}
		if total == 0 {
			return fmt.Errorf("%w: no %s", ErrSyntax, what)
		}
	}
	defined := make([]bool, n.Wires)
	for i := range n.InputBits() {
		defined[i] = true
	}
	if have, want := n.InputBits()+len(n.Gates), n.Wires; have != want {
		return fmt.Errorf("%w: inputs and gates define %d wires, not %d", ErrWire, have, want)
	}
	for i, g := range n.Gates {
		if g.Op.String() == "" {
			return fmt.Errorf("%w: gate %d does nothing that is known", ErrSyntax, i)
		}
		k := g.Op.operands()
		for j, w := range g.In {
			switch {
			case j >= k && w != 0:
				return fmt.Errorf("%w: gate %d has an operand too many", ErrSyntax, i)
			case j < k && (int(w) >= n.Wires || !defined[w]):
				return fmt.Errorf("%w: gate %d takes wire %d, which is not defined before", ErrWire, i, w)
			}
		}
		if int(g.Out) >= n.Wires || defined[g.Out] {
			return fmt.Errorf("%w: gate %d sets wire %d, which there is not, or which is set already", ErrWire, i, g.Out)
		}
		defined[g.Out] = true
	}
	return nil
}

// Digest names a netlist: SHA-256 of a tag and of its text as Append writes it.
func (n *Netlist) Digest() [32]byte {
	return sha256.Sum256(n.Append([]byte("lodge netlist 1\n")))
}

// Eval is what a netlist that Check accepts computes of bits that everybody can read: gate by gate, as it is written.
// The error wraps ErrInputs.
func (n *Netlist) Eval(inputs []bool) ([]bool, error) {
	if len(inputs) != n.InputBits() {
		return nil, fmt.Errorf("%w: %d bits, not %d", ErrInputs, len(inputs), n.InputBits())
	}
	wires := make([]bool, n.Wires)
	copy(wires, inputs)
	for _, g := range n.Gates {
		a := wires[g.In[0]]
		switch g.Op {
		case Inv:
			a = !a
		case Copy:
		case False, True:
			a = g.Op == True
		default:
			a = multikey.Gate(g.Op).Bit(a, wires[g.In[1]], wires[g.In[2]])
		}
		wires[g.Out] = a
	}
	return wires[n.Wires-n.OutputBits():], nil
}
