package bgvdecrypt

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/share"
)

var (
	// ErrParams is returned if the parameters do not support the requested decryption.
	ErrParams = errors.New("bgvdecrypt: parameters do not fit")
	// ErrAnswers is returned if answers are malformed or belong to different runs.
	ErrAnswers = errors.New("bgvdecrypt: answers do not fit")
)

// Params returns the parameters of package decrypt for coefficients, under keys that threshold+1
// parties decrypt with.
func Params(s *bgv.Scheme, threshold int) (decrypt.Params, error) {
	k, err := decrypt.ExactOddKind(s.Q[0], s.T, threshold+1, math.Exp2(float64(s.LogNoise)))
	if err != nil {
		return decrypt.Params{}, err
	}
	p := decrypt.Params{
		Modulus: s.Q[0], Dimension: s.N(), LogP: bits.Len64(s.T), Parties: threshold + 1, Kind: k,
	}
	return p, p.Check()
}

// Chosen lists coefficients of a ciphertext by their degree.
type Chosen struct {
	Ciphertext *bgv.Ciphertext
	Degrees    []int
}

// Coefficients presents chosen coefficients to package decrypt, as LWE ciphertexts modulo q_0.
type Coefficients struct {
	scheme *bgv.Scheme
	list   []Chosen   // at level 0
	turned [][]uint64 // by ciphertext
	from   []at       // by index
}

// at is the origin of a coefficient.
type at struct{ chosen, degree int }

// Select switches ciphertexts to level 0 and selects coefficients. The error wraps ErrParams or is
// one of package bgv.
func Select(s *bgv.Scheme, list []Chosen) (*Coefficients, error) {
	c := &Coefficients{scheme: s}
	for i, ch := range list {
		low, err := s.Switch(ch.Ciphertext, 0)
		if err != nil {
			return nil, err
		}
		for _, k := range ch.Degrees {
			//lodge:check bgvdecrypt/degree [drop=k < 0] a coefficient outside the ciphertext is
			//  read
			if k < 0 || k >= s.N() {
				return nil, fmt.Errorf("%w: there is no coefficient of degree %d", ErrParams, k)
			}
			c.from = append(c.from, at{i, k})
		}
		c.list = append(c.list, Chosen{low, slices.Clone(ch.Degrees)})
		c.turned = append(c.turned, turned(low.C1.C[0], s.Q[0]))
	}
	if len(c.from) == 0 {
		return nil, fmt.Errorf("%w: no coefficients", ErrParams)
	}
	return c, nil
}

// Len returns the number of coefficients. They are ordered by ciphertext.
func (c *Coefficients) Len() int { return len(c.from) }

// turned returns the negated coefficients of c_1, highest first, followed by the coefficients,
// highest first.
func turned(c1 []uint64, q uint64) []uint64 {
	n := len(c1)
	v := make([]uint64, 2*n)
	for i, x := range c1 {
		v[2*n-1-i] = x
		if x != 0 { // not constant-time: ciphertexts are public
			v[n-1-i] = q - x
		}
	}
	return v
}

// At returns coefficient k of c_0 + c_1 s as b - <a, s>: a_j is minus coefficient k-j of c_1, or
// coefficient N+k-j if k < j.
func (c *Coefficients) At(i int) (a []uint64, b uint64) {
	of := c.from[i]
	from := c.scheme.N() - 1 - of.degree
	return c.turned[of.chosen][from : from+c.scheme.N()], c.list[of.chosen].Ciphertext.C0.C[0][of.degree]
}

// Messages computes the coefficients of the messages from the output of package decrypt, in lists
// in the order of the selection.
func (c *Coefficients) Messages(opened []uint64) [][]uint64 {
	var messages [][]uint64
	for _, ch := range c.list {
		n := len(ch.Degrees)
		m := make([]uint64, n)
		c.scheme.FromMu(m, opened[:n], ch.Ciphertext)
		messages, opened = append(messages, m), opened[n:]
	}
	return messages
}

// Additive returns a party's additive share of the key among a quorum of threshold+1 of the
// parties, modulo the first primes: one row of N residues for each prime. mine is the party's share
// from package bgvkeys.
func Additive(s *bgv.Scheme, parties int, quorum []int, self int, mine share.Vec, primes int) (ring.Poly, error) {
	//lodge:check bgvdecrypt/share [drop=!slices.Contains(quorum, self)] a party outside the quorum
	//  decrypts
	if len(mine) != s.N()*len(s.QP()) || primes < 1 || primes > len(s.Q) || !slices.Contains(quorum, self) {
		return ring.Poly{}, fmt.Errorf("%w: a share of %d residues does not fit %d primes", ErrParams, len(mine), primes)
	}
	out := s.Level(primes - 1).NewPoly()
	for k := range primes {
		f, err := share.New(s.Q[k], parties)
		if err != nil {
			return ring.Poly{}, err
		}
		f.Additive(out.C[k], quorum, self, mine[k*s.N():(k+1)*s.N()])
	}
	return out, nil
}
