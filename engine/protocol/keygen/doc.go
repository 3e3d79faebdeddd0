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
// Key generation is passively secure: nothing proves that a share is well formed or its secrets short. A
// party that deviates can leak the key through the noise of later decryptions, and no later check sees it.
// Names, results and documentation say "passive" until shares are proved.
package keygen
