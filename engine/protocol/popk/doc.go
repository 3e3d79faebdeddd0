// Package popk is the n-party proof of plaintext knowledge of generalized-BFV ciphertexts (MatriGear,
// Fig. 3), with three corrections.
//
//   - Ciphertexts and masks are committed by hash before any party reveals its own (rounds commit and
//     open). The figure lets a rushing party send the negation of another's ciphertext, mask and response,
//     which forces the sum to zero and passes a check of sums.
//   - The proof is about twice the ciphertext, so the result is twice the sum of the ciphertexts and twice
//     this party's messages: shares and ciphertexts agree.
//   - Every party's responses are bounded on their own, and a cheat is named: either each party's equation is checked
//     by itself, or, when the joint equation fails, it is checked again party by party on the spooled messages.
//
// Rounds: commit (echoed hash commitments), open (ciphertexts and masks, streamed), respond (responses, streamed). The
// challenge is a hash of everything opened, which equals a coin toss because every party was bound before it saw the
// others.
//
// A run of few ciphertexts holds those of every party and checks each proof by itself. Then a mask need not be sent: its
// digest is opened in its place, and the verifier computes Enc(z; t) - sum_i w_i ct_i, which must have this digest. Two
// accepted answers to one statement have the same masks, as digests do not collide, so a witness is extracted as in the
// figure, of every party by itself. A run of many ciphertexts folds everything into running sums, as the figure does, and
// has a further round, blame, only on failure.
//
// Prove and Verify are the same argument for a single prover and any verifier: the challenge hashes the
// prover's own name, its ciphertexts and the digests of its masks.
package popk
