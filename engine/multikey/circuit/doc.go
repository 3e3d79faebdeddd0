// Package circuit defines netlists of gates on encrypted bits, and computes them with package
// multikey.
//
// # Format
//
// A netlist is text in Bristol Fashion (https://nigelsmart.github.io/MPC-Circuits/), with
// additional gates. The first line contains the number of gates and the number of wires; the second
// the number of input values and the bits of each; the third the same for outputs. Each gate
// follows on its own line: its numbers of input and output wires, these wires, and its name. Fields
// are decimal numbers without sign or leading zeros, separated by blanks. Lines without fields are
// ignored.
//
//	2 1 a b w NAME         w = a NAME b: AND XOR, and (only here) OR NAND NOR XNOR ANDNOT NOTAND ORNOT NOTOR
//	3 1 a b c w MUX        w = b if a, else c (only here)
//	1 1 a w INV            w = not a
//	1 1 a w EQW            w = a
//	1 1 v w EQ             w = the constant v, 0 or 1
//	2n n a.. b.. w.. MAND  n gates AND at once, w_i = a_i and b_i
//
// Wires are numbered from 0: inputs come first, in the order of values and bits, and outputs are
// last. Each wire is defined by exactly one gate, before it is used. Bits of a number start with
// the lowest.
//
// # Evaluation
//
// A netlist is compiled before it is computed (Program). Negations, constants and copies are free,
// since gates accept negated operands. A gate with a known operand, or with two equal or opposite
// operands, is removed. Gates that compute the same are merged, and gates that no output depends on
// are dropped. So the noise of a gate's operands is independent, as the noise model assumes. A
// program is computed level by level, and drops ciphertexts after their last use.
//
// An output can be an input or a constant: its ciphertext is then the input's own, or a public bit.
// A party that agrees to decrypt results must know the function that the netlist computes.
package circuit
