// Package bgvkeys makes threshold keys for BGV and BFV: n parties get Shamir shares of degree t of a secret s that
// nobody ever holds, 2t < n, and the public, relinearisation and rotation keys that belong to it, for Lattigo's users
// (package bgv). There is no dealer that is trusted.
//
// # The protocol
//
// Each party draws a ternary secret and the errors of all samples of the keys, and deals shares of them modulo every
// prime of Q P (Damgard and Nielsen, CRYPTO 2007; pseudorandom shares of package share for the parties that follow the
// dealer). s is the sum of the secrets, and a sample's error is that of the errors. Then everything is linear: parties
// compute their shares of
//
//	-a s + e + message,   the message P s for rotations (and s(X^(1/g)) in the place of the first s), P s^2 for products
//
// and send them to all. A share of s times itself is one of s^2 of degree 2t. So the samples with s^2, modulo the
// primes where it is, have errors that were dealt with degree 2t, which makes their shares uniform but for the sample,
// and no multiplication is needed. All other shares are of degree t.
//
// The flights: a coin for the seed of the reference string; to each party a seed, and the digest of what it will be
// sent; a coin; shares, and announced polynomials; complaints; the shares of the keys; the digest of the keys. The
// coins have two flights, and every broadcast is followed by an echo.
//
// Errors of a party have variance max(sigma^2/(n-t), 2.1^2), so that those of the n-t honest parties have sigma^2 at
// least (lwe.PartyVariance). They are drawn by package sample.
//
// # Why not Lattigo's package multiparty
//
// Its protocols are additive: the key of a party's share is not checked against anything, so that a wrong one is not
// found and nobody is named; its two rounds for relinearisation keys need commitments against parties that wait for
// others; and its Thresholdizer deals shares that nobody verifies. Its samplers take floats of a normal distribution
// and read the operating system's randomness by themselves. Its decoders are made for bytes of friends (package bgv).
// What is used are its types, for users.
//
// # Security
//
// The protocol is secure against t parties that follow it and put together what they see: any t shares of what is dealt
// or opened are uniform, and the opened keys are samples of learning with errors under s. Beyond that, a party that
// deviates can
//
//   - deal a secret that is not ternary or errors that are large, or others modulo other primes. No check sees it. The
//     keys are noisier than they should be, or useless. Decryption under masks opens plaintexts and nothing else,
//     which may be wrong. Decryption by flooding is only hiding while noises are within the bound that the flood is
//     made for: keys whose noise is large on purpose make every such decryption say a little about noises, hence about s. So
//     flooding is for parties that are known to have followed this protocol.
//   - deal shares that are of no polynomial of the degree. Found by a random combination of everything that it dealt,
//     modulo each prime, to which it was bound before the coin: with probability 1-2/q. The one that got a wrong share
//     and the dealer blame each other, and others suspect both, unless more than t complain.
//   - open a wrong share of the keys. All parties hold all shares of each row, n of degree t (2t for s^2). They are
//     combined with weights of one's own, and whoever is off the polynomial is blamed, if no other set of at most t
//     parties can be (share.Locate): with f liars if f + t < n-t (n-2t for s^2). Else those that may be are suspects.
//     With n = 2t+1 no share of s^2 is left over, and a wrong one adds a number that its sender chooses to the sample;
//     but that is no more than dealing it as an error does.
//   - tell two parties two things, which the echo shows; or stop. Then there is no output, and another run draws
//     others.
//
// At most t parties may ever collude, those of decryptions and handovers later included. In no case does a check that
// fails say anything about a secret, and no honest party is blamed by an honest one.
//
// # Cost
//
// With v = N log2(Q P) (1 + d (1+g)) bits of samples, d digits of the gadget and g automorphisms, a party sends about
// v (n-1-t) of dealt shares and v (n-1) of opened ones: 1.2, 6.9 and 27 MB for three parties and the sets B12-17,
// B13-17 and B14-31 with two automorphisms, in 0.06, 0.13 and 0.34 s of one core (BenchmarkKeys). Kings, as package
// keygen has them for its larger keys, would save up to a half of that, and cost two flights and the direct check.
package bgvkeys
