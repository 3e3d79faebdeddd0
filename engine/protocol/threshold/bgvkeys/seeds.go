package bgvkeys

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/dealing"
)

// sendSeeds binds all dealers to their shares, and tosses the coin of the check.
func (p *party) sendSeeds(ctx context.Context) (transition, error) {
	d, err := newDealer(ctx, p.Config, p.plan)
	if err != nil {
		return transition{}, err
	}
	p.dealer = d
	sums, err := d.digests(ctx, p.Workers)
	if err != nil {
		return transition{}, err
	}
	return dealing.Bind(dealing.Deal{
		Session: p.Session, Name: nameSeeds, Own: d.seeds, Sums: sums, Sends: p.sends, Given: p.given,
		Toss: stepDealt, Coin: p.Source.Stream("coin"),
	}, p.deal), nil
}
