package decrypt

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
)

// repeated is a batch that repeats a few ciphertexts, so that it fits in memory.
type repeated struct {
	list
	count int
}

func (r repeated) Len() int                    { return r.count }
func (r repeated) At(i int) ([]uint64, uint64) { return r.list.At(i % len(r.list)) }

// BenchmarkDecrypt decrypts 20,000 ciphertexts by parties that run sequentially. The
// reported time is the total divided by the numbers of parties and ciphertexts.
func BenchmarkDecrypt(b *testing.B) {
	const count = 20000
	for _, q := range []uint64{q50, q53} {
		for _, form := range []masks.Form{masks.Paper, masks.Exact} {
			for _, n := range []int{2, 4, 7} {
				b.Run(fmt.Sprintf("%v-%d/t=%d", form, PaperKind(q, 4).LogEta, n-1), func(b *testing.B) {
					k := PaperKind(q, 4)
					if form == masks.Exact {
						k = masks.Kind{Form: masks.Exact, LogEta: 10, LogPhi: 6}
					}
					w := newWorld(q, 2048, n, k)
					l := repeated{w.encryptAll(w.messages(400), w.gaussian(400, 1000)), count}
					var sent int64
					for b.Loop() {
						b.StopTimer()
						batches := w.deal(b, w.uniform(count))
						b.StartTimer()
						out := w.run(l, batches, Outside, roundtest.Serial()).OK(b)
						sent = 0
						for p, s := range out.Sent {
							sent += s + int64(len(out.Results[p].Answer))
						}
					}
					parts := float64(count * n)
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/parts/1000, "us/ciphertext/party")
					b.ReportMetric(float64(sent)/parts, "bytes/ciphertext/party")
				})
			}
		}
	}
}
