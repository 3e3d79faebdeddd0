package threshold_test

import (
	"testing"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	client "github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/lwe"
)

// BenchmarkDecrypt measures one message, and many, from a client through two parties over TLS and
// their stores to the plaintext.
func BenchmarkDecrypt(b *testing.B) {
	w := newWorld(b, 3, nil)
	epoch := w.keys(1)
	k, public := w.key(epoch)
	for _, n := range []int{1, 256} {
		for _, form := range []string{"exact", "paper"} {
			b.Run(form+"/"+map[int]string{1: "one", 256: "ring"}[n], func(b *testing.B) {
				w.masks(epoch, uint64(max(20000, b.N*n)), form, 0, 1)
				var list []*lwe.Ring
				for range b.N {
					c, err := client.Encrypt(k, public, make([]uint64, n), lwe.Plain)
					if err != nil {
						b.Fatal(err)
					}
					list = append(list, c[0])
				}
				b.ResetTimer()
				began := time.Now()
				for _, c := range list {
					r := &client.Request{Ring: []*lwe.Ring{c}, Coefficients: n, Quorum: []int{0, 1}, Paper: form == "paper"}
					if _, err := w.app.Decrypt(b.Context(), k, r); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(time.Since(began).Microseconds())/float64(b.N*n), "us/message")
			})
		}
	}
}

// BenchmarkBGV measures making keys of the default BGV set, for a rotation of columns and one of
// rows, and decrypting a ciphertext in both modes.
func BenchmarkBGV(b *testing.B) {
	w := newWorld(b, 3, floods, bgv.Default)
	begun := time.Now()
	u := w.user(w.bgvKeys(bgv.Default, 1, 5, 1<<14-1))
	b.Logf("keys: %.1f s", time.Since(begun).Seconds())
	want := u.values(3)
	for _, n := range []int{64, 0} {
		b.Run(map[int]string{64: "64 coefficients", 0: "flooding"}[n], func(b *testing.B) {
			if n > 0 {
				w.masks(u.key.Epoch, uint64(max(20000, b.N*n)), "exact", 0, 1)
			}
			var list []*rlwe.Ciphertext
			for range b.N {
				list = append(list, u.encrypt(want, true))
			}
			b.ResetTimer()
			for _, c := range list {
				r := &client.Request{BGV: []*rlwe.Ciphertext{c}, Coefficients: n, Flooding: n == 0, Quorum: []int{0, 1}}
				if _, err := w.vouched(u.key, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
