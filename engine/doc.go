// Package engine is the root of Lodge's cryptographic engine: pure computation without network,
// disk, clock or ambient randomness. Every random operation receives its randomness as an explicit
// argument.
//
// # The five systems
//
//  1. Authenticated tuples for SPDZ (MatriGear), against up to n-1 malicious parties if the keys
//     are proved. Package gbfv encrypts and multiplies. In protocol, keygen makes the joint keys,
//     popk proves the inputs, triple makes a batch with ddec (decryption) and maccheck (the MAC
//     check), and verdict releases it.
//  2. Threshold decryption (Ajax) by any t+1 of n parties that follow the protocol. Ciphertexts are
//     those of packages lwe and bgv. In protocol/threshold, lwekeys and bgvkeys make the keys,
//     reshare moves them to other parties, masks makes masks in advance, and decrypt and bgvdecrypt
//     decrypt.
//  3. Multi-key TFHE: gates on bits that are encrypted under several parties' own keys. Packages
//     multikey and multikey/circuit compute, protocol/threshold/mkdecrypt decrypts.
//  4. Products of a matrix and a shared vector, or of small shared matrices and vectors, by two
//     parties (Crypt-CNN). Package linear has the plans VectorPlan and BatchPlan.
//  5. Packed products of encrypted matrices (Duong, Mishra and Yasuda), computed by one party for
//     the owner of the key. Package linear has the plan ProductPlan.
//
// # The packages
//
// A package imports only packages from lower layers. imports_test.go lists the layers and enforces
// this. The lists below are in a readable order, not in the order of the layers.
//
// Foundations:
//
//   - [github.com/lodge-mpc/lodge/engine/kind]: the kinds of tuples: names, values, steps and relations
//   - [github.com/lodge-mpc/lodge/engine/kernel]: modular arithmetic on words and slices of words
//   - [github.com/lodge-mpc/lodge/engine/intpoly]: polynomials with multi-word signed integer
//     coefficients
//   - [github.com/lodge-mpc/lodge/engine/parallel]: independent pieces of a computation on several
//     goroutines
//   - [github.com/lodge-mpc/lodge/engine/secret]: holders that redact and erase their values
//   - [github.com/lodge-mpc/lodge/engine/hardness]: the cost of the best known attacks on LWE, for
//     every parameter set
//   - [github.com/lodge-mpc/lodge/engine/keyset]: registries and hashes of parameter sets, and
//     public keys sent in chunks
//   - [github.com/lodge-mpc/lodge/engine/longtest]: tests that take too long for every run
//   - [github.com/lodge-mpc/lodge/engine/ring]: R_q = Z_q[X]/(X^N+1) in RNS: NTT, automorphisms,
//     basis extension, scaling
//   - [github.com/lodge-mpc/lodge/engine/field]: Z_p for p = b^M+1: fixed limbs, packing
//     transforms, vectors
//   - [github.com/lodge-mpc/lodge/engine/sample]: named streams; uniform, ternary, discrete
//     Gaussian, flooding
//   - [github.com/lodge-mpc/lodge/engine/sigma]: the core of proofs of short linear relations
//   - [github.com/lodge-mpc/lodge/engine/codec]: canonical, bounded, bit-packed encoding
//   - [github.com/lodge-mpc/lodge/engine/share]: Shamir's secret sharing over a prime field
//   - [github.com/lodge-mpc/lodge/engine/ot]: correlated oblivious transfer between two parties
//   - [github.com/lodge-mpc/lodge/engine/params]: parameter sets of triple generation: fields,
//     noise bounds, security
//
// Encryption:
//
//   - [github.com/lodge-mpc/lodge/engine/gbfv]: generalized BFV: packing, encryption, evaluation,
//     the matrix product, keys
//   - [github.com/lodge-mpc/lodge/engine/lwe]: LWE and ring ciphertexts modulo one prime; gates and
//     lookups by blind rotation
//   - [github.com/lodge-mpc/lodge/engine/bgv]: parameter sets, keys and ciphertexts of BGV and BFV
//     in Lattigo's types
//   - [github.com/lodge-mpc/lodge/engine/linear]: BGV for products of shared or encrypted matrices
//     and vectors by two parties
//   - [github.com/lodge-mpc/lodge/engine/multikey]: gates on bits under different parties' own keys
//   - [github.com/lodge-mpc/lodge/engine/multikey/circuit]: netlists of these gates
//   - [github.com/lodge-mpc/lodge/engine/evaluation]: products of a batch as tasks that another
//     machine can compute
//   - [github.com/lodge-mpc/lodge/engine/catalogue]: the parameter sets of params, lwe, bgv and
//     multikey in one form
//
// Protocols, as chains of pure rounds:
//
//   - [github.com/lodge-mpc/lodge/engine/protocol/round]: the contract between a protocol and its
//     driver; commitments, echoes, blame
//   - [github.com/lodge-mpc/lodge/engine/protocol/keygen]: joint keys whose secret is the sum of
//     the parties' secrets
//   - [github.com/lodge-mpc/lodge/engine/protocol/popk]: proofs of plaintext knowledge by n parties
//   - [github.com/lodge-mpc/lodge/engine/protocol/ddec]: distributed decryption by all parties
//   - [github.com/lodge-mpc/lodge/engine/protocol/maccheck]: the MAC check of a batch, whose
//     failure does not reveal the MAC key
//   - [github.com/lodge-mpc/lodge/engine/protocol/triple]: authenticated tuples of every kind, in
//     batches
//   - [github.com/lodge-mpc/lodge/engine/protocol/verdict]: the joint release of a session's result
//   - [github.com/lodge-mpc/lodge/engine/protocol/threshold/lwekeys]: threshold keys for package
//     lwe
//   - [github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvkeys]: threshold keys for package
//     bgv
//   - [github.com/lodge-mpc/lodge/engine/protocol/threshold/reshare]: new shares of threshold keys,
//     for the same or other parties
//   - [github.com/lodge-mpc/lodge/engine/protocol/threshold/masks]: masks that a quorum spends when
//     it decrypts
//   - [github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt]: decryption of LWE ciphertexts
//     without flooding
//   - [github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvdecrypt]: decryption of BGV and BFV
//     ciphertexts
//   - [github.com/lodge-mpc/lodge/engine/protocol/threshold/mkdecrypt]: decryption of multi-key
//     ciphertexts by the owners of their keys
//   - [github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/complaint]: complaints about
//     dealt shares
//   - [github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/dealing]: seeds, digests and
//     workspaces of dealers
//   - [github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/table]: tables of residues
//
// For tests only:
//
//   - [github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest]: keys of package gbfv made in one process
//   - [github.com/lodge-mpc/lodge/engine/bgv/bgvtest]: users of package bgv, and operations with
//     secret keys
//   - [github.com/lodge-mpc/lodge/engine/protocol/round/roundtest]: all parties of a protocol in
//     one process, with faults on their links
//   - [github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine]: hooks by which a test makes
//     a party cheat
//   - [github.com/lodge-mpc/lodge/engine/protocol/cheattest]: the table of cheats, each with the
//     check that must detect it
package engine
