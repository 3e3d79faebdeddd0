// Package reshare moves the shares of threshold keys to other parties, or gives new shares to the
// same parties: from n parties with threshold t to n' with threshold t'. A party may be in both
// groups. The secrets and the public keys do not change (Desmedt and Jajodia, 1997; the proactive
// sharing of Herzberg et al., 1995, with one check for all shares).
//
// A share has parts, vectors of residues, each modulo a prime: keys of package lwe have z and s
// modulo Q, and those of package bgv have their secret modulo each prime, including the special
// ones. The protocol runs separately modulo each prime.
//
// At least t+1 of the old parties take part, the dealers. Dealer i shares all parts of its own
// share f(i), and a mask, among the new parties with degree t'. A new party's share of the secrets
// is the sum of lambda_i times its shares from t+1 dealers. This is a sharing of degree t' with
// coefficients that no party knows if one dealer is honest. Old and new shares are unrelated except
// through the secrets: t of the old and t' of the new together reveal nothing.
//
// # Security
//
// As in key generation (package lwekeys), up to t old and t' new parties that follow the
// protocol learn nothing. Checks detect deviations; a coin determines their weights when all shares
// have been dealt. Errors remain undetected with probability 1/q for each prime q modulo which
// there are any.
//
//   - Degree. Each dealer announces the polynomial of its weighted sum, hidden by the mask. A new
//     party whose shares do not lie on it sends a complaint to all. The two know which of them lies
//     and blame each other. The others suspect both, and blame a dealer about whom more than t'
//     parties complain.
//   - Value. The dealers' shares lie on polynomials of degree t. For each dealer except the first
//     t+1, the weighted sum of its shares minus the value that follows from the shares of the first
//     must be 0. The parties open this difference: it reveals nothing if it is 0, and otherwise
//     only something about the lie. With w dealers, w-t-1 wrong ones are always detected. A dealer
//     is blamed if no other set of dealers can explain the fault (share.Locate); otherwise all
//     dealers that can are suspects. New parties whose shares of a difference do not lie on a
//     polynomial of degree t' are identified in the same way.
//
// So with 2t+1 dealers no t of them can change the secrets undetected. With only t+1 dealers, for
// example because no more parties are left, no redundant value exists to check a dealer's value: a
// dealer that shares f(i) + x changes the secret z to z + lambda_i x, under which nothing decrypts.
// The public key b = a z + e cannot detect this by opening b - a z': if z' is right, this is the
// key's error, and reveals z. Instead, and in any case before old shares are destroyed, decrypt
// some ciphertexts of known messages with the new shares by threshold decryption, which hides their
// noise. Under another secret each decrypts correctly with probability 1/p.
//
// # Order
//
// All new parties must store the new shares durably before an old share is destroyed, or the key
// may be lost. Then all old parties must destroy the old shares, including those that did not take
// part: t+1 old shares always determine the secret. A failed run leaves the old shares unchanged,
// and another run uses fresh randomness. This is the caller's responsibility; the rounds neither
// erase nor keep the old shares.
package reshare
