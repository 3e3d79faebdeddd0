// Package masks makes the masks that a quorum spends when it decrypts: shared random numbers, and
// shared bits with products of these bits, one record for each ciphertext (Ajax, Section 4.3.1 and
// Figure 12, and our own variant). It runs before the ciphertexts exist and depends neither on them
// nor on any key.
//
// Decryption turns a ciphertext into shares of Phi m + e modulo eta, where Phi = eta/p is a power
// of two and p is a power of two or odd, and removes e under a mask. Package decrypt spends masks
// of two forms.
//
// Paper: shares modulo eta of r, uniform in [-Phi/2, Phi/2). r consists of shared bits b_0, ...,
// b_{k-1}, k = log Phi, and the last of them is the sign: r = sum_{i<k-1} 2^i b_i - 2^{k-1}
// b_{k-1}. The same shares reduced modulo Phi are shares of r modulo Phi.
//
// Exact: shares modulo eta of rho, uniform in [0, Phi), and shares over GF(2) of its k bits rho_i
// and of the products rho_{2g+1} rho_{2g}, with which the comparison of rho with a public number
// begins. For the rest of the comparison there are triples of bits x, y and xy. Finally there are
// shares modulo p of a random bit d and shares of d over GF(2), which are the lowest bits of the
// former if p is even.
//
// # The protocol
//
// Every bit b is the exclusive or of one bit x_l from each of the n parties of the quorum; the x_l
// are shares of b over GF(2). Over Z_2^w the chain b <- b + x - 2 b x adds them up. Party 0 begins
// with its bit as share of b. At step j >= 1 party j joins: with each i < j, which holds a share
// b_i, it obtains shares of b_i x_j by one correlated oblivious transfer of package ot, with x_j as
// the choice and b_i as the correlation modulo 2^(w-1). These n(n-1)/2 transfers a bit are the only
// multiplications. The result is 2^i b_i modulo eta, so w is log eta - i for bit i, and log p for
// d. With an odd p the chain runs modulo eta/2^i, with transfers modulo half of this modulus; for d
// it runs modulo p, which is odd and has no half (modulus.go). Products of bits need two transfers
// of one bit for each pair of parties, x_i y_j and y_i x_j, for a triple as for a product of bits
// of rho.
//
// In every pair the party with the higher number is the receiver of all transfers. The flights are
// offer, reply and extension of the transfers, and one flight of corrections for each step j, from
// the parties before j to party j. With Config.Sacrifice, a coin then chooses records that all
// parties open, together with the bits from which they were made, and check.
//
// # Security
//
// If all parties follow the protocol, any n-1 of them together learn nothing about the remaining
// party's bits, and so nothing about r, rho, d or the triples; this follows from the security of
// the transfers of package ot. Parties outside the quorum learn nothing.
//
// An active party can send wrong corrections, or use different bits in different transfers. Then
// the shares, for one bit or many, are of other values than they should be. The deviation depends
// on the bits of the party that it cheats, and only an opened record can reveal it. If k of m
// records are bad and s are opened, all bad records are missed with probability at most (1 -
// k/m)^s. A bad mask makes the plaintext wrong for the recipient. Whether it is wrong may reveal a
// bit of an honest party's mask, and hence something about the noise; it reveals nothing else about
// the key. The cheating party is not identified: the protocol is for parties that follow it, and
// opening finds faults.
package masks
