// Package ciphertext is the client of decryption by all parties together, under keys with the
// purpose decryption; package threshold is the client of decryption by t+1 parties.
// [Client.Encrypt] encrypts vectors under the parties' joint key, a [Key], with a proof that the
// client knows them. A [Ciphertext] is stored with its proof in one file. [Client.Decrypt] requests
// the decryption from all parties and combines their answers.
//
// The parties answer a client that all of them know by the same name and that has the permission
// decrypt. The proof names that client, so that no client can have another client's ciphertext
// decrypted. A party answers once for each ciphertext: a repeated request gets the same bytes. The
// proof of a cheating client may hold only for twice the ciphertext, so the parties decrypt twice
// the ciphertext. This package encrypts half of every value to compensate; users need not know.
//
// The parties' answers are not proved yet: a wrong answer makes the result wrong without being
// detected.
package ciphertext
