package circuit

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/multikey"
)

// Errors of a netlist, its inputs, or their keys. Every error of this package wraps one of them.
var (
	ErrSyntax = errors.New("circuit: malformed netlist")
	ErrTooBig = errors.New("circuit: the netlist is too large")
	ErrWire   = errors.New("circuit: invalid wire")
	ErrInputs = errors.New("circuit: the inputs do not match the netlist")
	ErrKeys   = errors.New("circuit: the inputs are under too many keys")
)

// Limits on a netlist.
const (
	MaxWires = 1 << 20  // limits gates, too
	MaxText  = 64 << 20 // bytes
)

// An Op is the operation of a netlist's gate. The first ones are package multikey's gates.
type Op uint8

// Further operations.
const (
	Inv   Op = iota + 128
	Copy     // of a wire
	False    // the constants
	True
)

// operands returns the number of input wires.
func (o Op) operands() int {
	switch o {
	case Inv, Copy:
		return 1
	case False, True:
		return 0
	}
	return multikey.Gate(o).Operands()
}

// A Gate sets the wire Out. It uses as many wires of In as its Op has operands; the others are 0.
type Gate struct {
	Op  Op
	In  [3]uint32
	Out uint32
}

// Netlist is a circuit in source form.
type Netlist struct {
	Inputs  []int // bits of each value
	Outputs []int
	Wires   int
	Gates   []Gate // in an order in which they can be computed
}

// InputBits returns the number of bits of all inputs.
func (n *Netlist) InputBits() int { return sum(n.Inputs) }

// OutputBits returns the number of bits of all outputs.
func (n *Netlist) OutputBits() int { return sum(n.Outputs) }

func sum(list []int) (total int) {
	for _, x := range list {
		total += x
	}
	return total
}

// Check returns an error unless the netlist is valid. The error wraps ErrTooBig, ErrSyntax, or
// ErrWire.
func (n *Netlist) Check() error {
	if n.Wires < 1 || n.Wires > MaxWires {
		return fmt.Errorf("%w: %d wires (from 1 to %d are allowed)", ErrTooBig, n.Wires, MaxWires)
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
			return fmt.Errorf("%w: missing %s", ErrSyntax, what)
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
			return fmt.Errorf("%w: gate %d has an unknown operation", ErrSyntax, i)
		}
		k := g.Op.operands()
		for j, w := range g.In {
			switch {
			case j >= k && w != 0:
				return fmt.Errorf("%w: gate %d has too many operands", ErrSyntax, i)
			case j < k && (int(w) >= n.Wires || !defined[w]):
				return fmt.Errorf("%w: gate %d uses wire %d before its definition", ErrWire, i, w)
			}
		}
		if int(g.Out) >= n.Wires || defined[g.Out] {
			return fmt.Errorf("%w: gate %d sets wire %d, which does not exist or is already set", ErrWire, i, g.Out)
		}
		defined[g.Out] = true
	}
	return nil
}

// Digest returns the name of a netlist: SHA-256 of a tag and of its text as Append writes it.
func (n *Netlist) Digest() [32]byte {
	return sha256.Sum256(n.Append([]byte("lodge netlist 1\n")))
}

// Eval computes a netlist that passes Check on plaintext bits, gate by gate in source form. The
// error wraps ErrInputs.
func (n *Netlist) Eval(inputs []bool) ([]bool, error) {
	if len(inputs) != n.InputBits() {
		return nil, fmt.Errorf("%w: there are %d bits, want %d", ErrInputs, len(inputs), n.InputBits())
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
