// Package popk is the n-party proof of plaintext knowledge of generalized-BFV ciphertexts (MatriGear,
// Fig. 3), with three corrections.
//
//   - Ciphertexts and masks are committed to by hash before any party reveals anything of its own. The figure lets a
//     rushing party send the negation of another's ciphertext, mask and response, which forces the sum to zero and
//     passes a check of sums.
//   - The proof is about twice the ciphertext, so the result is twice the sum of the ciphertexts and twice
//     this party's messages: shares and ciphertexts agree.
//   - Every party's proof is checked by itself, bounds and equation, and the check names a cheat. The figure checks sums.
//     What a frame alone shows, a response out of bounds say, ends the run at once: of two such cheats honest parties may
//     name different ones.
//
// A statement is a digest of all ciphertexts and a digest of each mask. Rounds: commit (echoed commitments to statements),
// open (statements, with the nonces that hid them), proofs (ciphertexts and responses, streamed). The challenge is a hash
// of all opened statements, which equals a coin toss: every party was bound to its statement, and to its nonce, before it
// saw those of others. It is known before the first ciphertext comes, and a prover bound to a digest is bound to the
// ciphertexts, so a receiver gathers sum_i w_ji ct_i as they come and keeps none of them.
//
// A mask is not sent. The verifier computes Enc(z; t) - sum_i w_i ct_i, which must have the mask's digest. Two accepted
// answers to one statement have the same ciphertexts and masks, as digests do not collide, so a witness is extracted as in
// the figure, of every party by itself.
//
// One party may prove alone (Config.Only). The others have no statement, but commit to a nonce as before: the challenge
// depends on it, so that a prover and its friends cannot try statements until one has a challenge that suits them.
//
// Prove and Verify are the same argument for a single prover and any verifier: the challenge hashes the
// prover's own name, its ciphertexts and the digests of its masks.
package popk
