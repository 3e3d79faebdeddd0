package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// evaluators holds a party's metrics of its evaluators, and an evaluator's metrics of its own work.
type evaluators struct {
	requests, bytes, mismatches, local *prometheus.CounterVec
	seconds, served                    *prometheus.HistogramVec
	up, excluded                       *prometheus.GaugeVec
}

func newEvaluators(r *register) *evaluators {
	for _, g := range loads {
		r.note(Evaluator, "gauge", g.name, g.help)
	}
	return &evaluators{
		requests: r.counter(Party, "lodge_evaluator_requests_total",
			"Evaluations that the party requested from an evaluator, by outcome: `ok`, `stalled`, `slow`, `faulty`, `cancelled` or an error code.", "evaluator", "outcome"),
		bytes:      r.counter(Party, "lodge_evaluator_bytes_total", "Bytes of frames exchanged with an evaluator.", "evaluator", "direction"),
		mismatches: r.counter(Party, "lodge_evaluator_mismatches_total", "Results of an evaluator that differed from the party's own.", "evaluator"),
		local: r.counter(Party, "lodge_evaluator_local_total",
			"Evaluations that a party with evaluators computed itself.", "reason"),
		seconds:  r.histogram(Party, "lodge_evaluator_request_seconds", "Time of an evaluation that an evaluator completed.", "evaluator"),
		up:       r.gauge(Party, "lodge_evaluator_up", "Addresses at which the evaluator responds to the party, which polls every few seconds.", "evaluator"),
		excluded: r.gauge(Party, "lodge_evaluator_excluded", "1 if the evaluator is excluded because it was wrong, else 0.", "evaluator"),
		served:   r.histogram(Evaluator, "lodge_evaluator_served_seconds", "Time of an evaluation at this evaluator, by `ok` or an error code.", "outcome"),
	}
}

// loads lists the gauges that an evaluator measures itself.
var loads = []struct{ name, help string }{
	{"lodge_evaluator_keys_bytes", "Memory of the cached keys."},
	{"lodge_evaluator_running", "Running evaluations."},
	{"lodge_evaluator_running_bytes", "Estimated memory of the running evaluations."},
}

// EvaluatorLoad registers gauges for the memory of the keys, the number of running evaluations and
// their memory.
func (m *Metrics) EvaluatorLoad(now func() (keys int64, running int, bytes int64)) {
	for i, g := range loads {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: g.name, Help: g.help}, func() float64 {
			keys, running, bytes := now()
			return []float64{float64(keys), float64(running), float64(bytes)}[i]
		}))
	}
}

// Evaluator initialises the series of a party's evaluator.
func (m *Metrics) Evaluator(name string) {
	if m != nil {
		m.evaluators.up.WithLabelValues(name).Set(0)
		m.evaluators.excluded.WithLabelValues(name).Set(0)
		m.evaluators.mismatches.WithLabelValues(name).Add(0)
	}
}

// EvaluatorUp sets the number of addresses at which an evaluator is up.
func (m *Metrics) EvaluatorUp(name string, addresses int) {
	if m != nil {
		m.evaluators.up.WithLabelValues(name).Set(float64(addresses))
	}
}

// EvaluatorExcluded records that an evaluator is excluded.
func (m *Metrics) EvaluatorExcluded(name string) {
	if m != nil {
		m.evaluators.excluded.WithLabelValues(name).Set(1)
	}
}

// EvaluatorMismatch counts a result that differed from the party's own.
func (m *Metrics) EvaluatorMismatch(name string) {
	if m != nil {
		m.evaluators.mismatches.WithLabelValues(name).Inc()
	}
}

// EvaluatorRequest counts a request by outcome: "ok", "stalled", "slow", "faulty", "cancelled", or
// an error code.
func (m *Metrics) EvaluatorRequest(name, outcome string, took time.Duration) {
	if m == nil {
		return
	}
	m.evaluators.requests.WithLabelValues(name, outcome).Inc()
	if outcome == "ok" {
		m.evaluators.seconds.WithLabelValues(name).Observe(took.Seconds())
	}
}

// EvaluatorBytes counts bytes of frames: direction is "sent" or "received".
func (m *Metrics) EvaluatorBytes(name, direction string, n int) {
	if m != nil {
		m.evaluators.bytes.WithLabelValues(name, direction).Add(float64(n))
	}
}

// EvaluatedLocally counts an evaluation that the party computed itself: because of a "mismatch", to
// "recompute", or because "nobody" responded.
func (m *Metrics) EvaluatedLocally(reason string) {
	if m != nil {
		m.evaluators.local.WithLabelValues(reason).Inc()
	}
}

// Evaluated observes an evaluation at the evaluator, by "ok" or an error code.
func (m *Metrics) Evaluated(outcome string, took time.Duration) {
	if m != nil {
		m.evaluators.served.WithLabelValues(outcome).Observe(took.Seconds())
	}
}
