// Package tracestest collects spans for tests.
package tracestest

import (
	"context"
	"net"
	"sync"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Span is a received span, with the process that sent it.
type Span struct {
	Process string
	*tracev1.Span
}

// Attribute returns an attribute of the span as text, or "" if it is missing.
func (s Span) Attribute(key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// Collector stores the spans that it receives.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer
	Address string
	server  *grpc.Server

	mu    sync.Mutex
	spans []Span
}

// Start starts a collector on a free port.
func Start(o ...grpc.ServerOption) (*Collector, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Collector{Address: l.Addr().String(), server: grpc.NewServer(o...)}
	collectorv1.RegisterTraceServiceServer(c.server, c)
	go c.server.Serve(l)
	return c, nil
}

// Stop stops the collector.
func (c *Collector) Stop() { c.server.Stop() }

// Export implements the service.
func (c *Collector) Export(_ context.Context, q *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range q.GetResourceSpans() {
		process := ""
		for _, a := range r.GetResource().GetAttributes() {
			if a.GetKey() == "service.instance.id" {
				process = a.GetValue().GetStringValue()
			}
		}
		for _, s := range r.GetScopeSpans() {
			for _, x := range s.GetSpans() {
				c.spans = append(c.spans, Span{process, x})
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}
