package config

import (
	"log/slog"

	"github.com/lodge-mpc/lodge/services/host/traces"
)

// Tracing names a collector of spans. Without one there is no tracing.
type Tracing struct {
	Endpoint string `yaml:"endpoint"` // host:port of a collector that speaks OTLP over gRPC; without it there are no traces
	// CA has the authorities of the collector's certificate; default those of the system.
	CA        string `yaml:"ca,omitempty" check:"path?"`
	Plaintext bool   `yaml:"plaintext,omitempty"` // connect without TLS
	// Sample is the fraction of jobs that is traced; default 1. Processes with the same fraction
	// trace the same jobs.
	Sample float64 `yaml:"sample,omitempty"`
}

func (c *check) tracing(t *Tracing) {
	if *t == (Tracing{}) {
		return
	}
	c.address("tracing.endpoint", t.Endpoint)
	if t.Plaintext && t.CA != "" {
		c.failf("tracing: name either ca or plaintext")
	}
	if t.Sample == 0 {
		t.Sample = 1
	}
	if !(t.Sample > 0 && t.Sample <= 1) {
		c.failf("tracing.sample: %v; must be above 0 and at most 1, the fraction of jobs to trace", t.Sample)
	}
}

// Start prepares the export of a process's spans.
func (t Tracing) Start(process, version string, log *slog.Logger) (*traces.Tracer, error) {
	return traces.Start(traces.Options{
		Endpoint: t.Endpoint, CA: t.CA, Plaintext: t.Plaintext, Sample: t.Sample, Process: process, Version: version, Log: log,
	})
}
