package stock

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// measure sets the metrics by tenant, kind, field and parameter set. It aggregates over the shape,
// the epoch and the party of input masks. Masks of quorums have their form as field and no tenant,
// and are counted by quorum in addition.
func (s *Service) measure() {
	if s.metrics == nil {
		return
	}
	type class struct {
		available uint64
		rates     rates
		wanted    bool // a policy keeps it in stock
	}
	levels := map[metrics.StockLabels]*metrics.StockLevel{}
	classes := map[metrics.StockLabels]map[key]*class{}
	all, _ := s.all()
	quorums := map[string]metrics.MaskLevel{}
	for _, x := range all {
		c := x.GetClass()
		l := metrics.StockLabels{Tenant: c.GetTenant(), Kind: job.KindName(c.GetKind()), Field: c.GetField(), Params: c.GetParams()}
		switch {
		case masks(c):
			l.Field = job.FormName(c.GetForm())
			if x.GetEpoch() != 0 {
				name := fmt.Sprint(x.GetEpoch(), c.GetQuorum(), l.Field)
				quorums[name] = metrics.MaskLevel{Epoch: x.GetEpoch(), Quorum: c.GetQuorum(), Form: l.Field, Free: quorums[name].Free + x.GetAvailable()}
			}
		case !slices.Contains(s.tenants, l.Tenant):
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
		wanted := false
		if p := x.GetPolicy(); p != nil && !p.GetPaused() {
			share := float64(x.GetAvailable()) / float64(max(1, p.GetLow()))
			if level.High == 0 || share < level.Ratio {
				level.Ratio = share
			}
			wanted = true
			level.Low, level.High = level.Low+p.GetLow(), level.High+p.GetHigh()
			if x.GetHeldBack() != "" {
				level.Held++
			}
		}
		k := keyOf(c)
		if classes[l][k] == nil {
			classes[l][k] = &class{}
		}
		sum := classes[l][k]
		sum.available += x.GetAvailable()
		sum.wanted = sum.wanted || wanted
		sum.rates.made += x.GetMadePerSecond()
		sum.rates.reserved += x.GetReservedPerSecond()
	}
	list := make([]metrics.StockLevel, 0, len(levels))
	for l, level := range levels {
		level.TimeToEmpty = never
		for _, c := range classes[l] {
			if c.available == 0 && c.rates.reserved == 0 && !c.wanted {
				continue // it is used up, and no policy keeps it in stock
			}
			empty, _ := forecast(c.available, 0, c.rates.made, c.rates.reserved)
			level.TimeToEmpty = min(level.TimeToEmpty, empty)
		}
		list = append(list, *level)
	}
	for client, n := range s.limits.open() {
		s.metrics.Set(metrics.ReservationsOpen, float64(n), client)
	}
	s.metrics.Stock(list, slices.Collect(maps.Values(quorums))...)
}

type rates struct{ made, reserved float64 } // in tuples per second
