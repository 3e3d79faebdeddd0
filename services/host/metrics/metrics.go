// Package metrics defines the Prometheus metrics of Lodge's processes. Names begin with lodge_ and
// end in a base unit, labels come from fixed sets or the roster, and no label or value is secret.
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

	"github.com/lodge-mpc/lodge/services/host/health"
)

// Metrics holds the metrics of one process. Methods are safe for concurrent use; on a nil *Metrics
// they do nothing.
type Metrics struct {
	registry *prometheus.Registry
	list     []Info

	roundDuration *prometheus.HistogramVec
	roundCompute  *prometheus.HistogramVec
	sessions      *prometheus.CounterVec
	running       *prometheus.GaugeVec
	sessionTime   *prometheus.HistogramVec
	sessionLast   *prometheus.GaugeVec
	rpcDuration   *prometheus.HistogramVec
	rpcStreams    *prometheus.GaugeVec
	rpcConns      *prometheus.GaugeVec
	rpcRefused    *prometheus.CounterVec
	tuples        *prometheus.CounterVec
	delivered     *prometheus.CounterVec
	decryptions   *prometheus.CounterVec
	threshold     *prometheus.CounterVec
	oracles       *oracles
	jobsEnded     *prometheus.CounterVec
	products      *prometheus.CounterVec
	answers       *prometheus.CounterVec
	distances     *prometheus.GaugeVec

	peers           *peers
	checks          *checks
	conduct         *conduct
	evaluators      *evaluators
	multikeys       *multikeys
	store           *store
	jobs            *jobs
	stock           *stock
	reservations    *prometheus.CounterVec
	reservationTime *prometheus.HistogramVec

	reservationsRefused *prometheus.CounterVec
	reservationsOpen    *prometheus.GaugeVec
}

// New returns the metrics of a process. The version goes into lodge_build_info.
func New(version string, process Process) *Metrics {
	r := &register{process: process, registry: prometheus.NewRegistry()}
	r.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.gauge(All, "lodge_build_info", "1, labelled by version.", "version").WithLabelValues(version).Set(1)
	m := &Metrics{
		registry:      r.registry,
		roundDuration: r.histogram(Party, "lodge_round_duration_seconds", "Wall time of a round, including waiting.", "protocol", "round"),
		roundCompute:  r.histogram(Party, "lodge_round_compute_seconds", "Time of a round's own step, including waiting for its turn to compute products.", "protocol", "round"),
		sessions:      r.counter(Party, "lodge_sessions_total", "Sessions that ended.", "protocol", "outcome"),
		running:       r.gauge(Party, "lodge_sessions_running", "Running sessions.", "protocol"),
		sessionTime:   r.histogram(Party, "lodge_session_duration_seconds", "Wall time of a session.", "protocol", "outcome"),
		sessionLast: r.gauge(Party, "lodge_session_last_success_timestamp_seconds",
			"Time when a session last had a result, in Unix time, since this process began.", "protocol"),
		rpcDuration: r.histogram(All, "lodge_rpc_duration_seconds", "Time of a served call.", "method", "role", "code"),
		rpcStreams:  r.gauge(All, "lodge_rpc_streams", "Open streams of callers.", "role"),
		rpcConns:    r.gauge(All, "lodge_rpc_connections", "Open connections of callers with a known identity.", "role"),
		rpcRefused: r.counter(All, "lodge_rpc_refused_total",
			"Calls and connections that exceeded the limits on callers: `calls`, `connections`, `handshakes`, `strangers`, `slow` or `message`.", "reason"),
		tuples:      r.counter(Party, "lodge_tuples_stored_total", "Tuples that were activated.", "kind", "field"),
		delivered:   r.counter(Party, "lodge_tuples_delivered_total", "Tuples whose shares were delivered to a client.", "kind", "field"),
		decryptions: r.counter(Party, "lodge_decryptions_total", "Decryption requests of clients.", "outcome"),
		threshold:   r.counter(Party, "lodge_threshold_messages_total", "Messages that this party has decrypted with a quorum, without repeats.", "form"),
		oracles:     newOracles(r),
		products:    r.counter(Party, "lodge_linear_products_total", "Products of `outsourced` matrices, a `vector` or a `batch` that clients requested: `ok`, or an error code.", "product", "outcome"),
		answers:     r.counter(Party, "lodge_linear_answers_total", "Encrypted answers that were computed for such products.", "product"),
		distances:   r.gauge(Party, "lodge_linear_distance_spent_ratio", "Fraction of the statistical-distance budget that products on shares have spent on the matrices of client `with` towards `client`, from 0 to 1.", "client", "with"),
		jobsEnded:   r.counter(Coordinator, "lodge_jobs_ended_total", "Jobs that ended.", "kind", "state"),

		peers:               newPeers(r),
		checks:              newChecks(r),
		conduct:             newConduct(r),
		evaluators:          newEvaluators(r),
		multikeys:           newMultikeys(r),
		store:               newStore(r),
		jobs:                newJobs(r),
		stock:               newStock(r),
		reservations:        r.counter(Coordinator, "lodge_reservations_total", "Attempts to reserve tuples, by outcome: `reserved` or an error code.", "outcome"),
		reservationsRefused: r.counter(Coordinator, "lodge_reservations_refused_total", "Attempts to reserve tuples that were refused because of a limit of the client.", "limit"),
		reservationsOpen:    r.gauge(Coordinator, "lodge_reservations_open", "Open reservations that not all parties have delivered, by the client that made them.", "owner"),
		reservationTime: r.histogram(Coordinator, "lodge_reservation_seconds",
			"Time of an attempt to reserve that did not wait for stock."),
	}
	for _, reason := range []string{"calls", "connections", "handshakes", "strangers", "slow", "message"} {
		m.rpcRefused.WithLabelValues(reason)
	}
	for _, outcome := range []string{"reserved", "out_of_stock", "unavailable", "internal"} {
		m.reservations.WithLabelValues(outcome) // Prometheus does not see an increase of a counter that starts at 1
	}
	m.reservationTime.WithLabelValues()
	for _, limit := range []string{"open", "tuples", "share", "lease", "rate"} {
		m.reservationsRefused.WithLabelValues(limit)
	}
	r.note(All, "gauge", "lodge_certificate_expiry_timestamp_seconds", "Expiry of the certificate that this process serves, in Unix time.")
	m.list = r.list
	return m
}

// Round observes one round: its wall time and the time of its own step.
func (m *Metrics) Round(at Place, wall, compute time.Duration) {
	if m == nil {
		return
	}
	m.roundDuration.WithLabelValues(at.Protocol, at.Round).Observe(wall.Seconds())
	m.roundCompute.WithLabelValues(at.Protocol, at.Round).Observe(compute.Seconds())
}

// SessionStarted counts a session as running. The caller must call the returned function when the
// session ends.
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
		if outcome == "ok" {
			m.sessionLast.WithLabelValues(protocol).SetToCurrentTime()
		}
	}
}

// Call observes a served call.
func (m *Metrics) Call(method, role, code string, took time.Duration) {
	if m != nil {
		m.rpcDuration.WithLabelValues(method, role, code).Observe(took.Seconds())
	}
}

// Streams adds n to the open streams of callers of a role.
func (m *Metrics) Streams(role string, n int) {
	if m != nil {
		m.rpcStreams.WithLabelValues(role).Add(float64(n))
	}
}

// Connections adds n to the open connections of callers of a role.
func (m *Metrics) Connections(role string, n int) {
	if m != nil {
		m.rpcConns.WithLabelValues(role).Add(float64(n))
	}
}

// Refused counts a call or a connection that exceeded the limits on callers.
func (m *Metrics) Refused(reason string) {
	if m != nil {
		m.rpcRefused.WithLabelValues(reason).Inc()
	}
}

// Stored counts tuples that were activated.
func (m *Metrics) Stored(kind, field string, n uint64) {
	if m != nil {
		m.tuples.WithLabelValues(kind, field).Add(float64(n))
	}
}

// Delivered counts tuples that were delivered to a client for the first time.
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

// ThresholdMessages counts messages that were decrypted with a quorum.
func (m *Metrics) ThresholdMessages(form string, n int) {
	if m != nil {
		m.threshold.WithLabelValues(form).Add(float64(n))
	}
}

// Certificate registers the gauge of the expiry of the served certificate.
func (m *Metrics) Certificate(notAfter func() time.Time) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lodge_certificate_expiry_timestamp_seconds", Help: "Expiry of the certificate that this process serves, in Unix time.",
	}, func() float64 { return float64(notAfter().Unix()) }))
}

// Registry returns the registry, for further collectors of the process.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// maxScrapes limits the number of concurrent scrapes.
const maxScrapes = 4

// Serve serves GET /metrics on l until ctx is done, without authentication, and with few concurrent
// connections and scrapes.
func (m *Metrics) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, MaxRequestsInFlight: maxScrapes}))
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
	if err := s.Serve(health.Bounded(l)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
