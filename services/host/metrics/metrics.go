// Package metrics defines the Prometheus metrics of Lodge's processes. Names begin with lodge_ and
// end in a base unit, labels come from fixed sets or the roster, and no label or value is secret.
package metrics

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lodge-mpc/lodge/services/host/health"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Metrics holds the metrics of one process. Methods are safe for concurrent use; on a nil *Metrics
// they do nothing.
type Metrics struct {
	process  Process
	registry *prometheus.Registry
	vectors  map[*definition]prometheus.Collector // of the process's metrics
	stock    atomic.Pointer[stock]
}

// New returns the metrics of a process. The version goes into lodge_build_info.
func New(version string, process Process) *Metrics {
	m := &Metrics{process: process, registry: prometheus.NewRegistry(), vectors: map[*definition]prometheus.Collector{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, d := range table {
		if v := d.vector(); v != nil && d.Of&process != 0 {
			m.vectors[d] = v
			m.registry.MustRegister(v)
		}
	}
	m.Set(buildInfo, 1, version)
	m.begin()
	if process&Coordinator != 0 {
		m.stock.Store(&stock{})
		m.Read(stockMetrics, func(set SetLevel) { m.stock.Load().read(set) })
	}
	return m
}

// SessionStarted counts a session as running. The caller must call the returned function when the
// session ends.
func (m *Metrics) SessionStarted(protocol string) func(outcome string) {
	start := time.Now()
	m.Add(running, 1, protocol)
	return func(outcome string) {
		m.Add(running, -1, protocol)
		m.Count(sessions, 1, protocol, outcome)
		m.Observe(sessionTime, time.Since(start), protocol, outcome)
		if outcome == "ok" {
			m.Set(sessionLast, float64(time.Now().UnixNano())/1e9, protocol)
		}
	}
}

// Peers initialises the series of peers to 0.
func (m *Metrics) Peers(names ...string) {
	for _, name := range names {
		m.Add(PeerUp, 0, name)
		m.Count(PeerResumes, 0, name)
		for _, class := range checkClasses {
			m.Count(blames, 0, name, class)
		}
	}
}

// Blamed counts a session that ended with a peer named, by the check that it failed.
func (m *Metrics) Blamed(peer, check string) { m.Count(blames, 1, peer, classOf(check)) }

// Classes of checks that can name a peer.
const (
	classForm       = "form" // violations of the message format: length, order, number
	classSignature  = "signature"
	classEcho       = "echo"
	classCommitment = "commitment"
	classProof      = "proof"
	classOther      = "other"
)

var checkClasses = []string{classForm, classSignature, classEcho, classCommitment, classProof, classOther}

// classOf returns the class of a check, by its name.
func classOf(check string) string {
	switch check {
	case "shape", "size", "duplicate":
		return classForm
	case classSignature, classEcho, classCommitment:
		return check
	}
	if strings.HasPrefix(check, "popk-") || strings.HasPrefix(check, "keygen-") {
		return classProof
	}
	return classOther
}

// Kinds of proofs that are counted.
const (
	ProofPlaintexts = "plaintexts" // a peer's proof of plaintext knowledge
	ProofKeys       = "keys"       // a peer's proof that its shares of keys are well formed
	ProofClient     = "client"     // a client's proof
)

// Proofs counts n proofs that were verified.
func (m *Metrics) Proofs(proof string, ok bool, n int) {
	outcome := "ok"
	if !ok {
		outcome = "refused"
	}
	if n > 0 {
		m.Count(proofs, n, proof, outcome)
	}
}

// Disk sets the space on the file system of a volume, in bytes, and whether the process refuses new
// work because of it.
func (m *Metrics) Disk(volume string, free, size, least uint64, low bool) {
	m.Set(diskFree, float64(free), volume)
	m.Set(diskSize, float64(size), volume)
	m.Set(diskLeast, float64(least), volume)
	m.SetIf(diskLow, low, volume)
}

// Server makes the server with these options count its calls, streams, connections and refusals.
func (m *Metrics) Server(o rpc.Options) rpc.Options {
	o.Observe = func(method string, role rpc.Role, code string, took time.Duration) {
		m.Observe(rpcDuration, took, method, string(role), code)
	}
	o.Streams = func(role rpc.Role, n int) { m.Add(rpcStreams, n, string(role)) }
	o.Connected = func(role rpc.Role, n int) { m.Add(rpcConns, n, string(role)) }
	o.Refused = func(reason string) { m.Count(rpcRefused, 1, reason) }
	return o
}

// Certificate shows the expiry of the served certificate.
func (m *Metrics) Certificate(notAfter func() time.Time) {
	m.Read([]Level{certificate}, func(set SetLevel) { set(certificate, float64(notAfter().Unix())) })
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
