// Package lwekeys generates threshold keys: n parties obtain Shamir shares of degree t of the
// secrets z and s of package lwe, which no party ever holds, and the matching public, rotation and
// switching keys. It implements the key generation of Ajax ("Fast Threshold Fully Homomorphic
// Encryption without Noise Flooding", Section 4.2, Figures 7 to 9), with 2t < n.
//
// # Security
//
// The protocol is secure against t parties that follow it and pool their views. The paper proves
// this and claims no more. In addition, cheap checks detect most deviations and identify the
// deviating party, but they do not make the protocol secure against parties that deviate. A party
// that deviates can
//
//   - choose its own sharings. Its errors may be large or not random: then the keys are noisier, which no
//     check detects. If a party knows its errors, the honest parties' errors still have the full variance.
//     Its random sharings do no harm, because extraction combines the sharings of all n parties into n-t.
//   - deal shares that do not lie on a polynomial of degree t, or pairs with two different secrets. This
//     is checked, see Dealing.
//   - send a wrong share to a king, or open a wrong value as king. This is checked, see Opening, with one
//     gap: a product has degree 2t, and if n = 2t+1 any n shares lie on a polynomial of that degree. A
//     party that consistently uses a wrong share of a product adds a number that it chooses and knows to
//     this product, and changes nothing else. The product is either z_k s_i in the rotation key, whose
//     lookups then fail, or the square of a random number, so that a value that should be a bit is not.
//     The party learns only what it can later infer from lookups that fail or succeed. With n > 2t+1 this
//     is detected.
//   - send different messages to two parties. An echo follows every broadcast, and at the end all parties
//     compare the hash of the keys.
//   - stop. Then there is no output; this run's secrets are erased, and another run samples new ones.
//
// Therefore, if n = 2t+1 and one party deviates in its shares of products, the resulting key may be
// faulty; an owner who cannot accept this chooses n > 2t+1. A failed check never reveals anything
// about a secret.
//
// At most t parties may ever collude, including those that take part in later reconstructions and
// decryptions.
//
// # Dealing
//
// The t parties that follow a dealer in the roster expand their shares from a seed that the dealer
// sends to each (package share). The dealer computes its own shares and those of the remaining
// parties, and sends the latter. It deals, in rows of N sharings,
//
//	random   [x]_t of uniform x
//	pair     [r]_t and [r]_2t of uniform r
//	noise    [e]_t of discrete Gaussian errors e, of variance max(sigma^2/(n-t), 2.1^2), one for each sample of the keys
//	masks    one more row of [x]_t, and one more row of pairs
//
// The errors of the n-t honest parties have at least variance sigma^2, as the security of the set
// requires. The sum of all errors has n times the variance of one party's, which the noise model
// counts (lwe.Set.NoiseOf). The paper's lower bound of 0.7 for the standard deviation is too low
// for sums to be close to discrete Gaussians; this package uses 2.1.
//
// The errors are the sums of all parties' noise. Each n random sharings and pairs are combined into
// n-t, which are uniform to any t parties (Damgard and Nielsen, 2007).
//
// The check: together with the seeds, a dealer sends the digests of the shares that it will send,
// which bind it to all these shares. Then a coin is tossed for weights. With the shares, every
// dealer announces its weighted sums for random and noise, and for pairs, each hidden by its mask,
// as values that determine a polynomial of degree t (2t), with one value at 0 for both of a pair. A
// receiver compares the weighted sum of its shares with the announcement and sends a complaint to
// all parties if they differ. If a dealing is not a sharing, an honest receiver's sum differs with
// probability 1-2/Q. The complainer and the dealer know which of them lies, and blame each other. A
// third party has not seen the shares and cannot decide: it suspects both and blames neither. If
// more than t parties complain, at least one of them is honest, and the dealer is blamed. So a
// lying receiver can end the run, as it could by silence, but no honest party ever blames an honest
// party.
//
// # Secrets
//
// Random bits come from opened squares (secrets.go): each coefficient of z is the difference of two
// bits (2N bits in all), and each of s is one bit (n bits). Shares of products have degree 2t. For
// the product of [x] and [y], the parties open xy - r with [r]_2t; [xy]_t is the opened value plus
// [r]_t. This yields the N n products z_k s_i, which the rotation key encrypts.
//
// # Keys
//
// Every sample's share is a<z> + <e> + message, and similarly for s, with a expanded from the
// reference string, whose seed all parties tossed (rows.go). It is computed and opened in
// evaluation form, which is linear, with one transform per row.
//
// # Opening
//
// Each opened row has a king. The d parties that follow the king in the roster (d is the degree)
// send it their shares. The king interpolates and sends the values to all parties. Kings have equal
// slices of the rows: for v values, a party sends v d/n shares and (n-1) v/n values.
//
// The check runs once, after everything is open. A coin is tossed for weights, and every party
// reports the weighted sum of its shares for every king's slice. Kings report the sum of the shares
// from each of their senders except the last, whose sum follows from the values. The polynomials of
// opened rows are uniform except for their values at 0, like those of pairs and errors, and so are
// the sums: they reveal nothing. If king and sender differ, one lies; both know which, and the
// other parties suspect both. Otherwise the values are right if the shares are, and the n shares
// must lie on one polynomial of degree d. If n > d+1, a wrong share is detected. Its sender is
// blamed if no other set of at most t parties can explain the sums (share.Locate), that is, with f
// liars, if f + t < n - d. Otherwise all parties that may lie are suspects.
//
// # Cost
//
// With v = N (1 + 2 l n + l') samples, where l and l' are the numbers of digits of the two gadgets,
// a party sends about v (n-1-t) shares of errors, v t/n shares and v (n-1)/n values. For n = 3 and
// the paper's set this is 470 MB. A party stores its shares of the keys' rows, the keys and, for t
// > 1, the shares that all its senders except one sent it as king.
package lwekeys
