// Package traces has the spans of jobs and sessions, for a collector that speaks OTLP over gRPC. It is off unless a
// configuration names one.
//
// All processes put a job's spans into one trace without telling each other anything: the trace's id, and that of its first
// span, which is the coordinator's, are hashes of the job's id. So nobody can make a process trace what its own configuration
// does not say, and processes that take the same part of all jobs take the same jobs.
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

// Options of a process's traces.
type Options struct {
	Endpoint  string  // host:port of the collector; empty: no traces
	CA        string  // authorities of its certificate; empty: those of the system
	Plaintext bool    // without TLS
	Sample    float64 // part of the jobs, up to 1
	Process   string  // "coordinator" or the party's name
	Version   string
	Log       *slog.Logger
}

// Tracer makes spans. On a nil *Tracer, and on a nil *Session, methods do nothing.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	lost     func(error)
}

// stopTime is how long what is left may take to be sent when a process ends.
const stopTime = 3 * time.Second

// quiet is how long the log is silent about the collector after a line about it.
const quiet = time.Minute

// Start prepares to send spans. It does not wait for the collector, and neither does anything else: what cannot be sent is
// dropped, and the log says so.
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
				return nil, fmt.Errorf("traces: %s has no certificate", o.CA)
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

// logLost gives a function that logs what the collector did not take, now and then.
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

// Stop sends what is left, if the collector takes it soon.
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

// Job is a job that has ended.
type Job struct {
	ID                      string
	Attempt                 uint32
	Kind, Field, Params     string
	Count, Epoch            uint64
	Submitted, Begun, Ended time.Time // Begun is zero when no party has heard of it
	State, Reason           string
	Failed                  bool
}

// Ended sends the first span of a job's trace.
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

// Session is the span of one party's session of a job.
type Session struct {
	tracer trace.Tracer
	ctx    context.Context
	span   trace.Span
	heard  []arrival
}

// arrival is when a peer's last message of the round was complete.
type arrival struct {
	peer string
	at   time.Time
}

// Session begins one.
func (t *Tracer) Session(job string, ordinal uint32, protocol, kind, field string) *Session {
	if t == nil {
		return nil
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceOf(job), SpanID: rootOf(job)}))
	ctx, span := t.tracer.Start(ctx, "session "+protocol, trace.WithAttributes(
		attribute.String("lodge.job", job), attribute.Int64("lodge.ordinal", int64(ordinal)), attribute.String("lodge.protocol", protocol),
		attribute.String("lodge.kind", kind), attribute.String("lodge.field", field)))
	return &Session{tracer: t.tracer, ctx: ctx, span: span}
}

// Heard notes that nothing is missing any more of a peer in this round.
func (s *Session) Heard(peer string) {
	if s != nil {
		s.heard = append(s.heard, arrival{peer, time.Now()})
	}
}

// Round ends one, whose last part was this party's own step.
func (s *Session) Round(name string, index int, begun time.Time, own time.Duration) {
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

// End ends the session: its id, what went to and fro, and its failure if it has one.
func (s *Session) End(id [32]byte, sent, received int64, failure error) {
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

// jobKey is the context's key of the job whose first span is to begin.
type jobKey struct{}

// ids are random, but for the first span of a job.
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
