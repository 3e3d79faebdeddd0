// Package bgvdecrypt is threshold decryption of BGV and BFV ciphertexts (package bgv) by the t+1 parties of a quorum of
// those that hold keys of package bgvkeys, to one recipient, in two modes.
//
// Masks: chosen coefficients, each of which is a ciphertext of learning with errors, are opened by the exact form of
// package decrypt. Nothing is learnt but plaintexts. Each costs a record of package masks.
//
// Flooding: whole ciphertexts; the answers of the parties have noise added that is so much larger than that of the
// ciphertext that nearly nothing of that is seen. It is by far cheaper for a coefficient, and wants a large modulus, a
// count of decryptions, and keys and ciphertexts whose noise is bounded.
//
// # Coefficients
//
// Select switches a ciphertext to level 0, modulo q_0. With c_0 + c_1 s = (q_0 mu + d)/T + e, |d| < T, coefficient k is
// b - <a, s> for b = c_0k and the coefficients of -c_1 in the order of the product, of dimension N. Parties have the
// shares lambda_i s_i modulo q_0 of their quorum (Additive), and package decrypt opens mu, with eta = Phi T
// (masks.OddKind). Messages turns mu into m = -mu Q_l modulo T and takes the ciphertext's scale off. It never fails
// while the noise of the ciphertext, at its level l, is at most bgv.Scheme.MaxNoise(l, 0, n), which is 2^LogNoise less
// R, times Q_l/q_0. q_0 is so much larger than T 2^LogNoise that masks have two to four bits.
//
// Who wants slots decrypts all coefficients of a ciphertext, or has the message moved to a few with Lattigo first.
//
// # Flooding
//
// At level l = FloodLevel of the set, with the modulus Q_l, and for each ciphertext, party i of the quorum answers
//
//	d_i = lambda_i s_i c_1 + f_i + sum_{j>i} z_ij - sum_{j<i} z_ji   modulo Q_l
//
// with f_i uniform in [-E, E] for each coefficient (sample.Flood), and z_ij uniform modulo Q_l, which i and j expand
// from a seed that i has sent j in the flight before. The recipient decodes c_0 + sum d_i, which is the phase plus sum
// f_i. E is the largest with which that works (NewFlooding).
//
// What t parties and the recipient see is c_0 + sum d_i, less what they add themselves: m/T + e + f for the sum f of
// the honest parties' floods, of which there is one at least. Without e that says nothing but m. e moves it by |e| <= B
// = 2^LogNoise, and so the statistical distance is at most B/(2E+1) for a coefficient, N B/(2E+1) for a ciphertext and
// 2^LogDecryptions as much for all that may be decrypted under a key: at most 2^-40, or NewFlooding refuses. So whoever
// runs this keeps a ledger, durably: every Key once, by one quorum, and no more than 2^LogDecryptions. The answers of
// two runs for one Key have two floods of one noise, which count as two decryptions; anything that asks often enough
// finds the mean.
//
// The shares of zero are not for decoration. A holder of a share outside the quorum knows a linear relation between
// s_i c_1 and s c_1 with coefficients that are large modulo Q_l, or small fractions, and the noise of s c_1 comes with
// those: with three parties one answer would tell the noise modulo 3, whatever the flood
// (TestSharesOfZeroHideTheNoise). With them every answer is uniform, and what all honest parties answer together is
// their phase and their floods.
//
// # What an active adversary can do
//
// Parties that follow the protocol are assumed. Whoever does not can change what the recipient gets by a number that it
// likes, in both modes, and nobody can be named; the parties' messages begin with a digest of what they decrypt, so
// that a party with other ciphertexts, parameters or another recipient is blamed (CheckAgreement), as is the sender of
// what does not decode. Where one leaves its flood away, those of the others hide the noise.
//
// Decryption is an oracle. Whoever may choose ciphertexts that are no encryptions (with e_1 s of the size of Q_l/T,
// say) learns of s whether the message comes out right, in either mode; and under a flood more, long before that: noise
// beyond MaxNoise(l, FloodLevel, n) is not hidden, and if it has a multiple of s in it, s is not. So ciphertexts come
// from those who are trusted to encrypt and from circuits whose noise is known, and only they are decrypted; the same
// goes for the keys (package bgvkeys, Security). A plaintext that depends on noise is as good as the noise.
//
// # Cost
//
// For one coefficient of 64, a party sends 4 to 8 bytes in all and takes 5 to 55 us on one core, most of it for the
// switch to level 0 and the inner product of N terms; and before, for its mask, 70 bytes and 3 us a peer (package
// masks). For one ciphertext under a flood it sends N log2 Q_l bits: 113 kB in 2 ms with the set B13-17, 326 kB in 8 ms
// with B14-31; the recipient takes 1 and 3 ms (BenchmarkCoefficients, BenchmarkFlooding).
package bgvdecrypt
