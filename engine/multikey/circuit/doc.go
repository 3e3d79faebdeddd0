// Package circuit has netlists of gates on encrypted bits, and computes them with package multikey.
//
// # Format
//
// A netlist is text in Bristol Fashion (https://nigelsmart.github.io/MPC-Circuits/), with more gates. The first line has
// the number of gates and the number of wires; the second the number of input values and the bits of each; the third
// the same of outputs. Then there is a line for each gate: the number of wires that go in and that come out, these
// wires, and the gate's name. Fields are decimal numbers without sign or leading zeros, separated by blanks; lines
// without fields mean nothing.
//
//	2 1 a b w NAME         w = a NAME b: AND XOR, and OR NAND NOR XNOR ANDNOT NOTAND ORNOT NOTOR, which are no others' names
//	3 1 a b c w MUX        w = b if a, else c: of this package alone
//	1 1 a w INV            w = not a
//	1 1 a w EQW            w = a
//	1 1 v w EQ             w = the constant v, 0 or 1
//	2n n a.. b.. w.. MAND  n gates AND at once, w_i = a_i and b_i
//
// Wires are numbered from 0: those of inputs come first, in the order of values and bits, and those of outputs are the
// last. A wire is defined by one gate, before it is used, and every wire is defined. Bits of a number are the lowest first.
//
// # Evaluation
//
// Before a netlist is computed it is compiled (Program). Negations, constants and copies cost nothing, since gates take
// operands either way; a gate one of whose operands is known, or is the other one, is none; gates that compute the same
// are one; and what no output depends on is left out. So the noise of operands of a gate is independent, as the noise
// model has it. A program is computed level by level, and forgets ciphertexts after their last use.
//
// An output can be an input, or a constant: its ciphertext is then the input's own, or one that everybody can read.
// Whoever lets results be decrypted must know what the netlist computes.
package circuit
