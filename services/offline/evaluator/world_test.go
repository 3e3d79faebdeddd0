package evaluator

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

const (
	testSet   = "insecure-8"
	testField = "p128"
	testDim   = 4
	partyID   = "spiffe://lodge/party/p0"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a party with keys, and evaluators on real sockets with real TLS.
type world struct {
	t         testing.TB
	dir       string
	ca        *pki.Authority
	under     Under
	evaluator *gbfv.Evaluator
	file      int // number of the next file

	metrics  *metrics.Metrics
	log      *lockedBuffer
	mu       sync.Mutex
	excluded []string
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// keyed holds the keys that all tests of a parameter set share.
var keyed struct {
	sync.Mutex
	by map[string]Under
}

func keysOf(t testing.TB, setName string, dim int) Under {
	keyed.Lock()
	defer keyed.Unlock()
	name := fmt.Sprint(setName, " ", dim)
	if u, ok := keyed.by[name]; ok {
		return u
	}
	set, err := params.Lookup(setName)
	must(t, err)
	spec, err := set.Field(testField)
	must(t, err)
	s, err := gbfv.New(set, spec)
	must(t, err)
	r := roundtest.Lockstep(2, func(rs round.Session) (round.Transition[keygen.Result], error) {
		seed := round.Hash("evaluator keys", round.Uint(uint64(rs.Self)))
		return keygen.Start(keygen.Config{Session: rs, Scheme: s, Dim: dim, Security: keygen.Passive, Source: sample.NewSource(seed[:]), Workers: 2})
	}).OK(t).Results[0]
	u := Under{Scheme: s, Keys: r.Keys, KeysDigest: r.Keys.Digest(s, 2), MACKey: randomCiphertext(s, 1000)}
	u.Operand = s.Left(u.MACKey)
	if keyed.by == nil {
		keyed.by = map[string]Under{}
	}
	keyed.by[name] = u
	return u
}

// randomCiphertext returns a ciphertext with uniform residues: products accept any ring elements.
func randomCiphertext(s *gbfv.Scheme, label uint64) *gbfv.Ciphertext {
	ct := s.NewCiphertext()
	stream := sample.NewSource(make([]byte, sample.SeedSize)).Stream("ciphertext", label)
	for _, p := range [][][]uint64{ct.C0.C, ct.C1.C} {
		for l, q := range s.Q.Primes() {
			sample.Uniform(p[l], q, stream)
		}
	}
	return ct
}

func newWorld(t testing.TB) *world { return worldUnder(t, keysOf(t, testSet, testDim)) }

func worldUnder(t testing.TB, u Under) *world {
	t.Helper()
	ca, err := pki.NewAuthority("evaluators", time.Hour)
	must(t, err)
	w := &world{t: t, dir: t.TempDir(), ca: ca, under: u, metrics: metrics.New("test", metrics.Party), log: new(lockedBuffer)}
	w.evaluator = gbfv.NewEvaluator(w.under.Scheme, w.under.Keys.Keys(w.under.Scheme))
	must(t, os.WriteFile(filepath.Join(w.dir, "ca.pem"), ca.PEM(), 0o600))
	return w
}

// files returns the TLS files of a certificate of an authority for an identity.
func (w *world) files(ca *pki.Authority, identity string) config.TLS {
	w.t.Helper()
	cert, key, err := ca.Issue(pki.Leaf{Identity: identity, Hosts: []string{"127.0.0.1"}, Lifetime: time.Hour})
	must(w.t, err)
	w.file++
	base := filepath.Join(w.dir, fmt.Sprint("tls", w.file))
	must(w.t, os.WriteFile(base+".pem", cert, 0o600))
	must(w.t, os.WriteFile(base+".key", key, 0o600))
	return config.TLS{Certificate: base + ".pem", Key: base + ".key", CA: filepath.Join(w.dir, "ca.pem")}
}

func (w *world) credentials(identity string) *rpc.Credentials {
	w.t.Helper()
	c, err := rpc.LoadCredentials(w.files(w.ca, identity).Files())
	must(w.t, err)
	return c
}

func identityOf(name string) string { return "spiffe://lodge/evaluator/" + name }

func freeAddress(t testing.TB, host string) string {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// configure returns the configuration of an evaluator and the party's entry for it.
func (w *world) configure(name, domain string) (*config.EvaluatorFile, config.Evaluator) {
	w.t.Helper()
	hash := w.under.Scheme.Set.Hash()
	f := &config.EvaluatorFile{
		Name: name, Listen: freeAddress(w.t, "127.0.0.1"), TLS: w.files(w.ca, identityOf(name)), Party: config.Owner{Name: "p0", Identity: partyID},
		Params:        []config.ParamsPin{{Name: w.under.Scheme.Set.Name, Hash: hex.EncodeToString(hash[:])}},
		MaxKeysMemory: 1 << 30, MaxMemory: 4 << 30, AllowInsecureParams: true,
	}
	return f, config.Evaluator{Name: name, Address: f.Listen, Identity: identityOf(name), Domain: domain}
}

// run runs an evaluator until the test ends or stop is called.
func (w *world) run(f *config.EvaluatorFile, inner ...rpc.Inner) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := Run(ctx, f, "test", slog.New(slog.NewTextHandler(w.log, nil)), inner...); err != nil {
			w.t.Errorf("evaluator %s: %v", f.Name, err)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	w.t.Cleanup(stop)
	return stop
}

// start starts an evaluator with the given cheats.
func (w *world) start(name, domain string, cheats ...rpc.Inner) config.Evaluator {
	f, e := w.configure(name, domain)
	w.run(f, cheats...)
	return e
}

// pool returns the party's pool after the given number of addresses are up.
func (w *world) pool(check string, up int, list ...config.Evaluator) *Pool {
	return w.poolWith(Options{Check: check, Processes: list, Stall: 20 * time.Second, Limit: time.Minute}, up)
}

func (w *world) poolWith(o Options, up int) *Pool {
	w.t.Helper()
	if o.Credentials == nil {
		o.Credentials = w.credentials(partyID)
	}
	o.Workers, o.Metrics, o.Log = 2, w.metrics, slog.New(slog.NewTextHandler(w.log, nil))
	o.Excluded = func(name, _ string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.excluded = append(w.excluded, name)
	}
	p := New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
	w.until("evaluators are up", func() bool { return p.upNow() >= up })
	return p
}

// upNow returns the number of addresses that are up.
func (p *Pool) upNow() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.processes {
		for _, i := range x.instances {
			if i.up {
				n++
			}
		}
	}
	return n
}

func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: timed out\n%s", what, w.log.String())
		}
	}
}

// task returns a task of a shape with inputs that depend on the label.
func (w *world) task(label uint64, s evaluation.Shape) evaluation.Task {
	t := evaluation.Task{Shape: s}
	for i := range s.Count {
		t.Inputs = append(t.Inputs, randomCiphertext(w.under.Scheme, label<<20+uint64(i)))
	}
	return t
}

// want returns the digest of a task's correct results.
func (w *world) want(t evaluation.Task) [32]byte {
	w.t.Helper()
	must(w.t, t.Check(w.under.Scheme))
	out, err := t.Run(context.Background(), w.evaluator, w.under.Operand, 2)
	must(w.t, err)
	return gbfv.Hash(out)
}

// small returns the shape of a block of scalar triples, including the sacrifice.
func small() evaluation.Shape {
	return evaluation.Shape{Count: 3, Pairs: []evaluation.Pair{{Left: 0, Right: 1}, {Left: 2, Right: 1}}, Last: 3, Primes: 1}
}

// evaluates computes a task at a pool and checks that the result is correct.
func (w *world) evaluates(p *Pool, t evaluation.Task) {
	w.t.Helper()
	e := p.For(w.under)
	if e == nil {
		w.t.Fatalf("no evaluator is available\n%s", w.log.String())
	}
	out, err := e.Evaluate(context.Background(), t)
	must(w.t, err)
	if gbfv.Hash(out) != w.want(t) {
		w.t.Error("the result differs from the party's own")
	}
}

// blamed returns the evaluators that were excluded so far.
func (w *world) blamed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.excluded...)
}

// value returns the value of a metric with these labels, or 0 if the metric does not exist.
func (w *world) value(name string, labels ...string) float64 {
	w.t.Helper()
	families, err := w.metrics.Registry().Gather()
	must(w.t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	metrics:
		for _, m := range f.GetMetric() {
			for _, want := range labels {
				found := false
				for _, l := range m.GetLabel() {
					found = found || l.GetValue() == want
				}
				if !found {
					continue metrics
				}
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return 0
}

// cheat changes an evaluator's responses message by message: it returns the messages to send
// instead of m.
type cheat func(m *evaluatorv1.EvaluateResponse) []*evaluatorv1.EvaluateResponse

// inner returns an interceptor that starts a new cheat for each call.
func inner(begin func(ctx context.Context) cheat) rpc.Inner {
	return rpc.Inner{
		Unary: func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			return h(ctx, q)
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			return h(srv, &cheating{ss, begin(ss.Context())})
		},
	}
}

type cheating struct {
	grpc.ServerStream
	cheat cheat
}

func (c *cheating) SendMsg(m any) error {
	r, ok := m.(*evaluatorv1.EvaluateResponse)
	if !ok {
		return c.ServerStream.SendMsg(m)
	}
	for _, r := range c.cheat(r) {
		if r == nil { // a pause
			select {
			case <-time.After(200 * time.Millisecond):
				continue
			case <-c.Context().Done():
				return c.Context().Err()
			}
		}
		if err := c.ServerStream.SendMsg(r); err != nil {
			return err
		}
	}
	return nil
}

// writeConfig writes a configuration to a file, for a process.
func (w *world) writeConfig(f *config.EvaluatorFile) string {
	w.t.Helper()
	b, err := yaml.Marshal(f)
	must(w.t, err)
	path := filepath.Join(w.dir, f.Name+".yaml")
	must(w.t, os.WriteFile(path, b, 0o600))
	return path
}
