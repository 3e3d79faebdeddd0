// Package linear is two-party linear algebra on shares and on encrypted matrices: the products of a matrix and a shared
// vector and of shared matrices and vectors of Lu and Sakuma, "Crypt-CNN (I): Secure two-party computation of
// large-scale matrix-vector multiplication" (MvM-v and MvM-m), and the products of packed matrices of Duong, Mishra and
// Yasuda, "Efficient secure matrix multiplication over LWE-based homomorphic encryption".
//
// # What is computed
//
// The owner of the key encrypts, the other party evaluates, the owner decrypts.
//
//	VectorPlan    v is shared modulo T, M is the other party's: both get shares of M v
//	BatchPlan     matrices M_k are shared, vectors v_ok are the other party's: both get shares of sum_k M_k v_ok
//	ProductPlan   A and B are the owner's, encrypted: the other party computes, the owner gets A B
//
// A plan follows from a set and a shape; it says which coefficients are read and how large all messages are, and both
// parties make it. The evaluating party's own share of an input never meets the ciphertexts: it multiplies it in the
// clear and adds it to its share of the result.
//
// # The scheme
//
// BGV as in package bgv: R = Z[X]/(X^N+1), Q = q_0 q_1 ..., T the plaintext modulus, and a ciphertext (c_0, c_1) of m
// has the phase
//
//	c_0 + c_1 s = m/T + e  modulo Q,
//
// which is BGV's own divided by T: T e is a multiple of T. A product of two is multiplied by T. A switch to q_0 is a
// division with rounding; m is then divided by Q/q_0 modulo T. Nothing is rotated and there is no special modulus: the
// gadget of relinearisation has one digit for each prime.
//
// # What the owner of the key learns
//
// Multiples p c_0, p c_1 of the owner's own ciphertext tell p, by division, whatever is added to c_0; the noise p e
// tells it too; and coefficients beside those that are wanted have products of other entries. So every answer (finish)
//
//   - has a fresh encryption of 0 under the public key added, without which c_1/c_1 of the input is p,
//   - has a flood added to the noise, uniform in [-E, E] with the largest E that decodes, so that for all answers of a
//     product together N |noise|/(2E+1) is at most 2^LogDistance,
//   - has all coefficients masked that are not read, uniformly modulo T; where results are shared, the others too,
//   - is switched to q_0, and has of c_0 only the coefficients that are read.
//
// For an owner who follows the protocol that is all: what it sees can be made from the result alone, c_1 but for
// telling ring samples of the ternary u from uniform ones (e u + e_1 s is flooded as well), the rest but for
// 2^LogDistance. An owner whose key or ciphertexts are malformed, so that the noise is more than its bound, is
// covered where inputs are proved (proof.go), and nowhere else. The other party sees ciphertexts and nothing that depends on a decryption.
//
// # Security of the sets
//
// Every set has 128 bits of classical security by package hardness (Set.Security).
package linear
