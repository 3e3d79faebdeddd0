package metrics

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// OtherTenants stands for tenants that no client of the configuration acts for.
const OtherTenants = "other"

// maxStockLabels bounds the series of the stock; what is beyond is left out.
const maxStockLabels = 1000

// StockLabels say of what a stock is.
type StockLabels struct{ Tenant, Kind, Field, Params string }

// StockLevel is the stock of all classes with these labels, in tuples.
type StockLevel struct {
	StockLabels
	Available, Reserved, Consumed, Lost, InProduction uint64

	// TimeToEmpty of the class that is empty first; the longest time span is never.
	TimeToEmpty time.Duration
}

// stock collects what was set last: all of it changes at once.
type stock struct {
	tuples, empty *prometheus.Desc
	levels        chan []StockLevel // has one
}

func newStock(r prometheus.Registerer) *stock {
	labels := []string{"tenant", "kind", "field", "params"}
	s := &stock{
		tuples: prometheus.NewDesc("lodge_stock_tuples", "Tuples at all parties, by what became of them.", append(slices.Clone(labels), "state"), nil),
		empty: prometheus.NewDesc("lodge_stock_time_to_empty_seconds",
			"Until none is left of the class that is empty first, as tuples came and went lately; +Inf for never.", labels, nil),
		levels: make(chan []StockLevel, 1),
	}
	s.levels <- nil
	r.MustRegister(s)
	return s
}

func (s *stock) Describe(c chan<- *prometheus.Desc) {
	c <- s.tuples
	c <- s.empty
}

func (s *stock) Collect(c chan<- prometheus.Metric) {
	levels := <-s.levels
	s.levels <- levels
	for _, l := range levels {
		for _, x := range []struct {
			state string
			n     uint64
		}{
			{"available", l.Available}, {"reserved", l.Reserved}, {"consumed", l.Consumed}, {"lost", l.Lost}, {"in_production", l.InProduction},
		} {
			c <- prometheus.MustNewConstMetric(s.tuples, prometheus.GaugeValue, float64(x.n), l.Tenant, l.Kind, l.Field, l.Params, x.state)
		}
		seconds := l.TimeToEmpty.Seconds()
		if l.TimeToEmpty == math.MaxInt64 {
			seconds = math.Inf(1)
		}
		c <- prometheus.MustNewConstMetric(s.empty, prometheus.GaugeValue, seconds, l.Tenant, l.Kind, l.Field, l.Params)
	}
}

// Stock sets what there is.
func (m *Metrics) Stock(levels []StockLevel) {
	if m == nil {
		return
	}
	<-m.stock.levels
	m.stock.levels <- levels[:min(len(levels), maxStockLabels)]
}

// Reservation counts an attempt to reserve, by outcome: "reserved" or an error code. What it took counts for those that
// did not wait for stock.
func (m *Metrics) Reservation(outcome string, took time.Duration, waited bool) {
	if m == nil {
		return
	}
	m.reservations.WithLabelValues(outcome).Inc()
	if !waited {
		m.reservationTime.WithLabelValues().Observe(took.Seconds())
	}
}
