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

// The checks of this protocol, in addition to those of package round.
const (
	CheckBound  = "bgv-bound"  // a dealer sends the shares to which it was bound
	CheckDegree = "bgv-degree" // dealt sharings have the right degree
	CheckOpened = "bgv-opened" // the shares of the keys lie on polynomials
	CheckAgree  = "bgv-agree"  // all parties have the same keys
)

// Config holds the values that all parties of a run agree on, and the party's own values.
type Config struct {
	Session   round.Session
	Scheme    *bgv.Scheme
	Threshold int      // t: any t+1 parties determine the secret, any t learn nothing; 2t < n
	Galois    []uint64 // the automorphisms for which keys are made, see bgv.Set.CheckGalois

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
		return fmt.Errorf("bgvkeys: cannot make keys for quorums of %d of %d parties: an honest majority is required", t+1, n)
	}
	return c.Scheme.CheckGalois(c.Galois)
}

// Result is the output of one party.
type Result struct {
	Keys *bgv.Keys
	// Share contains this party's shares, of degree t at the point of its index plus one, of the
	// coefficients of s: N residues modulo each prime, those of ciphertexts first.
	Share secret.Box[share.Vec]
}

// Wipe erases the share.
func (r *Result) Wipe() { r.Share.Wipe() }

// MemoryBytes estimates the bytes that a run needs at one party: its shares of the keys, the keys,
// its errors and the combinations of the check. It adds the same again for garbage that is not yet
// collected.
func MemoryBytes(s *bgv.Scheme, parties, threshold, galois int) int64 {
	element := int64(8 * s.N() * len(s.QP()))
	samples := int64(s.Samples(galois))
	combinations := int64(2 * (2*parties + 2*threshold + 1))
	return 2*element*(2*samples+combinations+4) + samples*int64(s.N())
}
