// Package ciphertext is the client's side of threshold decryption: it encrypts vectors under the parties' joint key with a
// proof that the client knows them, keeps ciphertext and proof in one file, and has all parties decrypt it together.
//
// The parties answer a client that each of them knows by the same name, with the permission decrypt. The proof names that
// client, so that nobody has another's ciphertext decrypted, and a party answers once for each ciphertext: who asks again
// gets the same bytes. The proof of a cheating client may hold for twice the ciphertext only, and so the parties decrypt
// twice the ciphertext; this package encrypts half of every value, and nobody else needs to know.
//
// What the parties answer is not proved yet: a party that answers wrongly makes the result wrong, and nothing tells.
package ciphertext
