package params

import "math/big"

// Version of the protocols; part of every instance hash.
const Version = 1

// A Use says what an instance is for.
type Use struct {
	Parties int // n, 2 to MaxParties
	Dim     int // rows d of the square blocks, a power of two; 1 for scalar triples
	U       int // ciphertexts that each party proves in one batch; 0 takes DefaultU(Dim, 1)
	Inner   int // length of the inner products accumulated before decryption; 0 takes Dim
}

// MaxParties bounds the number of parties.
const MaxParties = 64

// A Proof holds the parameters of one kind of PoPK batch. Witness and mask are drawn in units of P = X^D-b, so mu = P*x.
type Proof struct {
	Diag bool // the message is one constant in every slot, challenges are multiples of X^D
	U    int  // ciphertexts per party and batch
	V    int  // repetitions

	WidthX float64 // s1: message witnesses x
	WidthY float64 // sqrt(U+1)*s2: message masks
	WidthR float64 // g1: encryption randomness r0, r1, r2
	WidthS float64 // sqrt(U+1)*g2: masks of encryption randomness

	B1  *big.Int // every coefficient of a party's response mu_z is less than B1 in absolute value
	Bt1 *big.Int // every coefficient of a party's responses t is less than Bt1 in absolute value
}

// An Instance is a set, a field and a use whose noise fits, with every number that parties must share.
type Instance struct {
	Set   *Set
	Field FieldSpec
	Use   Use // U and Inner filled in

	Proof        // of the U ciphertexts of a batch
	MACKey Proof // of the MAC key: U = 1, Diag
	VDiag  int   // MACKey.V

	DDecPrimes int      // distributed decryption works modulo q', the product of the first DDecPrimes primes of Q
	PhaseBound *big.Int // bound on the phase error after the switch to q'
	FloodBound *big.Int // E: flooding is uniform in [-E, E]

	BDecLog2         float64 // log2 of the relative noise B_Dec before decryption
	NeedLog2         float64 // log2 of the least q that fits
	HaveLog2         float64 // log2 q
	StatSecurityBits int     // overall statistical security after 2^20 decrypted ciphertexts
	Noise            []Term  // the noise model, term by term
}

// A Term is one bound of the noise model.
type Term struct {
	Name  string
	Bound *big.Int // rounded up
	Log2  float64
}

// Resolve computes the instance for a use, or returns a *DoesNotFit error.
func Resolve(s *Set, field string, u Use) (*Instance, error) {
	f, err := s.Field(field)
	if err != nil {
		return nil, err
	}
	return &Instance{Set: s, Field: f, Use: u}, nil
}

// DefaultU is the number of PoPK ciphertexts of a batch of blocks: two factors of dim ciphertexts each, and one whose
// slots mask the values that the MAC check opens.
func DefaultU(dim, blocks int) int { return 2*dim*blocks + 1 }

// DoesNotFit says that a set cannot serve a use.
type DoesNotFit struct {
	Set, Field string
	Use        Use
	Reason     string
	Short      int      // missing bits of q, at least 1; 0 when the reason is not noise
	Fits       []string // secure sets that serve the same field and use
}

func (e *DoesNotFit) Error() string { return "params: " + e.Set + " does not fit" }

// Hash identifies the set.
func (s *Set) Hash() [32]byte { return [32]byte{} }

// Hash identifies the instance.
func (i *Instance) Hash() [32]byte { return [32]byte{} }
