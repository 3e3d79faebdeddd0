package params

import "fmt"

// A KeyProof holds the parameters of the proof that one party's shares of the keys are well formed.
// Its challenges are the monomials X^(k Stride), which the rotations of the keys fix. Each of V
// repetitions has one response to the secret, one to the ephemeral secret of the relinearisation
// key, and one to the error of every equation.
type KeyProof struct {
	Challenges int     // |C|, a power of two
	Stride     int     // 2N/|C|
	V          int     // repetitions
	MaskWidth  float64 // 2*sqrt(2V)*beta: masks of secrets and of errors
	Bound      int64   // the canonical norm of every response must be at most this
	Bits       int     // of a coefficient of a response, the sign included
}

// Challenge sets. The larger one makes shorter proofs, the smaller one tighter bounds, which many
// parties need.
const (
	manyChallenges   = 256
	fewChallenges    = 32
	partiesWithMany  = 16
	minKeyChallenges = 4
)

// keyChallenges is the largest challenge set of key proofs of n parties. Rotations of a high
// dimension leave fewer.
func (s *Set) keyChallenges(parties int) int {
	c := manyChallenges
	if parties > partiesWithMany {
		c = fewChallenges
	}
	return min(c, 2*s.N())
}

// KeyProof returns the sizes of the proofs of n parties' shares of keys whose rotations serve
// blocks of dimension dim. The rotations fix the 2N/dim powers of X^dim, including their negatives.
func (s *Set) KeyProof(parties, dim int) (KeyProof, error) {
	switch {
	//lodge:check params/key-proof/set [run=TestKeyProof|TestProvedInstances] keys are proved with a
	//  set that cannot afford the proofs
	case s.Keys != KeysProved:
		return KeyProof{}, fmt.Errorf("params: keys of %s cannot be proved", s.Name)
	//lodge:check params/key-proof/parties [run=TestKeyProof] the proof of a key is sized for an
	//  unsupported number of parties
	case parties < 2 || parties > MaxParties:
		return KeyProof{}, fmt.Errorf("%w: %d parties", ErrUse, parties)
	//lodge:check params/key-proof/dimension [run=TestKeyProof] the rotations leave too few
	//  challenges
	case dim < 1 || dim&(dim-1) != 0 || 2*s.N()/dim < minKeyChallenges:
		return KeyProof{}, fmt.Errorf("%w: rotations of dimension %d", ErrUse, dim)
	}
	c := min(s.keyChallenges(parties), 2*s.N()/dim)
	v := repetitions(s, c)
	return KeyProof{
		Challenges: c, Stride: 2 * s.N() / c, V: v,
		MaskWidth: betaSquared(s).timesInt(8 * v).sqrt().width(),
		Bound:     keyResponse(s, c).floor(),
		Bits:      keyResponseWidth(s, c).timesInt(6).ceil().BitLen() + 1, // six widths, fifteen standard deviations
	}, nil
}

// keyResponseWidth is the width of every coefficient of an honest response,
// 2*sqrt(2)*beta*sqrt(1+V): a witness turned by a monomial and a mask.
func keyResponseWidth(s *Set, challenges int) fixed {
	return betaSquared(s).timesInt(8 * (1 + repetitions(s, challenges))).sqrt()
}

// keyResponse bounds the canonical norm of a response, 3.96*sqrt(N)*width. The square of a value of
// an honest one is close to exponential with mean N*width^2/(2*pi), so that it exceeds this with
// probability exp(-3.96^2*2*pi), below 2^-142.
func keyResponse(s *Set, challenges int) fixed {
	return fixedOf(s.N()).sqrt().times(keyResponseWidth(s, challenges), ratio(396, 100))
}

// Proved returns the set for epochs whose keys were proved. Its Resolve bounds keys and noise by
// the bounds that the proofs show, instead of assuming honest keys, and the instances have
// different hashes. The hash of the set is the same, because the ring and the distributions are the
// same. If keys of the set cannot be proved, Resolve fails, and its error names the sets whose keys
// can.
func (s *Set) Proved() *Set {
	c := *s
	c.proved = true
	return &c
}

// IsProved reports whether the set serves epochs whose keys were proved.
func (s *Set) IsProved() bool { return s.proved }

// keyBounds returns the bounds of keys of n parties.
func (s *Set) keyBounds(parties int) keyBounds {
	if s.proved {
		//lodge:check params/key-bounds [swap=provedKeys(s, parties,
		//  s.keyChallenges(parties))=>honestKeys(s, parties)]
		//  [run=TestProvedInstances|TestTablesOf|TestDefaultSet] noise bounds assume honest keys
		//  although proofs show less
		return provedKeys(s, parties, s.keyChallenges(parties))
	}
	return honestKeys(s, parties)
}
