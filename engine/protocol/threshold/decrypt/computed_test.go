package decrypt_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/lwekeys"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/share"
)

func seeded(label string, p round.Party) *sample.Source {
	d := round.Hash("computed test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

type ciphertexts []*lwe.LWE

func (c ciphertexts) Len() int                    { return len(c) }
func (c ciphertexts) At(i int) ([]uint64, uint64) { return c[i].A, c[i].B }

// computed returns fresh ciphertexts and results of look-ups and gates under the keys of a run, and
// their plaintexts.
func computed(t *testing.T, s *lwe.Scheme, keys *lwe.Keys) (list ciphertexts, want []uint64) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	public, err := s.PublicKey(keys)
	must(err)
	evaluator, err := lwe.NewEvaluator(s, keys, 1)
	must(err)
	encrypted := func(e lwe.Encoding, messages ...uint64) (out ciphertexts) {
		ring, err := public.Encrypt(messages, e, seeded("encryption", round.Party(e)))
		must(err)
		for i := range messages {
			c := s.NewLWE()
			s.Extract(c, ring, i)
			out = append(out, c)
		}
		return out
	}
	plain := []uint64{0, 1, s.P - 1, s.P / 2}
	list, want = encrypted(lwe.Plain, plain...), slices.Clone(plain)
	values := make([]uint64, s.P)
	for i := range values {
		values[i] = (uint64(i)*uint64(i) + 3) % s.P
	}
	table, err := s.NewTable(values, lwe.Padded)
	must(err)
	inputs := []uint64{0, 1, 7, s.P - 1}
	for i, in := range encrypted(lwe.Padded, inputs...) {
		looked, twice := s.NewLWE(), s.NewLWE()
		must(evaluator.Lookup(looked, in, table))
		s.Add(twice, looked, looked) // the padded encoding becomes a plain one
		list, want = append(list, twice), append(want, values[inputs[i]])
	}
	truth := func(b bool) uint64 { // p/8 means true, -p/8 means false
		if b {
			return s.P / 8
		}
		return s.P - s.P/8
	}
	in := encrypted(lwe.Boolean, 0, 1)
	for x := range 2 {
		for y := range 2 {
			for gate, value := range map[lwe.Gate]bool{lwe.Nand: x&y == 0, lwe.Xor: x != y, lwe.Or: x|y == 1} {
				c := s.NewLWE()
				must(evaluator.Gate(c, gate, in[x], in[y]))
				list, want = append(list, c), append(want, truth(value))
			}
		}
	}
	return list, want
}

// Keys of three, five and seven holders encrypt, look up and evaluate gates, and every quorum
// decrypts the results in the exact form.
func TestEveryQuorumDecryptsWhatIsComputed(t *testing.T) {
	set, err := lwe.Lookup("insecure-L8-50")
	if err != nil {
		t.Fatal(err)
	}
	s, err := lwe.New(set)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{3, 5, 7} {
		t.Run(fmt.Sprintf("%d holders", n), func(t *testing.T) {
			threshold := (n - 1) / 2
			made := roundtest.Lockstep(n, func(rs round.Session) (round.Transition[lwekeys.Result], error) {
				return lwekeys.Start(lwekeys.Config{Session: rs, Scheme: s, Threshold: threshold, Source: seeded("keys", rs.Self), Workers: 1})
			}).OK(t).Results
			list, want := computed(t, s, made[0].Keys)
			p, err := decrypt.ParamsOf(s, threshold, false)
			if err != nil {
				t.Fatal(err)
			}
			shamir, err := share.New(s.Q, n)
			if err != nil {
				t.Fatal(err)
			}
			all := map[int]int{3: 3, 5: 10, 7: 35}[n]
			// The plaintexts do not depend on the masks' quorum, so one run makes the masks for all
			// quorums here.
			records := roundtest.Lockstep(threshold+1, func(rs round.Session) (round.Transition[*masks.Batch], error) {
				return masks.Start(masks.Config{
					Session: rs, Step: "masks", Kind: p.Kind, Count: all * len(list), Sacrifice: 8, Source: seeded("masks", rs.Self), Workers: 1,
				})
			}).OK(t).Results
			decrypted := 0
			for members := range uint(1) << n {
				if bits.OnesCount(members) != threshold+1 {
					continue
				}
				var quorum []int
				for i := range n {
					if members>>i&1 == 1 {
						quorum = append(quorum, i)
					}
				}
				out := roundtest.Lockstep(len(quorum), func(rs round.Session) (round.Transition[*decrypt.Result], error) {
					taken, err := records[rs.Self].Take(len(list))
					if err != nil {
						return round.Transition[*decrypt.Result]{}, err
					}
					additive := make([]uint64, s.N())
					shamir.Additive(additive, quorum, quorum[rs.Self], made[quorum[rs.Self]].Z.Open())
					return decrypt.Start(decrypt.Config{
						Session: rs, Step: "decrypt", Params: p, Ciphertexts: list, Secret: additive, Masks: taken, Workers: 1,
					})
				}).OK(t)
				if got := out.Results[0].Messages; !slices.Equal(got, want) {
					t.Errorf("quorum %v decrypts to %v, want %v", quorum, got, want)
				}
				decrypted++
			}
			if decrypted != all {
				t.Errorf("decrypted by %d quorums, want %d", decrypted, all)
			}
		})
	}
}
