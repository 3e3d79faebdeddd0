// Package ot implements correlated oblivious transfer between two parties, as pure computation. For
// a batch, the receiver holds choice bits x_j and the sender additive correlations d_j in Z_2^k, k
// <= 64. They end with shares of the products,
//
//	u_j + v_j = x_j d_j mod 2^k.
//
// The modulus may also be another number m below 2^61 (residues.go). Then 128 bits of the hash are
// reduced modulo m, which is 2^-67 from uniform.
//
// Extension is that of Ishai, Kilian, Nissim and Petrank (Extending oblivious transfers
// efficiently, CRYPTO 2003) with the consistency check of Keller, Orsini and Scholl (Actively
// secure OT extension with optimal overhead, CRYPTO 2015). The check follows the 2022 revision of
// their paper (ePrint 2015/546, Section 4), made after Roy (SoftSpokenOT, CRYPTO 2022, Section 4
// and Appendix D) showed that a lemma of the first version is false. The names here are the roles
// in the extension; in the 128 base transfers the roles are swapped.
//
// The flights, with R the receiver and S the sender:
//
//	R -> S  offer      one point, the beginning of the base transfers (base.go)
//	S -> R  reply      128 points; S has chosen s in {0,1}^128, and holds the key that s_i selects from each of R's pairs
//	R -> S  extension  for chunks of choices: 128 columns t_i + PRG(key_i1) + x, and a proof of consistency (check.go)
//	S -> R  correction k bits for each transfer, when S knows d_j, which may depend on others
//
// S holds rows q_j = t_j + x_j s, R holds t_j. With the hash H of hash.go, w0 = H(j, q_j) and w1 =
// H(j, q_j + s), S sends w0 + d_j - w1 and keeps u_j = -w0; R has H(j, t_j), which is w0 or w1, and
// adds the correction if x_j = 1.
//
// # Security
//
// If both parties follow the protocol, S learns nothing about x, and R learns nothing about d
// except its shares. The base transfers rely on computational Diffie-Hellman on edwards25519 in the
// random oracle model. Extension relies on AES-256 in counter mode and on fixed-key AES as a random
// permutation.
//
// The check is on the columns. For a challenge that follows from all earlier messages (Fiat and
// Shamir), R opens a universal hash of x and of each t_i, and S compares. By the argument of
// Section 4 of that revision, with a hash of collision probability e, a receiver whose columns hold
// different x passes with probability at most 2^-c + e if it has to guess c bits of s. It then
// knows those bits of s, which leaves 128-c; here e < 2^-118 for a chunk. The argument assumes
// ideal base transfers, and ours are not proved secure against active adversaries. So we do not
// claim active security: the check detects a faulty or crude receiver before any of S's inputs are
// used. A malicious sender can send wrong corrections, which give wrong shares only where x_j = 1.
//
// # Use of randomness
//
// An ID identifies the pair of parties, the direction and the session, and is part of every key,
// challenge and permutation. Transfers are numbered from 0 through all chunks, and the number is
// the tweak of the hash. A batch returns each transfer once, in order. Wipe erases seeds, keys, s
// and rows; a row is also erased when it is used.
package ot
