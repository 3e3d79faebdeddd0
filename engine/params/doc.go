// Package params holds Lodge's parameters as data: the parameter sets (each a [Set]: ring degree,
// moduli, key distributions), the plaintext fields p = b^M+1 of each set, the security of each set
// by package [hardness], and the noise model that decides whether n parties can make triples of a
// given shape under a set. [Lookup] finds a set, and [Resolve] returns the [Instance] for a [Use],
// or a [*DoesNotFit].
//
// The sets follow MatriGear, Section 6 and Appendix B, with these corrections:
//
//   - key shares add up, so the norms of the joint secret grow with sqrt(n) at every level;
//   - the bounds of the proof of plaintext knowledge (PoPK) use the Gaussian width of the whole response,
//     6(b+1)*sqrt(U*s1^2+(U+1)*s2^2), instead of a sum of widths;
//   - the last level counts only the coefficients of the noise;
//   - the ciphertext is switched to a smaller modulus q' before distributed decryption, the flooding is taken as large
//     as q' admits, and the condition counts all n floods.
//
// Everything that parties must agree on (PoPK bounds, flooding, the decryption modulus, hashes) is
// computed in integers: fixed point with 128 fractional bits, always rounded to the safe side.
// Floating point appears in logarithms for people only.
package params
