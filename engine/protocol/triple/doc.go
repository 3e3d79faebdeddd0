// Package triple generates authenticated triples (MatriGear, Fig. 4): shares of random a, b and c = a b, in
// Z_p or as matrices, and of their products with a MAC key alpha that nobody knows. It generates squares, random values,
// bits and inverses in the same way, with fewer ciphertexts or with an opening more, and input masks, whose values one party
// knows, from the ciphertexts of that party alone.
//
// StartMACKey makes the MAC key: a proof of plaintext knowledge whose message is one constant. Start makes a
// batch:
//
//  1. proof: every party proves knowledge of its ciphertexts of a and b (package popk); the sum of all is
//     doubled, and so is every party's share, as the proof is about twice the ciphertext;
//  2. evaluate: every party computes the ciphertexts of c, alpha a, alpha b and alpha c for itself;
//  3. compare: the parties compare the hash of what they will decrypt;
//  4. decrypt: each ciphertext is decrypted once to shares (package ddec);
//  5. check: the linear MAC check (package maccheck) over everything that will be released.
//
// For bits and inverses the products are opened before the check, which covers what was opened (see open.go). For input
// masks one party proves, and seeds for the shares are sent beside the hash of step 3 (see input.go).
//
// There is no sacrifice: alpha c comes from the same ciphertext as c, so a c that differs from a b has no
// valid MAC, provided that the evaluation keys are honest. Key generation does not prove that yet.
//
// A matrix triple of rows x inner times inner x columns is cut into blocks of d x d. Where inner is no
// multiple of d, the columns of a beyond it must be zero, or else they would add to c: every party puts zeros
// there, and the check opens a random combination of these authenticated values, which must be zero.
package triple
