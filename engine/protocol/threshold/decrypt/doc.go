// Package decrypt implements threshold decryption of LWE ciphertexts without flooding (Ajax,
// Section 4.3 and Figure 10). The t+1 parties of a quorum decrypt a batch of ciphertexts to one
// recipient. The mask covers only the noise. Package masks makes the masks offline, and each mask
// record serves one ciphertext.
//
// A ciphertext (a, b) of dimension N modulo Q has the phase b - <a, s> = round(Q m/p) + e. The
// parties hold additive shares s_i of s modulo Q. Each party computes locally
//
//	u_0 = b - <a, s_0>,  u_i = -<a, s_i>        modulo Q, in [0, Q)
//	u'_i = floor((eta u_i + Q/2)/Q) mod eta     with eta = Phi p, a power of two
//
// These are shares of Phi m + e' modulo eta. With n = t+1 parties
//
//	|e'| <= (eta/Q)(|e| + p) + n/2,
//
// because rounding changes each u'_i by at most 1/2, and the encoding of m is off by less than p,
// whichever way it rounds. If Q = eta, there is no switch. The code computes all this in 128-bit
// integers.
//
// # The paper's form
//
// With shares r_i modulo eta of a mask r in [-Phi/2, Phi/2):
//
//	masked  v_i = (u'_i + r_i) mod Phi to party 0, which has v = e' + r, centred in [-Phi/2, Phi/2)
//	answer  w_i = u'_i + r_i - [i=0] v mod eta to the recipient, which adds them up to Phi m
//
// This fails if e' + r leaves that interval, with probability |e'|/Phi: then the plaintext is off
// by one in the direction of e'. FailureProbability returns the rate. If the recipient of such a
// plaintext knows the correct one, it learns the sign of a large noise. Phi is as large as Q allows
// (PaperKind).
//
// # The exact form
//
// Here Phi need only exceed twice |e'|. ExactKind chooses eta as the least power of two that
// satisfies this, so that few bits are compared. With shares of rho in [0, Phi), and 0 <= e' +
// Phi/2 < Phi:
//
//	masked  v_i = (u'_i + [i=0] Phi/2 + rho_i) mod Phi to all, who have v = e' + Phi/2 + rho - Phi c
//	level   c = [v < rho], by products of shared bits, whose opened factors a triple masks
//	carry   c + d over GF(2), for a shared bit d that is also shared modulo p
//	answer  w_i = u'_i + [i=0] (Phi/2 - v) + rho_i - Phi c_i mod eta to the recipient
//
// where c_i = [i=0] y + (1-2y) d_i modulo p for the y that carry opens. The exact form never fails
// while |e'| < Phi/2. Beyond that it returns the plaintext nearest to the phase, as decryption with
// the key does; e' = -Phi/2 and e' = Phi/2 both round up. (Nearest is measured by e', the noise
// after the switch.) The parties compare a pair of bits of rho without a message, because the
// record contains the product of the pair; for 6 bits two levels remain.
//
// # Odd plaintext moduli
//
// The exact form also supports an odd p, with eta = Phi p (ExactOddKind, masks.OddKind). The phases
// then are (Q m + d)/p + e with |d| < p. BFV has such phases, and so do schemes that put p^-1 m
// modulo Q into a ciphertext: this is (Q mu + m)/p for mu = -m/Q mod p, and the parties open mu. In
// the bound on |e'|, 1 replaces p.
//
// # Security
//
// If all parties follow the protocol, up to t of the quorum together with anyone except the
// recipient learn only the sizes: v is uniform, and so is everything that levels and carry open.
// Together with the recipient they learn the plaintexts and, in the paper's form, the leakage of
// failures. A plaintext may itself depend on noise; the caller must decide which ciphertexts may be
// decrypted.
//
// Two ciphertexts under one mask reveal the difference of their noises. Shares of two quorums under
// one mask reveal the difference of the shares. Both are linear equations in the key.
// So a run spends its masks when it starts, whatever its outcome, and a ciphertext whose decryption
// failed needs another mask. Messages begin with a digest of everything on which the parties must
// agree: session, parameters, records and recipient. The session's terms must ensure that the
// ciphertexts are the same.
//
// The protocol gives no guarantee against parties that deviate. A party that changes a message
// changes the plaintext by an amount of its choice, and a party that sees whether this had an
// effect may learn the noise. The recipient notices sums that are not multiples of Phi, but the
// cheating party cannot be identified.
package decrypt
