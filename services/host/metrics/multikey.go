package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// multikeys holds a party's metrics of multi-key ciphertexts: its own keys, other parties' keys,
// evaluations, and decryptions.
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
			"Fetches of other parties' multi-key keys, by outcome: `ok`, `refused` (the data did not match the record) or `failed`.", "outcome"),
		evaluations: r.counter(Party, "lodge_multikey_evaluations_total",
			"Evaluations on multi-key ciphertexts that have ended, by outcome: `ok`, `cancelled` or an error code.", "outcome"),
		bootstraps: r.count(Party, "lodge_multikey_bootstraps_total", "Bootstraps of evaluations on multi-key ciphertexts that have succeeded."),
		published:  r.gauge(Party, "lodge_multikey_published_keys", "Parties whose current multi-key keys this party has."),
		ongoing:    r.gauge(Party, "lodge_multikey_evaluations", "Evaluations on multi-key ciphertexts that are `waiting` or `running`.", "state"),
		bytes:      r.gauge(Party, "lodge_multikey_evaluations_bytes", "Estimated memory of evaluations on multi-key ciphertexts that wait or run."),
		took: r.buckets(Party, "lodge_multikey_evaluation_seconds", "Time of a successful evaluation on multi-key ciphertexts, without waiting.",
			prometheus.ExponentialBuckets(0.01, 4, 11)), // 10 ms to 3 h
		rotation:  r.gauge(Party, "lodge_multikey_rotation_seconds", "Estimated time of a rotation, which is a bootstrap's part for one key, on one processor; 0: not measured yet."),
		results:   r.gauge(Party, "lodge_multikey_results_bytes", "Results of evaluations that are kept for clients."),
		decrypted: r.counter(Party, "lodge_multikey_decrypted_total", "Multi-key ciphertexts that this party has decrypted with a quorum, by their number of keys, without repeats.", "keys"),
	}
}

// MultikeyOwn sets the number of versions of the party's own keys.
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

// MultikeyPublished sets the number of parties whose current keys this party has.
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

// MultikeyTook observes the time of a successful evaluation.
func (m *Metrics) MultikeyTook(d time.Duration) {
	if m != nil {
		m.multikeys.took.WithLabelValues().Observe(d.Seconds())
	}
}

// MultikeyLevels holds the resources of evaluations.
type MultikeyLevels struct {
	Waiting, Running   int
	Bytes, ResultBytes int64
	Rotation           float64 // in seconds
}

// MultikeyOngoing sets the resources of evaluations.
func (m *Metrics) MultikeyOngoing(l MultikeyLevels) {
	if m != nil {
		m.multikeys.ongoing.WithLabelValues("waiting").Set(float64(l.Waiting))
		m.multikeys.ongoing.WithLabelValues("running").Set(float64(l.Running))
		m.multikeys.bytes.WithLabelValues().Set(float64(l.Bytes))
		m.multikeys.results.WithLabelValues().Set(float64(l.ResultBytes))
		m.multikeys.rotation.WithLabelValues().Set(l.Rotation)
	}
}

// MultikeyDecrypted counts ciphertexts under the given number of keys that were decrypted with a
// quorum.
func (m *Metrics) MultikeyDecrypted(keys, n int) {
	if m != nil && n > 0 {
		m.multikeys.decrypted.WithLabelValues(strconv.Itoa(keys)).Add(float64(n))
	}
}
