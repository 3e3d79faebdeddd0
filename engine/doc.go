// Package engine is the root of Lodge's cryptographic engine: pure computation, no network, no
// disk, no clock, no ambient randomness.
//
// The map, from the bottom up (a package imports only packages in lower layers; see
// imports_test.go):
//
//	kind      the table of the kinds of tuples; every package may import it
//	intpoly   polynomials with multi-word signed integer coefficients
//	kernel    modular arithmetic on slices of words
//	ring      R_q = Z_q[X]/(X^N+1) in RNS: NTT, automorphisms, basis extension, scaling
//	field     Z_p for p = b^M+1: fixed limbs, packing transforms, vectors
//	sample    named streams; uniform, ternary, discrete Gaussian, flooding
//	secret    holders that redact and erase their values
//	codec     canonical, bounded, bit-packed encoding
//	ot        correlated oblivious transfer between two parties
//	share     Shamir's secret sharing over a prime field
//	params    parameter sets, fields, noise bounds, the security table
//	gbfv      generalized BFV: packing, encryption, evaluation, MatMul, keys
//	lwe       LWE and ring ciphertexts modulo one prime, gates and lookups by blind rotation
//	linear    BGV for products of shared or encrypted matrices and vectors by two parties
//	multikey  gates on bits under different parties' own keys; circuit/ has netlists of them
//	sigma     proofs of short linear relations
//	evaluation  products of a batch as tasks that another machine can compute
//	protocol  every protocol as a chain of pure rounds
//
// Every random operation receives its randomness as an explicit argument.
package engine
