// Package bgvkeys generates threshold keys for BGV and BFV: n parties obtain Shamir shares of
// degree t of a secret s that no party ever holds, 2t < n, and the matching public, relinearisation
// and rotation keys for users of Lattigo (package bgv). There is no trusted dealer.
//
// # The protocol
//
// Each party samples a ternary secret and the errors of all samples of the keys, and deals shares
// of them modulo every prime of Q P (Damgard and Nielsen, CRYPTO 2007; the parties that follow the
// dealer obtain pseudorandom shares, see package share). s is the sum of the secrets, and a
// sample's error is the sum of the parties' errors. The rest is linear. The parties compute their
// shares of
//
//	-a s + e + message,   the message P s for rotations (and s(X^(1/g)) in the place of the first s), P s^2 for products
//
// and send them to all. The square of a share of s is a share of s^2 of degree 2t. So the samples
// with s^2, modulo the primes where it occurs, have errors that were dealt with degree 2t. These
// errors make their shares uniform apart from the opened sample, so no multiplication protocol is
// needed. All other shares have degree t.
//
// The flights: a coin for the seed of the reference string; to each party a seed and the digest of
// the shares that it will be sent; a coin; shares and announced polynomials; complaints; the shares
// of the keys; the digest of the keys. Each coin takes two flights, and an echo follows every
// broadcast.
//
// Errors of a party have variance max(sigma^2/(n-t), 2.1^2), so that the errors of the n-t honest
// parties together have variance at least sigma^2 (lwe.PartyVariance). Package sample draws them.
//
// # Why not Lattigo's package multiparty
//
// Its protocols are additive: no check covers the key made from a party's share, so a wrong one is
// not detected and the cheating party is not identified. Its two rounds for relinearisation keys
// need commitments against parties that wait for the others' messages. Its Thresholdizer deals
// shares that are not verified. Its samplers use floats of a normal distribution and read the
// operating system's randomness directly. Its decoders assume trusted bytes (package bgv). This
// package uses only its types, for users.
//
// # Security
//
// The protocol is secure against t parties that follow it and pool their views: any t shares of a
// dealt or opened value are uniform, and the opened keys are LWE samples under s. In addition, a
// party that deviates can
//
//   - deal a secret that is not ternary, large errors, or different ones modulo different primes.
//     No check detects this. The keys are noisier than they should be, or useless. Decryption under
//     masks still reveals only plaintexts, which may be wrong. Decryption by flooding hides only
//     while noises are within the bound for which the flood was made: with keys whose noise is
//     deliberately large, every such decryption reveals a little about noises, and hence about s.
//     So use flooding only if the parties are known to have followed this protocol.
//   - deal shares that do not lie on a polynomial of the degree. A random combination of everything
//     that it dealt, modulo each prime, detects this with probability 1-2/q; the dealer was bound
//     to all of it before the coin. The receiver of a wrong share and the dealer blame each other,
//     and others suspect both, unless more than t parties complain.
//   - open a wrong share of the keys. All parties hold all shares of each row, n of degree t (2t
//     for s^2). Each party combines them with weights of its own. A party whose combination does
//     not lie on the polynomial is blamed if no other set of at most t parties can explain the
//     fault (share.Locate), that is, with f liars, if f + t < n-t (n-2t for s^2). Otherwise all
//     parties that may have lied are suspects. With n = 2t+1 no share of s^2 is redundant, and a
//     wrong one adds a number that its sender chooses to the sample; but dealing this number as an
//     error has the same effect.
//   - send different messages to two parties, which the echo detects; or stop. Then there is no
//     output, and another run samples new secrets.
//
// At most t parties may ever collude, including those that take part in later decryptions and
// handovers. A failed check never reveals anything about a secret, and an honest party never blames
// an honest party.
//
// # Cost
//
// With v = N log2(Q P) (1 + d (1+g)) bits of samples, d digits of the gadget and g automorphisms, a
// party sends about v (n-1-t) of dealt shares and v (n-1) of opened shares: 1.2, 6.9 and 27 MB for
// three parties and the sets B12-17, B13-17 and B14-31 with two automorphisms, in 0.06, 0.13 and
// 0.34 s of one core (BenchmarkKeys). Kings, which package lwekeys uses for its larger keys, would
// save up to half of that, at the price of two flights and the direct check.
package bgvkeys
