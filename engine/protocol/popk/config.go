package popk

import (
	"errors"
	"io"
	"slices"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

//lodge:tests fields TestEachFieldChangesTheChallenge

// The checks of the proof, as a Blame names them.
const (
	CheckBound    = "popk-bound"    // a response is not below its bound
	CheckEquation = "popk-equation" // Enc(z; t) differs from comm + sum w ct
)

// Config is the configuration of a run: values on which all parties agree, and this party's
// randomness and messages.
type Config struct {
	Session  round.Session
	Step     string // distinguishes the proofs of one session
	Scheme   *gbfv.Scheme
	Instance *params.Instance
	Key      *gbfv.PublicKey
	KeyHash  round.Digest // of the public key
	// MACKey selects the proof of a MAC key: one ciphertext whose slots are all equal, with
	// witnesses and masks in the subring of X^D and challenges X^(kD).
	MACKey bool
	// Only names the single proving party, or is nil if every party proves. The other parties
	// verify, and commit to a nonce on which the challenge depends. Their shares of the messages
	// are zero.
	Only *round.Party

	Source  *sample.Source // this party's randomness for this step
	Workers int
	// Message fills in the slots of message i and the coefficients of the same element of
	// Z_p[X]/(X^D-b). Nil draws them uniformly. A MAC key is always drawn uniformly.
	Message func(i int, slots, coeffs field.Vec, s *sample.Stream)
}

// Result is the result of a run: the summed ciphertexts, and this party's summands of the messages.
type Result struct {
	Ciphertexts []*gbfv.Ciphertext // 2 sum_l ct_l
	Shares      []field.Vec        // D slots each: twice this party's message
}

// sizes returns the numbers of this run's proof.
func (c *Config) sizes() params.Proof {
	if c.MACKey {
		return c.Instance.MACKey
	}
	return c.Instance.Proof
}

func (c *Config) check() error {
	switch {
	case c.Scheme == nil || c.Instance == nil || c.Key == nil || c.Source == nil:
		return errors.New("popk: configuration without scheme, instance, key or source")
	//lodge:check popk/one-prover [run=TestStartRefuses] a party outside the session can
	//  be the single prover
	case c.Only != nil && (*c.Only < 0 || int(*c.Only) >= c.Session.Parties || c.MACKey):
		return errors.New("popk: the single prover is not in the roster, or the proof is for a MAC key")
	}
	//lodge:check popk/serves [swap=c.Scheme.Serves(c.Instance, c.Session.Parties)=>nil]
	//  [run=TestStartRefuses] a proof uses an instance of another scheme or another number of
	//  parties
	return c.Scheme.Serves(c.Instance, c.Session.Parties)
}

// proves reports whether a party proves.
func (c *Config) proves(p round.Party) bool { return c.Only == nil || *c.Only == p }

// fromProvers returns one copy of w for every other party that proves.
func (c *Config) fromProvers(w round.Want) []round.Want {
	return slices.DeleteFunc(c.Session.Each(w), func(w round.Want) bool { return !c.proves(w.From) })
}

// challenge derives the challenge monomials from the openings of all parties.
func (c *Config) challenge(opened round.Digest) (sigma.Challenge, error) {
	return newChallenge(c.Scheme, c.sizes(), c.Session.Challenge(c.Step, "lodge popk challenge", c.bound(opened)...))
}

// bound lists the values that the challenge hashes: session, step, instance, U, V, the kind of
// proof (0; 1 for a MAC key; 2 + l for the single prover l), key, and openings.
func (c *Config) bound(opened round.Digest) [][]byte {
	p, h, kind := c.sizes(), c.Instance.Hash(), uint64(0)
	switch {
	case p.Diag:
		kind = 1
	case c.Only != nil:
		//lodge:check popk/challenge/prover [swap=2 + uint64(*c.Only)=>2] [run=@fields] one party's
		//  proof passes for another party
		kind = 2 + uint64(*c.Only)
	}
	//lodge:check popk/challenge/step [drop=[]byte(c.Step)] [run=@fields] a proof can be replayed in
	//  another step of the session
	//lodge:check popk/challenge/instance [drop=h[:]] [run=@fields] the challenge does not bind the
	//  parameters
	//lodge:check popk/challenge/ciphertexts [drop=round.Uint(uint64(p.U))] [run=@fields] the
	//  challenge does not bind the number of ciphertexts
	//lodge:check popk/challenge/repetitions [drop=round.Uint(uint64(p.V))] [run=@fields] the
	//  challenge does not bind the number of repetitions
	//lodge:check popk/challenge/kind [swap=kind=>0 * kind] [run=@fields] a proof for a MAC key passes for
	//  other ciphertexts, and one party's for all
	//lodge:check popk/challenge/key [drop=c.KeyHash[:]] [run=@fields] a proof for one public key
	//  passes for another
	//lodge:check popk/challenge/statements [drop=opened[:]] [run=@fields|TestAChallengeBefore] a
	//  prover knows the challenge before it chooses its statement
	return [][]byte{
		//lodge:check popk/challenge/session [drop=c.Session.ID[:]] [run=@fields] a proof can be
		//  replayed in another session
		c.Session.ID[:], []byte(c.Step), h[:], round.Uint(uint64(p.U)), round.Uint(uint64(p.V)), round.Uint(kind), c.KeyHash[:], opened[:],
	}
}

func newChallenge(s *gbfv.Scheme, p params.Proof, xof io.Reader) (sigma.Challenge, error) {
	return sigma.NewChallenge(xof, p.V, p.U, s.N()/p.Terms, 2*p.Terms)
}

func (c *Config) statementName() string   { return c.Step + "/statement" }
func (c *Config) ciphertextsName() string { return c.Step + "/ciphertexts" }
func (c *Config) responseName() string    { return c.Step + "/response" }

// widths returns the number of bits of a coefficient of mu_z and of t in a response. Both can also
// represent values that are out of bounds, so that the verifier sees the violation.
func widths(p params.Proof) (z, t int) { return p.B1.BitLen() + 1, p.Bt1.BitLen() + 1 }

// responseSize returns the length in bytes of the frame of one repetition: mu_z and the three
// polynomials of t.
func responseSize(n int, p params.Proof) int {
	z, t := widths(p)
	return codec.SignedSize(p.Terms, z) + 3*codec.SignedSize(n, t)
}
