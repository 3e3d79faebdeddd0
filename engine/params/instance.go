package params

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
)

//lodge:tests uses TestInvalidUses|TestWhatFits|TestUseIsCompleted|TestProvedInstances|TestFlooding

// Version of the protocols; part of every instance hash.
const Version = 1

// Limits on uses. Noise allows far smaller uses only.
const (
	MaxParties = 256
	maxInner   = 1 << 20
	maxU       = 1 << 20
)

// scalarBlocks is the number of blocks of D scalar triples of the batch for which a use that leaves
// U open is sized.
const scalarBlocks = 16

// A Use is the purpose of an [Instance], which determines its sizes.
type Use struct {
	Parties int // n, 2 to MaxParties
	Dim     int // rows d of the square blocks, a power of two; 1 for scalar triples
	U       int // ciphertexts that each party proves in one batch; 0 takes that of one batch: DefaultU(Dim, 1), for scalars 16 blocks
	Inner   int // terms of the inner products that are accumulated before decryption, a multiple of Dim; 0 takes Dim
}

// DefaultU is the number of PoPK ciphertexts of a batch of blocks: two factors of dim ciphertexts
// each and, for matrices, one of which a slot masks the combination that the MAC check opens.
// Scalars give up a triple for that.
func DefaultU(dim, blocks int) int {
	if dim == 1 {
		return 2 * blocks
	}
	return 2*dim*blocks + 1
}

// An Instance is a [Set], a field and a [Use] whose noise fits, with every number that parties must
// share.
type Instance struct {
	Set   *Set
	Field FieldSpec
	Use   Use // U and Inner filled in

	Proof        // of the U ciphertexts of a batch
	MACKey Proof // of the MAC key: U = 1, Diag
	VDiag  int   // MACKey.V

	DDecPrimes int      // distributed decryption works modulo q', the product of the first DDecPrimes primes of Q
	PhaseBound *big.Int // coefficients of the phase error after the switch to q' are at most this
	FloodBound *big.Int // E: coefficients of each party's flooding are uniform in [-E, E]

	BDecLog2         float64 // log2 of the largest relative noise that is decrypted, before flooding
	NeedLog2         float64 // log2 of the least q that fits
	HaveLog2         float64 // log2 q
	FloodBits        float64 // log2(E/PhaseBound), at least LambdaDDec
	StatSecurityBits int     // overall statistical security after 2^20 decrypted ciphertexts
	Noise            []Term  // the noise model, term by term

	hash [32]byte
}

// ErrUse is wrapped by the error of Resolve for a use that makes no sense under any set.
var ErrUse = errors.New("params: invalid use")

// DoesNotFit is the error of Resolve for a use that the set cannot serve.
type DoesNotFit struct {
	Set, Field string
	Use        Use
	Reason     string
	Short      int      // missing bits of q, rounded up; 0 when the reason is not noise
	Fits       []string // secure sets that serve the same field and use
}

func (e *DoesNotFit) Error() string {
	fits := "no set does"
	if len(e.Fits) > 0 {
		fits = "these do: " + strings.Join(e.Fits, ", ")
	}
	return fmt.Sprintf("params: %s does not fit %s with %d parties, d = %d, U = %d, inner length %d: %s; %s",
		e.Set, e.Field, e.Use.Parties, e.Use.Dim, e.Use.U, e.Use.Inner, e.Reason, fits)
}

// Resolve computes the instance for a use. The error wraps [ErrUse], or is a [*keyset.UnknownError]
// for a field that the set does not have, or a [*DoesNotFit].
func Resolve(s *Set, field string, u Use) (*Instance, error) {
	//lodge:check params/validated [run=@uses|@set|TestDoesNotFit|TestSetsAreIndependent] an
	//  instance of an invalid set is made
	if err := s.Validate(); err != nil {
		return nil, err
	}
	f, err := s.Field(field)
	if err != nil {
		return nil, err
	}
	if u, err = u.complete(); err != nil {
		return nil, err
	}
	inst, miss := fit(s, f, u)
	if miss != nil {
		miss.Fits = setsThatFit(field, u, s.proved)
		return nil, miss
	}
	if inst.hash, err = inst.digest(); err != nil {
		return nil, err
	}
	return inst, nil
}

func (u Use) complete() (Use, error) {
	//lodge:check params/use/parties [run=@uses] an instance has too few or too many parties
	if u.Parties < 2 || u.Parties > MaxParties {
		return u, fmt.Errorf("%w: %d parties", ErrUse, u.Parties)
	}
	//lodge:check params/use/dimension [run=@uses] blocks have a dimension without rotations
	if u.Dim < 1 || u.Dim > maxInner || bits.OnesCount(uint(u.Dim)) != 1 {
		return u, fmt.Errorf("%w: dimension %d is not a power of two", ErrUse, u.Dim)
	}
	if u.U == 0 && u.Dim == 1 {
		u.U = DefaultU(1, scalarBlocks)
	} else if u.U == 0 {
		u.U = DefaultU(u.Dim, 1)
	}
	if u.Inner == 0 {
		u.Inner = u.Dim
	}
	//lodge:check params/use/ciphertexts [run=@uses] a proof has no ciphertexts, or too many
	if u.U < 1 || u.U > maxU {
		return u, fmt.Errorf("%w: %d ciphertexts per proof", ErrUse, u.U)
	}
	//lodge:check params/use/inner [run=@uses] the noise bounds do not cover the length of inner
	//  products
	if u.Inner < u.Dim || u.Inner > maxInner || u.Inner%u.Dim != 0 {
		return u, fmt.Errorf("%w: inner length %d is not a multiple of %d", ErrUse, u.Inner, u.Dim)
	}
	return u, nil
}

// fit computes an instance without its hash, or returns the reason why the noise does not fit.
func fit(s *Set, f FieldSpec, u Use) (*Instance, *DoesNotFit) {
	miss := &DoesNotFit{Set: s.Name, Field: f.Name, Use: u}
	//lodge:check params/fits/slots [run=@uses|TestDoesNotFit] a block does not fit a ciphertext
	if d := s.Slots(f); u.Dim > d {
		miss.Reason = fmt.Sprintf("a ciphertext has %d slots", d)
		return nil, miss
	}
	i := &Instance{
		Set: s, Field: f, Use: u,
		Proof:  newProof(s, f, u.U, false),
		MACKey: newProof(s, f, 1, true),
	}
	i.VDiag = i.MACKey.V
	//lodge:check params/fits/proved [run=@uses] keys are proved with a set that cannot afford the
	//  proofs
	if s.proved && s.Keys != KeysProved {
		miss.Reason = "its modulus has no room for proofs of keys"
		return nil, miss
	}
	k := s.keyBounds(u.Parties)
	v := newNoise(s, f, u, i.Proof, i.MACKey, k)
	q := s.Modulus()
	i.NeedLog2, i.HaveLog2 = v.need.log2(), log2Int(q)
	need := v.need.ceil()
	for h := new(big.Int).Set(q); h.Cmp(need) < 0; h.Lsh(h, 1) {
		miss.Short++
	}
	//lodge:check params/fits/noise [run=@uses|TestDoesNotFit] the noise overflows the modulus
	if miss.Short > 0 {
		miss.Reason = fmt.Sprintf("the noise needs a modulus of %.1f bits and q has %.1f, %d too few",
			i.NeedLog2, i.HaveLog2, miss.Short)
		return nil, miss
	}
	//lodge:check params/fits/flooding [run=@uses|TestDoesNotFit] [redundant=the noise bound already
	//  includes the flooding] decryption has no modulus left for its flooding
	if !i.setDecryption(v) {
		miss.Reason = "the flooding of distributed decryption has no room"
		return nil, miss
	}
	i.StatSecurityBits = s.StatSecurityBits()
	i.Noise = v.terms(k)
	return i, nil
}

// setDecryption chooses the smallest prefix q' of Q under which E, the largest integer with
// (b+1)(PhaseBound + n(E+1)) < q'/2, is at least 2^LambdaDDec times PhaseBound. The 1 in E+1 bounds
// the error of each party's mask, which is at most (b/2+1)/(b-1).
func (i *Instance) setDecryption(v noise) bool {
	bPlus1, bMinus1 := new(big.Int).Add(i.Field.B, one), new(big.Int).Sub(i.Field.B, one)
	relative := v.macAlphaC.times(fixedInt(bPlus1)) // times q: B_Dec
	phase := relative.over(bMinus1)
	q := i.Set.Modulus()
	i.BDecLog2 = relative.log2() - log2Int(q)
	n := big.NewInt(int64(i.Use.Parties))
	for k := 1; k <= len(i.Set.Q); k++ {
		qq := product(i.Set.Q[:k])
		bound := phase
		if k < len(i.Set.Q) {
			bound = fixed{divUp(new(big.Int).Mul(phase.v, qq), q)}.plus(v.switching)
		}
		phaseBound := bound.ceil()
		room := new(big.Int).Sub(qq, one)
		room.Quo(room, new(big.Int).Lsh(bPlus1, 1))
		e := room.Sub(room, phaseBound)
		if e.Sign() <= 0 {
			continue
		}
		e.Quo(e, n).Sub(e, one)
		//lodge:check params/flooding [swap=i.Set.LambdaDDec=>i.Set.LambdaDDec / 2]
		//  [run=TestFlooding|TestInstanceHashes] the flooding is smaller than the statistical
		//  security demands
		if e.Cmp(new(big.Int).Lsh(phaseBound, uint(i.Set.LambdaDDec))) >= 0 {
			i.DDecPrimes, i.PhaseBound, i.FloodBound = k, phaseBound, e
			i.FloodBits = log2Int(e) - log2Int(phaseBound)
			return true
		}
	}
	return false
}

// setsThatFit lists the secure sets that serve a field and use, under keys that were proved or were
// not.
func setsThatFit(field string, u Use, proved bool) []string {
	var names []string
	for _, s := range registry() {
		s.proved = proved
		if s.Insecure {
			continue
		}
		if f, err := s.Field(field); err == nil {
			if _, miss := fit(s, f, u); miss == nil {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// Term finds a term of the noise model by name.
func (i *Instance) Term(name string) (Term, bool) {
	for _, t := range i.Noise {
		if t.Name == name {
			return t, true
		}
	}
	return Term{}, false
}

// NeedWithProvedKeys is log2 of the least q once key shares are proved with the given number of
// challenges, a power of two from 4 to 2N/d: proofs bound the keys less tightly than honesty does.
func (i *Instance) NeedWithProvedKeys(challenges int) float64 {
	if challenges < 4 || bits.OnesCount(uint(challenges)) != 1 {
		return math.Inf(1)
	}
	k := provedKeys(i.Set, i.Use.Parties, challenges)
	return newNoise(i.Set, i.Field, i.Use, i.Proof, i.MACKey, k).need.log2()
}
