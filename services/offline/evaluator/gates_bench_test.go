package evaluator

import (
	"context"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	"github.com/lodge-mpc/lodge/services/host/config"
)

// BenchmarkRotations measures gates of two owners whose rotations are computed by the party, or by
// evaluator processes on loopback: the total time, the CPU time of the party's process, and the
// bytes sent.
func BenchmarkRotations(b *testing.B) {
	const count = 64
	g := newGates(b, multikey.Default, 2)
	var list []config.Evaluator
	for i, name := range []string{"e0", "e1"} {
		f, e := g.configure(name, []string{"site-a", "site-b"}[i])
		g.processOf(f)
		list = append(list, e)
	}
	for _, c := range []struct {
		name, check string
		processes   int
	}{{"alone", "", 0}, {"trust one", config.Trust, 1}, {"trust two", config.Trust, 2}, {"compare", config.Compare, 2}, {"recompute", config.Recompute, 1}} {
		b.Run(c.name, func(b *testing.B) {
			local := circuit.Local{Evaluator: g.own, Workers: 2}
			if c.processes > 0 {
				local.Rotate = g.pool(c.check, c.processes, list[:c.processes]...).Rotate(g.rotations())
			}
			run := func() {
				must(b, local.Compute(context.Background(), g.tasks(count), func(int) {}))
			}
			if c.processes > 0 {
				run() // uploads the keys
			}
			nobody := g.value("lodge_evaluator_local_total", "nobody")
			sent, received := g.moved()
			before := cpu()
			for b.Loop() {
				run()
			}
			spent := cpu() - before
			if g.value("lodge_evaluator_local_total", "nobody") != nobody {
				b.Fatalf("the party computed a batch itself\n%s", g.log.String())
			}
			up, down := g.moved()
			b.ReportMetric(spent.Seconds()/float64(b.N*count), "CPU-s/gate")
			b.ReportMetric((up-sent)/float64(b.N*count), "bytes-sent/gate")
			b.ReportMetric((down-received)/float64(b.N*count), "bytes-received/gate")
		})
	}
}
