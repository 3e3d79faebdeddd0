// Package popk is the n-party proof of plaintext knowledge of generalized-BFV ciphertexts (MatriGear,
// Fig. 3), with three corrections.
//
//   - Ciphertexts and masks are committed by hash before any party reveals its own (rounds commit and
//     open). The figure lets a rushing party send the negation of another's ciphertext, mask and response,
//     which forces the sum to zero and passes a check of sums.
//   - The proof is about twice the ciphertext, so the result is twice the sum of the ciphertexts and twice
//     this party's messages: shares and ciphertexts agree.
//   - Every party's responses are bounded on their own, and when the joint equation fails it is checked
//     again party by party on the spooled messages, which names the cheat.
//
// Rounds: commit (echoed hash commitments), open (ciphertexts and masks, streamed and folded into running
// sums), respond (responses, streamed), and, only on failure, blame. The challenge is a hash of everything
// opened, which equals a coin toss because every party was bound before it saw the others.
//
// Prove and Verify are the same argument for a single prover and any verifier: the challenge hashes the
// prover's own name and its ciphertexts and masks.
package popk
