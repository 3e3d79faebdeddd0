package evaluator

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
)

// Durations that an operation without computation never needs, however slow the machine.
const (
	longStall = 20 * time.Second
	longLimit = time.Minute
)

type message = evaluatorv1.EvaluateResponse

func one(m *message) []*message { return []*message{m} }

func frameOf(b []byte) *message {
	return &message{Kind: &evaluatorv1.EvaluateResponse_Frame{Frame: b}}
}

// holdResults withholds the results until the call ends, and signals on asked when the evaluator
// has them.
func holdResults(ctx context.Context, asked chan<- struct{}) cheat {
	return func(m *message) []*message {
		if m.GetResults() != nil {
			if asked != nil {
				asked <- struct{}{}
			}
			<-ctx.Done()
		}
		return one(m)
	}
}

// frames returns a cheat that changes only the polynomials of the results; n counts from 0.
func frames(f func(n int, frame []byte) [][]byte) func(context.Context) cheat {
	return func(context.Context) cheat {
		n := 0
		return func(m *message) (list []*message) {
			if len(m.GetFrame()) == 0 {
				return one(m)
			}
			for _, b := range f(n, m.GetFrame()) {
				list = append(list, frameOf(b))
			}
			n++
			return list
		}
	}
}

// cheats returns ways in which an evaluator can misbehave, and the outcome that the party must
// record for each.
func (w *world) cheats() map[string]struct {
	begin   func(context.Context) cheat
	outcome string
	named   bool
} {
	primes := w.under.Scheme.Prefix(1).Primes()
	n := w.under.Scheme.N()
	// residue changes residue 0 of a polynomial
	residue := func(frame []byte, change func(uint64) uint64) []byte {
		c := [][]uint64{make([]uint64, n)}
		must(w.t, codec.DecodePoly(c, primes, frame))
		c[0][0] = change(c[0][0])
		return codec.AppendPoly(nil, c, primes)
	}
	var mu sync.Mutex
	var earlier [][]byte
	type row = struct {
		begin   func(context.Context) cheat
		outcome string
		named   bool
	}
	return map[string]row{
		"one residue is wrong by one": {frames(func(n int, f []byte) [][]byte {
			if n == 7 {
				f = residue(f, func(v uint64) uint64 { return (v + 1) % primes[0] })
			}
			return [][]byte{f}
		}), "ok", true},
		"the last residue of the last polynomial": {func(context.Context) cheat {
			n := 0
			return func(m *message) []*message {
				if f := m.GetFrame(); len(f) > 0 {
					if n++; n == 2*7 { // the results of small
						c := [][]uint64{make([]uint64, w.under.Scheme.N())}
						must(w.t, codec.DecodePoly(c, primes, f))
						c[0][len(c[0])-1] = (c[0][len(c[0])-1] + 1) % primes[0]
						return one(frameOf(codec.AppendPoly(nil, c, primes)))
					}
				}
				return one(m)
			}
		}, "ok", true},
		"two results are swapped": {func(context.Context) cheat {
			var kept []*message
			return func(m *message) []*message {
				if len(m.GetFrame()) == 0 || len(kept) == 4 {
					return one(m)
				}
				if kept = append(kept, frameOf(bytes.Clone(m.GetFrame()))); len(kept) < 4 {
					return nil
				}
				return slices.Concat(kept[2:], kept[:2])
			}
		}, "ok", true},
		"c0 and c1 are swapped": {func(context.Context) cheat {
			var first []byte
			return func(m *message) []*message {
				f := m.GetFrame()
				switch {
				case len(f) == 0:
					return one(m)
				case first == nil:
					first = bytes.Clone(f)
					return nil
				}
				list := []*message{frameOf(f), frameOf(first)}
				first = nil
				return list
			}
		}, "ok", true},
		"the results of an earlier request": {frames(func(n int, f []byte) [][]byte {
			mu.Lock()
			defer mu.Unlock()
			if len(earlier) < 14 {
				earlier = append(earlier, bytes.Clone(f))
				return [][]byte{f}
			}
			return [][]byte{earlier[n]}
		}), "ok", true},
		"an answer to another request": {func(context.Context) cheat {
			return func(m *message) []*message {
				if a := m.GetAnswer(); a != nil {
					a.RequestDigest = bytes.Clone(a.RequestDigest) // the evaluator's results contain the same field
					a.RequestDigest[0] ^= 1
				}
				return one(m)
			}
		}, "faulty", true},
		"results of another request": {func(context.Context) cheat {
			return func(m *message) []*message {
				if r := m.GetResults(); r != nil {
					r.RequestDigest[31] ^= 1
				}
				return one(m)
			}
		}, "faulty", true},
		"one result fewer than announced": {func(context.Context) cheat {
			return func(m *message) []*message {
				if r := m.GetResults(); r != nil {
					r.Ciphertexts--
				}
				return one(m)
			}
		}, "faulty", true},
		"one polynomial fewer":   {frames(func(n int, f []byte) [][]byte { return [][]byte{f}[b2i(n == 3):] }), "faulty", true},
		"one polynomial twice":   {frames(func(n int, f []byte) [][]byte { return append([][]byte{f}, [][]byte{f}[b2i(n != 13):]...) }), "faulty", true},
		"a truncated polynomial": {frames(func(n int, f []byte) [][]byte { return [][]byte{f[:len(f)-b2i(n == 2)]} }), "faulty", true},
		"an extended polynomial": {frames(func(n int, f []byte) [][]byte { return [][]byte{append(f, make([]byte, b2i(n == 2))...)} }), "faulty", true},
		"a residue equals its prime": {frames(func(n int, f []byte) [][]byte {
			if n == 5 {
				f = residue(f, func(uint64) uint64 { return primes[0] })
			}
			return [][]byte{f}
		}), "faulty", true},
		"an empty polynomial": {func(context.Context) cheat {
			return func(m *message) []*message {
				if len(m.GetFrame()) > 0 {
					m.Kind = &evaluatorv1.EvaluateResponse_Frame{}
				}
				return one(m)
			}
		}, "faulty", true},
		"no kind": {func(context.Context) cheat {
			return func(m *message) []*message {
				if m.GetResults() != nil {
					m.Kind = nil
				}
				return one(m)
			}
		}, "faulty", true},
		"polynomials before their header": {func(context.Context) cheat {
			return func(m *message) []*message {
				if m.GetResults() != nil {
					return nil
				}
				return one(m)
			}
		}, "faulty", true},
		"a header twice": {func(context.Context) cheat {
			return func(m *message) []*message {
				if m.GetResults() != nil {
					return []*message{m, m}
				}
				return one(m)
			}
		}, "faulty", true},
		"no response to the header": {func(context.Context) cheat {
			return func(m *message) []*message {
				if m.GetAnswer() != nil {
					return one(&message{Kind: &evaluatorv1.EvaluateResponse_Progress{Progress: &evaluatorv1.Progress{Done: 1}}})
				}
				return one(m)
			}
		}, "faulty", true},
		"an unknown material is missing": {func(context.Context) cheat {
			return func(m *message) []*message {
				if a := m.GetAnswer(); a != nil {
					a.Missing = []evaluatorv1.Material{7}
				}
				return one(m)
			}
		}, "faulty", true},
		"the same material is missing repeatedly": {func(context.Context) cheat {
			return func(m *message) []*message {
				if a := m.GetAnswer(); a != nil {
					a.Missing = slices.Repeat([]evaluatorv1.Material{evaluatorv1.Material_MATERIAL_KEYS}, 1000)
				}
				return one(m)
			}
		}, "faulty", true},
		"keys are always missing": {func(context.Context) cheat {
			return func(m *message) []*message {
				if a := m.GetAnswer(); a != nil {
					a.Missing = []evaluatorv1.Material{evaluatorv1.Material_MATERIAL_KEYS}
				}
				return one(m)
			}
		}, "busy", false},
		"unlimited progress messages": {func(context.Context) cheat {
			return func(m *message) []*message {
				if m.GetResults() == nil {
					return one(m)
				}
				var list []*message
				for i := range uint32(100000) {
					list = append(list, &message{Kind: &evaluatorv1.EvaluateResponse_Progress{Progress: &evaluatorv1.Progress{Done: i + 1}}})
				}
				return append(list, m)
			}
		}, "faulty", true},
		"progress that does not increase": {func(context.Context) cheat {
			return func(m *message) []*message {
				if m.GetResults() == nil {
					return one(m)
				}
				p := &message{Kind: &evaluatorv1.EvaluateResponse_Progress{Progress: &evaluatorv1.Progress{Done: 1}}}
				return []*message{p, p, m}
			}
		}, "faulty", true},
		"a message that is too large": {func(context.Context) cheat {
			return func(m *message) []*message {
				if len(m.GetFrame()) > 0 {
					return one(frameOf(make([]byte, 5<<20)))
				}
				return one(m)
			}
		}, "", true},
		"progress, but never a result": {func(context.Context) cheat {
			return func(m *message) []*message {
				if m.GetResults() != nil {
					return slow()
				}
				return one(m)
			}
		}, "slow", false},
		"it stalls": {func(ctx context.Context) cheat { return holdResults(ctx, nil) }, "stalled", false},
	}
}

// slow returns progress that continues until the call ends. A nil message is a pause in which
// nothing is sent.
func slow() (list []*message) {
	for i := range uint32(100) {
		list = append(list, &message{Kind: &evaluatorv1.EvaluateResponse_Progress{Progress: &evaluatorv1.Progress{Done: i + 1}}}, nil)
	}
	return list
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Whatever one evaluator does, the party uses its own result, names the evaluator, and continues.
func TestCheatsOfAnEvaluator(t *testing.T) {
	names := newWorld(t).cheats()
	for name := range names {
		for _, check := range []string{config.Compare, config.Recompute} {
			t.Run(name+", "+check, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				c := w.cheats()[name]
				list := []config.Evaluator{w.start("e1", "site-b", inner(c.begin))}
				if check == config.Compare {
					list = append(list, w.start("e0", "site-a"))
				}
				stall, limit := longStall, longLimit
				switch c.outcome {
				case "stalled":
					stall = time.Second
				case "slow":
					limit = time.Second
				}
				p := w.poolWith(Options{Check: check, Processes: list, Stall: stall, Limit: limit}, len(list))
				if name == "the results of an earlier request" {
					w.evaluates(p, w.task(1, small()))
				}
				w.evaluates(p, w.task(2, small()))
				want := []string{}
				if c.named {
					want = append(want, "e1")
				}
				if got := w.blamed(); !slices.Equal(got, want) {
					t.Errorf("%v were excluded, not %v\n%s", got, want, w.log.String())
				}
				ended := w.value("lodge_evaluator_requests_total", "e1", c.outcome)
				if c.outcome == "stalled" || c.outcome == "slow" { // on a loaded machine an honest evaluator can stall too, and the party does not wait for the other evaluator
					ended += w.value("lodge_evaluator_requests_total", "e0", c.outcome)
				}
				if c.outcome != "" && ended == 0 {
					t.Errorf("no request ended with %q\n%s", c.outcome, w.log.String())
				}
				if mismatch := w.value("lodge_evaluator_mismatches_total", "e1"); c.outcome == "ok" && mismatch != 1 {
					t.Errorf("%v mismatches", mismatch)
				}
				if w.value("lodge_evaluator_excluded", "e1") != float64(len(want)) || w.value("lodge_evaluator_excluded", "e0") != 0 {
					t.Error("the metrics do not show the excluded evaluator")
				}
				if c.named { // no evaluator is left for a comparison, or at all
					if p.For(w.under) != nil {
						t.Error("an excluded evaluator received a request")
					}
				}
			})
		}
	}
}

// With a third evaluator in another domain, two evaluators still agree when one is excluded.
func TestTwoAgreeBesideACheat(t *testing.T) {
	w := newWorld(t)
	c := w.cheats()["one residue is wrong by one"]
	p := w.pool(config.Compare, 3, w.start("e0", "site-a"), w.start("e1", "site-b", inner(c.begin)), w.start("e2", "site-c"))
	for label := uint64(0); len(w.blamed()) == 0; label++ {
		w.evaluates(p, w.task(label, small()))
	}
	before := w.value("lodge_evaluator_local_total", "mismatch") + w.value("lodge_evaluator_local_total", "nobody")
	w.evaluates(p, w.task(100, small()))
	if got := w.value("lodge_evaluator_local_total", "mismatch") + w.value("lodge_evaluator_local_total", "nobody"); got != before {
		t.Error("the party computed the task although two evaluators agreed")
	}
	if got := w.blamed(); !slices.Equal(got, []string{"e1"}) {
		t.Errorf("%v were excluded", got)
	}
}

// A result that is used without the party's own computation comes from two domains that agree in
// every bit.
func TestWhoAgrees(t *testing.T) {
	s := newWorld(t).under.Scheme
	from := func(domain string) *process { return &process{Evaluator: config.Evaluator{Domain: domain}} }
	list := func(labels ...uint64) (all []*gbfv.Ciphertext) {
		for _, l := range labels {
			all = append(all, randomCiphertext(s, l))
		}
		return all
	}
	other := list(1, 2)
	other[1].C1.C[0][s.N()-1]++
	for name, c := range map[string]struct {
		answers []answer
		want    bool
	}{
		"the same result from two domains":   {[]answer{{from("a"), list(1, 2)}, {from("b"), list(1, 2)}}, true},
		"one residue differs":                {[]answer{{from("a"), list(1, 2)}, {from("b"), other}}, false},
		"another order":                      {[]answer{{from("a"), list(1, 2)}, {from("b"), list(2, 1)}}, false},
		"one fewer":                          {[]answer{{from("a"), list(1, 2)}, {from("b"), list(1)}}, false},
		"the same result from one domain":    {[]answer{{from("a"), list(1, 2)}, {from("a"), list(1, 2)}}, false},
		"one answer":                         {[]answer{{from("a"), list(1, 2)}}, false},
		"no answer":                          {nil, false},
		"three results, two from one domain": {[]answer{{from("a"), list(1)}, {from("b"), list(1)}, {from("b"), list(1)}}, false},
	} {
		if agree(c.answers) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// Two evaluators of one domain count as one.
func TestOneDomainIsOneOpinion(t *testing.T) {
	w := newWorld(t)
	c := w.cheats()["one residue is wrong by one"]
	list := []config.Evaluator{w.start("e0", "site-b", inner(c.begin)), w.start("e1", "site-b", inner(c.begin)), w.start("e2", "site-a")}
	p := w.pool(config.Compare, 3, list...)
	for label := uint64(0); len(w.blamed()) < 2; label++ {
		w.evaluates(p, w.task(label, small()))
	}
	if slices.Contains(w.blamed(), "e2") {
		t.Errorf("%v were excluded", w.blamed())
	}
}

// A peer that sends without end does not exhaust memory.
func TestAReaderTakesNoMore(t *testing.T) {
	s := newWorld(t).under.Scheme
	ct := randomCiphertext(s, 1)
	frame := codec.AppendPoly(nil, ct.C0.C[:1], s.Prefix(1).Primes())
	r := newReader(s, 1, 2)
	for range 4 {
		if r.done() {
			t.Fatal("it is complete too early")
		}
		must(t, r.frame(frame))
	}
	if err := r.frame(frame); err == nil || !r.done() || len(r.list) != 2 || r.half != nil {
		t.Errorf("got %v, %d polynomials", err, r.read())
	}
	r.free()
}
