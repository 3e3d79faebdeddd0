package bgvdecrypt

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// BenchmarkCoefficients decrypts 64 coefficients of a ciphertext under existing masks, by parties
// that run sequentially on one processor. Time and bytes are per party and coefficient.
func BenchmarkCoefficients(b *testing.B) {
	const count = 64
	for _, name := range bgv.Names() {
		for _, t := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/t=%d", name, t), func(b *testing.B) {
				w := newWorld(b, name, 2*t+1, t)
				ct, err := w.FromLattigo(w.user.Encrypt(b, w.user.Values(5)))
				if err != nil {
					b.Fatal(err)
				}
				degrees := make([]int, count)
				for k := range degrees {
					degrees[k] = k
				}
				params, err := Params(w.Scheme, t)
				if err != nil {
					b.Fatal(err)
				}
				quorum := quorums(w.n, t+1)[0]
				keys := w.additive(b, quorum, 1)
				var sent int64
				for b.Loop() {
					b.StopTimer()
					stock := w.masks(b, params.Kind, count)
					b.StartTimer()
					out := roundtest.Lockstep(t+1, func(s round.Session) (round.Transition[*decrypt.Result], error) {
						c, err := Select(w.Scheme, []Chosen{{ct, degrees}})
						if err != nil {
							return round.Transition[*decrypt.Result]{}, err
						}
						return decrypt.Start(decrypt.Config{
							Session: s, Step: "test", Params: params, Ciphertexts: c, Secret: keys[s.Self].C[0],
							Masks: stock[s.Self], Recipient: decrypt.Outside, Workers: 1,
						})
					}, roundtest.Serial()).OK(b)
					sent = out.Sent[0] + int64(len(out.Results[0].Answer))
				}
				parts := float64(count * (t + 1))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/parts/1000, "us/coefficient/party")
				b.ReportMetric(float64(sent)/count, "bytes/coefficient/party")
				b.ReportMetric(float64(params.Kind.LogPhi), "bits/mask")
			})
		}
	}
}

// BenchmarkFlooding decrypts a whole ciphertext. Time and bytes are those of one party, and of the
// recipient.
func BenchmarkFlooding(b *testing.B) {
	for _, name := range bgv.Names() {
		for _, t := range []int{1, 2} {
			set, err := bgv.Lookup(name)
			if err != nil {
				b.Fatal(err)
			}
			if set.FloodLevel < 0 {
				continue
			}
			b.Run(fmt.Sprintf("%s/t=%d", name, t), func(b *testing.B) {
				w := newWorld(b, name, 2*t+1, t)
				ct, err := w.FromLattigo(w.user.Encrypt(b, w.user.Values(5)))
				if err != nil {
					b.Fatal(err)
				}
				f, quorum, list := w.flooding(b), quorums(w.n, t+1)[0], []*bgv.Ciphertext{ct}
				var keys []ring.NTT
				for _, a := range w.additive(b, quorum, f.Primes()) {
					s, err := f.Secret(a)
					if err != nil {
						b.Fatal(err)
					}
					keys = append(keys, s)
				}
				var answers [][]byte
				var sent int64
				for b.Loop() {
					out := roundtest.Lockstep(t+1, func(s round.Session) (round.Transition[*Result], error) {
						return StartFlooding(FloodingConfig{
							Session: s, Step: "test", Flooding: f, Ciphertexts: list, Secret: keys[s.Self], Recipient: Outside,
							Source: source("flood", s.Self), Workers: 1,
						})
					}, roundtest.Serial()).OK(b)
					answers = nil
					for _, r := range out.Results {
						answers = append(answers, r.Answers[0])
					}
					sent = out.Sent[0] + int64(len(answers[0]))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*(t+1))/1e6, "ms/ciphertext/party")
				b.ReportMetric(float64(sent)/1000, "kB/ciphertext/party")
			})
			b.Run(fmt.Sprintf("%s/t=%d/recipient", name, t), func(b *testing.B) {
				w := newWorld(b, name, 2*t+1, t)
				ct, err := w.FromLattigo(w.user.Encrypt(b, w.user.Values(5)))
				if err != nil {
					b.Fatal(err)
				}
				list := []*bgv.Ciphertext{ct}
				out := w.flood(b, quorums(w.n, t+1)[0], list, Outside).OK(b)
				for b.Loop() {
					w.flooded(b, list, Outside, out)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ms/ciphertext")
			})
		}
	}
}
