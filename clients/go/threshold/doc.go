// Package threshold is the client of threshold keys for Go programs: it fetches their public and evaluation keys, encrypts,
// and has any threshold + 1 of the holders decrypt, going round those that are down.
//
// A ciphertext that anybody gets decrypted tells them its message, and what is decrypted may depend on noise: which
// client may decrypt what is for the parties' policies to say, and each party holds to its own. The package's results are
// right if the parties of the quorum follow the protocol.
package threshold
