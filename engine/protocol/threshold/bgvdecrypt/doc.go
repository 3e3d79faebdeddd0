// Package bgvdecrypt implements threshold decryption of BGV and BFV ciphertexts (package bgv) to
// one recipient, by a quorum of t+1 of the parties that hold keys of package bgvkeys. It has two
// modes.
//
// Masks: the exact form of package decrypt opens chosen coefficients, each of which is an LWE
// ciphertext. It reveals only plaintexts. Each coefficient costs a record of package masks.
//
// Flooding: the quorum decrypts whole ciphertexts. The parties add noise to their answers that is
// much larger than the noise of the ciphertext and hides it almost completely. This mode is far
// cheaper per coefficient. It needs a large modulus, a count of decryptions, and bounds
// on the noise of keys and ciphertexts.
//
// # Coefficients
//
// Select switches a ciphertext to level 0, modulo q_0. With c_0 + c_1 s = (q_0 mu + d)/T + e, |d| <
// T, coefficient k is b - <a, s> for b = c_0k, where a has the coefficients of -c_1 in the order of
// the product, and dimension N. Parties hold the shares lambda_i s_i modulo q_0 of their quorum
// (Additive), and package decrypt opens mu, with eta = Phi T (masks.OddKind). Messages computes m =
// -mu Q_l modulo T and removes the ciphertext's scale. This never fails while the noise of the
// ciphertext at its level l is at most bgv.Scheme.MaxNoise(l, 0, n), which is 2^LogNoise - R, times
// Q_l/q_0. q_0 exceeds T 2^LogNoise by enough that masks have only two to four bits.
//
// A client that needs slots decrypts all coefficients of a ciphertext, or first moves the message
// to a few coefficients with Lattigo.
//
// # Flooding
//
// At level l = FloodLevel of the set, with the modulus Q_l, and for each ciphertext, party i of the
// quorum answers
//
//	d_i = lambda_i s_i c_1 + f_i + sum_{j>i} z_ij - sum_{j<i} z_ji   modulo Q_l
//
// Each coefficient of f_i is uniform in [-E, E] (sample.Flood). The z_ij are uniform modulo Q_l; i
// and j expand them from a seed that i sent to j in the flight before. The recipient decodes c_0 +
// sum d_i, which is the phase plus sum f_i. E is the largest bound for which decoding works
// (NewFlooding).
//
// The view of t parties and the recipient is c_0 + sum d_i minus their own contributions: m/T + e +
// f for the sum f of the honest parties' floods, of which there is at least one. Without e this
// reveals only m. e shifts it by |e| <= B = 2^LogNoise. So the statistical distance is at most
// B/(2E+1) for a coefficient, N B/(2E+1) for a ciphertext, and 2^LogDecryptions times that for all
// decryptions that a key permits. If this exceeds 2^-40, NewFlooding returns an error. So the
// caller must keep a durable ledger: every Key is decrypted once, by one quorum, and at most
// 2^LogDecryptions Keys in total. The answers of two runs for one Key contain two floods and the
// same noise, which counts as two decryptions; with enough answers a client can average the floods
// away.
//
// The shares of zero are essential. The holder of a share outside the quorum knows a linear
// relation between s_i c_1 and s c_1 whose coefficients are large modulo Q_l, or small fractions,
// and they multiply the noise of s c_1 too. With three parties a single answer would reveal the
// noise modulo 3, whatever the flood (TestSharesOfZeroHideTheNoise). With shares of zero every
// answer is uniform, and the sum of all honest parties' answers contains only their part of the
// phase and their floods.
//
// # Active adversaries
//
// The protocol assumes parties that follow it. A party that deviates can, in both modes, add a
// number of its choice to the recipient's result, and cannot be identified. The parties' messages
// begin with a digest of the decryption, so a party with other ciphertexts, other parameters or
// another recipient is blamed (CheckAgreement), and so is the sender of a message that does not
// decode. If one party omits its flood, the floods of the others hide the noise.
//
// Decryption is an oracle. An adversary that can choose ciphertexts that are not encryptions (with
// e_1 s of the size of Q_l/T, for example) learns about s from whether the message is correct, in
// either mode. With flooding it learns more, and much earlier: noise beyond MaxNoise(l, FloodLevel,
// n) is not hidden, and neither is s if this noise contains a multiple of s. So decrypt only
// ciphertexts from clients that are trusted to encrypt, and from circuits whose noise is known; the
// same applies to the keys (package bgvkeys, Security). A plaintext that depends on noise is as
// sensitive as the noise.
//
// # Cost
//
// For one coefficient of 64, a party sends 4 to 8 bytes in total and computes for 5 to 55 us on one
// core, most of it for the switch to level 0 and the inner product of N terms. Its mask costs 70
// bytes and 3 us for each peer in advance (package masks). For one ciphertext with flooding a party
// sends N log2 Q_l bits: 113 kB in 2 ms with the set B13-17, 326 kB in 8 ms with B14-31. The
// recipient needs 1 and 3 ms (BenchmarkCoefficients, BenchmarkFlooding).
package bgvdecrypt
