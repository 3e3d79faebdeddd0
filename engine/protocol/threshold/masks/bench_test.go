package masks

import (
	"context"
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// BenchmarkRecords makes 20,000 records by parties that run sequentially. The reported time
// is the total divided by the numbers of parties and records.
func BenchmarkRecords(b *testing.B) {
	const count = 20000
	for _, k := range []Kind{paperKind(50, 46), paperKind(53, 49), exactKind(10, 6), OddKind(65537, 3)} {
		for _, n := range []int{2, 4, 7} {
			b.Run(fmt.Sprintf("%v-%d/t=%d", k.Form, k.LogEta, n-1), func(b *testing.B) {
				var sent int64
				for b.Loop() {
					out := roundtest.Lockstep(n, func(s round.Session) (round.Transition[*Batch], error) {
						return Start(Config{
							Session: s, Step: "bench", Kind: k, Count: count, Sacrifice: 64,
							Source: source("bench", s.Self), Workers: 1,
						})
					}, roundtest.Serial(), roundtest.Context(context.Background())).OK(b)
					sent = 0
					for _, s := range out.Sent {
						sent += s
					}
				}
				parts := float64(count * n)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/parts/1000, "us/record/party")
				b.ReportMetric(float64(sent)/parts, "bytes/record/party")
			})
		}
	}
}
