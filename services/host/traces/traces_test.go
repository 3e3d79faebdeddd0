package traces

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/traces/tracestest"
)

// collector receives spans over TLS. Its certificate authority is written to a file.
func collector(t *testing.T) (c *tracestest.Collector, ca string) {
	t.Helper()
	authority, err := pki.NewAuthority("test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Issue(pki.Leaf{Identity: "spiffe://lodge/collector", Hosts: []string{"127.0.0.1"}, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err = tracestest.Start(grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c, ca
}

func start(t *testing.T, o Options) *Tracer {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sample == 0 {
		o.Sample = 1
	}
	tr, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// The spans of a job from processes that do not communicate form one trace with the coordinator's
// root span.
func TestOneTrace(t *testing.T) {
	c, ca := collector(t)
	coordinator := start(t, Options{Endpoint: c.Address, CA: ca, Process: "coordinator"})
	party := start(t, Options{Endpoint: c.Address, CA: ca, Process: "p0"})
	s := party.Session("j1", 2, "triples", "scalar", "p128")
	begun := time.Now()
	s.Heard("p1")
	s.Round("x/ct", 3, begun, time.Millisecond)
	s.Round("x/open", 4, time.Now(), time.Millisecond)
	s.End([32]byte{0xab}, 10, 20, errors.New("a check failed"))
	coordinator.Ended(Job{ID: "j1", Kind: "scalar", Submitted: begun, Begun: begun.Add(time.Second), Ended: begun.Add(time.Minute), State: "failed", Failed: true, Reason: "why"})
	party.Stop()
	coordinator.Stop()
	by := map[string]tracestest.Span{}
	for _, x := range c.Spans() {
		by[x.GetName()] = x
	}
	root, session, first, second := by["job scalar"], by["session triples"], by["round x/ct"], by["round x/open"]
	if len(by) != 4 || root.Span == nil || session.Span == nil || first.Span == nil || second.Span == nil {
		t.Fatalf("%v", by)
	}
	for name, x := range by {
		if string(x.GetTraceId()) != string(root.GetTraceId()) {
			t.Errorf("%s belongs to another trace", name)
		}
	}
	if len(root.GetParentSpanId()) != 0 || root.Process != "coordinator" || session.Process != "p0" ||
		string(session.GetParentSpanId()) != string(root.GetSpanId()) || string(first.GetParentSpanId()) != string(session.GetSpanId()) {
		t.Error("not a tree")
	}
	if root.GetEndTimeUnixNano()-root.GetStartTimeUnixNano() != uint64(time.Minute) || root.GetStatus().GetCode() != tracev1.Status_STATUS_CODE_ERROR {
		t.Errorf("%v", root)
	}
	if len(first.GetEvents()) != 1 || len(second.GetEvents()) != 0 || !strings.HasPrefix(session.Attribute("lodge.session"), "ab00") ||
		session.GetStatus().GetMessage() != "a check failed" {
		t.Errorf("%v, %v, %v", session, first, second)
	}
}

// Processes sample the same jobs.
func TestSample(t *testing.T) {
	c, ca := collector(t)
	const jobs = 400
	var list []*Tracer
	for _, name := range []string{"p0", "p1"} {
		tr := start(t, Options{Endpoint: c.Address, CA: ca, Process: name, Sample: 0.25})
		for i := range jobs {
			tr.Session(fmt.Sprint("job", i), 1, "triples", "scalar", "p128").End([32]byte{}, 0, 0, nil)
		}
		list = append(list, tr)
	}
	for _, tr := range list {
		tr.Stop()
	}
	at := map[string]map[string]bool{"p0": {}, "p1": {}}
	for _, x := range c.Spans() {
		at[x.Process][x.Attribute("lodge.job")] = true
	}
	if n := len(at["p0"]); n < jobs/8 || n > jobs/2 || n != len(at["p1"]) {
		t.Errorf("%d and %d of %d jobs", n, len(at["p1"]), jobs)
	}
	for job := range at["p0"] {
		if !at["p1"][job] {
			t.Errorf("%s is traced by only one process", job)
		}
	}
}

// Without a collector there are no traces, and an unavailable or untrusted collector blocks no
// caller.
func TestAway(t *testing.T) {
	none, err := Start(Options{})
	if err != nil || none != nil {
		t.Fatalf("%v, %v", none, err)
	}
	none.Session("j", 1, "", "", "").Round("", 0, time.Now(), 0)
	none.Session("j", 1, "", "", "").Heard("p")
	none.Session("j", 1, "", "", "").End([32]byte{}, 0, 0, nil)
	none.Ended(Job{})
	none.Stop()

	c, _ := collector(t)
	var log bytes.Buffer
	unknown := start(t, Options{Endpoint: c.Address, Log: slog.New(slog.NewTextHandler(&log, nil))}) // not signed by the system's authorities
	unknown.Session("j", 1, "triples", "scalar", "p128").End([32]byte{}, 0, 0, nil)
	unknown.Stop()
	if len(c.Spans()) != 0 || !strings.Contains(log.String(), "spans are lost") {
		t.Errorf("%d spans, %q", len(c.Spans()), log.String())
	}
	for _, bad := range []string{"nowhere.pem", "traces_test.go"} {
		if _, err := Start(Options{Endpoint: "127.0.0.1:1", CA: bad}); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
