package lwekeys

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/internal/seeds"
)

// sendSeeds sends each party the seed of the shares that it expands, and the digest of the shares
// that it will receive. This binds a dealer to every share before the coin of the check is tossed,
// and no party needs to store shares until then.
func (p *party) sendSeeds(ctx context.Context) (transition, error) {
	d, err := newDealer(p.Config, p.plan)
	if err != nil {
		return transition{}, err
	}
	p.dealer = d
	if err := d.sampleErrors(ctx, p.Workers); err != nil {
		return transition{}, err
	}
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
	t, err := round.CoinToss(p.Session, stepDealt, p.Source.Stream("coin", 0))
	if err != nil {
		return transition{}, err
	}
	return round.Then(t, p.deal), nil
}
