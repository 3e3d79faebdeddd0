package popk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// instanceLike returns the instance of b with one number changed that its hash covers.
func (b *bench) instanceLike(t *testing.T, change func(u *params.Use)) *params.Instance {
	t.Helper()
	use := params.Use{Parties: b.n, Dim: 1, U: b.instance.U}
	change(&use)
	i, err := params.Resolve(b.scheme.Set, "p128", use)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// beginning returns the part of a challenge for the first repetition and witnesses, which
// challenges of all sizes contain.
func beginning(c sigma.Challenge) string {
	var e []int
	for i := range 3 {
		e = append(e, c.At(0, i))
	}
	return fmt.Sprint(e)
}

// The challenge depends on each value on which the parties agree, even without the commitments.
func TestEachFieldChangesTheChallenge(t *testing.T) {
	b := newBench(t, 2)
	base := Config{
		Session: round.Session{ID: round.Hash("a session"), Parties: 2}, Step: "p", Scheme: b.scheme, Instance: b.instance,
		KeyHash: round.Hash("key"),
	}
	opened := round.Hash("opened")
	challenge := func(c Config, opened round.Digest) string {
		w, err := c.challenge(opened)
		if err != nil {
			t.Fatal(err)
		}
		return beginning(w)
	}
	first := challenge(base, opened)
	seen := map[string]string{first: "nothing"}
	if challenge(base, opened) != first {
		t.Error("a challenge is not a function of its inputs")
	}
	for name, change := range map[string]func(c *Config, opened *round.Digest){
		"session":           func(c *Config, _ *round.Digest) { c.Session.ID[31] ^= 1 },
		"step":              func(c *Config, _ *round.Digest) { c.Step = "q" },
		"a longer step":     func(c *Config, _ *round.Digest) { c.Step = "p\x00" },
		"key hash":          func(c *Config, _ *round.Digest) { c.KeyHash[0] ^= 1 },
		"number of parties": func(c *Config, _ *round.Digest) { c.Instance = b.instanceLike(t, func(u *params.Use) { u.Parties++ }) },
		"ciphertexts":       func(c *Config, _ *round.Digest) { c.Instance = b.instanceLike(t, func(u *params.Use) { u.U++ }) },
		"dimension":         func(c *Config, _ *round.Digest) { c.Instance = b.instanceLike(t, func(u *params.Use) { u.Dim = 2 }) },
		"U alone":           func(c *Config, _ *round.Digest) { c.Instance = b.sized(func(p *params.Proof) { p.U++ }) },
		"V alone":           func(c *Config, _ *round.Digest) { c.Instance = b.sized(func(p *params.Proof) { p.V++ }) },
		"prover alone":      func(c *Config, _ *round.Digest) { c.Only = new(round.Party) },
		"other prover alone": func(c *Config, _ *round.Digest) {
			p := round.Party(1)
			c.Only = &p
		},
		"what was opened": func(_ *Config, d *round.Digest) { d[31] ^= 0x80 },
	} {
		c, d := base, opened
		change(&c, &d)
		got := challenge(c, d)
		if other, ok := seen[got]; ok {
			t.Errorf("the challenge is the same with another %s and %s", name, other)
		}
		seen[got] = name
	}
	// The hash covers the kind of proof: the exponents of the other kind are not the same values
	// reduced.
	plain, err := base.challenge(opened)
	if err != nil {
		t.Fatal(err)
	}
	base.Instance = b.sized(func(p *params.Proof) { p.Diag = true })
	diagonal, err := base.challenge(opened)
	if err != nil {
		t.Fatal(err)
	}
	same := true
	for j := range plain.Repetitions() {
		same = same && diagonal.At(j, 0)/b.scheme.Slots() == plain.At(j, 0)%(2*b.scheme.Spec.M)
	}
	if same {
		t.Error("the challenge is the same for the other kind of proof")
	}
}

// sized returns the instance of b, including its hash, with other proof sizes.
func (b *bench) sized(change func(p *params.Proof)) *params.Instance {
	i := *b.instance
	change(&i.Proof)
	return &i
}

func TestEachFieldChangesTheClientChallenge(t *testing.T) {
	b := newBench(t, 2)
	base := ClientConfig{Scheme: b.scheme, Instance: b.instance, KeyHash: round.Hash("key"), Prover: "alice", Context: []byte("vote")}
	statement := []byte("statement")
	challenge := func(c ClientConfig, statement []byte) string {
		w, err := c.challenge(statement)
		if err != nil {
			t.Fatal(err)
		}
		return beginning(w)
	}
	seen := map[string]string{challenge(base, statement): "nothing"}
	for name, change := range map[string]func(c *ClientConfig, s *[]byte){
		"name":      func(c *ClientConfig, _ *[]byte) { c.Prover = "alicf" },
		"context":   func(c *ClientConfig, _ *[]byte) { c.Context = []byte("votf") },
		"division":  func(c *ClientConfig, _ *[]byte) { c.Prover, c.Context = "alicev", []byte("ote") },
		"key hash":  func(c *ClientConfig, _ *[]byte) { c.KeyHash[31] ^= 1 },
		"instance":  func(c *ClientConfig, _ *[]byte) { c.Instance = b.instanceLike(t, func(u *params.Use) { u.U++ }) },
		"statement": func(_ *ClientConfig, s *[]byte) { *s = []byte("statemenu") },
	} {
		c, s := base, statement
		change(&c, &s)
		got := challenge(c, s)
		if other, ok := seen[got]; ok {
			t.Errorf("the challenge is the same with another %s and %s", name, other)
		}
		seen[got] = name
	}
}

// The challenges of a MAC key are the powers of X^D, with signs, and the others all powers of X.
func TestChallengeSpaces(t *testing.T) {
	b := newBench(t, 2)
	for _, c := range []struct {
		proof         params.Proof
		stride, count int
	}{{b.instance.Proof, 1, 2 * b.scheme.N()}, {b.instance.MACKey, b.scheme.Slots(), 2 * b.scheme.Spec.M}} {
		p := c.proof
		p.U, p.V = 64, 256 // enough to see every monomial
		w, err := newChallenge(b.scheme, p, round.XOF("a long challenge"))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int]bool{}
		for j := range p.V {
			for i := range p.U {
				e := w.At(j, i)
				if e%c.stride != 0 || e >= 2*b.scheme.N() {
					t.Fatalf("exponent %d with stride %d", e, c.stride)
				}
				seen[e] = true
			}
		}
		if len(seen) != c.count {
			t.Errorf("%d monomials with stride %d, want %d", len(seen), c.stride, c.count)
		}
	}
}

// Each of the four polynomials of a response has its bound, at each end of the list and on both
// sides of zero.
func TestBoundsOfResponses(t *testing.T) {
	b := newBench(t, 2)
	n := b.scheme.N()
	for _, p := range []params.Proof{b.instance.Proof, b.instance.MACKey} {
		for _, c := range []struct {
			name  string
			pick  func(r response) intpoly.Poly
			bound *big.Int
		}{
			{"mu_z", func(r response) intpoly.Poly { return r.z }, p.B1},
			{"t0", func(r response) intpoly.Poly { return r.t[0] }, p.Bt1},
			{"t1", func(r response) intpoly.Poly { return r.t[1] }, p.Bt1},
			{"t2", func(r response) intpoly.Poly { return r.t[2] }, p.Bt1},
		} {
			for _, k := range []int{0, n - b.scheme.Slots(), n - 1} {
				if c.name == "mu_z" && p.Diag && k%b.scheme.Slots() != 0 {
					continue
				}
				for _, v := range []struct {
					off  int64
					sign int64
					want string
				}{{-1, 1, ""}, {-1, -1, ""}, {0, 1, CheckBound}, {0, -1, CheckBound}, {1, -1, CheckBound}} {
					r := newResponse(n, p)
					value := new(big.Int).Add(c.bound, big.NewInt(v.off))
					c.pick(r).SetBig(k, value.Mul(value, big.NewInt(v.sign)))
					if got := r.fault(p); got != v.want {
						t.Errorf("diagonal %v: %v at %d in %s: check %q, want %q", p.Diag, value, k, c.name, got, v.want)
					}
				}
			}
		}
	}
}

// One wrong coefficient in any repetition fails the party's proof.
func TestEveryRepetitionIsChecked(t *testing.T) {
	b := newBench(t, 2)
	for j := range b.instance.V {
		wrong := inside("p/response", func(_ *bench, r []response) { addTo(r[j].z, 0, big.NewInt(1)) })
		b.run(false, nil, wrong(b, 1)...).Blamed(t, 1, CheckEquation)
	}
	for _, j := range []int{0, 1, b.instance.VDiag - 1} {
		wrong := inside("p/response", func(_ *bench, r []response) { addTo(r[j].t[2], 7, big.NewInt(-1)) })
		b.run(true, nil, wrong(b, 1)...).Blamed(t, 1, CheckEquation)
	}
}

// Verify checks each polynomial of each repetition of a client's proof, against its bound and in
// the equation.
func TestEveryRepetitionOfAClientIsChecked(t *testing.T) {
	s := testScheme(t)
	key := gbfvtest.New(s, 2, 1, bytes.Repeat([]byte{4}, 32))
	instance, err := ClientInstance(s.Set, "p128", 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := ClientConfig{Scheme: s, Instance: instance, Key: key.Public, Prover: "alice", Workers: 1}
	ciphertexts, proof, err := Prove(context.Background(), c, []field.Vec{key.Random(1)}, testSource("repetitions"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(context.Background(), c, ciphertexts, proof); err != nil {
		t.Fatal(err)
	}
	sizes, size := instance.Proof, responseSize(s.N(), instance.Proof)
	masks := len(proof) - sizes.V*size
	if sizes.V < 2 {
		t.Fatal("one repetition tells nothing")
	}
	for j := range sizes.V {
		for _, wrong := range []struct {
			name   string
			change func(r response)
			check  string
		}{
			{"mu_z off by one", func(r response) { addTo(r.z, 0, big.NewInt(1)) }, CheckEquation},
			{"t0 off by one", func(r response) { addTo(r.t[0], 1, big.NewInt(1)) }, CheckEquation},
			{"t1 off by one", func(r response) { addTo(r.t[1], 2, big.NewInt(-1)) }, CheckEquation},
			{"t2 off by one", func(r response) { addTo(r.t[2], s.N()-1, big.NewInt(1)) }, CheckEquation},
			{"mu_z at its bound", func(r response) { r.z.SetBig(5, new(big.Int).Neg(sizes.B1)) }, CheckBound},
			{"t0 at its bound", func(r response) { r.t[0].SetBig(5, sizes.Bt1) }, CheckBound},
			{"t1 at its bound", func(r response) { r.t[1].SetBig(5, new(big.Int).Neg(sizes.Bt1)) }, CheckBound},
			{"t2 at its bound", func(r response) { r.t[2].SetBig(5, sizes.Bt1) }, CheckBound},
		} {
			at := masks + j*size
			r := newResponse(s.N(), sizes)
			if err := r.decode(sizes, proof[at:at+size]); err != nil {
				t.Fatal(err)
			}
			wrong.change(r)
			frame, err := r.encode(sizes)
			if err != nil {
				t.Fatal(err)
			}
			bad := bytes.Clone(proof)
			copy(bad[at:], frame)
			_, err = Verify(context.Background(), c, ciphertexts, bad)
			if !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), fmt.Sprintf("%s in repetition %d", wrong.check, j)) {
				t.Errorf("%s in repetition %d: %v", wrong.name, j, err)
			}
		}
	}
}
