package linear

import (
	"errors"
	"fmt"
	"math"

	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// pair returns the two clients of a run, for which distances are summed.
func (x *end) pair() ledger.Distance {
	asks, answers := x.run.who[owner], x.run.who[giver]
	//lodge:check linearservice/identity [swap=asks.Identity=>asks.Name]
	//  [swap=answers.Identity=>answers.Name] [run=TestDistanceBudget] a second name for one
	//  certificate has a budget of its own
	return ledger.Distance{Asks: asks.Identity, Answers: answers.Identity, AsksName: asks.Name, AnswersName: answers.Name}
}

// distance returns the statistical distance of all answers of the product together.
func (x *shared) distance() float64 { return math.Exp2(x.terms().GetLogDistance()) }

// mayDistance returns an error unless the clients' budget covers the product. Both ends must have
// joined.
func (s *Service) mayDistance(x *end) error {
	return s.refusedDistance(x, s.Vault.MayDistance(x.pair(), x.distance(), s.Policy.DistanceBudget()))
}

// spend durably counts the distance of a product before any of its answers is sent. A product that
// fails later stays counted.
func (s *Service) spend(x *end) (ledger.Distance, error) {
	//lodge:check linearservice/spend [as=d, err := x.pair(), s.Vault.MayDistance(x.pair(),
	//  x.distance(), s.Policy.DistanceBudget())] [run=TestDistanceBudget] an answer leaves before
	//  its distance is charged to the budget
	d, err := s.Vault.SpendDistance(x.pair(), x.distance(), s.Policy.DistanceBudget())
	if err != nil {
		return d, s.refusedDistance(x, err)
	}
	s.Metrics.Set(metrics.LinearDistance, d.Spent/s.Policy.DistanceBudget(), d.AsksName, d.AnswersName)
	return d, nil
}

// refusedDistance translates an error of the vault for both clients.
func (s *Service) refusedDistance(x *end, err error) error {
	var over *ledger.DistanceError
	if !errors.As(err, &over) {
		return vaulterr.RPC(err, "this product")
	}
	who, limit := x.pair(), s.Policy.LogDistanceBudget
	next := fmt.Sprintf("have the operator raise linear.log_distance_budget above %.4g, if the owner of the matrices accepts that client %s may learn correspondingly more about them", limit, who.AsksName)
	if over.Lost {
		return rpc.Errorf(rpc.Burnt, next, "the store of this party was restored, so products since its backup are unknown and the budget of "+
			"statistical distance between clients %s and %s, 2^%.4g, counts as used up", who.AsksName, who.AnswersName, limit)
	}
	return rpc.Errorf(rpc.Burnt, next, "products of clients %s and %s have spent a statistical distance of 2^%.2f of 2^%.4g, and this one has 2^%.2f",
		who.AsksName, who.AnswersName, math.Log2(over.Spent), limit, math.Log2(over.Wanted))
}

// showBudgets sets the metrics of the distances spent before this start.
func (s *Service) showBudgets() {
	if s.Vault == nil {
		return
	}
	all, err := s.Vault.Distances()
	if err != nil {
		s.Log.Error("cannot read the spent statistical distances of linear algebra", "error", err)
		return
	}
	for _, d := range all {
		s.Metrics.Set(metrics.LinearDistance, d.Spent/s.Policy.DistanceBudget(), d.AsksName, d.AnswersName)
	}
}
