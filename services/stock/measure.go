package stock

import (
	"slices"

	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/metrics"
)

// measure sets the metrics: of each tenant, kind, field and set, whatever the shape, the epoch and the party of masks.
func (s *Service) measure() {
	if s.metrics == nil {
		return
	}
	type class struct {
		available uint64
		rates     rates
	}
	levels := map[metrics.StockLabels]*metrics.StockLevel{}
	classes := map[metrics.StockLabels]map[key]*class{}
	all, _ := s.all()
	for _, x := range all {
		c := x.GetClass()
		l := metrics.StockLabels{Tenant: c.GetTenant(), Kind: job.KindName(c.GetKind()), Field: c.GetField(), Params: c.GetParams()}
		if !slices.Contains(s.tenants, l.Tenant) {
			l.Tenant = metrics.OtherTenants
		}
		if levels[l] == nil {
			levels[l] = &metrics.StockLevel{StockLabels: l}
			classes[l] = map[key]*class{}
		}
		level := levels[l]
		level.Available += x.GetAvailable()
		level.Reserved += x.GetReserved()
		level.Consumed += x.GetConsumed()
		level.Lost += x.GetLost()
		level.InProduction += x.GetInProduction()
		k := keyOf(c)
		if classes[l][k] == nil {
			classes[l][k] = &class{}
		}
		sum := classes[l][k]
		sum.available += x.GetAvailable()
		sum.rates.made += x.GetMadePerSecond()
		sum.rates.reserved += x.GetReservedPerSecond()
	}
	list := make([]metrics.StockLevel, 0, len(levels))
	for l, level := range levels {
		level.TimeToEmpty = never
		for _, c := range classes[l] {
			empty, _ := forecast(c.available, 0, c.rates.made, c.rates.reserved)
			level.TimeToEmpty = min(level.TimeToEmpty, empty)
		}
		list = append(list, *level)
	}
	s.metrics.Stock(list)
}

type rates struct{ made, reserved float64 } // tuples a second
