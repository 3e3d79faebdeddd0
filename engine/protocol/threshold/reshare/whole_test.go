package reshare_test

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/lwekeys"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/reshare"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
)

func seeded(label string, p round.Party) *sample.Source {
	d := round.Hash("whole test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

type ciphertexts []*lwe.LWE

func (c ciphertexts) Len() int                    { return len(c) }
func (c ciphertexts) At(i int) ([]uint64, uint64) { return c[i].A, c[i].B }

// opens decrypts ciphertexts, whose noise has at most this variance, by a quorum of a group of n,
// to its first party.
func opens(
	t *testing.T, s *lwe.Scheme, n int, quorum []int, shares []secret.Box[share.Vec], list ciphertexts, variance float64,
) []uint64 {
	t.Helper()
	shamir, err := share.New(s.Q, n)
	if err != nil {
		t.Fatal(err)
	}
	logP := bits.Len64(s.P) - 1
	kind, err := decrypt.ExactKind(s.Q, logP, len(quorum), 10*math.Sqrt(variance))
	if err != nil {
		t.Fatal(err)
	}
	made := roundtest.Lockstep(len(quorum), func(rs round.Session) (round.Transition[*masks.Batch], error) {
		return masks.Start(masks.Config{
			Session: rs, Step: "masks", Kind: kind, Count: len(list), Sacrifice: 8, Source: seeded("masks", rs.Self), Workers: 1,
		})
	}).OK(t)
	out := roundtest.Lockstep(len(quorum), func(rs round.Session) (round.Transition[*decrypt.Result], error) {
		additive := make([]uint64, s.N())
		shamir.Additive(additive, quorum, quorum[rs.Self], shares[quorum[rs.Self]].Open())
		return decrypt.Start(decrypt.Config{
			Session: rs, Step: "decrypt", Ciphertexts: list, Secret: additive, Masks: made.Results[rs.Self], Workers: 1,
			Params: decrypt.Params{Modulus: s.Q, Dimension: s.N(), LogP: logP, Parties: len(quorum), Kind: kind},
		})
	}).OK(t)
	return out.Results[0].Messages
}

// The test makes a key, encrypts, evaluates, decrypts with every quorum, moves the key to another
// group, and decrypts there.
func TestWholeLife(t *testing.T) {
	const n, threshold = 3, 1
	set, err := lwe.Lookup("insecure-L8-50")
	if err != nil {
		t.Fatal(err)
	}
	s, err := lwe.New(set)
	if err != nil {
		t.Fatal(err)
	}
	made := roundtest.Lockstep(n, func(rs round.Session) (round.Transition[lwekeys.Result], error) {
		return lwekeys.Start(lwekeys.Config{Session: rs, Scheme: s, Threshold: threshold, Source: seeded("keys", rs.Self), Workers: 1})
	}).OK(t).Results

	public, err := s.PublicKey(made[0].Keys)
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := lwe.NewEvaluator(s, made[0].Keys, 1)
	if err != nil {
		t.Fatal(err)
	}
	messages, truths := make([]uint64, s.N()), make([]uint64, s.N())
	for i := range messages {
		messages[i], truths[i] = uint64(i)%s.P, uint64(i)/2%2
	}
	var list ciphertexts
	var want []uint64
	plain, err := public.Encrypt(messages, lwe.Plain, seeded("plain", 0))
	if err != nil {
		t.Fatal(err)
	}
	boolean, err := public.Encrypt(truths, lwe.Boolean, seeded("boolean", 0))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 32 {
		c := s.NewLWE()
		s.Extract(c, plain, i)
		list, want = append(list, c), append(want, messages[i])
	}
	for i := range 4 { // p/8 means true, -p/8 means false
		x, y, c := s.NewLWE(), s.NewLWE(), s.NewLWE()
		s.Extract(x, boolean, i)
		s.Extract(y, boolean, i+1)
		if err := evaluator.Gate(c, lwe.Xor, x, y); err != nil {
			t.Fatal(err)
		}
		value := s.P - s.P/8
		if truths[i] != truths[i+1] {
			value = s.P / 8
		}
		list, want = append(list, c), append(want, value)
	}
	noise := set.NoiseOf(n, threshold)
	variance := max(noise.Fresh(), noise.Bootstrapped())

	var old []secret.Box[share.Vec]
	for _, r := range made {
		old = append(old, r.Z)
	}
	for _, quorum := range [][]int{{0, 1}, {2, 0}, {1, 2}} {
		if got := opens(t, s, n, quorum, old, list, variance); !slices.Equal(got, want) {
			t.Errorf("quorum %v decrypts to %v, want %v", quorum, got, want)
		}
	}

	from := reshare.Group{Parties: []round.Party{0, 1, 2}, Threshold: threshold}
	to := reshare.Group{Parties: []round.Party{3, 1, 4, 5, 6}, Threshold: 2}
	moved := roundtest.Lockstep(7, func(rs round.Session) (round.Transition[reshare.Result], error) {
		parts := []reshare.Part{{Q: s.Q, N: s.N()}, {Q: s.Q, N: s.Dim}}
		c := reshare.Config{Session: rs, Parts: parts, Old: from, New: to, Source: seeded("reshare", rs.Self)}
		if int(rs.Self) < n {
			c.Share = []secret.Box[share.Vec]{made[rs.Self].Z, made[rs.Self].S}
		}
		return reshare.Start(c)
	}).OK(t).Results
	var now []secret.Box[share.Vec]
	for _, p := range to.Parties {
		now = append(now, moved[p].Share[0])
	}
	for _, quorum := range [][]int{{0, 1, 2}, {4, 3, 1}} {
		if got := opens(t, s, len(now), quorum, now, list, variance); !slices.Equal(got, want) {
			t.Errorf("after resharing quorum %v decrypts to %v, want %v", quorum, got, want)
		}
	}
}
