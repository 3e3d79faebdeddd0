package evaluator

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// shapes returns the shapes of all tasks that batches have, and others.
func shapes() map[string]evaluation.Shape {
	return map[string]evaluation.Shape{
		"scalars":                   small(),
		"squares":                   {Count: 2, Pairs: []evaluation.Pair{{Left: 0, Right: 0}, {Left: 1, Right: 1}}, Last: 2, Primes: 1},
		"random values":             {Count: 1, Last: 1, Primes: 1},
		"products only":             {Count: 2, Pairs: []evaluation.Pair{{Left: 1, Right: 0}}, Primes: 2},
		"matrices":                  {Count: 8, Rows: 1, Inner: 1, Cols: 1, Dim: 4, Last: 8, Primes: 1},
		"one row of a block matrix": {Count: 16, Rows: 1, Inner: 2, Cols: 1, Dim: 4, First: 8, Last: 16, Primes: 1},
		"other blocks":              {Count: 12, Rows: 1, Inner: 3, Cols: 1, Dim: 2, First: 6, Last: 6, Primes: 1},
		"matrices and scalars":      {Count: 14, Rows: 2, Inner: 1, Cols: 1, Dim: 4, Pairs: []evaluation.Pair{{Left: 12, Right: 13}}, Last: 14, Primes: 1},
	}
}

// For every kind of task and every check, the evaluators' results equal the party's own results,
// bit for bit.
func TestEvaluatorsComputeTheSame(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("e0", "site-a"), w.start("e1", "site-b")
	for check, own := range map[string]float64{config.Compare: 0, config.Trust: 0, config.Recompute: float64(len(shapes()))} {
		p := w.pool(check, 2, a, b)
		locally := func() float64 {
			return w.value("lodge_evaluator_local_total", "recompute") + w.value("lodge_evaluator_local_total", "nobody")
		}
		before := locally()
		for name, s := range shapes() {
			t.Run(check+" "+name, func(t *testing.T) { w.evaluates(p, w.task(1, s)) })
		}
		if got := locally() - before; got != own {
			t.Errorf("%s: the party computed %v itself, not %v", check, got, own)
		}
	}
	if len(w.blamed()) > 0 {
		t.Errorf("%v were excluded\n%s", w.blamed(), w.log.String())
	}
	for _, name := range []string{"e0", "e1"} {
		if w.value("lodge_evaluator_requests_total", name, "ok") == 0 || w.value("lodge_evaluator_bytes_total", name, "sent") == 0 {
			t.Errorf("%s received no request", name)
		}
	}
}

// Without enough evaluators the party computes itself.
func TestNobodyToAsk(t *testing.T) {
	w := newWorld(t)
	a := w.start("e0", "site-a")
	_, absent := w.configure("e1", "site-b")
	if p := w.pool(config.Compare, 1, a, absent); p.For(w.under) != nil {
		t.Error("one evaluator is asked although two must agree")
	}
	if p := w.pool(config.Trust, 0, absent); p.For(w.under) != nil {
		t.Error("an evaluator that does not run is asked")
	}
	if New(Options{}) != nil || (*Pool)(nil).For(w.under) != nil {
		t.Error("a pool without evaluators")
	}
	(*Pool)(nil).Run(t.Context())
}

// When a session ends, Evaluate returns, and no goroutine reads the session's ciphertexts
// afterwards.
func TestAnEndOfTheSessionEndsTheWaiting(t *testing.T) {
	w := newWorld(t)
	asked := make(chan struct{}, 2)
	hold := inner(func(ctx context.Context) cheat { return holdResults(ctx, asked) })
	p := w.pool(config.Compare, 2, w.start("e0", "site-a", hold), w.start("e1", "site-b", hold))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		<-asked
		cancel()
	}()
	if _, err := p.For(w.under).Evaluate(ctx, w.task(1, small())); err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
	if len(w.blamed()) > 0 {
		t.Errorf("%v were excluded", w.blamed())
	}
}

// If a name has several addresses, the pool uses an evaluator at each address and distributes
// requests among them.
func TestANameWithSeveralAddresses(t *testing.T) {
	w := newWorld(t)
	f, e := w.configure("e0", "site-a")
	e.Address = "evaluators.example" + e.Address[len("127.0.0.1"):]
	w.run(f)
	second := *f
	second.Listen = "127.0.0.2" + f.Listen[len("127.0.0.1"):]
	stop := w.run(&second)
	hosts := []string{"127.0.0.1", "127.0.0.2", "127.0.0.1"}
	p := w.poolWith(Options{Check: config.Trust, Processes: []config.Evaluator{e}, Stall: longStall, Limit: longLimit,
		Lookup: func(context.Context, string) ([]string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(hosts), nil
		}}, 2)
	if n := p.upNow(); n != 2 {
		t.Fatalf("%d addresses", n)
	}
	done := make(chan struct{})
	for i := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			w.evaluates(p, w.task(uint64(i), small()))
		}()
	}
	for range 8 {
		<-done
	}
	stop()
	w.until("the stopped evaluator counts as down", func() bool { return p.upNow() == 1 })
	w.evaluates(p, w.task(9, small()))
	w.mu.Lock()
	hosts = hosts[:1]
	w.mu.Unlock()
	w.until("its address is removed", func() bool {
		must(t, p.lookup(t.Context(), p.processes[0]))
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.processes[0].instances) == 1
	})
	w.evaluates(p, w.task(10, small()))
}

// An evaluator cannot choose the recorded outcome of a request: the evaluator is paused, and
// metrics contain only known codes.
func TestAnEvaluatorMakesUpNoOutcome(t *testing.T) {
	for _, code := range []rpc.Code{"ok", rpc.Cancelled, "made-up"} {
		w := newWorld(t)
		refuses := rpc.Inner{
			Unary: func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
				return h(ctx, q)
			},
			Stream: func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
				return rpc.Errorf(code, "", "no")
			},
		}
		p := w.poolWith(Options{Check: config.Trust, Processes: []config.Evaluator{w.start("e0", "site-a", refuses)}, Stall: time.Hour, Limit: longLimit}, 1)
		w.evaluates(p, w.task(1, small()))
		if n := w.value("lodge_evaluator_requests_total", "e0", string(code)); n != 0 {
			t.Errorf("%v requests ended with %q", n, code)
		}
		if p.For(w.under) != nil {
			t.Errorf("the evaluator was asked again without a pause after %q", code)
		}
	}
}

// The number of connections stays bounded if a name has too many addresses.
func TestANameWithTooManyAddresses(t *testing.T) {
	w := newWorld(t)
	p := New(Options{Check: config.Trust, Processes: []config.Evaluator{{Name: "e0", Address: "evaluators.example:1", Identity: "e0.example", Domain: "site-a"}},
		Credentials: w.credentials("spiffe://lodge/party/p0"), Stall: longStall, Limit: longLimit,
		Lookup: func(context.Context, string) (list []string, err error) {
			for i := range maxAddresses + 1 {
				list = append(list, fmt.Sprintf("10.0.%d.%d", i/256, i%256))
			}
			return list, nil
		}})
	if err := p.lookup(t.Context(), p.processes[0]); err == nil || len(p.processes[0].instances) != 0 {
		t.Errorf("%v, %d connections", err, len(p.processes[0].instances))
	}
}
