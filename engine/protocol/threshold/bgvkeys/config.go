package bgvkeys

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
)

// The checks of this protocol, beside those of package round.
const (
	CheckBound  = "bgv-bound"  // shares that are sent are those that their dealer was bound to
	CheckDegree = "bgv-degree" // dealt sharings are of their degree
	CheckOpened = "bgv-opened" // the shares of the keys are of polynomials
	CheckAgree  = "bgv-agree"  // all have the same keys
)

// Config is what all parties of a run agree on, and what is this party's own.
type Config struct {
	Session   round.Session
	Scheme    *bgv.Scheme
	Threshold int      // t: any t+1 parties have the secret, t have nothing; 2t < n
	Galois    []uint64 // the automorphisms that keys are made for, see bgv.Set.CheckGalois

	Source  *sample.Source // this party's randomness
	Workers int
}

func (c *Config) check() error {
	n, t := c.Session.Parties, c.Threshold
	switch {
	case c.Source == nil || c.Scheme == nil:
		return errors.New("bgvkeys: configuration without a scheme or a source")
	//lodge:check bgvkeys/majority [drop=n < 2*t+1] keys are made without an honest majority
	case t < 1 || n < 2*t+1 || n > bgv.MaxParties:
		return fmt.Errorf("bgvkeys: no keys for %d of %d parties: there must be an honest majority", t+1, n)
	}
	return c.Scheme.CheckGalois(c.Galois)
}

// Result is one party's outcome.
type Result struct {
	Keys *bgv.Keys
	// Share are this party's shares, of degree t at the point of its index plus one, of the coefficients of s: N residues
	// modulo each prime, those of ciphertexts first.
	Share secret.Box[share.Vec]
}

// Wipe erases the share.
func (r *Result) Wipe() { r.Share.Wipe() }

// MemoryBytes estimates what a run holds at one party, in bytes: its shares of the keys, the keys, its errors and the
// combinations of the check; and as much again for what waits for the garbage collector.
func MemoryBytes(s *bgv.Scheme, parties, threshold, galois int) int64 {
	element := int64(8 * s.N() * len(s.QP()))
	samples := int64(s.Samples(galois))
	combinations := int64(2 * (2*parties + 2*threshold + 1))
	return 2*element*(2*samples+combinations+4) + samples*int64(s.N())
}
