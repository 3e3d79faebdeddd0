package metrics

// Products of two-party linear algebra.
const (
	LinearOutsourced = "outsourced" // two encrypted matrices
	LinearVector     = "vector"     // a matrix times a shared vector
	LinearBatch      = "batch"      // shared matrices times vectors
)

// LinearProduct counts a product by outcome: "ok" or an error code.
func (m *Metrics) LinearProduct(product, outcome string) {
	if m != nil {
		m.products.WithLabelValues(product, outcome).Inc()
	}
}

// LinearAnswers counts answers that were computed.
func (m *Metrics) LinearAnswers(product string, n int) {
	if m != nil {
		m.answers.WithLabelValues(product).Add(float64(n))
	}
}

// LinearDistance sets the fraction of its statistical-distance budget that a pair of clients has
// spent: the client that asks, and the client with the matrix.
func (m *Metrics) LinearDistance(client, with string, ratio float64) {
	if m != nil {
		m.distances.WithLabelValues(client, with).Set(ratio)
	}
}
