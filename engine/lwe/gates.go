package lwe

import "fmt"

// Gate is a function of two bits, or the multiplexer of three.
type Gate uint8

// Gates. Task.Gate is Look where a table is looked up.
const (
	Look Gate = iota
	And
	Nand
	Or
	Nor
	Xor
	Xnor
	Mux // B if A, else C

	andNot // B and not A
	gates
)

var gateNames = [gates]string{"LOOK", "AND", "NAND", "OR", "NOR", "XOR", "XNOR", "MUX", "ANDNOT"}

// String names the gate.
func (g Gate) String() string {
	if g < gates {
		return gateNames[g]
	}
	return fmt.Sprintf("Gate(%d)", uint8(g))
}

// linear holds the coefficients of a x + b y + c. Its sign is the gate of bits x, y in {-1, 1}, and
// |a| = |b|.
type linear struct{ a, b, c int8 }

var linears = [gates]linear{
	And:    {1, 1, -1},
	Nand:   {-1, -1, 1},
	Or:     {1, 1, 1},
	Nor:    {-1, -1, -1},
	Xor:    {2, 2, 2}, // 6, 2 or -2 modulo 8
	Xnor:   {-2, -2, -2},
	andNot: {-1, 1, -1},
}

// combine sets dst to the sum of a gate, with bits of phase -Q/8 and Q/8. dst may be an operand.
func (s *Scheme) combine(dst *LWE, g Gate, x, y *LWE) {
	l := linears[g]
	switch {
	case l.a > 0:
		s.Add(dst, x, y)
	case l.b > 0:
		s.Sub(dst, y, x)
	default:
		s.Add(dst, x, y)
		s.Neg(dst, dst)
	}
	if l.a == 2 || l.a == -2 {
		s.Add(dst, dst, dst)
	}
	s.AddPhase(dst, s.mod.Mul(s.residue(int64(l.c)), s.eighth()))
}

// Not sets dst to the negation of a bit, which needs no bootstrap. dst may be a.
func (s *Scheme) Not(dst, a *LWE) { s.Neg(dst, a) }

// Digit sets dst to the padded ciphertext of 0 for the bit false and of p/2 for true, which a table
// can turn into any values: sums with Q/8 are 0 and Q/4. dst may be a.
func (s *Scheme) Digit(dst, a *LWE) {
	dst.Copy(a)
	s.AddPhase(dst, s.eighth())
}
