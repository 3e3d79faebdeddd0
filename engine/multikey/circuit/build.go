package circuit

import (
	"slices"

	"github.com/lodge-mpc/lodge/engine/multikey"
)

// Builder writes netlists. Values are slices of wire numbers, lowest bit first.
type Builder struct {
	inputs []int
	gates  []Gate
	wires  uint32
}

// Input returns a new input value of the given number of bits. All inputs must come before the
// first gate.
func (b *Builder) Input(bits int) []uint32 {
	if len(b.gates) > 0 {
		panic("circuit: an input after a gate")
	}
	b.inputs = append(b.inputs, bits)
	value := make([]uint32, bits)
	for i := range value {
		value[i] = b.wires
		b.wires++
	}
	return value
}

func (b *Builder) add(op Op, in ...uint32) uint32 {
	g := Gate{Op: op, Out: b.wires}
	copy(g.In[:], in)
	b.gates = append(b.gates, g)
	b.wires++
	return g.Out
}

// Gate appends a gate and returns its wire. The number of wires must match the gate's operands.
func (b *Builder) Gate(g multikey.Gate, in ...uint32) uint32 { return b.add(Op(g), in...) }

// Not returns the negation of a wire.
func (b *Builder) Not(a uint32) uint32 { return b.add(Inv, a) }

// Constant returns a wire with a constant bit.
func (b *Builder) Constant(bit bool) uint32 {
	if bit {
		return b.add(True)
	}
	return b.add(False)
}

// Choose returns x if the wire is true, else y. Both have the same number of bits.
func (b *Builder) Choose(which uint32, x, y []uint32) []uint32 {
	out := make([]uint32, len(x))
	for i := range x {
		out[i] = b.Gate(multikey.Mux, which, x[i], y[i])
	}
	return out
}

// Add returns x + y, with one more bit than x and y, which have the same number of bits.
func (b *Builder) Add(x, y []uint32) []uint32 {
	carry, out := b.Constant(false), make([]uint32, 0, len(x)+1)
	for i := range x {
		differ := b.Gate(multikey.Xor, x[i], y[i])
		out = append(out, b.Gate(multikey.Xor, differ, carry))
		carry = b.Gate(multikey.Mux, differ, carry, x[i])
	}
	return append(out, carry)
}

// Less returns whether x < y. Both have the same number of bits.
func (b *Builder) Less(x, y []uint32) uint32 {
	less := b.Constant(false)
	for i := range x { // the highest differing bit decides
		less = b.Gate(multikey.Mux, b.Gate(multikey.Xor, x[i], y[i]), y[i], less)
	}
	return less
}

// Equal returns whether x = y. Both have the same number of bits.
func (b *Builder) Equal(x, y []uint32) uint32 {
	bits := make([]uint32, len(x))
	for i := range x {
		bits[i] = b.Gate(multikey.Xnor, x[i], y[i])
	}
	return b.tree(multikey.And, bits)
}

// tree combines wires with a gate in few levels.
func (b *Builder) tree(g multikey.Gate, bits []uint32) uint32 {
	for len(bits) > 1 {
		half := make([]uint32, 0, (len(bits)+1)/2)
		for i := 0; i+1 < len(bits); i += 2 {
			half = append(half, b.Gate(g, bits[i], bits[i+1]))
		}
		if len(bits)%2 == 1 {
			half = append(half, bits[len(bits)-1])
		}
		bits = half
	}
	return bits[0]
}

// Count returns the number of true wires.
func (b *Builder) Count(bits []uint32) []uint32 {
	numbers := make([][]uint32, len(bits))
	for i, w := range bits {
		numbers[i] = []uint32{w}
	}
	for len(numbers) > 1 {
		half := [][]uint32{}
		for i := 0; i+1 < len(numbers); i += 2 {
			x, y := numbers[i], numbers[i+1]
			half = append(half, b.Add(b.widen(x, len(y)), b.widen(y, len(x))))
		}
		if len(numbers)%2 == 1 {
			half = append(half, numbers[len(numbers)-1])
		}
		numbers = half
	}
	return numbers[0]
}

// widen appends high zeros up to the given number of bits.
func (b *Builder) widen(x []uint32, bits int) []uint32 {
	x = slices.Clone(x)
	for len(x) < bits {
		x = append(x, b.Constant(false))
	}
	return x
}

// Netlist returns the netlist with these outputs, which it copies to the last wires.
func (b *Builder) Netlist(outputs ...[]uint32) *Netlist {
	n := &Netlist{Inputs: b.inputs}
	for _, value := range outputs {
		n.Outputs = append(n.Outputs, len(value))
		for _, w := range value {
			b.add(Copy, w)
		}
	}
	n.Wires, n.Gates = int(b.wires), b.gates
	return n
}
