// Package verify is the independent checker of exported tuples. Given the share directories of all parties
// (docs/export-format.md) it adds up the shares and checks what an online phase will rely on:
//
//   - the parties agree on what they exported, and every party is there once;
//   - the modulus is the prime that the named parameter set and field stand for;
//   - every element is canonical, and every file has the length and the SHA-256 that its manifest states;
//   - c = a*b, or C = A*B, for every triple; a square, an inverse or a bit is one;
//   - every value's MAC is alpha times the value, alpha being the sum of the parties' MAC-key shares, and not zero;
//   - the value of an input mask that its owner has in clear is the sum of the shares;
//   - no factor is zero, and none occurs twice; bits are not all the same.
//
// It shares no code with the protocols: math/big and the standard library only (a test holds it to that). All but matrix
// products is checked exactly. Matrix products are checked with Freivalds' method: C*r = A*(B*r) for vectors r drawn
// uniformly from Z_p by crypto/rand once the files are read; a wrong product passes one vector with probability at most
// 1/p, and vectors are repeated until that is at most 2^-100.
//
// Whoever runs it sees all secrets, the MAC key included: triples that were checked this way must not be used, and the
// key's epoch must be retired. Times depend on secret values; run it where that does not matter.
package verify
