package bgvkeys

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/seeds"
)

// sendSeeds sends each party the seed of the shares that it expands, and the digest of those that
// it will be sent. This binds the dealer to every share before the coin of its check is tossed.
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
	return seeds.Send(seeds.Deal{
		Session: p.Session, Name: nameSeeds, Own: d.seeds, Sums: sums, Sends: p.sends, Given: p.given,
	}, p.tossDealt), nil
}

// tossDealt tosses the coin of the check after all dealers are bound.
func (p *party) tossDealt(context.Context) (transition, error) {
	t, err := round.CoinToss(p.Session, stepDealt, p.Source.Stream("coin"))
	if err != nil {
		return transition{}, err
	}
	return round.Then(t, p.deal), nil
}
