package metrics

import "github.com/prometheus/client_golang/prometheus"

// oracles counts the rules and decryptions that require no provenance for the ciphertexts. A client
// with such a rule can read the key.
type oracles struct {
	rules    prometheus.Gauge
	messages prometheus.Counter
}

func newOracles(r *register) *oracles {
	return &oracles{
		rules: r.gauge(Party, "lodge_threshold_any_ciphertexts_rules", "Decryption rules with any_ciphertexts, whose clients can read the keys.").WithLabelValues(),
		messages: r.count(Party, "lodge_threshold_any_ciphertexts_messages_total",
			"Messages that were decrypted under rules with any_ciphertexts, without repeats."),
	}
}

// AnyCiphertextsRules sets the number of rules with any_ciphertexts.
func (m *Metrics) AnyCiphertextsRules(n int) {
	if m != nil {
		m.oracles.rules.Set(float64(n))
	}
}

// AnyCiphertexts counts messages that were decrypted under such rules.
func (m *Metrics) AnyCiphertexts(n int) {
	if m != nil {
		m.oracles.messages.Add(float64(n))
	}
}
