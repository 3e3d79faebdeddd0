// Package keygen makes the joint keys of n parties: a public key, a relinearisation key and
// rotation keys whose secret is the sum of the parties' short secrets (additive key generation
// after Mouchet et al.).
//
// Let g be the gadget, a uniform polynomials expanded from a seed that all parties tossed, s and u
// the party's secrets, and every e a fresh error. Each party contributes:
//
//	public key      p0  = -a s + e
//	rotation by r   k   = -a s + phi_r(s) g + e
//	relinearisation h0  = -u a + s g + e0,  h1 = s a + e1            (first round)
//	                k   = s H0 + (u - s) H1 + e2                     (second round)
//
// where H0 and H1 are the sums of all h0 and h1. The relinearisation key is (sum of k, H1). In the
// second round a party sends the sum of two terms that the literature sends separately, which
// reveals less.
//
// In every round, including the first round of the relinearisation key, all parties commit to their
// messages before any party opens one. A party that could choose its h0 after seeing the others
// would fix H0 to a K of its choice and read s from K s + e2. A party that could choose its p0 last
// would know the secret of the joint public key.
//
// There are two kinds of key generation, which are never mixed. The result says which kind it was.
//
// Passive. Both rounds are committed and opened. No proof shows that a share is well formed or that
// its secrets are short. A party that deviates can leak the key through the noise of later
// decryptions, and no later check detects this.
//
// Proved. Each party gives one linear-relation proof for all its shares: there are short s, u and e
// for which every equation above holds, with the same s and u in all equations. The rounds are:
// relin (h0 and h1, committed and opened), statement (committed digests of all other shares and of
// the relations of the masks), proofs (shares and responses, streamed equation by equation).
// Challenges are monomials X^(kd), which every rotation of dimension d leaves unchanged:
//
//	masks      y_s, y_u, and y_e for each equation, for V repetitions
//	statement  digests of the shares, and of the equations applied to the masks
//	challenge  w in C^V, a hash of the transcript
//	responses  z_s = y_s + w s, z_u = y_u + w u, z_e = y_e + w e, each of bounded canonical norm
//	check      the equations applied to the responses, less w times the shares, have the digests of the statement
//
// Because phi(z_s) = phi(y_s) + w phi(s), one z_s per repetition serves all equations. The
// challenge is known before the first share arrives, so a verifier stores only the sums of the
// shares. The digests bind every party to its shares before any party reveals one.
//
// Two responses to different challenges yield witnesses for twice the shares (2/(w-w') is short and
// unchanged by phi). Keys are therefore made of twice the shares: with S = 2s, the public key is (2
// p0, a), a rotation key is (2 k0, a), the relinearisation key is (4 sum of k, 2 H1), and every
// party's share of the secret is doubled. params.Set.Proved has the bounds that the proofs
// guarantee. docs/security/key-generation.md has the argument.
package keygen
