// Package verify is the independent checker of exported tuples. Given the share directories of all
// parties (docs/reference/export-format.md), [Dirs] adds up the shares, checks the properties on
// which an online phase relies, and returns a [Report]:
//
//   - the parties agree on what they exported, and every party is present exactly once;
//   - the modulus is the prime that the named parameter set and field stand for;
//   - every element is canonical, and every file has the length and the SHA-256 that its manifest states;
//   - c = a*b, or C = A*B, for every triple; squares, inverses and bits have their relations too;
//   - every value's MAC is alpha times the value, alpha being the sum of the parties' MAC-key shares, and not zero;
//   - the value of an input mask that its owner has in clear is the sum of the shares;
//   - no factor is zero, and none occurs twice; bits are not all the same.
//
// It shares no code with the protocols and uses only math/big and the standard library, which a
// test enforces. Everything except matrix products is checked exactly. Matrix products are checked
// with Freivalds' method: C*r = A*(B*r) for vectors r drawn uniformly from Z_p by crypto/rand after
// the files are read. A wrong product passes for one vector with probability at most 1/p; the check
// uses enough vectors to reduce this to at most 2^-100.
//
// The checker sees all secrets, including the MAC key. Triples checked this way must not be used,
// and the key's epoch must be retired. Running times depend on secret values; run it where that
// does not matter.
package verify
