package lwekeys

import (
	"runtime"
	"testing"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// BenchmarkKeygen makes the keys of the sets among three parties, which run sequentially on
// one processor. Time, memory and bytes sent are those of one party.
func BenchmarkKeygen(b *testing.B) {
	const n, t = 3, 1
	for _, name := range lwe.Names() {
		b.Run(name, func(b *testing.B) {
			set := lookup(b, name)
			for b.Loop() {
				out := roundtest.Lockstep(n, func(rs round.Session) (transition, error) {
					return Start(Config{Session: rs, Scheme: set, Threshold: t, Source: source("run", rs.Self), Workers: 1})
				}, roundtest.Serial()).OK(b)
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.Sys)/n/1e6, "MB/party")
				b.ReportMetric(float64(out.Sent[0])/1e6, "sent-MB/party")
				b.ReportMetric(float64(out.Rounds), "rounds")
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/n, "s/party")
		})
	}
}
