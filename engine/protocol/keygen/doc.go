// Package keygen makes the joint keys of n parties: a public key, a relinearisation key and rotation keys
// whose secret is the sum of the parties' short secrets (additive key generation after Mouchet et al.).
//
// With g the gadget, a uniform polynomials expanded from a seed that all parties tossed together, s and u
// the party's secrets and every e a fresh error:
//
//	public key      p0  = -a s + e
//	rotation by r   k   = -a s + phi_r(s) g + e
//	relinearisation h0  = -u a + s g + e0,  h1 = s a + e1            (first round)
//	                k   = s H0 + (u - s) H1 + e2                     (second round)
//
// where H0 and H1 are the sums of all h0 and h1; the relinearisation key is (sum of k, H1). In the second
// round a party sends the sum of the two terms that the literature sends apart: it says less.
//
// Every message of every round, the first of the relinearisation key included, is committed before any is
// opened. A party that could choose its h0 after the others' would fix H0 to a K of its choice and read s
// from K s + e2; one that chose its p0 last would own the joint public key.
//
// There are two kinds of key generation, which are never mixed; the result says which one it was.
//
// Passive. Both rounds are committed and opened. Nothing proves that a share is well formed or its secrets short: a party
// that deviates can leak the key through the noise of later decryptions, and no later check sees it.
//
// Proved. One linear-relation proof of each party covers all its shares: there are short s, u and e with which every
// equation above holds, the same s and u in all of them. Rounds: relin (h0 and h1, committed and opened), statement
// (committed digests of all other shares and of the relations of the masks), proofs (shares and responses, streamed equation
// by equation). Challenges are monomials X^(kd), which every rotation of dimension d fixes:
//
//	masks      y_s, y_u, and y_e for each equation, for V repetitions
//	statement  digests of the shares, and of the equations applied to the masks
//	challenge  w in C^V, a hash of the transcript
//	responses  z_s = y_s + w s, z_u = y_u + w u, z_e = y_e + w e, each of bounded canonical norm
//	check      the equations applied to the responses, less w times the shares, have the digests of the statement
//
// As phi(z_s) = phi(y_s) + w phi(s), one z_s of a repetition serves all equations. The challenge is known before the first
// share comes, so a verifier keeps the sums of the shares and nothing else; every party is bound to its shares by their
// digests before anyone reveals one.
//
// Two responses to different challenges give witnesses of twice the shares (2/(w-w') is short and phi fixes it), so keys
// are made of those: with S = 2s, the public key is (2 p0, a), a rotation key (2 k0, a), the relinearisation key
// (4 sum of k, 2 H1), and every party's share of the secret is doubled. The bounds that proofs give are those of
// params.Set.Proved. docs/security/key-generation.md has the argument.
package keygen
