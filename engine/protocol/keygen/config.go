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

// CheckAgree compares the keys that the parties arrived at.
const CheckAgree = "keygen-agree"

// Config is what all parties of a run agree on, and what is this party's own.
type Config struct {
	Session round.Session
	Scheme  *gbfv.Scheme // of any field: keys belong to the parameter set
	// Dim is the dimension d of the matrix blocks that the rotation keys serve, and all smaller ones: there
	// are d-1 of them. 1 makes none.
	Dim int

	Source  *sample.Source // this party's randomness
	Workers int
}

func (c *Config) check() error {
	switch {
	case c.Scheme == nil || c.Source == nil:
		return errors.New("keygen: configuration without scheme or source")
	}
	return checkDim(c.Scheme, c.Dim)
}

func checkDim(s *gbfv.Scheme, d int) error {
	if d < 1 || d&(d-1) != 0 || d > s.N()/2 {
		return fmt.Errorf("keygen: no rotation keys of dimension %d", d)
	}
	return nil
}

// Security is what the parties of a run know about each other's shares of the keys.
const Security = params.KeygenSecurity

// Result is one party's outcome.
type Result struct {
	Keys   *PublicKeys
	Secret Secret
}

// Wipe erases the share of the secret key.
func (r *Result) Wipe() { r.Secret.Wipe() }

// Secret is a share of the secret key: N coefficients.
type Secret []int64

// Wipe erases the share.
func (s Secret) Wipe() { clear(s) }

// Format shows nothing, whatever the verb.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

// MarshalText shows nothing.
func (Secret) MarshalText() ([]byte, error) { return []byte(secret.Redacted), nil }

// slot is one polynomial of the first round.
type slot struct {
	kind  kind
	g     int // Galois element of a rotation key
	digit int
}

type kind uint8

const (
	publicKey kind = iota
	rotation
	relinH0
	relinH1
)

// slots lists what every party sends in the first round, in order.
func (c *Config) slots() []slot {
	list := []slot{{kind: publicKey}}
	for _, g := range Rotations(c.Scheme.N(), c.Dim) {
		for j := range c.Scheme.GadgetDigits() {
			list = append(list, slot{rotation, g, j})
		}
	}
	for _, k := range []kind{relinH0, relinH1} {
		for j := range c.Scheme.GadgetDigits() {
			list = append(list, slot{k, 0, j})
		}
	}
	return list
}

// Rotations lists the Galois elements of the rotation keys of dimension d, by rotation from 1 to d-1.
func Rotations(n, d int) []int {
	var list []int
	for i := 1; i < d; i++ {
		list = append(list, gbfv.Galois(n, i, d))
	}
	return list
}

// limit is the size of n polynomials, one to a frame.
func (c *Config) limit(n int) round.Limit {
	return round.Limit{Frames: n, Bytes: int64(n) * int64(codec.PolySize(c.Scheme.N(), c.Scheme.Q.Primes()))}
}

// Names of the uniform halves in the common reference string. Rotation keys are named by Galois element, so
// that those of dimension d are among those of 2d.
const (
	labelPublic   = "public key"
	labelRotation = "rotation key"
	labelRelin    = "relinearisation key"
)

// uniform expands one uniform polynomial of the reference string, which is read as an evaluation form.
func uniform(s *gbfv.Scheme, seed round.Digest, label string, index ...uint64) ring.NTT {
	a := s.Q.BorrowNTT()
	sample.Expand(a.C, s.Q.Primes(), seed[:], label, index...)
	return a
}
