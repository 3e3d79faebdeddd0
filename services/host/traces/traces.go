// Package traces exports the spans of jobs and sessions to a collector that supports OTLP over
// gRPC. It is disabled unless the configuration names a collector.
//
// All processes put a job's spans into one trace without communicating: the id of the trace and the
// id of its root span, which the coordinator sends, are hashes of the job's id. So no other process
// can make a process trace more than its own configuration allows, and processes with the same
// sampling ratio select the same jobs.
package traces

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Options configures the traces of a process.
type Options struct {
	Endpoint  string  // host:port of the collector; empty disables traces
	CA        string  // file with the authorities of its certificate; empty: the system's authorities
	Plaintext bool    // disables TLS
	Sample    float64 // fraction of jobs to trace, at most 1
	Process   string  // "coordinator" or the party's name
	Version   string
	Log       *slog.Logger
}

// Tracer creates spans. The methods of a nil *Tracer and of a nil *SessionSpan do nothing.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	lost     func(error)
}

// stopTime limits the time for sending the remaining spans when a process ends.
const stopTime = 3 * time.Second

// quiet is the minimum time between log lines about the collector.
const quiet = time.Minute

// Start prepares to send spans. Neither Start nor any other function waits for the collector: spans
// that cannot be sent are dropped, with a warning in the log.
func Start(o Options) (*Tracer, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	security := insecure.NewCredentials()
	if !o.Plaintext {
		c := &tls.Config{MinVersion: tls.VersionTLS13}
		if o.CA != "" {
			pem, err := os.ReadFile(o.CA)
			if err != nil {
				return nil, fmt.Errorf("traces: %w", err)
			}
			c.RootCAs = x509.NewCertPool()
			if !c.RootCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("traces: %s does not contain a certificate", o.CA)
			}
		}
		security = credentials.NewTLS(c)
	}
	exporter, err := otlptrace.New(context.Background(), &upload{endpoint: o.Endpoint, security: security})
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	lost := logLost(o)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(lost))
	some := sdktrace.TraceIDRatioBased(o.Sample)
	p := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSampler(sdktrace.ParentBased(some, sdktrace.WithRemoteParentSampled(some), sdktrace.WithRemoteParentNotSampled(some))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "lodge"), attribute.String("service.instance.id", o.Process), attribute.String("service.version", o.Version))),
	)
	return &Tracer{provider: p, tracer: p.Tracer("github.com/lodge-mpc/lodge"), lost: lost}, nil
}

// logLost returns a function that logs lost spans at a limited rate.
func logLost(o Options) func(error) {
	var mu sync.Mutex
	var last time.Time
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) > quiet {
			last = time.Now()
			o.Log.Warn("spans are lost", "collector", o.Endpoint, "error", err)
		}
	}
}

// Stop sends the remaining spans if the collector accepts them within stopTime.
func (t *Tracer) Stop() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.lost(err)
	}
}

// Job describes an ended job.
type Job struct {
	ID                      string
	Attempt                 uint32
	Kind, Field, Params     string
	Count, Epoch            uint64
	Submitted, Begun, Ended time.Time // Begun is zero if no party received the job
	State, Reason           string
	Failed                  bool
}

// Ended sends the root span of a job's trace.
func (t *Tracer) Ended(j Job) {
	if t == nil {
		return
	}
	ctx := context.WithValue(context.Background(), jobKey{}, j.ID)
	_, s := t.tracer.Start(ctx, "job "+j.Kind, trace.WithTimestamp(j.Submitted), trace.WithAttributes(
		attribute.String("lodge.job", j.ID), attribute.Int64("lodge.ordinal", int64(j.Attempt)), attribute.String("lodge.kind", j.Kind),
		attribute.String("lodge.field", j.Field), attribute.String("lodge.params", j.Params), attribute.Int64("lodge.count", int64(j.Count)),
		attribute.Int64("lodge.epoch", int64(j.Epoch)), attribute.String("lodge.state", j.State)))
	if !j.Begun.IsZero() {
		s.AddEvent("begins", trace.WithTimestamp(j.Begun))
	}
	if j.Failed {
		s.SetStatus(codes.Error, j.Reason)
	}
	s.End(trace.WithTimestamp(j.Ended))
}

// SessionSpan is the span of one party's session of a job.
type SessionSpan struct {
	tracer trace.Tracer
	ctx    context.Context
	span   trace.Span
	heard  []arrival
}

// arrival is the time when a peer's last message of the round was complete.
type arrival struct {
	peer string
	at   time.Time
}

// Session starts the span of a session.
func (t *Tracer) Session(job string, ordinal uint32, protocol, kind, field string) *SessionSpan {
	if t == nil {
		return nil
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceOf(job), SpanID: rootOf(job)}))
	ctx, span := t.tracer.Start(ctx, "session "+protocol, trace.WithAttributes(
		attribute.String("lodge.job", job), attribute.Int64("lodge.ordinal", int64(ordinal)), attribute.String("lodge.protocol", protocol),
		attribute.String("lodge.kind", kind), attribute.String("lodge.field", field)))
	return &SessionSpan{tracer: t.tracer, ctx: ctx, span: span}
}

// Heard records that all messages of a peer in this round have arrived.
func (s *SessionSpan) Heard(peer string) {
	if s != nil {
		s.heard = append(s.heard, arrival{peer, time.Now()})
	}
}

// Round ends the span of a round, which ends with this party's own computation.
func (s *SessionSpan) Round(name string, index int, begun time.Time, own time.Duration) {
	if s == nil {
		return
	}
	_, span := s.tracer.Start(s.ctx, "round "+name, trace.WithTimestamp(begun), trace.WithAttributes(
		attribute.String("lodge.round", name), attribute.Int("lodge.round_index", index), attribute.Float64("lodge.own_seconds", own.Seconds())))
	for _, a := range s.heard {
		span.AddEvent("heard", trace.WithTimestamp(a.at), trace.WithAttributes(attribute.String("lodge.peer", a.peer)))
	}
	s.heard = s.heard[:0]
	span.End()
}

// End ends the session's span, with the session's id, the bytes sent and received, and its error,
// if any.
func (s *SessionSpan) End(id [32]byte, sent, received int64, failure error) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.String("lodge.session", hex.EncodeToString(id[:])), attribute.Int64("lodge.sent_bytes", sent),
		attribute.Int64("lodge.received_bytes", received))
	if failure != nil {
		s.span.SetStatus(codes.Error, failure.Error())
	}
	s.span.End()
}

// jobKey is the context key of the job whose root span is to start.
type jobKey struct{}

// ids generates random ids, except for the root span of a job.
type ids struct{}

func traceOf(job string) trace.TraceID {
	h := sha256.Sum256([]byte("lodge/trace/" + job))
	return trace.TraceID(h[:16])
}

func rootOf(job string) trace.SpanID {
	h := sha256.Sum256([]byte("lodge/span/" + job))
	return trace.SpanID(h[:8])
}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	if job, ok := ctx.Value(jobKey{}).(string); ok {
		return traceOf(job), rootOf(job)
	}
	rand.Read(id[:])
	rand.Read(span[:])
	return id, span
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) (span trace.SpanID) {
	rand.Read(span[:])
	return span
}
