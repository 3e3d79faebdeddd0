// Package keygen makes threshold keys: n parties get Shamir shares of degree t of the secrets z and s of package lwe,
// which nobody ever holds, and the public, rotation and switching keys that belong to them. It is the key generation of
// Ajax ("Fast Threshold Fully Homomorphic Encryption without Noise Flooding", Section 4.2, Figures 7 to 9), with 2t <
// n.
//
// # Security
//
// The protocol is secure against t parties that follow it and put together what they see. The paper proves that and
// asks no more. Beyond it, cheap checks find most of what parties may do who do not follow it, and say who it was, but
// they do not make it secure against them. A party that deviates can
//
//   - choose what it deals. Its errors may be large or not random: the keys are noisier, which no check sees, and a
//     key of which a party knows the errors is one whose honest parties' errors still have the whole variance. Its
//     random sharings do no harm: extraction makes those of n-t parties of the n that were dealt.
//   - deal shares that are of no polynomial of degree t, or pairs of two secrets. Checked, see Dealing.
//   - send a king a wrong share, or open a wrong value as king. Checked, see Opening, but for one gap: a product has
//     degree 2t, and where n = 2t+1 its n shares are of a polynomial of that degree whatever they are. A party that
//     uses a wrong share of a product throughout adds a number that it chooses and knows to that product, and nothing
//     else: z_k s_i in the rotation key, whose lookups then go wrong, or the square of a random number, so that what
//     should be a bit is none. What it learns is what it may learn later from lookups that go wrong or not. With n >
//     2t+1 it is found.
//   - tell two parties two things. Every broadcast is followed by an echo, and at the end all compare the hash of the
//     keys.
//   - stop. There is no output then; this run's secrets are erased, and another draws others.
//
// So n = 2t+1 parties of which one deviates in its shares of products must not be trusted to have made a key that is
// good; it is the owner's choice to take n > 2t+1. In no case does a check that fails say anything about a secret.
//
// At most t parties may ever collude, those of reconstructions and decryptions later included.
//
// # Dealing
//
// A dealer's shares for the t parties that follow it in the roster are expanded from a seed that it sends to each
// (package share); it computes its own and those of the others, to which it sends them. It deals, in rows of N
// sharings,
//
//	random   [x]_t of uniform x
//	pair     [r]_t and [r]_2t of uniform r
//	noise    [e]_t of discrete Gaussian errors e, of variance max(sigma^2/(n-t), 2.1^2), one for each sample of the keys
//	masks    one row more of [x]_t, and one of pairs
//
// The errors of the n-t honest parties have at least variance sigma^2, as the security of the set asks; all errors
// together have n times a party's, which the noise model counts (lwe.Set.NoiseOf). The paper's floor of 0.7 for the
// standard deviation is too low for sums to be close to discrete Gaussians, hence 2.1.
//
// The sums of all parties' noise are the errors. Of random sharings and pairs, n-t combinations are extracted of n, so
// that they are uniform to any t parties (Damgard and Nielsen, 2007).
//
// The check: with the seeds a dealer sends the digests of the shares that it will send, so that it is bound to all of
// them. Then a coin is tossed for weights, and with the shares every dealer announces its weighted sums: for random and
// noise, and for pairs, each hidden by its mask, as values that determine a polynomial of degree t (2t), with one value
// at 0 for both of a pair. A receiver holds the weighted sum of its shares against that and complains to all if it is
// another. A dealing that is not a sharing gives an honest receiver another sum, with probability 1-2/Q. The complainer
// and the dealer know which of them lies, and blame each other. A third party cannot know, as it has not seen the
// shares: it suspects both, and blames nobody, unless more than t parties complain, of whom one at least is honest. So
// a receiver that lies ends the run, as it could by silence, and no honest party is ever blamed by an honest one.
//
// # Secrets
//
// Random bits by opened squares (secrets.go): 2N bits make z, coefficient by coefficient the difference of two; n make
// s. Shares of products have degree 2t. The product of [x] and [y] is opened less a random number, xy - r with [r]_2t,
// and [xy]_t is that plus [r]_t. So the N n products z_k s_i are made, which the rotation key encrypts.
//
// # Keys
//
// Every sample's share is a<z> + <e> + message, or the like for s, with a from the seed of the reference string, tossed
// by all (rows.go). It is computed and opened in evaluation form, which is linear: one transform a row.
//
// # Opening
//
// Each row to be opened has a king. The d parties behind it (d is the degree) send it their shares; it interpolates,
// and sends all parties the values. Kings have equal slices of the rows, so that a party sends, of v values, v d/n
// shares and (n-1) v/n values.
//
// The check, once, when everything is open: a coin is tossed for weights, and every party reports, for every king's
// slice, the weighted sum of its own shares; kings report the sum of what each of their senders sent, but the last,
// whose follows from the values. The polynomials of opened rows are uniform but for their values at 0, as those of
// pairs and of errors are, and so are the sums: they say nothing. If king and sender differ, one lies, and both know;
// others suspect both. If not, the values are right if the shares are; and the n shares must be of one polynomial of
// the degree. Where n > d+1 a wrong one is seen. It is blamed if no other set of at most t parties can be what is wrong
// (share.Locate): with f liars, if f + t < n - d; otherwise the parties that may lie are suspects.
//
// # Cost
//
// With v = N (1 + 2 l n + l') samples, l and l' the digits of both gadgets, a party sends about v (n-1-t) shares of
// errors, v t/n shares and v (n-1)/n values. At n = 3 and the paper's set that is 470 MB. It holds its shares of the
// keys' rows, the keys, and for t > 1 what its senders but one sent it as king.
package keygen
