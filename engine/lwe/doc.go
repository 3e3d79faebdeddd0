// Package lwe is encryption in the manner of FHEW and TFHE over one prime modulus, as threshold
// keys need it: LWE and ring ciphertexts, bootstrapped gates, and lookups of 4-bit tables. It
// follows Ajax ("Fast Threshold Fully Homomorphic Encryption without Noise Flooding", Section 4 and
// Appendix B) and, for the bootstrap, TFHE (Chillotti, Gama, Georgieva, Izabachene, 2020). The
// package has the public side: public keys ([Keys]), ciphertexts ([LWE], [Ring]), evaluation
// ([Evaluator]). Secrets are shared between parties from the beginning, and only tests hold one.
//
// # Secrets and keys
//
// R = Z[X]/(X^N+1), and Q is a prime that is 1 mod 2N. There are two secrets: z in R with
// coefficients that are differences of two bits (-1, 0, 1 with probabilities 1/4, 1/2, 1/4), and s
// in {0,1}^n. Subtracting the mask from a ciphertext gives its phase:
//
//	ring ciphertext  (a, b) in R_Q^2        b - a z
//	LWE ciphertext   (a, b) in Z_Q^(N+1)    b - <a, z>, z the vector of coefficients
//	switched         (a, b) in Z_Q^(n+1)    b - <a, s>
//
// Coefficient k of a ring ciphertext is an LWE ciphertext whose vector is a permutation of a with
// signs ([Scheme.Extract]).
//
//	public key       b = a z + e
//	rotation key     for i < n: b_r = a_r z + e_r + (-z s_i g_r for r < l, s_i g_(r-l) for l <= r < 2l),  RGSW(s_i)
//	switching key    for i < N, j < l: b = <a, s> + e + z_i g_j
//
// with g_j = 2^Drop B^j of the gadget in question. All a are expanded from one public seed by
// index; keys are the b.
//
// The paper's public key is N log Q samples of LWE, which encryption adds up with random bits: its
// security needs enough of them for the leftover hash lemma, 10^5 vectors of N words. One ring
// sample does the same work: encryption masks with a u + e1 and b u + e2 for a fresh short secret
// u. Its security is that of RLWE with the secrets z and u, twice (Lyubashevsky, Peikert, Regev,
// 2010) — the assumption that the rotation key rests on anyway — and encrypts N messages at once.
// The coefficients of a ring ciphertext under z are LWE ciphertexts under the vector z, so users
// hold, and threshold decryption opens, the same ciphertexts as in the paper.
//
// # Messages
//
// A message lies on the circle of phases, the residues modulo Q, by its encoding. p is the
// plaintext modulus, 16:
//
//	plain    m in Z_p at round(Q m/p)     sums wrap around; threshold decryption opens these
//	padded   m in [0,p) at round(Q m/2p)  lookups accept these, and return these or others
//	boolean  false at -Q/8, true at Q/8   gates accept and return these
//
// Blind rotation is negacyclic: the phase x + Q/2 gives minus what x gives. So the argument of an
// arbitrary table must stay in half of the circle, and its top bit, the padding, is 0: 4 bits of
// message take 5 of the phase. Twice a padded ciphertext is a plain one of the same message; a
// boolean one opens as the plain message p/8 or -p/8; with Q/8 added it is a padded one of p/2 or 0
// ([Scheme.Digit]).
//
// # Bootstrap
//
// Every gate and lookup uses one primitive, on an LWE ciphertext and a table:
//
//	switch keys     (0, b) - sum_ij d_ij K_ij, d_ij the digits of a_i: a ciphertext under s
//	switch moduli   c_i = round(2N a_i/Q), with the errors d_i = 2N a_i - Q c_i, and c = round((2N b - sum_i d_i/2)/Q) mod 2N
//	rotate blindly  acc = (0, X^-c v); then for each i: acc += ((X^c_i - 1) acc) * RGSW(s_i)
//	extract         coefficient 0 of acc, which is v at the phase
//
// where (a, b) * RGSW = sum of digits of a and of b times rows. v_j = f(round(p j/N)) for a table
// f, and v_j = Q/8 for the sign, of which gates are linear sums with X, Y in {-1,1}/8:
//
//	AND  X+Y-1/8     NAND -X-Y+1/8     OR X+Y+1/8    NOR -X-Y-1/8
//	XOR  2X+2Y+1/4   XNOR -2X-2Y-1/4   NOT -X, no bootstrap
//	MUX(a,b,c) = AND(a,b) + AND(-a,c) + 1/8, two bootstraps
//
// # Noise
//
// Errors of keys come from all parties: each of n contributes the variance max(sigma^2/(n-t),
// 2.1^2), so that the honest parties together contribute at least sigma^2, and all parties n times
// the variance of one ([PartyVariance]). With the total variances V of ring samples and W of the
// switching key, D = 2^Drop, and the second moments of digits and of dropped remainders
//
//	d2 = (B^2+2)/12, or 1/2 for B = 2        r2 = (D^2+2)/12, or 0 for D = 1
//
// a phase's variance is
//
//	encrypted      N V/2 + sigma^2 + N sigma^2/2                    (u, z of variance 1/2)
//	bootstrapped   n (2 l N d2 V + r2 (1 + N/2)/2)                  (half of s is 1)
//	switched       that of the input + N l d2 W + r2 N/2
//	rotated by     (2N/Q)^2 times that, + (1 + n/4)/12              (in units of 2N to the circle)
//
// # Rounding with the mean
//
// Modulus switching leaves the error sum_i d_i s_i/Q, with d_i/Q uniform in [-1/2, 1/2]. Its
// variance is (n/2)/12, as half of the s_i are 1. But the d_i are public and the mean of each s_i
// is 1/2, so the part sum_i d_i/2Q of the error is public. Centred sets subtract that part from b
// before b is rounded. The remaining error is sum_i d_i (s_i - 1/2)/Q, of variance (n/4)/12, for
// one addition a coordinate. The error of rounding b adds 1/12. Sets that shipped before do not
// subtract it, because that changes the words of results: they have (1 + n/2)/12.
//
// A lookup errs if its rotation is off by N/2p or more, and a gate if by N/4. XOR and XNOR double
// their sums and err if by N/2. In all sets, the rounding of modulus switching dominates this
// error: sqrt((1 + 232)/12) = 4.4 of 64 for lookups of T11-4. A lookup of a result fails with
// 2^-148, one of a sum of results (maxSum) under keys of 64 holders with 2^-135, a gate with less
// than 2^-8000. These are averages over ciphertexts: the d_i are public, and an attacker who picks
// among 2^64 ciphertexts the one with the largest sum of d_i^2, 1.27 times its mean, reaches 2^-110
// to 2^-117.
//
// As rounding dominates, the gadgets may be coarse: T11-4 has one digit of 23 bits for the
// rotation, whose noise of 2^35 is little next to Q/2N = 2^38, and an eighth of the forward
// transforms of T11-53.
//
// # Sets
//
//	T11-4   Q = 2^50 - 16383, the largest prime that the kernels of 52 bits serve. The default. Its bootstrapped noise,
//	        2^35 of Q/p = 2^46, suits decryption with an exact carry, which only requires noise below about Q/4p.
//	T11-53  with the paper's Q. Bootstrapped noise is 2^-30 of Q/p, as the paper's own form of decryption needs it.
//	L11-50  legacy, the predecessor of T11-4. Lookups fail with 2^-71.
//	L11-53  legacy, the paper's: 122.5 bits of security by the model.
//
// The gadget of the rotation key of T11-53 has 8 digits of 6 bits, the upper ones of the 53 bits of
// Q, as in the paper. [Set.Security] has the estimates of package [hardness] for samples under z
// and under s. The estimates are for each kind of samples separately. That samples under z of s_i
// and z s_i, and samples under s of z, may be public together is the assumption of circular
// security that all schemes of this kind make. Sets for new keys have 128 bits; legacy sets make no
// new keys ([Set.CheckNewKeys]).
//
// # Cost
//
// Expanded keys take 116 MiB for T11-4, and 522 MiB for T11-53. A bootstrap reads the whole keys,
// so an evaluator with several bootstraps to compute takes four at a time through each part of the
// keys. A step of the rotation costs 2l forward and 2 inverse transforms and 4l products of N
// words, the halves of a pair of digits multiplied and added with one reduction. With AVX-512 IFMA
// and T11-4, two thirds of a bootstrap are transforms, a seventh products with the key, a twelfth
// the key switch, and the rest digits, monomials and sums. Nothing is allocated.
//
// Everything is exact in integers, and results are the same on every machine and kernel path.
package lwe
