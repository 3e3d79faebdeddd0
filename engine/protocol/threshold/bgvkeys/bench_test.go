package bgvkeys

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// BenchmarkKeys makes the keys of the sets, with two automorphisms, by parties that run
// sequentially on one processor. Time, memory and bytes sent are per party.
func BenchmarkKeys(b *testing.B) {
	for _, name := range bgv.Names() {
		for _, c := range []struct{ n, t int }{{3, 1}, {5, 2}} {
			b.Run(fmt.Sprintf("%s/n=%d", name, c.n), func(b *testing.B) {
				s := scheme(b, name)
				for b.Loop() {
					out := roundtest.Lockstep(c.n, func(rs round.Session) (transition, error) {
						return Start(Config{
							Session: rs, Scheme: s, Threshold: c.t, Galois: galois(s), Source: source("run", rs.Self), Workers: 1,
						})
					}, roundtest.Serial()).OK(b)
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					b.ReportMetric(float64(m.Sys)/float64(c.n)/1e6, "MB/party")
					b.ReportMetric(float64(out.Sent[0])/1e6, "sent-MB/party")
					b.ReportMetric(float64(out.Rounds), "rounds")
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N*c.n), "s/party")
			})
		}
	}
}
