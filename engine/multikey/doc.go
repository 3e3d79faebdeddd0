// Package multikey computes gates on bits that are encrypted under different parties' own keys. It
// implements the scheme of Kwak, Min and Song ("Towards Practical Multi-key TFHE: Parallelizable,
// Key-Compatible, Quasi-linear Complexity", PKC 2024, Section 4 and Appendix A), in the variant of
// tfhe-go's package mktfhe, and uses that package's transforms.
//
// # Secrets and keys
//
// T = R/Z is the torus, and R = Z[X]/(X^N+1). A party has a secret s in R with coefficients in {0,
// 1}. The first n coefficients, z, form blocks of length Block. At most one coefficient of a block
// is 1, and all cases have the same probability (Lee et al., "Faster TFHE bootstrapping with block
// binary keys", 2023). The other coefficients are uniform. Two more secrets, t and r with uniform
// coefficients in {-1, 0, 1}, are erased after key generation. A phase is b + <a, z> for LWE
// ciphertexts, and c_0 + sum_i c_i s_i for ring ciphertexts of parties i = 1, ..., k.
//
// The common reference string is a vector of ring elements a that all parties expand from one
// public seed. With the gadget g_j = B^-(j+1) of each part, fresh errors e, and masks f, m that are
// expanded from a public seed of the party,
//
//	public     b_j = -s a_j + e                                         gadget Uni
//	relin      d_j = r a_j + t g_j + e,  f0_j = -s f_j + r g_j + e      gadget Uni
//	rotation   for i < n: -t m + e + z_i g_j, -t m + e + t z_i g_j      gadget Rotation: RGSW(z_i)
//	switching  for n <= i < N: -<m, z> + e + S_i g_j                    gadget Switch, S the vector of an extracted phase
//
// Only the left sides are published. In tfhe-go, t is s; in the paper it is an independent binary
// secret. Here it is ternary because of the noise ([Noise.Merged]). The library's evaluator accepts
// such keys unchanged.
//
// # Gates
//
// An [Evaluator] computes gates. The bit m is encoded as -1/8 (false) or 1/8 (true). An LWE
// ciphertext has words modulo 2^32, and names its keys by their digests ([KeyID]). A gate adds up
// its operands, which yields a ciphertext (b, a_1, ..., a_k) under the union of their parties, and
// bootstraps the sum: with everything rounded to multiples of 1/2N,
//
//	rotate   for each party: A_i = RLEV(X^-<a_i, z_i>), gadget Lev, in n/Block steps from the trivial one of 1
//	merge    C = (1/8 (1 + X + ... ) X^-b, 0, ..., 0); then for each party C <- A_i (*) C, the generalized external
//	         product of the paper, which the public parts and the relinearisation key of party i bring back under s
//	extract  the constant coefficient, an LWE ciphertext under all coefficients of s_1, ..., s_k
//	switch   for each party: the coordinates n to N-1 to z
//
// Rounding the masks a_i with public errors d_i moves the phase by <d_i, z_i>, and each coordinate
// of z_i has the mean p = 1/(Block+1). A set that is Centred adds p times the sum of all errors to
// b before b is rounded. This leaves <d_i, z_i - p>, where each coordinate has the variance
// p(1-p)/12 instead of p/12: two thirds for blocks of two.
//
// Nothing depends on parties that are not in the ciphertext. The parts of single parties run on any
// number of goroutines.
//
//	AND X+Y-1/8   NAND -X-Y+1/8   ANDNOT X-Y-1/8   NOTAND -X+Y-1/8    XOR  2X+2Y+1/4
//	OR  X+Y+1/8   NOR  -X-Y-1/8   ORNOT  X-Y+1/8   NOTOR  -X+Y+1/8    XNOR -2X-2Y-1/4
//	NOT -X, no bootstrap          MUX(a, b, c) = AND(a, b) + NOTAND(a, c) + 1/8, two bootstraps and one switch
//
// tfhe-go's XOR and XNOR have 1/8 instead of 1/4, and so half the margin for twice the noise.
//
// # Randomness and floating point
//
// This package generates keys and encryptions itself, from package [sample]'s streams. It does not
// use the samplers of tfhe-go: they read the operating system's generator in their constructors, so
// that nothing is reproducible; its Gaussian is a ziggurat on 24-bit floats, whose time depends on
// the samples and whose tail ends at the resolution of a float; and its block sampler indexes by
// the secret. On secret data the library only computes the exact product of a uniform polynomial
// and a binary one, by a transform of ten-bit pieces whose instructions do not depend on the data.
//
// Evaluation uses transforms of double precision. Their error is part of the noise model
// (transformError). It may differ in the last bits between processors, so two evaluators agree on
// bits but not on ciphertexts.
//
// # Security
//
// The scheme relies on the LWE and ring LWE assumptions, and on circular security: samples under z
// of s, under s of r, under r of t, and under t of z and z t are public together. [Set.Security]
// holds the estimates of package [hardness], including guesses of whole blocks of z. Sets for new
// keys have 128 bits of security, and their gates fail with probability at most 2^-128; legacy sets
// (M11-2 to M11-32) generate no new keys. Failure probabilities are averages over ciphertexts
// (package [lwe] describes the gain from grinding). Bad keys of a party spoil the results in which
// it takes part, and nothing else. The phase of a result reveals its noise, which depends on all
// secrets, so phases must be opened by a protocol that hides it. [Secret.Phase] is for such a
// protocol and for tests.
package multikey
