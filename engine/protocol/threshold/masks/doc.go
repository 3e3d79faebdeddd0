// Package masks makes what a quorum spends when it decrypts: shared random numbers, and shared bits with products of
// them, one record for each ciphertext (Ajax, section 4.3.1 and figure 12, and a form of our own). It runs before the
// ciphertexts exist and knows nothing of them, nor of any key.
//
// Decryption turns a ciphertext into shares of Phi m + e modulo eta, where Phi = eta/p is a power of two, and p one too
// or an odd number, and takes e off under a mask. What package decrypt spends has one of two forms.
//
// Paper: shares modulo eta of r, uniform in [-Phi/2, Phi/2), made of shared bits b_0, ..., b_{k-1}, k = log Phi, with
// the last of them as the sign: r = sum_{i<k-1} 2^i b_i - 2^{k-1} b_{k-1}. The same shares modulo Phi are shares of r
// there.
//
// Exact: shares modulo eta of rho, uniform in [0, Phi), shares over GF(2) of its k bits rho_i and of the products
// rho_{2g+1} rho_{2g}, with which comparing rho with a public number begins; for the rest of the comparison, triples
// of bits x, y and xy; and shares modulo p of a random bit d, and shares of d over GF(2), which are the lowest bits of
// those if p is even.
//
// # The protocol
//
// Every bit b is the exclusive or of one bit x_l of each of the n parties of the quorum, which are shares of it over
// GF(2). Over Z_2^w the chain b <- b + x - 2 b x adds them up: party 0 begins with its bit as shares of b, and at step
// j, from 1 on, party j joins: it gets shares of b_i x_j with each i < j that holds a share b_i, by one correlated
// oblivious transfer of package ot with x_j as the choice and b_i as the correlation modulo 2^(w-1). With n(n-1)/2
// transfers a bit there is no other multiplication. As 2^i b_i is wanted modulo eta, w is log eta - i for bit i, and
// log p for d. With an odd p the chain is the same modulo eta/2^i, and transfers are modulo half of that; modulo p for
// d, where there is no half (modulus.go). Products of bits need for each pair of parties two transfers of one bit, x_i
// y_j and y_i x_j, for a triple as for a product of bits of rho.
//
// In every pair the party with the higher number is the receiver of all transfers. The flights: offer, reply and
// extension of the transfers, and one of corrections for each step j, to party j from those before it. With
// Config.Sacrifice, a coin then chooses records that all parties open with the bits they are made of, and check.
//
// # What is learnt by whom
//
// Between parties that follow the protocol, any n-1 of them together learn nothing about the remaining party's bits,
// and so nothing about r, rho, d or the triples: what package ot says of its transfers. Nobody else sees anything.
//
// An active party can make wrong corrections, or use different bits in different transfers. Then the shares are of
// something else than they should be: for one bit or many, in a way that depends on the bits of the party that it
// cheats, and unseen unless a record that is opened has it. If k of m records are bad and s are opened, they are
// missed with probability at most (1 - k/m)^s. A bad mask makes the plaintext wrong, for whoever gets it, and whether
// it is wrong may tell about a bit of an honest party's mask, hence about the noise; it tells nothing of the key
// besides. Parties that do so are not named: the protocol is for parties that follow it, and opening finds faults.
package masks
