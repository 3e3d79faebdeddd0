// Package popk is the n-party proof of plaintext knowledge of generalized-BFV ciphertexts
// (MatriGear, Fig. 3), with three corrections.
//
//   - All parties commit to their ciphertexts and masks by hash before any party reveals a ciphertext
//     or mask. The figure lets a rushing party send the negation of another party's ciphertext, mask
//     and response, which forces the sum to zero and passes a check of sums.
//   - The proof is about twice the ciphertext. The result is therefore twice the sum of the ciphertexts
//     and twice this party's messages, so that shares and ciphertexts agree.
//   - Every party's proof is verified separately, bounds and equation, so that a failure identifies the
//     cheating party. The figure checks sums. A fault that a single frame shows, such as a response out
//     of bounds, ends the run at once. If two parties cheat this way, honest parties may blame different
//     ones.
//
// A statement is a digest of all ciphertexts and a digest of each mask. The rounds are: commit
// (echoed commitments to statements), open (statements and the nonces that hid them), and proofs
// (ciphertexts and responses, streamed). The challenge is a hash of all opened statements. It is as
// good as a coin toss, because every party was bound to its statement and nonce before it saw those
// of the other parties. Receivers know the challenge before the first ciphertext arrives, and a
// digest binds the prover to its ciphertexts. A receiver therefore accumulates sum_i w_ji ct_i as
// ciphertexts arrive and does not store them.
//
// Masks are not sent. The verifier computes Enc(z; t) - sum_i w_i ct_i and compares its digest with
// the mask's. Two accepting responses to one statement belong to the same ciphertexts and masks,
// because digests do not collide, so a witness can be extracted as in the figure, for each party
// separately.
//
// A single party may prove (Config.Only). The other parties have no statement but still commit to a
// nonce. The challenge depends on these nonces, so that a prover and its accomplices cannot try
// statements until they find one with a favourable challenge.
//
// Prove and Verify implement the same argument for a single prover and any verifier: the challenge
// hashes the prover's name, its ciphertexts and the digests of its masks.
package popk
