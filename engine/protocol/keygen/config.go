package keygen

import (
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
)

//lodge:tests starts TestSecurityOfARun|TestStartRefuses|TestModes|TestDimensions

// CheckAgree compares the keys that the parties computed.
const CheckAgree = "keygen-agree"

// Config is the configuration of a run: values on which all parties agree, and this party's
// randomness.
type Config struct {
	Session round.Session
	Scheme  *gbfv.Scheme // over any field: keys belong to the parameter set
	// Dim is the largest dimension d of matrix blocks that the rotation keys serve. There are d-1
	// rotation keys.
	Dim int
	// Security is Proved or Passive. The default is Proved if the set's keys can be proved, and
	// Passive otherwise.
	Security string

	Source  *sample.Source // this party's randomness
	Workers int
}

func (c *Config) check() error {
	switch {
	case c.Scheme == nil || c.Source == nil:
		return errors.New("keygen: configuration without scheme or source")
	//lodge:check keygen/modes [run=@starts] a run accepts a security mode other than proved and
	//  passive
	case c.Security != Passive && c.Security != Proved:
		return fmt.Errorf("keygen: unknown security %q (use %s or %s)", c.Security, Proved, Passive)
	}
	if err := checkDim(c.Scheme, c.Dim); err != nil || c.Security == Passive {
		return err
	}
	proof, err := c.Scheme.Set.KeyProof(c.Session.Parties, c.Dim)
	if err != nil {
		return fmt.Errorf("keygen: %w", err)
	}
	st := statement{Config: c, proof: proof}
	if st.frameSize(slot{kind: publicKey}) > round.MaxFrame {
		return errors.New("keygen: the proof of an equation exceeds a frame")
	}
	return nil
}

func checkDim(s *gbfv.Scheme, d int) error {
	//lodge:check keygen/dimension [run=@starts] keys use rotations that challenges do not commute
	//  with
	if d < 1 || d&(d-1) != 0 || d > s.N()/2 {
		return fmt.Errorf("keygen: no rotation keys of dimension %d", d)
	}
	return nil
}

// The guarantees about the parties' shares of the keys.
const (
	Passive = params.Passive // none: a party that deviates is not detected
	Proved  = params.Proved  // every party has verified that all shares are well formed, with short secrets and errors
)

// Result is the result of a run for one party.
type Result struct {
	Keys     *PublicKeys
	Secret   Secret
	Security string // Passive or Proved
}

// Wipe erases the share of the secret key.
func (r *Result) Wipe() { r.Secret.Wipe() }

// Secret is a share of the secret key: N coefficients. It prints as a placeholder.
type Secret []int64

// Wipe erases the share.
func (s Secret) Wipe() { clear(s) }

// Format prints a placeholder for every verb.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

// MarshalText returns a placeholder.
func (Secret) MarshalText() ([]byte, error) { return []byte(secret.Redacted), nil }

// slot is one polynomial that every party sends.
type slot struct {
	kind  kind
	g     int // Galois element of a rotation key
	digit int
}

// name returns the label and indices of the random stream of a slot.
func (at slot) name() (label string, index []uint64) {
	switch at.kind {
	case publicKey:
		return "public", nil
	case rotation:
		return "rotation", []uint64{uint64(at.g), uint64(at.digit)}
	case relinH0:
		return "relin h0", []uint64{uint64(at.digit)}
	case relinH1:
		return "relin h1", []uint64{uint64(at.digit)}
	}
	return "relin second", []uint64{uint64(at.digit)}
}

type kind uint8

const (
	publicKey kind = iota
	rotation
	relinH0
	relinH1
	relinSecond
)

// slots lists the polynomials that every party sends in the first round of passive key generation,
// in order.
func (c *Config) slots() []slot {
	list := []slot{{kind: publicKey}}
	for _, g := range Rotations(c.Scheme.N(), c.Dim) {
		for j := range c.Scheme.GadgetDigits() {
			list = append(list, slot{rotation, g, j})
		}
	}
	return append(list, c.relinSlots(relinH0, relinH1)...)
}

// relinSlots lists the polynomials of parts of the relinearisation key, part by part.
func (c *Config) relinSlots(kinds ...kind) (list []slot) {
	for _, k := range kinds {
		for j := range c.Scheme.GadgetDigits() {
			list = append(list, slot{k, 0, j})
		}
	}
	return list
}

// Rotations returns the Galois elements of the rotation keys of dimension d, by rotation from 1 to
// d-1.
func Rotations(n, d int) []int {
	var list []int
	for i := 1; i < d; i++ {
		list = append(list, gbfv.Galois(n, i, d))
	}
	return list
}

// limit bounds a message of n polynomials, one per frame.
func (c *Config) limit(n int) round.Limit {
	return round.Limit{Frames: n, Bytes: int64(n) * int64(codec.PolySize(c.Scheme.N(), c.Scheme.Q.Primes()))}
}

// Names of the uniform halves in the common reference string. Rotation keys are named by Galois
// element, so that the keys of dimension 2d include those of dimension d.
const (
	labelPublic   = "public key"
	labelRotation = "rotation key"
	labelRelin    = "relinearisation key"
)

// uniform expands one uniform polynomial of the reference string, in evaluation form.
func uniform(s *gbfv.Scheme, seed round.Digest, label string, index ...uint64) ring.NTT {
	a := s.Q.BorrowNTT()
	sample.Expand(a.C, s.Q.Primes(), seed[:], label, index...)
	return a
}
