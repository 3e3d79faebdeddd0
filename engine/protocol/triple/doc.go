// Package triple generates authenticated tuples (MatriGear, Fig. 4). Triples are shares of random a
// and b and of c = a b, in Z_p, as matrices, or as images and kernels, together with shares of
// their products with a MAC key alpha that no party knows. Squares, random values, bits and
// inverses are made in the same way, with fewer ciphertexts or one more opening. Input masks, whose
// values one party knows, are made from the ciphertexts of that party. Package kind describes the
// kinds.
//
// StartMACKey makes the MAC key: a proof of plaintext knowledge whose message is one constant.
// Start makes a batch:
//
//  1. proof: every party proves knowledge of its ciphertexts of a and b (package popk); the sum over
//     the parties is doubled, and so is every party's share, because the proof covers about twice
//     the ciphertext;
//  2. evaluate: every party computes the ciphertexts of c, alpha a, alpha b and alpha c locally;
//  3. compare: the parties compare the hashes of the ciphertexts that they are about to decrypt;
//  4. decrypt: each ciphertext is decrypted once, to shares (package ddec);
//  5. sacrifice: the parties toss a coin, open masked factors, and compute relations that are zero if
//     the products are correct;
//  6. check: the linear MAC check (package maccheck) covers all values that will be released, and
//     these relations. It consumes slots that are reserved for it.
//
// For bits and inverses the products are opened before the check, which covers the opened values
// (open.go). For input masks only one party proves, and the parties send each other seeds for the
// shares together with the hash of step 3 (input.go).
//
// With honest evaluation keys the MAC check alone would suffice: alpha c comes from the same
// ciphertext as c, so a c that differs from a b has no valid MAC. Key generation without proofs
// does not exclude malformed keys. With these the products themselves are wrong, by errors that the
// party that malformed the keys knows and can remove from the MACs. The sacrifice (sacrifice.go)
// detects this. It does not replace proofs of the keys: keys with secrets or errors that are too
// large give correct products, and leak.
//
// # What the sacrifice proves
//
// Let all parties but one cheat. When the coin for the weights t, or u and w, is tossed, every
// party has all shares of all decryptions. So every value is fixed by its MAC: the factors,
// products and masks are those that the MAC check would accept, whatever the keys made of their
// ciphertexts. Let c differ from the product of the factors in some entry.
//
//   - If the opened masked factors are correct, the relation of that tuple is a nonzero polynomial in
//     the weights, which are chosen afterwards: of degree 1 for scalars and inverses, 2 for squares
//     and bits, and 2 in u and w for matrices, where u^T (C - A B) w does not vanish. h need not be
//     correct: an error in it is a constant of the polynomial. By Schwartz and Zippel, the relation
//     is zero with probability at most 2/p.
//   - Otherwise the relation, or the difference between a masked factor and its opening, is not zero.
//     The MAC check accepts it with probability at most 3/p (package maccheck), because its weights
//     are tossed after the masked factors are open.
//
// A batch with a wrong product is thus released with probability at most 5/p: 2^-125 for p of 128
// bits and 2^-61 for p of 64. One repetition suffices for the statistical security that every
// parameter set promises; a test compares it with the fields of the set. More security with a field
// of 64 bits would take two repetitions and two MAC keys. As everywhere, alpha is assumed to be
// unknown: if malformed keys reveal it to a peer, no check under it means anything.
//
// The sacrifice reveals no secret. Each masked factor has its element of f or g, which is uniform
// while one party is honest, is used only there, and is erased with h when the batch ends. The
// parties do not learn which tuple fails.
//
// Its noise is within existing bounds. h is a product of two proved ciphertexts, so it satisfies
// the bound of c, which covers at least as many; the ciphertexts decrypted for it satisfy the bound
// of alpha c.
//
// Squares and bits sacrifice a square each, because bits are made of squares. Inverses sacrifice a
// triple each. A wrong opened square would give a bit that is neither 0 nor 1, and a wrong product
// a value that is not the inverse, both with correct MACs. Random values and input masks contain no
// products except those with alpha, which the MAC check covers.
//
// # Padding, check triples and convolutions
//
// A matrix triple of rows x inner times inner x columns is cut into blocks of d x d. If inner is
// not a multiple of d, the columns of a beyond it must be zero, because they would add to c. Every
// party puts zeros there, and the check opens a random combination of these authenticated values,
// which must be zero.
//
// The MAC check consumes a random value that masks it, and a check triple for each combination that
// it opens. Their slots are neither sacrificed nor opened nor released (collect.go). A wrong
// opening of a masked factor would otherwise reveal b of a check triple, and with it, in a check
// that fails, the MAC key. Scalars and inverses reserve triples. Squares and bits make a check
// triple of two squares, as (x+y)(x-y) = x^2 - y^2. Random values, matrices and convolutions square
// one vector for this, and decrypt the square too. The owner of input masks knows everything that
// it proves without the other parties, so all parties prove one more vector in the same rounds.
// Check triples belong to the same batch and are not verified; package maccheck says why this
// suffices. They are erased at the end of the run, so that no other check can use them.
//
// Convolution triples are matrix triples whose second factor consists of the windows of an image
// (convolution.go). This is checked in the same way, by differences that must be zero.
package triple
