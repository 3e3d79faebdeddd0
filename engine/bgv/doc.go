// Package bgv connects threshold protocols with Lattigo's package schemes/bgv, which implements BGV
// and, as its scale-invariant mode, BFV. It provides parameter sets ([Set]), [Keys] and ciphertexts
// ([Scheme.FromLattigo]) in Lattigo's types, and the operations that decryption needs. Users
// encrypt and evaluate with Lattigo.
//
// # The scheme
//
// R = Z[X]/(X^N+1), Q_l = q_0 ... q_l is the modulus of a ciphertext of level l, P the product of
// the special primes, T the odd plaintext modulus. In both modes a ciphertext (c_0, c_1) has the
// phase
//
//	c_0 + c_1 s = T^-1 m + e  modulo Q_l
//
// for the plaintext polynomial m, which is the message times the ciphertext's scale, a public
// number modulo T. So the noise e is not multiplied by T, unlike in textbooks on BGV. T^-1 m is
// (Q_l mu + m)/T for mu = -m/Q_l mod T, so the phase is also a BFV phase of mu, off by less than
// one. Division with rounding switches a ciphertext from Q_l to Q_k; it does not change mu
// ([Scheme.Switch]).
//
// # Noise
//
// Keys are sums of the n parties' ternary secrets, so the coefficients of s are at most n, and a
// switch adds at most
//
//	R = (1 + n N)/2 + 1
//
// to the noise. Decryption is sized for noise up to 2^LogNoise after the switch, including R, for
// up to [MaxParties]. The rest is available for the noise of the ciphertext: [Scheme.MaxNoise]
// returns it at every level.
//
// # Untrusted input
//
// Lattigo's decoders read lengths from the input, allocate memory for them, and accept values that
// are not residues. Lodge does not use them. Keys and ciphertexts are encoded with package [codec]:
// the length follows from the set, residues are below their primes, and each object has one
// encoding.
//
// # Security of the sets
//
// According to package [hardness] every set has 128 bits of classical security, for samples of keys
// modulo Q P with ternary secrets. For threshold keys, t parties know their own secrets and errors;
// the other parties add a sum of ternary secrets, and errors with the full variance.
package bgv
