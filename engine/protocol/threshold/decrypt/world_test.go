package decrypt

import (
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/engine/share"
)

const (
	q50 = 1125899906826241
	q53 = 9007199254614017
	q20 = 1048583
)

type ciphertext struct {
	a []uint64
	b uint64
}

type list []ciphertext

func (l list) Len() int                    { return len(l) }
func (l list) At(i int) ([]uint64, uint64) { return l[i].a, l[i].b }

// world has a key in additive shares, and encrypts messages with chosen noises.
type world struct {
	Params
	random *rand.Rand
	key    []uint64
	shares [][]uint64
}

func newWorld(q uint64, dimension, parties int, kind masks.Kind) *world {
	w := &world{
		Params: Params{Modulus: q, Dimension: dimension, LogP: kind.LogP(), Parties: parties, Kind: kind},
		random: rand.New(rand.NewPCG(q, uint64(parties))),
	}
	w.key = w.residues()
	rest := append([]uint64(nil), w.key...)
	for range parties - 1 {
		s := w.residues()
		for i := range rest {
			rest[i] = (rest[i] + q - s[i]) % q
		}
		w.shares = append(w.shares, s)
	}
	w.shares = append(w.shares, rest)
	return w
}

func (w *world) residues() []uint64 {
	v := make([]uint64, w.Dimension)
	for i := range v {
		v[i] = w.random.Uint64N(w.Modulus)
	}
	return v
}

// encrypt returns a ciphertext with the phase round(Q m/p) + e.
func (w *world) encrypt(m uint64, e int64) ciphertext {
	c := ciphertext{a: w.residues()}
	hi, lo := bits.Mul64(w.Modulus, m)
	lo, carry := bits.Add64(lo, w.Kind.P()/2, 0)
	c.b, _ = bits.Div64(hi+carry, lo, w.Kind.P())
	c.b %= w.Modulus
	c.b = (c.b + uint64(int64(w.Modulus)+e%int64(w.Modulus))) % w.Modulus
	for i, x := range c.a {
		h, l := bits.Mul64(x, w.key[i])
		_, rem := bits.Div64(h%w.Modulus, l, w.Modulus)
		c.b = (c.b + rem) % w.Modulus
	}
	return c
}

// gaussian returns n noises with the given standard deviation.
func (w *world) gaussian(n int, deviation float64) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(w.random.NormFloat64() * deviation)
	}
	return v
}

func (w *world) messages(n int) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = w.random.Uint64N(w.Kind.P())
	}
	return v
}

func (w *world) encryptAll(m []uint64, e []int64) list {
	l := make(list, len(m))
	for i := range l {
		l[i] = w.encrypt(m[i], e[i])
	}
	return l
}

// deal returns records for all parties whose masks r or rho, modulo eta, are masksOf. It follows
// the description of the encoding: a number whose lowest LogEta bits are R, then bits of rho,
// products, triples, d over GF(2) if p is odd, and d.
func (w *world) deal(t testing.TB, masksOf []uint64) []*masks.Batch {
	t.Helper()
	k, n := w.Kind, w.Parties
	data := make([][]byte, n)
	for p := range data {
		data[p] = make([]byte, 0, len(masksOf)*k.RecordSize())
	}
	for _, r := range masksOf {
		type field struct {
			value, modulus uint64 // modulus 2 means GF(2)
			width          int
		}
		fields := []field{{r, k.Eta(), k.LogEta}}
		if k.Form == masks.Exact {
			for b := range k.LogPhi {
				fields = append(fields, field{r >> b & 1, 2, 1})
			}
			for g := range k.Products() {
				fields = append(fields, field{r >> (2 * g) & (r >> (2*g + 1)) & 1, 2, 1})
			}
			for range k.Triples() {
				x, y := w.random.Uint64N(2), w.random.Uint64N(2)
				fields = append(fields, field{x, 2, 1}, field{y, 2, 1}, field{x & y, 2, 1})
			}
			d := w.random.Uint64N(2)
			if k.Odd != 0 {
				fields = append(fields, field{d, 2, 1})
			}
			fields = append(fields, field{d, k.P(), k.LogP()})
		}
		records := make([]big.Int, n)
		at := 0
		for _, f := range fields {
			rest := f.value
			for p := range n {
				part := w.random.Uint64N(f.modulus)
				if p == n-1 {
					part = rest
				} else {
					rest = (rest + f.modulus - part) % f.modulus
				}
				records[p].Or(&records[p], new(big.Int).Lsh(new(big.Int).SetUint64(part), uint(at)))
			}
			at += f.width
		}
		for p := range n {
			b := make([]byte, k.RecordSize())
			records[p].FillBytes(b)
			for i := range b {
				data[p] = append(data[p], b[len(b)-1-i])
			}
		}
	}
	batches := make([]*masks.Batch, n)
	for p := range batches {
		var err error
		if batches[p], err = masks.Import(k, round.Hash("dealt"), 5, data[p]); err != nil {
			t.Fatal(err)
		}
	}
	return batches
}

// uniform returns n masks with the distribution of the protocol's.
func (w *world) uniform(n int) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = w.random.Uint64N(1 << w.Kind.LogPhi)
		if w.Kind.Form == masks.Paper {
			v[i] = (v[i] - 1<<(w.Kind.LogPhi-1)) & (1<<w.Kind.LogEta - 1)
		}
	}
	return v
}

func (w *world) run(
	c Ciphertexts, batches []*masks.Batch, to round.Party, options ...roundtest.Option,
) *roundtest.Outcome[*Result] {
	return roundtest.Lockstep(w.Parties, func(s round.Session) (round.Transition[*Result], error) {
		return Start(Config{
			Session: s, Step: "test", Params: w.Params, Ciphertexts: c, Secret: w.shares[s.Self], Masks: batches[s.Self],
			Recipient: to, Workers: 2,
		})
	}, options...)
}

// plaintexts runs all parties with fresh masks and returns the recipient's plaintexts.
func (w *world) plaintexts(t testing.TB, c list, to round.Party, options ...roundtest.Option) []uint64 {
	t.Helper()
	return w.received(t, w.run(c, w.deal(t, w.uniform(len(c))), to, options...).OK(t), to, len(c))
}

func (w *world) received(t testing.TB, out *roundtest.Outcome[*Result], to round.Party, count int) []uint64 {
	t.Helper()
	var answers [][]byte
	for p, r := range out.Results {
		if (r.Messages != nil) != (round.Party(p) == to) || (r.Answer != nil) != (to == Outside) {
			t.Fatalf("recipient %d: party %d has messages %v and an answer %v", to, p, r.Messages != nil, r.Answer != nil)
		}
		answers = append(answers, r.Answer)
	}
	if to != Outside {
		return out.Results[to].Messages
	}
	m, err := Combine(w.Params, count, answers)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// kinds returns a kind of each form, for a modulus and noise up to bound.
func kinds(t testing.TB, q uint64, logP, parties int, bound float64) []masks.Kind {
	t.Helper()
	exact, err := ExactKind(q, logP, parties, bound)
	if err != nil {
		t.Fatal(err)
	}
	return []masks.Kind{PaperKind(q, logP), exact}
}

// quorums returns the subsets of n parties with the given size.
func quorums(n, size int) (list [][]int) {
	for set := range 1 << n {
		if bits.OnesCount(uint(set)) != size {
			continue
		}
		var q []int
		for p := range n {
			if set>>p&1 == 1 {
				q = append(q, p)
			}
		}
		list = append(list, q)
	}
	return list
}

// shamir shares the key among n parties. It returns a function that sets the world's shares to
// those of a quorum.
func (w *world) shamir(t testing.TB, n int) func(quorum []int) {
	t.Helper()
	s, err := share.New(w.Modulus, n)
	if err != nil {
		t.Fatal(err)
	}
	all := make([][]uint64, n)
	// f(X) = key + sum of c_k X^k
	for p := range all {
		all[p] = append([]uint64(nil), w.key...)
	}
	for k := 1; k < w.Parties; k++ {
		c := w.residues()
		for p := range all {
			power := s.Exp(s.Point(p), uint64(k))
			for i := range c {
				all[p][i] = s.Add(all[p][i], s.Mul(power, c[i]))
			}
		}
	}
	return func(quorum []int) {
		for i, p := range quorum {
			w.shares[i] = make([]uint64, w.Dimension)
			s.Additive(w.shares[i], quorum, p, all[p])
		}
	}
}

func describe(k masks.Kind) string {
	return fmt.Sprintf("%v form, eta %d, Phi 2^%d", k.Form, k.Eta(), k.LogPhi)
}
