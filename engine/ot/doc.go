// Package ot is correlated oblivious transfer between two parties, as pure computation: of a batch, the receiver holds
// choice bits x_j and the sender additive correlations d_j in Z_2^k, k <= 64, and they end with shares of the products,
//
//	u_j + v_j = x_j d_j mod 2^k.
//
// Or modulo another number m below 2^61 (residues.go), to which 128 bits of the hash are reduced: 2^-67 from uniform.
//
// Extension is that of Ishai, Kilian, Nissim and Petrank (Extending oblivious transfers efficiently, CRYPTO 2003) with
// the consistency check of Keller, Orsini and Scholl (Actively secure OT extension with optimal overhead, CRYPTO 2015)
// as their paper has it since 2022 (ePrint 2015/546, section 4), after Roy (SoftSpokenOT, CRYPTO 2022, section 4 and
// appendix D) showed that a lemma of the first version is false. Roles in extension are those of the names here; in
// the 128 base transfers they are swapped.
//
// The flights, with R the receiver and S the sender:
//
//	R -> S  offer      one point, the beginning of the base transfers (base.go)
//	S -> R  reply      128 points; S has chosen s in {0,1}^128, and holds of each of R's pairs of keys the one s_i names
//	R -> S  extension  for chunks of choices: 128 columns t_i + PRG(key_i1) + x, and a proof of consistency (check.go)
//	S -> R  correction k bits for each transfer, when S knows d_j, which may depend on others
//
// S holds rows q_j = t_j + x_j s, R holds t_j. With the hash H of hash.go, w0 = H(j, q_j) and w1 = H(j, q_j + s), S
// sends w0 + d_j - w1 and keeps u_j = -w0; R has H(j, t_j), which is w0 or w1, and adds the correction if x_j = 1.
//
// # Security
//
// Between parties that follow the protocol, S learns nothing of x, and R nothing of d beyond its shares: the base
// transfers rest on computational Diffie-Hellman on edwards25519 in the random oracle model, extension on AES-256 in
// counter mode and on fixed-key AES as a random permutation.
//
// The check is on the columns: for a challenge that follows from everything before (Fiat and Shamir), R opens a
// universal hash of x and of each t_i, and S compares. By the argument of section 4 of that revision, with a hash of
// collision probability e a receiver whose columns hold different x passes with probability at most 2^-c + e if c bits
// of s would have to be guessed, and what it then knows of s are those bits, which leaves 128-c; here e < 2^-118 for a
// chunk. The argument stands on ideal base transfers, and ours are not proved against active adversaries. So we claim
// no active security: the check finds a faulty or crude receiver before any of S's inputs are used. A malicious sender
// can send wrong corrections, which give wrong shares where x_j = 1 only.
//
// # Use of randomness
//
// An ID names the pair of parties, the direction and the session, and goes into every key, challenge and permutation;
// transfers are numbered from 0 through all chunks, and the number is the tweak of the hash. A batch gives out each
// transfer once, in order. Seeds, keys, s and rows are erased by Wipe, rows already when they are given out.
package ot
