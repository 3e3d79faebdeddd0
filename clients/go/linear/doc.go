// Package linear has matrices and vectors multiplied by a party that sees none of what is encrypted: products of two
// matrices of the caller's own (Multiply), and the two ends of products on shares, of which one has the key (AskVector,
// AskBatch) and the other what is multiplied with (AnswerVector, AnswerBatch).
//
// Security holds against a party that follows the protocol. The party learns the shapes and the bounds of the entries, and
// from the ciphertexts nothing. An end that answers shows its own input to the party, which is therefore its own. The end that
// asks proves that its key and input are well formed, whatever it does otherwise, and learns its share, but for a statistical
// distance that Shares tell. Distances add up over products of the same two clients; the party refuses products with the code
// "burnt" when their budget is used up. A key is drawn for every product and erased after it.
//
// Under linear.Unproved nobody proves anything, and a client with malformed inputs learns the matrix over thousands of
// products. Parties refuse it unless their operators have set allow_unproved_linear. docs/linear.md says more.
package linear
