// Package reshare gives the shares of threshold keys to other parties, or new ones to the same: from n parties with the
// threshold t to n' with the threshold t', some of whom may be in both groups. The secrets and the public keys stay as
// they are (Desmedt and Jajodia, 1997; the proactive sharing of Herzberg et al., 1995, with a check of all at once).
//
// A share has parts, vectors of residues, each modulo a prime: keys of package lwe have z and s modulo Q, and those of
// package bgv their secret modulo each prime, the special ones included. What follows is done modulo each prime by
// itself.
//
// Of the old parties at least t+1 take part, the dealers. Dealer i shares its own share f(i), of all parts, among the
// new parties with the degree t', and a mask. A new party's share of the secrets is the sum of lambda_i times what t+1
// dealers gave it: a sharing of degree t' with coefficients that nobody knows as long as one dealer is honest. Old and
// new shares are unrelated but for the secrets: t of the old and t' of the new together still say nothing.
//
// # Security
//
// As for key generation (package threshold/keygen): up to t old and t' new parties that follow the protocol learn
// nothing. Checks find what others do, with a coin tossed for weights when all shares are dealt, and errors are not
// seen with probability 1/q for each prime q modulo which there are any.
//
//   - Degree. Each dealer announces the polynomial of its weighted sum, hidden by the mask; a new party whose shares
//     are off it complains to all. The two know which of them lies and blame each other; others suspect both, and
//     blame a dealer against whom more than t' complain.
//   - Value. The dealers' shares are of polynomials of degree t. For each dealer but the first t+1, the weighted sum
//     of its shares less what follows from those of the first must be 0, and this difference is opened: it says
//     nothing if it is 0, and otherwise something about the lie alone. With w dealers, w-t-1 wrong ones are always
//     seen; a dealer is blamed if nobody else can be to blame (share.Locate), and otherwise those who can are
//     suspects. New parties whose shares of a difference are of no polynomial of degree t' are found in the same way.
//
// So with 2t+1 dealers no t of them can change the secrets unseen. With only t+1, who are all that is left, say, there
// is nothing to hold a dealer's value against: a dealer that shares f(i) + x makes the secrets z + lambda_i x, under
// which nothing decrypts. The public key b = a z + e cannot be used to see that by opening b - a z', which is the key's
// error if z' is right, and so gives z away. What can be done, and should be in any case, before old shares are
// destroyed, is to decrypt some ciphertexts of known messages with the new shares by threshold decryption, which hides
// their noise: under another secret each comes out right with probability 1/p.
//
// # Order
//
// The new shares must be stored durably by all new parties before an old one is destroyed, or the key may be lost; and
// the old ones must be destroyed then, by all old parties, those that did not take part included: t+1 old shares are
// the secret for ever. A run that fails leaves the old shares as they were, and another begins with fresh randomness.
// The caller sees to that; rounds neither erase nor keep the old shares.
package reshare
