// Package decrypt is threshold decryption of LWE ciphertexts without flooding (Ajax, section 4.3 and figure 10), for a
// batch of ciphertexts, by the t+1 parties of a quorum, to one recipient. The mask goes over the noise alone, offline
// it is made by package masks, and each record of it serves one ciphertext.
//
// A ciphertext (a, b) of dimension N modulo Q has the phase b - <a, s> = round(Q m/p) + e. The parties hold additive
// shares s_i of s modulo Q. Everyone computes, of its own,
//
//	u_0 = b - <a, s_0>,  u_i = -<a, s_i>        modulo Q, in [0, Q)
//	u'_i = floor((eta u_i + Q/2)/Q) mod eta     with eta = Phi p, a power of two
//
// and these are shares of Phi m + e' modulo eta. With n = t+1 parties
//
//	|e'| <= (eta/Q)(|e| + p) + n/2,
//
// as each u'_i is rounded by 1/2 at most, and p is more than the encoding of m is off whichever way it rounds. Where Q
// = eta, nothing is switched. All this is in integers of 128 bits.
//
// # The paper's form
//
// With shares r_i modulo eta of a mask r in [-Phi/2, Phi/2):
//
//	masked  v_i = (u'_i + r_i) mod Phi to party 0, which has v = e' + r, centred in [-Phi/2, Phi/2)
//	answer  w_i = u'_i + r_i - [i=0] v mod eta to the recipient, which adds them up to Phi m
//
// unless e' + r leaves that interval, with the probability |e'|/Phi: then the plaintext is off by one in the direction
// of e'. FailureProbability says how often. The recipient of such a plaintext, if it knows what it should be, learns
// the sign of a noise that was large. Phi is as large as Q allows (PaperKind).
//
// # The exact form
//
// Phi need only be more than twice |e'|, and eta is the least power of two for which it is (ExactKind), so that there
// are few bits. With shares of rho in [0, Phi), and 0 <= e' + Phi/2 < Phi:
//
//	masked  v_i = (u'_i + [i=0] Phi/2 + rho_i) mod Phi to all, who have v = e' + Phi/2 + rho - Phi c
//	level   c = [v < rho], by products of shared bits: what each opens is masked by a triple
//	carry   c + d over GF(2), for a shared bit d of which there are shares modulo p
//	answer  w_i = u'_i + [i=0] (Phi/2 - v) + rho_i - Phi c_i mod eta to the recipient
//
// where c_i = [i=0] y + (1-2y) d_i modulo p for the y that carry opens. It never fails while |e'| < Phi/2, and beyond
// that it gives the plaintext that the phase is nearest to, as decryption with the key does; e' = -Phi/2 rounds up and
// Phi/2 too. (Which is nearest follows e', the noise after the switch.) A pair of bits of rho is compared without a
// message, as the record has their product; for 6 bits that leaves two levels.
//
// # Odd plaintext moduli
//
// The exact form serves an odd p too, with eta = Phi p (ExactOddKind, masks.OddKind). Phases are (Q m + d)/p + e then,
// with |d| < p: those of BFV, and those of schemes that put p^-1 m modulo Q into a ciphertext, which is (Q mu + m)/p
// for mu = -m/Q mod p. mu is what is opened. The p in the bound on |e'| is 1.
//
// # What is learnt by whom
//
// Between parties that follow the protocol, up to t of the quorum together with anybody but the recipient learn
// nothing but the sizes: v is uniform, and so is everything that levels and carry open. With the recipient they learn
// the plaintexts, and in the paper's form what a failure tells. A plaintext may itself depend on noise; what is
// decrypted is for the caller to decide.
//
// A mask under two ciphertexts gives away the difference of their noises, and under one whose shares came from another
// quorum, that of the shares: linear equations in the key. So masks are spent when a run starts, whatever becomes of
// it, and a ciphertext whose decryption failed takes another. Messages begin with a digest of what the parties must
// agree on: session, parameters, records and recipient; that the ciphertexts are the same is for the session's terms
// to say.
//
// Against parties that do not follow it, the protocol gives no promise: whoever changes a message changes the
// plaintext by what it likes, and who sees whether it did anything may learn the noise. The recipient notices sums
// that are no multiple of Phi, and nobody can be named.
package decrypt
