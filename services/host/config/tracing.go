package config

import (
	"log/slog"

	"github.com/lodge-mpc/lodge/services/host/traces"
)

// Tracing names a collector of spans; without one there are no traces.
type Tracing struct {
	Endpoint string `yaml:"endpoint"` // host:port that speaks OTLP over gRPC
	// CA has the authorities of the collector's certificate; default those of the system. Plaintext connects without TLS.
	CA        string `yaml:"ca,omitempty"`
	Plaintext bool   `yaml:"plaintext,omitempty"`
	// Sample is the part of all jobs that is traced; default 1. Processes with the same one trace the same jobs.
	Sample float64 `yaml:"sample,omitempty"`
}

func (c *check) tracing(dir string, t *Tracing) {
	if *t == (Tracing{}) {
		return
	}
	c.address("tracing.endpoint", t.Endpoint, false)
	c.path(dir, "tracing.ca", &t.CA, true)
	if t.Plaintext && t.CA != "" {
		c.failf("tracing: name ca, or plaintext, and not both")
	}
	if t.Sample == 0 {
		t.Sample = 1
	}
	if !(t.Sample > 0 && t.Sample <= 1) {
		c.failf("tracing.sample: %v; the part of the jobs, above 0 and at most 1", t.Sample)
	}
}

// Start prepares to send the spans of a process.
func (t Tracing) Start(process, version string, log *slog.Logger) (*traces.Tracer, error) {
	return traces.Start(traces.Options{
		Endpoint: t.Endpoint, CA: t.CA, Plaintext: t.Plaintext, Sample: t.Sample, Process: process, Version: version, Log: log,
	})
}
