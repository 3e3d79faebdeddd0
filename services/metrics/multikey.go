package metrics

import "github.com/prometheus/client_golang/prometheus"

// multikeys is what a party keeps of others' multi-key keys, and computes with them.
type multikeys struct {
	fetches, evaluations *prometheus.CounterVec
	bootstraps           prometheus.Counter
	published            *prometheus.GaugeVec
	ongoing, bytes       *prometheus.GaugeVec
}

func newMultikeys(r *register) *multikeys {
	return &multikeys{
		fetches: r.counter(Party, "lodge_multikey_fetches_total",
			"Multi-key keys of other parties that were fetched, by outcome: `ok`, `refused` (what came are not the keys of the record) or `failed`.", "outcome"),
		evaluations: r.counter(Party, "lodge_multikey_evaluations_total",
			"Evaluations on multi-key ciphertexts that have ended, by outcome: `ok`, `cancelled` or an error code.", "outcome"),
		bootstraps: r.count(Party, "lodge_multikey_bootstraps_total", "Bootstraps of evaluations on multi-key ciphertexts that have succeeded."),
		published:  r.gauge(Party, "lodge_multikey_published_keys", "Parties whose present multi-key keys this party has."),
		ongoing:    r.gauge(Party, "lodge_multikey_evaluations", "Evaluations on multi-key ciphertexts that wait or run."),
		bytes:      r.gauge(Party, "lodge_multikey_evaluations_bytes", "Memory, by estimate, of evaluations on multi-key ciphertexts that wait or run."),
	}
}

// MultikeyFetched counts keys that were fetched: outcome is "ok", "refused" or "failed".
func (m *Metrics) MultikeyFetched(outcome string) {
	if m != nil {
		m.multikeys.fetches.WithLabelValues(outcome).Inc()
	}
}

// MultikeyPublished sets of how many parties the present keys are here.
func (m *Metrics) MultikeyPublished(parties int) {
	if m != nil {
		m.multikeys.published.WithLabelValues().Set(float64(parties))
	}
}

// MultikeyEvaluated counts an evaluation by outcome: "ok", "cancelled" or an error code.
func (m *Metrics) MultikeyEvaluated(outcome string, bootstraps int) {
	if m != nil {
		m.multikeys.evaluations.WithLabelValues(outcome).Inc()
		m.multikeys.bootstraps.Add(float64(bootstraps))
	}
}

// MultikeyOngoing sets how many evaluations wait or run, and what they take.
func (m *Metrics) MultikeyOngoing(evaluations int, bytes int64) {
	if m != nil {
		m.multikeys.ongoing.WithLabelValues().Set(float64(evaluations))
		m.multikeys.bytes.WithLabelValues().Set(float64(bytes))
	}
}
