package evaluator

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Environment variables of a test process that runs an evaluator: the path of its configuration,
// and whether it withholds its results.
const (
	processConfig = "LODGE_TEST_EVALUATOR"
	processHolds  = "LODGE_TEST_EVALUATOR_HOLDS"
)

func TestMain(m *testing.M) {
	path := os.Getenv(processConfig)
	if path == "" {
		os.Exit(m.Run())
	}
	go func() { // ends with the tests, even if they crash
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	f, err := config.LoadEvaluator(path)
	if err == nil {
		var cheats []rpc.Inner
		if os.Getenv(processHolds) != "" {
			cheats = append(cheats, inner(func(ctx context.Context) cheat { return holdResults(ctx, nil) }))
		}
		err = Run(context.Background(), f, "test", slog.New(slog.NewTextHandler(os.Stderr, nil)), cheats...)
	}
	slog.Error("evaluator", "error", err)
	os.Exit(1)
}

// process starts an evaluator in its own process.
func (w *world) process(name, domain string, env ...string) (config.Evaluator, *exec.Cmd) {
	w.t.Helper()
	f, e := w.configure(name, domain)
	return e, w.processOf(f, env...)
}

// processOf starts an evaluator process with a configuration.
func (w *world) processOf(f *config.EvaluatorFile, env ...string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), processConfig+"="+w.writeConfig(f)), env...)
	cmd.Stdout, cmd.Stderr = w.log, w.log
	_, err := cmd.StdinPipe()
	must(w.t, err)
	must(w.t, cmd.Start())
	w.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// Killing an evaluator while it computes only costs time, and the evaluator receives requests again
// when it is back.
func TestAnEvaluatorIsKilled(t *testing.T) {
	w := newWorld(t)
	killed, cmd := w.process("e0", "site-a", processHolds+"=1")
	p := w.pool(config.Compare, 2, killed, w.start("e1", "site-b"))
	go func() {
		w.until("the evaluator receives a task", func() bool { return w.value("lodge_evaluator_bytes_total", "e0", "sent") > 0 })
		cmd.Process.Signal(syscall.SIGKILL)
	}()
	w.evaluates(p, w.task(1, small()))
	if len(w.blamed()) > 0 || w.value("lodge_evaluator_requests_total", "e0", "unavailable") == 0 || w.value("lodge_evaluator_local_total", "nobody") == 0 {
		t.Errorf("%v were excluded\n%s", w.blamed(), w.log.String())
	}
	w.until("the evaluator counts as down", func() bool { return w.value("lodge_evaluator_up", "e0") == 0 && p.For(w.under) == nil })
}

// The pool gives up an evaluator that makes no progress within the stall timeout.
func TestAnEvaluatorStandsStill(t *testing.T) {
	w := newWorld(t)
	still, cmd := w.process("e0", "site-a")
	p := w.poolWith(Options{Check: config.Trust, Processes: []config.Evaluator{still}, Stall: 5 * time.Second, Limit: longLimit}, 1)
	w.evaluates(p, w.task(1, small()))
	must(t, cmd.Process.Signal(syscall.SIGSTOP))
	// The signal returns before the process has stopped, and a small task takes only milliseconds.
	var status syscall.WaitStatus
	_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	must(t, err)
	w.evaluates(p, w.task(2, small()))
	must(t, cmd.Process.Signal(syscall.SIGCONT))
	if w.value("lodge_evaluator_requests_total", "e0", "stalled") == 0 || w.value("lodge_evaluator_local_total", "nobody") == 0 {
		t.Errorf("the pool did not give up the evaluator\n%s", w.log.String())
	}
}

// randomKeys returns random keys, for tests that do not depend on their meaning.
func randomKeys(t testing.TB, s *gbfv.Scheme, dim int) *keygen.PublicKeys {
	stream, n := sample.NewSource(make([]byte, sample.SeedSize)).Stream("keys", 0), 0
	p := s.Q.NewPoly()
	k, err := keygen.Decode(s, dim, func() ([]byte, error) {
		if n++; n == 1 {
			return make([]byte, 32), nil
		} else if n > keygen.EncodedFrames(s, dim) {
			return nil, io.EOF
		}
		for l, q := range s.Q.Primes() {
			sample.Uniform(p.C[l], q, stream)
		}
		return codec.AppendPoly(nil, p.C, s.Q.Primes()), nil
	})
	must(t, err)
	return k
}

var benchSet = flag.String("set", "S14-32", "the parameter set of the benchmarks")

// BenchmarkParty measures the time that a party's process needs to evaluate batches, with and
// without evaluator processes on loopback.
func BenchmarkParty(b *testing.B) {
	for name, shape := range map[string]evaluation.Shape{
		"scalar": {Count: 3, Pairs: []evaluation.Pair{{Left: 0, Right: 1}, {Left: 2, Right: 1}}, Last: 3, Primes: 4},
		"matrix": {Count: 256, Rows: 1, Inner: 1, Cols: 1, Dim: 128, Last: 256, Primes: 4},
	} {
		b.Run(name, func(b *testing.B) {
			w := benchWorld(b, max(1, shape.Dim))
			e0, _ := w.process("e0", "site-a")
			e1, _ := w.process("e1", "site-b")
			task := w.task(1, shape)
			for _, check := range []string{"alone", config.Trust, config.Compare} {
				b.Run(check, func(b *testing.B) {
					run := func() {
						out, err := task.Run(b.Context(), w.evaluator, w.under.Operand, 1)
						must(b, err)
						evaluation.Free(out)
					}
					if check != "alone" {
						list := []config.Evaluator{e0, e1}
						if check == config.Trust {
							list = list[:1]
						}
						p := w.pool(check, len(list), list...)
						run = func() {
							out, err := p.For(w.under).Evaluate(b.Context(), task)
							must(b, err)
							evaluation.Free(out)
						}
					}
					run() // uploads the keys
					local := w.value("lodge_evaluator_local_total", "nobody") + w.value("lodge_evaluator_local_total", "mismatch")
					sent, received := w.moved()
					before := cpu()
					for b.Loop() {
						run()
					}
					spent := cpu() - before
					if w.value("lodge_evaluator_local_total", "nobody")+w.value("lodge_evaluator_local_total", "mismatch") != local {
						b.Fatalf("the party computed a task itself\n%s", w.log.String())
					}
					up, down := w.moved()
					b.ReportMetric(spent.Seconds()/float64(b.N), "CPU-s/op")
					b.ReportMetric((up-sent)/float64(b.N)/1e6, "MB-sent/op")
					b.ReportMetric((down-received)/float64(b.N)/1e6, "MB-received/op")
				})
			}
		})
	}
}

func benchWorld(b *testing.B, dim int) *world {
	set, err := params.Lookup(*benchSet)
	must(b, err)
	spec, err := set.Field(testField)
	must(b, err)
	s, err := gbfv.New(set, spec)
	must(b, err)
	u := Under{Scheme: s, Keys: randomKeys(b, s, dim), MACKey: randomCiphertext(s, 1000)}
	u.KeysDigest, u.Operand = u.Keys.Digest(s, 2), s.Left(u.MACKey)
	return worldUnder(b, u)
}

// moved returns the bytes of frames sent to and received from evaluators.
func (w *world) moved() (sent, received float64) {
	for _, name := range []string{"e0", "e1"} {
		sent += w.value("lodge_evaluator_bytes_total", name, "sent")
		received += w.value("lodge_evaluator_bytes_total", name, "received")
	}
	return sent, received
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
