// Package linear implements two-party linear algebra on shares and on encrypted matrices. Products
// of a matrix and a shared vector, and of shared matrices and vectors, follow Lu and Sakuma,
// "Crypt-CNN (I): Secure two-party computation of large-scale matrix-vector multiplication" (MvM-v
// and MvM-m). Products of packed matrices follow Duong, Mishra and Yasuda, "Efficient secure matrix
// multiplication over LWE-based homomorphic encryption".
//
// # Computations
//
// The owner of the key encrypts, the other party evaluates, the owner decrypts.
//
//	VectorPlan    v is shared modulo T, M is the other party's: both get shares of M v
//	BatchPlan     matrices M_k are shared, vectors v_ok are the other party's: both get shares of sum_k M_k v_ok
//	ProductPlan   A and B are the owner's, encrypted: the other party computes, the owner gets A B
//
// A plan follows from a set and a shape. It determines which coefficients are read and how large
// all messages are, and both parties compute it. [Scheme.PlanVector], [Scheme.PlanBatch] and
// [Scheme.PlanProduct] make plans. The evaluating party never combines its own share of an input
// with the ciphertexts: it multiplies the share in plaintext and adds the product to its share of
// the result.
//
// # The scheme
//
// A [Scheme] is BGV as in package [github.com/lodge-mpc/lodge/engine/bgv]: R = Z[X]/(X^N+1), Q =
// q_0 q_1 ..., and T is the plaintext modulus. A ciphertext (c_0, c_1) of m has the phase
//
//	c_0 + c_1 s = m/T + e  modulo Q,
//
// which is BGV's own phase divided by T: T e is a multiple of T. A product of two ciphertexts is
// multiplied by T. A switch to q_0 is a division with rounding; m is then divided by Q/q_0 modulo
// T. There are no rotations and there is no special modulus: the gadget of relinearisation has one
// digit for each prime.
//
// # What the owner of the key learns
//
// If an answer consisted of multiples p c_0, p c_1 of the owner's own ciphertext, the owner could
// compute p by division, regardless of any addition to c_0. The noise p e also reveals p, and the
// coefficients that are not results hold products of other entries. So every answer (finish)
//
//   - includes a fresh encryption of 0 under the public key, without which its c_1 divided by the c_1
//     of the input would be p,
//   - includes a flood in the noise, uniform in [-E, E] with the largest E that decodes, so that for
//     all answers of a product together N |noise|/(2E+1) is at most 2^LogDistance,
//   - is masked, uniformly modulo T, in all coefficients that are not read and, where results are
//     shared, in the others too,
//   - is switched to q_0, and contains only those coefficients of c_0 that are read.
//
// An owner who follows the protocol learns nothing more: its view can be simulated given only the
// result, c_1 up to distinguishing ring samples of the ternary u from uniform ones (e u + e_1 s is
// flooded as well), and the rest up to 2^LogDistance. An owner whose key or ciphertexts are
// malformed, so that the noise exceeds its bound, is covered only where inputs are proved
// (proof.go). The other party sees ciphertexts and nothing that depends on a decryption.
//
// # Security of the sets
//
// Every set has 128 bits of classical security by package [hardness] ([Set.Security]).
package linear
