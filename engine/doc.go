// Package engine is the root of Lodge's cryptographic engine: pure computation,
// no network, no disk, no clock, no ambient randomness.
//
// The map, from the bottom up (an arrow points only downwards; see imports_test.go):
//
//	intpoly   polynomials with multi-word signed integer coefficients
//	kernel    modular arithmetic on slices of words
//	ring      R_q = Z_q[X]/(X^N+1) in RNS: NTT, automorphisms, basis extension, scaling
//	field     Z_p for p = b^M+1: fixed limbs, packing transforms, vectors
//	sample    named streams; uniform, ternary, discrete Gaussian, flooding
//	secret    holders that redact and wipe themselves
//	codec     canonical, bounded, bit-packed encoding
//	params    parameter sets, fields, noise bounds, the security table
//	gbfv      generalized BFV: packing, encryption, evaluation, MatMul, keys
//	sigma     proofs of short linear relations
//	protocol  every protocol as a chain of pure rounds
//
// Randomness enters every operation as an explicit argument.
package engine
