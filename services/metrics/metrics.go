// Package metrics is what Lodge's processes count, in Prometheus' terms: names
// begin with lodge_ and end in a base unit, labels come from fixed sets or the
// roster, and nothing that is secret is a label or a value.
package metrics

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics of one process. Methods are safe for concurrent use; on a nil
// *Metrics they do nothing.
type Metrics struct {
	registry *prometheus.Registry

	roundDuration *prometheus.HistogramVec
	roundCompute  *prometheus.HistogramVec
	peerBytes     *prometheus.CounterVec
	reconnects    *prometheus.CounterVec
	sessions      *prometheus.CounterVec
	evidenceLost  *prometheus.CounterVec
	running       *prometheus.GaugeVec
	sessionTime   *prometheus.HistogramVec
	rpcDuration   *prometheus.HistogramVec
	tuples        *prometheus.CounterVec
	delivered     *prometheus.CounterVec
	decryptions   *prometheus.CounterVec
	jobs          *prometheus.GaugeVec
	jobsEnded     *prometheus.CounterVec

	conduct         *conduct
	stock           *stock
	reservations    *prometheus.CounterVec
	reservationTime *prometheus.HistogramVec
}

// New makes the metrics of a process whose version goes into lodge_build_info.
func New(version string) *Metrics {
	r := prometheus.NewRegistry()
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14)}, labels) // 1 ms to 2.5 min
		r.MustRegister(v)
		return v
	}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge("lodge_build_info", "1, labelled by version.", "version").WithLabelValues(version).Set(1)
	return &Metrics{
		registry:      r,
		roundDuration: histogram("lodge_round_duration_seconds", "Wall time of a round, waiting included.", "protocol", "round"),
		roundCompute:  histogram("lodge_round_compute_seconds", "Time of a round's own step.", "protocol", "round"),
		peerBytes:     counter("lodge_peer_bytes_total", "Bytes of frames exchanged with a peer.", "peer", "direction"),
		reconnects:    counter("lodge_peer_resumes_total", "Streams to a peer that were resumed after a broken connection.", "peer"),
		sessions:      counter("lodge_sessions_total", "Sessions that ended.", "protocol", "outcome"),
		evidenceLost:  counter("lodge_evidence_lost_total", "Sessions that could not keep all that evidence of a cheat may need."),
		running:       gauge("lodge_sessions_running", "Sessions that run now.", "protocol"),
		sessionTime:   histogram("lodge_session_duration_seconds", "Wall time of a session.", "protocol", "outcome"),
		rpcDuration:   histogram("lodge_rpc_duration_seconds", "Time of a call that was served.", "method", "role", "code"),
		tuples:        counter("lodge_tuples_stored_total", "Tuples that were activated.", "kind", "field"),
		delivered:     counter("lodge_tuples_delivered_total", "Tuples whose shares went to a client.", "kind", "field"),
		decryptions:   counter("lodge_decryptions_total", "Decryption requests of clients.", "outcome"),
		jobs:          gauge("lodge_jobs", "Jobs that are not over, by state.", "state"),
		jobsEnded:     counter("lodge_jobs_ended_total", "Jobs that ended.", "kind", "state"),

		conduct:         newConduct(r),
		stock:           newStock(r),
		reservations:    counter("lodge_reservations_total", "Attempts to reserve tuples.", "outcome"),
		reservationTime: histogram("lodge_reservation_seconds", "Time of an attempt to reserve that did not wait for stock."),
	}
}

// Round observes one round: its wall time and the part that was its own step.
func (m *Metrics) Round(protocol, round string, wall, compute time.Duration) {
	if m == nil {
		return
	}
	m.roundDuration.WithLabelValues(protocol, round).Observe(wall.Seconds())
	m.roundCompute.WithLabelValues(protocol, round).Observe(compute.Seconds())
}

// Sent counts bytes of frames sent to a peer, resent ones included.
func (m *Metrics) Sent(peer string, bytes int) {
	if m != nil {
		m.peerBytes.WithLabelValues(peer, "sent").Add(float64(bytes))
	}
}

// Received counts bytes of frames received from a peer.
func (m *Metrics) Received(peer string, bytes int) {
	if m != nil {
		m.peerBytes.WithLabelValues(peer, "received").Add(float64(bytes))
	}
}

// Resumed counts a stream to a peer that was resumed.
func (m *Metrics) Resumed(peer string) {
	if m != nil {
		m.reconnects.WithLabelValues(peer).Inc()
	}
}

// SessionStarted counts a session as running; call the result when it ends.
func (m *Metrics) SessionStarted(protocol string) func(outcome string) {
	if m == nil {
		return func(string) {}
	}
	start := time.Now()
	m.running.WithLabelValues(protocol).Inc()
	return func(outcome string) {
		m.running.WithLabelValues(protocol).Dec()
		m.sessions.WithLabelValues(protocol, outcome).Inc()
		m.sessionTime.WithLabelValues(protocol, outcome).Observe(time.Since(start).Seconds())
	}
}

// EvidenceLost counts a session that could not keep all that evidence may need.
func (m *Metrics) EvidenceLost() {
	if m != nil {
		m.evidenceLost.WithLabelValues().Inc()
	}
}

// Call observes a served call.
func (m *Metrics) Call(method, role, code string, took time.Duration) {
	if m != nil {
		m.rpcDuration.WithLabelValues(method, role, code).Observe(took.Seconds())
	}
}

// Stored counts tuples that were activated.
func (m *Metrics) Stored(kind, field string, n uint64) {
	if m != nil {
		m.tuples.WithLabelValues(kind, field).Add(float64(n))
	}
}

// Delivered counts tuples that went to a client for the first time.
func (m *Metrics) Delivered(kind, field string, n uint64) {
	if m != nil {
		m.delivered.WithLabelValues(kind, field).Add(float64(n))
	}
}

// Decryption counts a client's request by outcome: "answered", "repeated" or an error code.
func (m *Metrics) Decryption(outcome string) {
	if m != nil {
		m.decryptions.WithLabelValues(outcome).Inc()
	}
}

// Jobs sets how many jobs are in a state.
func (m *Metrics) Jobs(state string, n int) {
	if m != nil {
		m.jobs.WithLabelValues(state).Set(float64(n))
	}
}

// JobEnded counts a job that ended.
func (m *Metrics) JobEnded(kind, state string) {
	if m != nil {
		m.jobsEnded.WithLabelValues(kind, state).Inc()
	}
}

// Certificate has the end of the certificate that is served among the metrics.
func (m *Metrics) Certificate(notAfter func() time.Time) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lodge_certificate_expiry_timestamp_seconds", Help: "When the certificate that this process serves expires, in Unix time.",
	}, func() float64 { return float64(notAfter().Unix()) }))
}

// Registry is for further collectors of the process.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Serve answers GET /metrics on l until ctx is done.
func (m *Metrics) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry}))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() {
		drain, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if s.Shutdown(drain) != nil {
			s.Close()
		}
	})
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
