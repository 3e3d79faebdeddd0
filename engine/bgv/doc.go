// Package bgv is what threshold protocols need of Lattigo's package schemes/bgv, which has BGV and, as its scale
// invariant mode, BFV: parameter sets, keys and ciphertexts in its types, and what decryption is made of. Users encrypt
// and evaluate with Lattigo.
//
// # The scheme
//
// R = Z[X]/(X^N+1), Q_l = q_0 ... q_l is the modulus of a ciphertext of level l, P the product of the special primes,
// T the odd plaintext modulus. In both modes a ciphertext (c_0, c_1) has the phase
//
//	c_0 + c_1 s = T^-1 m + e  modulo Q_l
//
// for the plaintext polynomial m, which is the message times the ciphertext's scale, a public number modulo T. So the
// noise e is not multiplied by T, as in textbooks of BGV. As T^-1 m is (Q_l mu + m)/T for mu = -m/Q_l mod T, the phase
// is one of BFV too: of mu, less than one off. A ciphertext is switched from Q_l to Q_k by division with rounding,
// which leaves mu as it is (Switch).
//
// # Noise
//
// Keys are sums of the n parties' ternary secrets, so that coefficients of s are at most n, and a switch adds at most
//
//	R = (1 + n N)/2 + 1
//
// to the noise. Whatever decrypts is sized for noises up to 2^LogNoise after the switch, of which R is a part, for up
// to MaxParties. The rest is what the ciphertext may bring along: MaxNoise gives it at every level.
//
// # What is read from others
//
// Lattigo's decoders read lengths from the bytes and allocate what they say, and take residues that are none. They are
// not used. Keys and ciphertexts are encoded as package codec does it: the length follows from the set, residues are
// below their primes, and there is one encoding.
//
// # Security of the sets
//
// Every set has 128 bits of classical security by package hardness, for samples of keys modulo Q P with ternary secrets.
// Of threshold keys, t parties know their own secrets and errors; what the others add is a sum of ternary secrets, and
// errors of the whole variance.
package bgv
