package bgvdecrypt

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/bgv/bgvtest"
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvkeys"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/share"
)

// world has n parties with threshold keys, and a user.
type world struct {
	*bgv.Scheme
	n, t   int
	user   *bgvtest.User
	shares []share.Vec
	secret []*big.Int // known to no party
	random *rand.Rand
}

func source(label string, p round.Party) *sample.Source {
	d := round.Hash("bgvdecrypt test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

// newWorld makes keys by the protocol.
func newWorld(t testing.TB, name string, n, threshold int) *world {
	t.Helper()
	set, err := bgv.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bgv.New(set)
	if err != nil {
		t.Fatal(err)
	}
	out := roundtest.Lockstep(n, func(rs round.Session) (round.Transition[bgvkeys.Result], error) {
		return bgvkeys.Start(bgvkeys.Config{
			Session: rs, Scheme: s, Threshold: threshold, Galois: []uint64{s.Galois(3)}, Source: source("keys", rs.Self),
			Workers: 2,
		})
	}).OK(t)
	w := &world{
		Scheme: s, n: n, t: threshold, user: bgvtest.NewUser(s, out.Results[0].Keys),
		random: rand.New(rand.NewPCG(uint64(n), uint64(threshold))),
	}
	for _, r := range out.Results {
		w.shares = append(w.shares, r.Share.Open())
	}
	w.secret = w.reconstruct(t)
	return w
}

// reconstruct returns s.
func (w *world) reconstruct(t testing.TB) []*big.Int {
	t.Helper()
	quorum := quorums(w.n, w.t+1)[0]
	out := ring.Poly{}
	for k, q := range w.QP() {
		f, err := share.New(q, w.n)
		if err != nil {
			t.Fatal(err)
		}
		row, shares := make([]uint64, w.N()), [][]uint64{}
		for _, p := range quorum {
			shares = append(shares, w.shares[p][k*w.N():(k+1)*w.N()])
		}
		f.Reconstruct(row, quorum, shares)
		out.C = append(out.C, row)
	}
	return w.Basis().ToBig(out)
}

// quorums returns the subsets of n parties with the given size.
func quorums(n, size int) (list [][]int) {
	for mask := range 1 << n {
		var q []int
		for i := range n {
			if mask>>i&1 == 1 {
				q = append(q, i)
			}
		}
		if len(q) == size {
			list = append(list, q)
		}
	}
	return list
}

// message decrypts a ciphertext with the secret key, coefficient by coefficient.
func (w *world) message(c *bgv.Ciphertext) []uint64 {
	basis := w.Level(c.Level)
	phase, message := basis.NewPoly(), make([]uint64, w.N())
	basis.FromBig(phase, bgvtest.Phase(w.Scheme, c, w.secret))
	w.Decode(message, c, phase)
	return message
}

// additive returns the additive shares of a quorum modulo the first primes.
func (w *world) additive(t testing.TB, quorum []int, primes int) (list []ring.Poly) {
	t.Helper()
	for _, p := range quorum {
		a, err := Additive(w.Scheme, w.n, quorum, p, w.shares[p], primes)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	return list
}

// masks makes masks by the protocol of package masks.
func (w *world) masks(t testing.TB, k masks.Kind, count int) []*masks.Batch {
	t.Helper()
	return roundtest.Lockstep(w.t+1, func(s round.Session) (round.Transition[*masks.Batch], error) {
		return masks.Start(masks.Config{
			Session: s, Step: "masks", Kind: k, Count: count, Sacrifice: 4,
			Source: source(fmt.Sprint("masks", w.random.Uint64()), s.Self), Workers: 2,
		})
	}).OK(t).Results
}

// coefficients decrypts chosen coefficients to a recipient.
func (w *world) coefficients(
	t testing.TB, quorum []int, list []Chosen, to round.Party, options ...roundtest.Option,
) [][]uint64 {
	t.Helper()
	params, err := Params(w.Scheme, w.t)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Select(w.Scheme, list)
	if err != nil {
		t.Fatal(err)
	}
	keys, stock := w.additive(t, quorum, 1), w.masks(t, params.Kind, c.Len())
	out := roundtest.Lockstep(w.t+1, func(s round.Session) (round.Transition[*decrypt.Result], error) {
		return decrypt.Start(decrypt.Config{
			Session: s, Step: "test", Params: params, Ciphertexts: c, Secret: keys[s.Self].C[0], Masks: stock[s.Self],
			Recipient: to, Workers: 2,
		})
	}, options...).OK(t)
	if to != decrypt.Outside {
		return c.Messages(out.Results[to].Messages)
	}
	var answers [][]byte
	for _, r := range out.Results {
		answers = append(answers, r.Answer)
	}
	opened, err := decrypt.Combine(params, c.Len(), answers)
	if err != nil {
		t.Fatal(err)
	}
	return c.Messages(opened)
}

func (w *world) flooding(t testing.TB) *Flooding {
	t.Helper()
	f, err := NewFlooding(w.Scheme, w.t+1)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// flood runs decryption with flooding.
func (w *world) flood(
	t testing.TB, quorum []int, list []*bgv.Ciphertext, to round.Party, options ...roundtest.Option,
) *roundtest.Outcome[*Result] {
	t.Helper()
	f := w.flooding(t)
	var keys []ring.NTT
	for _, a := range w.additive(t, quorum, f.Primes()) {
		s, err := f.Secret(a)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, s)
	}
	label := fmt.Sprint("flood", w.random.Uint64())
	return roundtest.Lockstep(w.t+1, func(s round.Session) (round.Transition[*Result], error) {
		return StartFlooding(FloodingConfig{
			Session: s, Step: "test", Flooding: f, Ciphertexts: list, Secret: keys[s.Self], Recipient: to,
			Source: source(label, s.Self), Workers: 2,
		})
	}, options...)
}

// answersOf returns every party's answers to a recipient outside the quorum.
func answersOf(t testing.TB, f *Flooding, out *roundtest.Outcome[*Result]) (all [][]ring.Poly) {
	t.Helper()
	for _, r := range out.OK(t).Results {
		var list []ring.Poly
		for _, frame := range r.Answers {
			x := f.basis.NewPoly()
			if err := codec.DecodePoly(x.C, f.basis.Primes(), frame[len(round.Digest{}):]); err != nil {
				t.Fatal(err)
			}
			list = append(list, x)
		}
		all = append(all, list)
	}
	return all
}

// flooded returns the messages of a run's recipient.
func (w *world) flooded(
	t testing.TB, list []*bgv.Ciphertext, to round.Party, out *roundtest.Outcome[*Result],
) [][]uint64 {
	t.Helper()
	out.OK(t)
	var messages [][]uint64
	for p, r := range out.Results {
		if (r.Messages != nil) != (round.Party(p) == to) || (r.Answers != nil) != (to == Outside) {
			t.Fatalf("recipient %d: party %d has messages %v and answers %v", to, p, r.Messages != nil, r.Answers != nil)
		}
	}
	if to != Outside {
		return out.Results[to].Messages
	}
	for k, c := range list {
		var answers [][]byte
		for _, r := range out.Results {
			answers = append(answers, r.Answers[k])
		}
		m, err := w.flooding(t).CombineFlooding(c, k, answers)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}
