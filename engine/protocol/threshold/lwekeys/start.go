package lwekeys

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Names of the steps and the messages of a run.
const (
	stepSeed   = "threshold/seed"
	stepDealt  = "threshold/dealt"
	stepOpened = "threshold/opened"

	nameSeeds      = "threshold/seeds"
	nameShares     = "threshold/shares"
	namePolynomial = "threshold/polynomial"
	nameComplaints = "threshold/complaints"
	nameReport     = "threshold/report"
	nameAgree      = "threshold/agree"
)

// transition is the outcome of a round of this protocol.
type transition = round.Transition[Result]

// Start begins a run.
//
// Hooks of tests: threshold/deal receives each dealt row whenever it is computed (*Deal);
// threshold/polynomial a dealer's announcement of its combinations, threshold/complaints its
// complaints and threshold/report its report ([]uint64, []byte and []uint64); threshold/shares each
// opening before it begins (*opening); threshold/NAME/shares the shares for each king and
// threshold/NAME/values the values that a king opens (*part).
func Start(c Config) (transition, error) {
	if err := c.check(); err != nil {
		return transition{}, err
	}
	t, err := round.CoinToss(c.Session, stepSeed, c.Source.Stream("reference string"))
	if err != nil {
		return transition{}, err
	}
	return round.Then(t, func(ctx context.Context, seed round.Digest) (transition, error) {
		p, err := newParty(&c, seed)
		if err != nil {
			return transition{}, err
		}
		c.Session.Secrets.Own(p)
		return p.sendSeeds(ctx)
	}), nil
}
