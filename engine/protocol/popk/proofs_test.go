package popk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// receiver is party 0 of two with a challenge, before the first frame. If folded, there are more
// ciphertexts than repetitions.
func (b *bench) receiver(t testing.TB, mac, folded bool) *proofs {
	t.Helper()
	c := Config{Session: round.Session{Parties: 2}, Step: "p", Scheme: b.scheme, Instance: b.instance, MACKey: mac, Key: b.key.Public, Workers: 2}
	p := c.sizes()
	w, err := c.challenge(round.Hash("opened"))
	if err != nil {
		t.Fatal(err)
	}
	r := newProofs(c, w, &prover{scheme: b.scheme}, newCiphertexts(b.scheme, zeros(b.scheme, p.U)), [][]byte{nil, make([]byte, statementSize(p))})
	if folded {
		s := r.others[1]
		s.folded, s.list = true, zeros(b.scheme, p.V)
	}
	return r
}

// Verification gives the same result whether ciphertexts are stored or accumulated.
func TestStoredAndAccumulatedAgree(t *testing.T) {
	b := newBench(t, 2)
	frames := recorded(t, b, false, "p/ciphertexts")
	kept, folded := b.receiver(t, false, false), b.receiver(t, false, true)
	for i, f := range frames {
		for _, r := range []*proofs{kept, folded} {
			if err := r.Frame(context.Background(), 1, "p/ciphertexts", i, i == len(frames)-1, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	zero := b.scheme.NewCiphertext()
	for j := range b.instance.V {
		x, y := b.scheme.NewCiphertext(), b.scheme.NewCiphertext()
		kept.others[1].subtract(x, j)
		folded.others[1].subtract(y, j)
		if !x.Equal(y) || x.Equal(zero) {
			t.Errorf("repetition %d depends on how ciphertexts are held", j)
		}
	}
}

// Ciphertexts are stored if their number is at most that of the repetitions, and accumulated
// otherwise.
func TestSmallerListIsStored(t *testing.T) {
	b := newBench(t, 2)
	for _, c := range []struct {
		u, v, held int
		folded     bool
	}{{3, 9, 3, false}, {9, 9, 9, false}, {10, 9, 9, true}} {
		w, err := sigma.NewChallenge(round.XOF("held"), c.v, c.u, 1, 2*b.scheme.N())
		if err != nil {
			t.Fatal(err)
		}
		s := newStatement(b.scheme, w, make([]byte, 32*(1+c.v)))
		if s.folded != c.folded || len(s.list) != c.held {
			t.Errorf("%+v: %d held, folded: %v", c, len(s.list), s.folded)
		}
	}
}

// A response that arrives before the ciphertexts is malformed, because its check needs them.
func TestResponsesComeAfterCiphertexts(t *testing.T) {
	b := newBench(t, 2)
	frames, answers := recorded(t, b, false, "p/ciphertexts"), recorded(t, b, false, "p/response")
	for n := range frames {
		r := b.receiver(t, false, n%2 == 0)
		for i, f := range frames[:n] {
			if err := r.Frame(context.Background(), 1, "p/ciphertexts", i, false, f); err != nil {
				t.Fatal(err)
			}
		}
		err := r.Frame(context.Background(), 1, "p/response", 0, false, answers[0])
		var blame *round.Blame
		if !errors.As(err, &blame) || blame.Party != 1 || blame.Check != round.CheckShape {
			t.Errorf("after %d of %d polynomials: %v", n, len(frames), err)
		}
	}
}

// A frame has the same bytes before and after its polynomial is added to the sums. It can be read
// repeatedly until then, and not after its polynomial is released.
func TestCiphertextsAreSentAndAdded(t *testing.T) {
	b := newBench(t, 2)
	s := b.scheme
	list := []*gbfv.Ciphertext{s.NewCiphertext(), s.NewCiphertext()}
	for i, ct := range list {
		sample.Expand(ct.C0.C, s.Q.Primes(), make([]byte, 32), "own", uint64(i), 0)
		sample.Expand(ct.C1.C, s.Q.Primes(), make([]byte, 32), "own", uint64(i), 1)
	}
	want := []*gbfv.Ciphertext{list[0].Clone(), list[1].Clone()}
	c := newCiphertexts(s, list)
	var frames [][]byte
	for _, ct := range want {
		c0, c1 := packed(s, ct)
		frames = append(frames, c0, c1)
	}
	if sum, err := round.DigestOf("name", round.FrameList(frames)); err != nil || c.digest("name") != sum {
		t.Errorf("another digest, %v", err)
	}
	get := func(i int) {
		t.Helper()
		if f, err := c.Frame(i); err != nil || !bytes.Equal(f, frames[i]) {
			t.Errorf("frame %d is another, %v", i, err)
		}
	}
	get(0)
	get(0)
	get(2)
	sums := zeros(s, 2)
	if err := c.addTo(context.Background(), sums, 2); err != nil || !sums[0].Equal(want[0]) || !sums[1].Equal(want[1]) {
		t.Errorf("other sums, %v", err)
	}
	get(1)
	get(3)
	for i := range frames {
		if _, err := c.Frame(i); err == nil {
			t.Errorf("frame %d is given again", i)
		}
		if part(list, i)[0] != nil {
			t.Errorf("polynomial %d is kept", i)
		}
	}
}

// Frames are sent while the sums are computed, and released polynomials are reused at once.
func TestCiphertextsAreSentWhileTheyAreAdded(t *testing.T) {
	b := newBench(t, 2)
	s := b.scheme
	list, want := zeros(s, 8), zeros(s, 8)
	for i, ct := range list {
		sample.Expand(ct.C0.C, s.Q.Primes(), make([]byte, 32), "own", uint64(i), 0)
		sample.Expand(ct.C1.C, s.Q.Primes(), make([]byte, 32), "own", uint64(i), 1)
		want[i] = ct.Clone()
	}
	c := newCiphertexts(s, list)
	digest := c.digest("name")
	h := round.NewHasher("name")
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range c.Frames() {
			f, err := c.Frame(i)
			if err != nil {
				t.Error(err)
				return
			}
			h.Frame(f)
			ct := s.Borrow() // possibly a released polynomial
			for _, limb := range ct.C0.C {
				limb[0] = 0
			}
			ct.Free()
		}
	})
	sums := zeros(s, 8)
	if err := c.addTo(context.Background(), sums, 2); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if h.Sum() != digest {
		t.Error("something else was sent than was digested")
	}
	for i := range sums {
		if !sums[i].Equal(want[i]) {
			t.Errorf("sum %d is another ciphertext", i)
		}
	}
}

// If two parties cheat, every honest party blames the first of them in the order of the roster,
// whichever repetitions are wrong.
func TestVerdictNamesTheFirst(t *testing.T) {
	b := newBench(t, 4)
	last := b.instance.V - 1
	wrong := func(culprit round.Party, j int) roundtest.Option {
		return roundtest.Cheat(culprit, byzantine.On(byzantine.New(), "p/response", func(r []response) { addTo(r[j].z, 0, big.NewInt(1)) }))
	}
	other := func(culprit round.Party) roundtest.Option { // sends ciphertexts that differ from its statement
		return sent(func(_ *bench, frames [][]byte) { frames[0][0] ^= 1 })(b, culprit)[0]
	}
	for _, c := range []struct {
		cheats []roundtest.Option
		check  string
	}{
		{[]roundtest.Option{wrong(2, 0), wrong(3, last)}, CheckEquation},
		{[]roundtest.Option{wrong(2, last), wrong(3, 0)}, CheckEquation},
		{[]roundtest.Option{wrong(2, 0), other(3)}, CheckEquation},
		{[]roundtest.Option{other(2), wrong(3, 0)}, round.CheckCommitment},
	} {
		out := b.run(false, nil, c.cheats...)
		for p, err := range out.Errors[:2] {
			var blame *round.Blame
			if !errors.As(err, &blame) || blame.Party != 2 || blame.Check != c.check {
				t.Errorf("party %d: %v", p, err)
			}
		}
	}
}

// A response opens only the mask of its repetition, and every byte of the digest matters. With a
// shorter digest, masks could collide and a prover could answer two challenges without a witness.
func TestOpensComparesWholeDigests(t *testing.T) {
	b := newBench(t, 2)
	sizes := b.instance.Proof
	c := Config{Session: round.Session{Parties: 2}, Scheme: b.scheme, Instance: b.instance}
	p := &prover{scheme: b.scheme, sizes: sizes, key: b.key.Public, source: testSource("opens"), workers: 2}
	if err := p.sample(context.Background()); err != nil {
		t.Fatal(err)
	}
	list := make([]*gbfv.Ciphertext, sizes.U)
	digests, err := p.encrypt(context.Background(), func(i int, ct *gbfv.Ciphertext) { list[i] = ct })
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.challenge(round.Hash("opened"))
	if err != nil {
		t.Fatal(err)
	}
	answers, err := p.respond(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	accepted := func(j int, digests []byte) bool {
		subtract := func(mask *gbfv.Ciphertext) { subtractCombination(b.scheme, mask, w, list, j) }
		return opens(b.scheme, sizes, b.key.Public, answers[j], digestAt(digests, j), subtract)
	}
	for j := range answers {
		if !accepted(j, digests) {
			t.Errorf("repetition %d does not open its mask", j)
		}
		other := bytes.Clone(digests)
		for i := range other {
			if i/32 != j {
				other[i] ^= 1
			}
		}
		if !accepted(j, other) {
			t.Errorf("repetition %d depends on the masks of others", j)
		}
	}
	last := sizes.V - 1
	for i := range 32 {
		wrong := bytes.Clone(digests)
		wrong[32*last+i] ^= 0x80
		if accepted(last, wrong) {
			t.Errorf("byte %d of the digest does not count", i)
		}
	}
}

// The digest of a mask depends on every limb of both polynomials and on their order.
func TestMaskDigest(t *testing.T) {
	s := newBench(t, 2).scheme
	mask := s.NewCiphertext()
	sample.Expand(mask.C0.C, s.Q.Primes(), make([]byte, 32), "mask", 0)
	sample.Expand(mask.C1.C, s.Q.Primes(), make([]byte, 32), "mask", 1)
	seen := map[round.Digest]bool{maskDigest(s, mask): true}
	another := func(what string, change func(c *gbfv.Ciphertext)) {
		t.Helper()
		c := mask.Clone()
		change(c)
		if d := maskDigest(s, c); seen[d] {
			t.Errorf("%s does not count", what)
		} else {
			seen[d] = true
		}
	}
	for i := range s.Q.Len() {
		for _, k := range []int{0, s.N() - 1} {
			another(fmt.Sprintf("residue %d of limb %d of c0", k, i), func(c *gbfv.Ciphertext) { c.C0.C[i][k] ^= 1 })
			another(fmt.Sprintf("residue %d of limb %d of c1", k, i), func(c *gbfv.Ciphertext) { c.C1.C[i][k] ^= 1 })
		}
	}
	another("which polynomial is which", func(c *gbfv.Ciphertext) { c.C0, c.C1 = c.C1, c.C0 })
	another("which limb is which", func(c *gbfv.Ciphertext) { c.C0.C[0], c.C0.C[1] = c.C0.C[1], c.C0.C[0] })
}

// The memory estimate grows with the stored ciphertexts of all parties, up to one for each
// repetition, and with the number of workers. It is at least the memory that is actually held.
func TestMemoryCountsWhatIsHeld(t *testing.T) {
	set, err := params.Lookup("S14-64")
	if err != nil {
		t.Fatal(err)
	}
	ciphertext := int64(2 * set.N() * len(set.Q) * 8)
	for _, c := range []struct {
		parties, u int
		mac        bool
		held       int64 // ciphertexts
	}{{2, 4, false, 12}, {16, 4, false, 68}, {16, 4, true, 17}, {3, 33, false, 2*33 + 2*9}, {2, 257, false, 2*257 + 9}} {
		i, err := params.Resolve(set, "p128", params.Use{Parties: c.parties, Dim: 1, U: c.u})
		if err != nil {
			t.Fatal(err)
		}
		p := i.Proof
		if c.mac {
			p = i.MACKey
		}
		witnesses := int64(0)
		for range p.U + p.V {
			r := newResponse(set.N(), p)
			witnesses += int64(8 * (len(r.z.C) + len(r.t[0].C) + len(r.t[1].C) + len(r.t[2].C)))
		}
		got, least := MemoryBytes(i, c.parties, c.mac, 1), c.held*ciphertext+witnesses
		if got < least || got > 3*least {
			t.Errorf("%+v: %d bytes, want %d and some", c, got, least)
		}
		if more := MemoryBytes(i, c.parties, c.mac, 9); more < got+8*ciphertext {
			t.Errorf("%+v: %d bytes with 9 workers, %d with one", c, more, got)
		}
	}
}
