package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// multikeys is what a party does with multi-key ciphertexts: its own keys, those that it keeps of others, what it computes with
// them, and what it decrypts with their owners.
type multikeys struct {
	own                  *prometheus.GaugeVec
	fetches, evaluations *prometheus.CounterVec
	bootstraps           prometheus.Counter
	published            *prometheus.GaugeVec
	ongoing, bytes       *prometheus.GaugeVec
	took                 *prometheus.HistogramVec
	rotation             *prometheus.GaugeVec
	results              *prometheus.GaugeVec
	decrypted            *prometheus.CounterVec
}

func newMultikeys(r *register) *multikeys {
	return &multikeys{
		own: r.gauge(Party, "lodge_multikey_own_keys", "Versions of the party's own multi-key keys: `active`, and `retired` ones.", "state"),
		fetches: r.counter(Party, "lodge_multikey_fetches_total",
			"Multi-key keys of other parties that were fetched, by outcome: `ok`, `refused` (what came are not the keys of the record) or `failed`.", "outcome"),
		evaluations: r.counter(Party, "lodge_multikey_evaluations_total",
			"Evaluations on multi-key ciphertexts that have ended, by outcome: `ok`, `cancelled` or an error code.", "outcome"),
		bootstraps: r.count(Party, "lodge_multikey_bootstraps_total", "Bootstraps of evaluations on multi-key ciphertexts that have succeeded."),
		published:  r.gauge(Party, "lodge_multikey_published_keys", "Parties whose present multi-key keys this party has."),
		ongoing:    r.gauge(Party, "lodge_multikey_evaluations", "Evaluations on multi-key ciphertexts that are `waiting` or `running`.", "state"),
		bytes:      r.gauge(Party, "lodge_multikey_evaluations_bytes", "Memory, by estimate, of evaluations on multi-key ciphertexts that wait or run."),
		took: r.buckets(Party, "lodge_multikey_evaluation_seconds", "Time of an evaluation on multi-key ciphertexts that has succeeded, without waiting.",
			prometheus.ExponentialBuckets(0.01, 4, 11)), // 10 ms to 3 h
		rotation:  r.gauge(Party, "lodge_multikey_rotation_seconds", "What a rotation, which is a bootstrap's part of one key, takes on one processor, as it is estimated now; 0: not measured yet."),
		results:   r.gauge(Party, "lodge_multikey_results_bytes", "Results of evaluations that are kept for clients."),
		decrypted: r.counter(Party, "lodge_multikey_decrypted_total", "Multi-key ciphertexts that this party has decrypted with a quorum, by how many keys they are under, repeats aside.", "keys"),
	}
}

// MultikeyOwn sets how many versions of its own keys the party has.
func (m *Metrics) MultikeyOwn(active, retired int) {
	if m != nil {
		m.multikeys.own.WithLabelValues("active").Set(float64(active))
		m.multikeys.own.WithLabelValues("retired").Set(float64(retired))
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

// MultikeyTook observes how long an evaluation took that has succeeded.
func (m *Metrics) MultikeyTook(d time.Duration) {
	if m != nil {
		m.multikeys.took.WithLabelValues().Observe(d.Seconds())
	}
}

// MultikeyLevels is what evaluations take at a moment.
type MultikeyLevels struct {
	Waiting, Running   int
	Bytes, ResultBytes int64
	Rotation           float64 // seconds
}

// MultikeyOngoing sets what evaluations take.
func (m *Metrics) MultikeyOngoing(l MultikeyLevels) {
	if m != nil {
		m.multikeys.ongoing.WithLabelValues("waiting").Set(float64(l.Waiting))
		m.multikeys.ongoing.WithLabelValues("running").Set(float64(l.Running))
		m.multikeys.bytes.WithLabelValues().Set(float64(l.Bytes))
		m.multikeys.results.WithLabelValues().Set(float64(l.ResultBytes))
		m.multikeys.rotation.WithLabelValues().Set(l.Rotation)
	}
}

// MultikeyDecrypted counts ciphertexts under so many keys that were decrypted with a quorum.
func (m *Metrics) MultikeyDecrypted(keys, n int) {
	if m != nil && n > 0 {
		m.multikeys.decrypted.WithLabelValues(strconv.Itoa(keys)).Add(float64(n))
	}
}
