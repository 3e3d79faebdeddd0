// Package threshold is the Go client for threshold keys. A [Client] downloads their public and
// evaluation keys ([Client.PublicKey], [Client.EvaluationKeys], [Client.BGVKeys]), and has any
// threshold + 1 of the holders decrypt, avoiding holders that are down ([Client.Decrypt]).
// [Encrypt] and [EncryptBGV] encrypt.
//
// A client whose ciphertext is decrypted learns its message, and the result may depend on noise. So
// the parties' policies decide which client may decrypt which ciphertexts, and each party enforces
// its own policy. The package's results are correct if the parties of the quorum follow the
// protocol.
package threshold
