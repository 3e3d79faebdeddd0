// Package hardness estimates the cost of the best known attacks on LWE. It is the only security
// model of the project: every parameter set of every scheme is checked with it.
//
// # Attacks
//
// The model follows the lattice-estimator of Albrecht and others
// (github.com/malb/lattice-estimator, commit 27a581b) with three attacks on n-dimensional LWE
// modulo q, with errors of deviation sigma, and with as many samples as the attack wants. BKZ with
// block size beta has the root Hermite factor delta(beta) and gives a geometric series of
// Gram-Schmidt norms. The secret is scaled to the errors.
//
//	usvp         the embedding of d dimensions has an unusually short vector (Albrecht et al., 2017): the first beta with
//	             sigma sqrt(beta) <= delta^(2 beta - d - 1) vol^(1/d)
//	bdd          reduction with beta, then one sieve in the last eta dimensions, eta the first for which the
//	             projection of the error is shorter than the Gaussian heuristic says of the lattice
//	dual hybrid  short vectors of the dual turn n - zeta coordinates of the secret into an error; the others are guessed
//	             (Espitau, Joux and Kharchenko, 2020)
//
// usvp is computed for its block size, which bounds the search for the others. It never costs less
// than bdd.
//
// # Costs
//
// An attack is costed three times. MATZOV has d-beta progressive sieves of 2^(0.296 beta' + 20.39)
// gates after dimensions for free; BDGL16 has 8 d sieves of 2^(0.292 beta + 16.4). The smaller
// result is the classical figure. The quantum figure has the same attacks with 8 d sieves of
// 2^(0.257 beta + 16.4) (Chailloux and Loyer, 2021: the estimator's ChaLoy21_BKZ), and the dual
// attack guesses among the square root of the candidates, as by Grover's search. Nobody knows how
// to run either: the memory for the sieve alone is 2^(0.2 beta) vectors, with quantum access.
//
// # Margin
//
// Margin is subtracted from the results of the formulas. The test compares the result with outputs
// of the estimator for 22 kinds of samples that have shipped and for 140 candidates (testdata): it
// is never above an output, and at most half a bit below where the estimator supports the kind of
// secret. The estimator needs SageMath and is not run by any build, so for a kind of sample that is
// not in the table, only this model was used. The table has no quantum costs either.
//
// # Secrets with blocks
//
// Multi-key secrets have at most one 1 among Block coordinates (Blocks). The estimator counts
// guesses as if coordinates were independent. An attacker guesses whole blocks: Block+1 candidates
// for Block coordinates, log2(3)/2 = 0.79 bits a coordinate for blocks of two. That costs 3.5 bits
// less, and this model counts it. No row of the table has such secrets.
package hardness
