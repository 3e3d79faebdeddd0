// Package linear has matrices and vectors multiplied by a party that sees none of what is encrypted: products of two
// matrices of the caller's own (Multiply), and the two ends of products on shares, of which one has the key (AskVector,
// AskBatch) and the other what is multiplied with (AnswerVector, AnswerBatch).
//
// Security is passive: it holds against a party and clients that follow the protocol. The party learns the shapes and the
// bounds of the entries, and from the ciphertexts nothing. An end that answers shows its own input to the party, which is
// therefore its own; the end that asks learns its share, but for a statistical distance that Result tells, and that adds up
// over products with the same matrix. A key is drawn for every product and erased after it. docs/linear.md says more.
package linear
