// Package linear multiplies matrices and vectors with the help of a party that sees only
// ciphertexts. It offers products of two matrices of the caller ([Client.Multiply]), and the two
// ends of products on shares: one end has the key ([Client.AskVector], [Client.AskBatch]), the
// other the matrix or vectors to multiply with ([Client.AnswerVector], [Client.AnswerBatch]).
//
// The party must follow the protocol for security to hold. It learns the shapes and the bounds of
// the entries, and nothing from the ciphertexts. An answering end reveals its input to the party,
// so the party must be its own. An asking end proves that its key and input are well formed, so it
// need not be trusted to follow the protocol; it learns its share, up to a statistical distance
// that [Shares] reports. Distances add up over products of the same two clients; the party refuses
// products with the code "burnt" when their budget is used up. Every product uses a new key, which
// is erased afterwards.
//
// Under [linear.Unproved] no input is proved, and a client with malformed inputs learns the matrix
// over thousands of products. Parties refuse this set unless their operators have set
// allow_unproved_linear. docs/guides/linear.md has details.
package linear
