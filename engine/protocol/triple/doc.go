// Package triple generates authenticated triples (MatriGear, Fig. 4): shares of random a, b and c = a b, in
// Z_p, as matrices or as images and kernels, and of their products with a MAC key alpha that nobody knows. It generates
// squares, random values, bits and inverses in the same way, with fewer ciphertexts or with an opening more, and input masks,
// whose values one party knows, from the ciphertexts of that party alone.
//
// StartMACKey makes the MAC key: a proof of plaintext knowledge whose message is one constant. Start makes a
// batch:
//
//  1. proof: every party proves knowledge of its ciphertexts of a and b (package popk); the sum of all is
//     doubled, and so is every party's share, as the proof is about twice the ciphertext;
//  2. evaluate: every party computes the ciphertexts of c, alpha a, alpha b and alpha c for itself;
//  3. compare: the parties compare the hash of what they will decrypt;
//  4. decrypt: each ciphertext is decrypted once to shares (package ddec);
//  5. sacrifice: the parties toss a coin, open masked factors, and have relations that are zero if products are right;
//  6. check: the linear MAC check (package maccheck) over everything that will be released, and these relations. It consumes
//     slots that are reserved for it.
//
// For bits and inverses the products are opened before the check, which covers what was opened (see open.go). For input
// masks one party proves, and seeds for the shares are sent beside the hash of step 3 (see input.go).
//
// With honest evaluation keys the MAC check alone would do: alpha c comes from the same ciphertext as c, so a c that differs
// from a b has no valid MAC. With malformed ones, which key generation without proofs does not exclude, the products themselves are
// wrong, by errors that whoever malformed the keys knows and can take out of the MACs again. The sacrifice (sacrifice.go)
// is for that. It does not replace proofs of the keys: keys with too large secrets or errors give right products, and leak.
//
// What it proves. Let all parties but one cheat. When the coin for the weights t, or u and w, is tossed, every party has all
// shares of all decryptions, so that every value is fixed by its MAC: as the factors, products and masks that the MAC check
// would accept, whatever the keys made of their ciphertexts. Let c differ from the product of the factors in some entry.
//
//   - If what is opened as masked factors is what it should be, the relation of that tuple is a polynomial in the weights,
//     which are fixed after it, that is not zero: of degree 1 for scalars and inverses, 2 for squares and bits, and 2 in u and
//     w for matrices, where u^T (C - A B) w does not vanish. h need not be right: an error in it is a constant of the
//     polynomial. So the relation is zero with probability 2/p at most, by Schwartz and Zippel.
//   - Otherwise the relation, or the difference of a masked factor and what was opened as it, is not zero, and the MAC check
//     accepts it with probability 3/p at most (package maccheck): its weights are tossed after the masked factors are open.
//
// A batch with a wrong product is thus released with probability 5/p at most, 2^-125 for p of 128 bits and 2^-61 for p of 64.
// One repetition is enough for the statistical security that every parameter set promises, which a test holds against its
// fields. More than that with a field of 64 bits would take two repetitions and two MAC keys. That alpha is unknown is an
// assumption here as everywhere: if malformed keys tell it to a peer, no check under it means anything.
//
// What it reveals is nothing: each masked factor has an element of f or g of its own, which is uniform while one party is
// honest, is used in no other place, and is erased with h when the batch ends. Which tuple fails is not told.
//
// Its noise needs no bound of its own. h is a product of two proved ciphertexts, and so within the bound of c, which is for
// at least as many of them; what is decrypted for it is within that of alpha c.
//
// Squares and bits, which are made of squares, sacrifice a square each, and inverses, which are made of triples, a triple:
// a wrong square opened gives a bit that is neither 0 nor 1, and a wrong product an inverse that is none, both with right
// MACs. Random values and input masks have no products but those with alpha, which are what the MAC check is about.
//
// A matrix triple of rows x inner times inner x columns is cut into blocks of d x d. Where inner is no
// multiple of d, the columns of a beyond it must be zero, or else they would add to c: every party puts zeros
// there, and the check opens a random combination of these authenticated values, which must be zero.
//
// The MAC check consumes a random value that masks it and a check triple for each combination that it opens. Their slots are
// neither sacrificed nor opened nor released (collect.go): a wrong opening of a masked factor would reveal b of a check triple,
// and with it, in a check that fails, the MAC key. Scalars and inverses reserve triples. Squares and bits make a check triple
// of two squares, as (x+y)(x-y) = x^2 - y^2. Random values, matrices and convolutions have one vector squared for that, whose
// square is decrypted too. The owner of input masks knows all that it proves alone, so all parties prove one more vector in the
// same rounds. Check triples are of the same batch and unverified; package maccheck says why that suffices. They live as long
// as the run, and are erased with it, so that no other check can use them.
//
// Convolution triples are matrix triples whose second factor is the windows of an image (convolution.go). That they are is
// checked in the same way, by differences that must be zero.
package triple
