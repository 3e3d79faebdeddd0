package metrics

import "github.com/prometheus/client_golang/prometheus"

// conduct is what a party holds against its peers.
type conduct struct {
	proven, excluded, unnamed, stopped prometheus.Gauge
	failures, offers                   *prometheus.CounterVec
}

func newConduct(r prometheus.Registerer) *conduct {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		r.MustRegister(g)
		return g
	}
	counter := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		r.MustRegister(c)
		return c
	}
	return &conduct{
		proven:   gauge("lodge_accusations", "Accusations of parties of the roster that are proved and not pardoned."),
		excluded: gauge("lodge_excluded_parties", "Parties of the roster that accusations exclude."),
		unnamed:  gauge("lodge_unnamed_failures", "Failures with nobody named that count towards stopping generation."),
		stopped:  gauge("lodge_generation_stopped", "1 while such failures stop generation, else 0."),
		failures: counter("lodge_unnamed_failures_total", "Sessions that failed because somebody cheated whom nobody can name.", "check"),
		offers:   counter("lodge_accusations_offered_total", "Files of evidence that peers offered.", "outcome"),
	}
}

// Conduct sets how many accusations there are, how many parties they exclude, how many failures count, and whether these
// stop generation.
func (m *Metrics) Conduct(proven, excluded, unnamed int, stopped bool) {
	if m == nil {
		return
	}
	m.conduct.proven.Set(float64(proven))
	m.conduct.excluded.Set(float64(excluded))
	m.conduct.unnamed.Set(float64(unnamed))
	m.conduct.stopped.Set(0)
	if stopped {
		m.conduct.stopped.Set(1)
	}
}

// UnnamedFailure counts a session by the check that failed.
func (m *Metrics) UnnamedFailure(check string) {
	if m != nil {
		m.conduct.failures.WithLabelValues(check).Inc()
	}
}

// Offer counts a file that a peer offered: "proven", "known" or an error code.
func (m *Metrics) Offer(outcome string) {
	if m != nil {
		m.conduct.offers.WithLabelValues(outcome).Inc()
	}
}
