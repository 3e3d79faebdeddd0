package keygen

import (
	"errors"
	"fmt"
	"math"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/share"
)

// The checks of this protocol, beside those of package round.
const (
	CheckBound  = "threshold-bound"  // shares that are sent are those that their dealer was bound to
	CheckDegree = "threshold-degree" // dealt sharings are of their degree, pairs of one secret
	CheckOpened = "threshold-opened" // opened values are those of the parties' shares
	CheckSquare = "threshold-square" // an opened square is a square
	CheckAgree  = "threshold-agree"  // all have the same keys
)

// Config is what all parties of a run agree on, and what is this party's own.
type Config struct {
	Session   round.Session
	Scheme    *lwe.Scheme
	Threshold int // t: any t+1 parties have the secret, t have nothing; 2t < n

	Source  *sample.Source // this party's randomness
	Workers int
}

func (c *Config) check() error {
	n, t := c.Session.Parties, c.Threshold
	switch {
	case c.Source == nil || c.Scheme == nil:
		return errors.New("threshold: configuration without a scheme or a source")
	case t < 1 || n < 2*t+1 || n > share.MaxParties:
		return fmt.Errorf("threshold: no keys for %d of %d parties: there must be an honest majority", t+1, n)
	case c.Scheme.Q < 1<<20:
		return fmt.Errorf("threshold: no keys modulo %d", c.Scheme.Q)
	}
	for _, v := range []float64{c.Scheme.Variance, c.Scheme.SwitchVariance} {
		if 16*math.Sqrt(lwe.PartyVariance(v, n, t)) > float64(c.Scheme.Q)/2 {
			return fmt.Errorf("threshold: no errors of variance %g", v)
		}
	}
	return nil
}
