package decrypt

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
)

// The values that parties open to each other are uniform, whatever the message and the noise, which
// are the same in all ciphertexts here. Each party's answer to the recipient is uniform, too.
func TestOpenedIsUniform(t *testing.T) {
	const count = 20000
	for _, form := range []masks.Form{masks.Paper, masks.Exact} {
		k := masks.Kind{Form: form, LogEta: 10, LogPhi: 6}
		for _, noise := range []int64{-32, 0, 31} {
			w := newWorld(1<<10, 1, 2, k)
			m, e := make([]uint64, count), make([]int64, count)
			for i := range m {
				m[i], e[i] = 5, noise
			}
			out := w.run(w.encryptAll(m, e), w.deal(t, w.uniform(count)), 0, roundtest.Record()).OK(t)
			parts := func(from, to round.Party, name string, width int) []uint64 {
				v := make([]uint64, count)
				message := slices.Concat(out.Recording.Frames(from, to, "test/"+name)...)
				if _, err := unpack(v, message, width, round.Digest{}); err != nil {
					t.Fatal(err)
				}
				return v
			}
			what := fmt.Sprintf("%s, noise %d: ", describe(k), noise)
			uniform(t, what+"share of v", parts(1, 0, "masked", 6), 64)
			uniform(t, what+"answer", parts(1, 0, "answer", 10), 1024)
			if k.Form == masks.Paper {
				continue
			}
			v := parts(1, 0, "masked", 6)
			for i, x := range parts(0, 1, "masked", 6) {
				v[i] = (v[i] + x) % 64
			}
			uniform(t, what+"v", v, 64)
			// v together with the masked carry, and the factors that the two levels open
			bit := func(v []uint64, name string, plane int) {
				for from := range round.Party(2) {
					b := slices.Concat(out.Recording.Frames(from, 1-from, "test/"+name)...)[8*((count+63)/64)*plane:]
					for i := range v {
						v[i] = v[i]&^1 | (v[i]^uint64(b[i/8]>>(i%8)))&1
					}
				}
			}
			for i := range v {
				v[i] *= 2
			}
			bit(v, "carry", 0)
			uniform(t, what+"v and carry", v, 128)
			for plane := range 2 {
				level := make([]uint64, count)
				bit(level, "level", plane)
				uniform(t, what+"factors", level, 2)
			}
		}
	}
}

// uniform applies a chi-square test with n-1 degrees of freedom, so its mean is n-1 and its
// variance 2(n-1).
func uniform(t *testing.T, what string, values []uint64, n int) {
	t.Helper()
	counts := make([]float64, n)
	for _, v := range values {
		counts[v]++
	}
	want, chi := float64(len(values))/float64(n), 0.0
	for _, c := range counts {
		chi += (c - want) * (c - want) / want
	}
	free := float64(n - 1)
	if off := chi - free; off*off > 49*2*free {
		t.Errorf("%s: chi-square is %.1f for %d classes", what, chi, n)
	}
}

// The exact form never fails within its bound. The test decrypts 20,000 ciphertexts by default and
// a million of each kind in long runs; half of the noises are at the ends of the bound, the others
// uniform within it.
func TestExactFormNeverFails(t *testing.T) {
	var cases []longtest.Case
	for _, c := range []struct {
		name    string
		q       uint64
		parties int
		logPhi  int
		count   int
	}{
		{"20000-q50-t1", q50, 2, 6, 20000}, {"million-q50-t1", q50, 2, 6, 1 << 20}, {"million-q53-t1", q53, 2, 5, 1 << 20},
		{"million-q50-t3", q50, 4, 6, 1 << 20}, {"million-q53-t6", q53, 7, 4, 1 << 20},
		{"million-q20-t2", q20, 3, 7, 1 << 20},
	} {
		cases = append(cases, longtest.Case{Name: c.name, Everyday: c.count == 20000, Run: func(t *testing.T) {
			k := masks.Kind{Form: masks.Exact, LogEta: c.logPhi + 4, LogPhi: c.logPhi}
			w := newWorld(c.q, 4, c.parties, k)
			worst := int64(MaxNoise(k, c.q, c.parties))
			for done := 0; done < c.count; done += 1 << 16 {
				n := min(1<<16, c.count-done)
				m, e := w.messages(n), make([]int64, n)
				for i := range e {
					e[i] = w.random.Int64N(2*worst+1) - worst
					if i%2 == 0 {
						e[i] = worst - 2*worst*w.random.Int64N(2)
					}
				}
				if got := w.plaintexts(t, w.encryptAll(m, e), round.Party(w.random.IntN(c.parties))); !slices.Equal(got, m) {
					t.Fatalf("one of ciphertexts %d to %d is wrong", done, done+n)
				}
			}
		}})
	}
	longtest.Run(t, cases)
}
