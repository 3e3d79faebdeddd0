package multikey

import (
	"bytes"
	"fmt"
)

// Gate is a function of two bits, or the multiplexer of three.
type Gate uint8

// The gates.
const (
	And    Gate = iota + 1
	Nand        // not (A and B)
	Or          //
	Nor         // not (A or B)
	Xor         //
	Xnor        // A = B
	AndNot      // A and not B
	NotAnd      // B and not A
	OrNot       // A or not B
	NotOr       // B or not A
	Mux         // B if A, else C
	gates
)

var gateNames = [gates]string{"", "AND", "NAND", "OR", "NOR", "XOR", "XNOR", "ANDNOT", "NOTAND", "ORNOT", "NOTOR", "MUX"}

// String returns the name of the gate.
func (g Gate) String() string {
	if g > 0 && g < gates {
		return gateNames[g]
	}
	return fmt.Sprintf("Gate(%d)", uint8(g))
}

// Gates lists all gates.
func Gates() (list []Gate) {
	for g := And; g < gates; g++ {
		list = append(list, g)
	}
	return list
}

// Operands returns the number of operands of a gate.
func (g Gate) Operands() int {
	if g == Mux {
		return 3
	}
	return 2
}

// Bit returns the value of a gate on plaintext bits. The third is used only for Mux.
func (g Gate) Bit(a, b, c bool) bool {
	if g == Mux {
		if a {
			return b
		}
		return c
	}
	sign := func(x bool) int {
		if x {
			return 1
		}
		return -1
	}
	l := linears[g]
	sum := l.a*sign(a) + l.b*sign(b) + l.c
	return (sum+16)%8 < 4 // in eighths of the torus
}

// linear describes a gate of bits x, y in {-1, 1} as the sign of a x + b y + c, in eighths.
type linear struct{ a, b, c int }

var linears = [gates]linear{
	And: {1, 1, -1}, Nand: {-1, -1, 1}, Or: {1, 1, 1}, Nor: {-1, -1, -1},
	AndNot: {1, -1, -1}, NotAnd: {-1, 1, -1}, OrNot: {1, -1, 1}, NotOr: {-1, 1, 1},
	Xor: {2, 2, 2}, Xnor: {-2, -2, -2}, // 6, 2 or -2
}

// combine returns the sum of a gate, under the keys of both operands.
func (s *Scheme) combine(g Gate, x, y *Ciphertext) *Ciphertext {
	l := linears[g]
	p, q := uint32(l.a), uint32(l.b) // modulo 2^32
	sum := &Ciphertext{B: p*x.B + q*y.B + uint32(l.c)*eighth}
	for i, j := 0, 0; i < len(x.Parts) || j < len(y.Parts); {
		order := 0
		switch {
		case i == len(x.Parts):
			order = 1
		case j == len(y.Parts):
			order = -1
		default:
			order = bytes.Compare(x.Parts[i].Key[:], y.Parts[j].Key[:])
		}
		part := Part{A: make([]uint32, s.Dim)}
		if order <= 0 {
			part.Key = x.Parts[i].Key
			for t, a := range x.Parts[i].A {
				part.A[t] = p * a
			}
			i++
		}
		if order >= 0 {
			part.Key = y.Parts[j].Key
			for t, a := range y.Parts[j].A {
				part.A[t] += q * a
			}
			j++
		}
		sum.Parts = append(sum.Parts, part)
	}
	return sum
}
