package lwekeys

import (
	"errors"
	"fmt"
	"math"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/share"
)

// The checks of this protocol, in addition to those of package round.
const (
	CheckBound  = "threshold-bound"  // the sent shares match the digests to which their dealer committed
	CheckDegree = "threshold-degree" // dealt sharings have the right degree, and both of a pair the same secret
	CheckOpened = "threshold-opened" // opened values match the parties' shares
	CheckSquare = "threshold-square" // an opened square is a square
	CheckAgree  = "threshold-agree"  // all parties have the same keys
)

// Config is the configuration of a run: values on which all parties agree, and this party's
// randomness.
type Config struct {
	Session   round.Session
	Scheme    *lwe.Scheme
	Threshold int // t: any t+1 parties can reconstruct the secret, t parties learn nothing; 2t < n

	Source  *sample.Source // this party's randomness
	Workers int
}

func (c *Config) check() error {
	n, t := c.Session.Parties, c.Threshold
	switch {
	case c.Source == nil || c.Scheme == nil:
		return errors.New("threshold: configuration without a scheme or a source")
	case t < 1 || n < 2*t+1 || n > share.MaxParties:
		return fmt.Errorf("threshold: cannot make keys for %d of %d parties: an honest majority is required", t+1, n)
	case c.Scheme.Q < 1<<20:
		return fmt.Errorf("threshold: the modulus %d is not supported", c.Scheme.Q)
	}
	for _, v := range []float64{c.Scheme.Variance, c.Scheme.SwitchVariance} {
		if 16*math.Sqrt(lwe.PartyVariance(v, n, t)) > float64(c.Scheme.Q)/2 {
			return fmt.Errorf("threshold: errors of variance %g are not supported", v)
		}
	}
	return nil
}
