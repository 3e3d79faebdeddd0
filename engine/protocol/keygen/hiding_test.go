package keygen

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"slices"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Keys work equally well if their errors are small or repeated, or if their uniform halves are.
// Only the sampled values show such faults, so these tests check them.

// drawn holds the values that one party samples in a run, in no order within a label.
type drawn struct {
	mu     sync.Mutex
	values map[string][][]int64
}

var errorLabels = []string{"public", "rotation", "relin h0", "relin h1", "relin second"}

func watch(p round.Party) (*drawn, roundtest.Option) {
	d := &drawn{values: map[string][][]int64{}}
	h := byzantine.New()
	names := []string{"secret", "secret/relin"}
	for _, label := range errorLabels {
		names = append(names, "error/"+label)
	}
	for _, name := range names {
		byzantine.On(h, "keygen/"+name, func(v []int64) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.values[name] = append(d.values[name], slices.Clone(v))
		})
	}
	return d, roundtest.Watch(p, h)
}

// width returns the width of a Gaussian with the variance of these values, and their number.
func width(lists [][]int64) (w float64, count int) {
	sum := 0.0
	for _, v := range lists {
		for _, x := range v {
			sum += float64(x * x)
			count++
		}
	}
	return math.Sqrt(2 * math.Pi * sum / float64(count)), count
}

// Each key has fresh errors of the set's width, and s and u are two secrets of the set's
// distribution.
func TestSecretsAndErrors(t *testing.T) {
	const n, dim = 2, 8
	for _, set := range []string{"insecure-8", "insecure-8-64", "insecure-8-16"} { // Gaussian and ternary secrets
		s := testScheme(t, set)
		digits := s.GadgetDigits()
		want := map[string]int{
			"secret": 1, "secret/relin": 1, "error/public": 1, "error/rotation": (dim - 1) * digits,
			"error/relin h0": digits, "error/relin h1": digits, "error/relin second": digits,
		}
		all := make([]*drawn, n)
		options := make([]roundtest.Option, n)
		for p := range round.Party(n) {
			all[p], options[p] = watch(p)
		}
		run(s, n, dim, options...).OK(t)
		seen := map[string]string{}
		var secrets, errors [][]int64
		for p, d := range all {
			for name, count := range want {
				if len(d.values[name]) != count {
					t.Errorf("%s: %d polynomials of %s, want %d", set, len(d.values[name]), name, count)
				}
				for _, v := range d.values[name] {
					where, value := fmt.Sprintf("%s of party %d", name, p), fmt.Sprint(v)
					if other, ok := seen[value]; ok {
						t.Errorf("%s: the polynomial of %s is equal to that of %s", set, where, other)
					}
					seen[value] = where
					if count > 1 || name == "error/public" {
						errors = append(errors, v)
					} else {
						secrets = append(secrets, v)
					}
				}
			}
		}
		check := func(what string, lists [][]int64, want float64) {
			got, count := width(lists)
			if math.Abs(got/want-1) > 6/math.Sqrt(2*float64(count)) { // six standard deviations
				t.Errorf("%s: %s has width %.2f, want %.2f", set, what, got, want)
			}
		}
		check("errors", errors, s.Set.ErrorWidth)
		if s.Set.Secret == params.Gaussian {
			check("secrets", secrets, s.Set.SecretWidth)
			continue
		}
		check("secrets", secrets, math.Sqrt(2*math.Pi*2/3))
		for _, v := range slices.Concat(secrets...) {
			if v < -1 || v > 1 {
				t.Fatalf("%s: a ternary secret has a coefficient %d", set, v)
			}
		}
	}
}

// Nonces are opened, so no nonce may be the beginning of a stream from which a secret value is
// sampled.
func TestNoncesAreNotSecrets(t *testing.T) {
	const n, dim = 2, 2
	s := testScheme(t, "insecure-6")
	d, option := watch(0)
	out := run(s, n, dim, option, roundtest.Record()).OK(t)
	streams := map[string]*sample.Stream{}
	own := source("run", 0)
	for _, label := range []string{"secret", "relinearisation secret", "error public"} {
		streams[label] = own.Stream(label)
	}
	for j := range uint64(s.GadgetDigits()) {
		for _, label := range []string{"error relin h0", "error relin h1", "error relin second"} {
			streams[fmt.Sprint(label, j)] = own.Stream(label, j)
		}
		for _, g := range Rotations(s.N(), dim) {
			streams[fmt.Sprint("error rotation", g, j)] = own.Stream("error rotation", uint64(g), j)
		}
	}
	seen := map[string]string{}
	for name, stream := range streams {
		first := make([]byte, 32)
		if _, err := stream.Read(first); err != nil {
			t.Fatal(err)
		}
		seen[string(first)] = name
	}
	// The test uses the protocol's streams: one of them yields the error that the party sampled.
	g, err := sample.NewGaussian(s.Set.ErrorWidth)
	if err != nil {
		t.Fatal(err)
	}
	e := make([]int64, s.N())
	if g.Sample(e, own.Stream("error public")); !slices.Equal(e, d.values["error/public"][0]) {
		t.Error("the names of streams in this test are out of date")
	}
	for _, step := range []string{stepSeed, stepFirst, stepSecond} {
		nonce := string(out.Recording.Frames(0, roundtest.Any, step+"/open")[0][:32])
		if other, ok := seen[nonce]; ok {
			t.Errorf("the nonce of %s is the beginning of %s", step, other)
		}
		seen[nonce] = step
	}
}

// Every uniform half of the reference string depends on its own name, all parts of the name and the
// seed.
func TestReferenceString(t *testing.T) {
	s := testScheme(t, "insecure-6")
	h := sha256.New()
	seen := map[string]string{}
	for _, seed := range []round.Digest{round.Hash("seed 1"), round.Hash("seed 2")} {
		add := func(label string, index ...uint64) {
			where := fmt.Sprintf("%x %s %v", seed[:2], label, index)
			a := uniform(s, seed, label, index...)
			value := fmt.Sprint(a.C[0][:4])
			if other, ok := seen[value]; ok {
				t.Errorf("%s is equal to %s", where, other)
			}
			seen[value] = where
			want := s.Q.NewNTT()
			sample.Expand(want.C, s.Q.Primes(), seed[:], label, index...)
			if !a.Equal(want) {
				t.Errorf("%s is another polynomial", where)
			}
			for _, row := range a.C {
				if err := binary.Write(h, binary.LittleEndian, row); err != nil {
					t.Fatal(err)
				}
			}
		}
		add(labelPublic)
		for j := range uint64(s.GadgetDigits()) {
			add(labelRelin, j)
			for _, g := range Rotations(s.N(), 8) {
				add(labelRotation, uint64(g), j)
			}
		}
	}
	// The digest covers the whole reference string, so that every party and version expands a seed
	// to the same keys.
	const want = "9adcee4bccd8b8d0df7dfb878d58c86d"
	if got := hex.EncodeToString(h.Sum(nil)[:16]); got != want {
		t.Errorf("reference string %s, want %s", got, want)
	}
}

// The keys of a run have the halves that their seed, rotation and digit determine, and another run
// has others.
func TestUniformHalvesOfKeys(t *testing.T) {
	const dim = 8
	s := testScheme(t, "insecure-6")
	seen := map[string]string{}
	for _, id := range []round.Digest{round.Hash("run 1"), round.Hash("run 2")} {
		keys := run(s, 2, dim, roundtest.ID(id)).OK(t).Results[0].Keys
		add := func(where string, a ring.NTT) {
			where = fmt.Sprintf("%x %s", id[:2], where)
			if other, ok := seen[fmt.Sprint(a.C[0])]; ok {
				t.Errorf("%s is equal to %s", where, other)
			}
			seen[fmt.Sprint(a.C[0])] = where
		}
		add("public key", keys.Public.P1)
		if !keys.Public.P1.Equal(uniform(s, keys.Seed, labelPublic)) {
			t.Error("the seed does not determine the half of the public key")
		}
		table := keys.Keys(s)
		for i := 1; i < dim; i++ {
			key, err := table.Rotation(i, dim)
			if err != nil {
				t.Fatal(err)
			}
			for j, a := range key.K1 {
				add(fmt.Sprintf("rotation %d, digit %d", i, j), a)
				if !a.Equal(uniform(s, keys.Seed, labelRotation, uint64(gbfv.Galois(s.N(), i, dim)), uint64(j))) {
					t.Errorf("rotation key %d: the seed does not determine half %d", i, j)
				}
			}
		}
		// K1 of the relinearisation key is s·a + e with a different a for each digit. Two with the
		// same a would differ only by errors.
		limit := new(big.Int).Rsh(s.Q.Modulus(), 4)
		half := new(big.Int).Rsh(s.Q.Modulus(), 1)
		for j := range keys.Relin.K1 {
			for k := range j {
				d, p, large := s.Q.NewNTT(), s.Q.NewPoly(), false
				s.Q.SubNTT(d, keys.Relin.K1[j], keys.Relin.K1[k])
				s.Q.Inverse(p, d)
				for _, c := range s.Q.ToBig(p) {
					if c.Cmp(half) > 0 {
						c.Sub(s.Q.Modulus(), c)
					}
					large = large || c.CmpAbs(limit) > 0
				}
				if !large {
					t.Errorf("digits %d and %d of the relinearisation key share their uniform polynomial", j, k)
				}
			}
		}
	}
}

// Changing one residue of any polynomial, including the last one of the last rotation key, changes
// the digest of the keys.
func TestEveryPolynomialChangesTheDigest(t *testing.T) {
	const dim = 8
	s := testScheme(t, "insecure-6")
	keys := run(s, 2, dim).OK(t).Results[0].Keys
	stored := keys.stored(s.N())
	last := keys.K0[gbfv.Galois(s.N(), dim-1, dim)]
	if len(stored) != EncodedFrames(s, dim)-1 || !stored[len(stored)-1].Equal(last[len(last)-1]) {
		t.Fatal("the keys do not end with the last rotation key")
	}
	all, public := keys.Digest(s, 2), keys.PublicHash(s)
	seen := map[round.Digest]int{all: -1}
	row := len(s.Q.Primes()) - 1
	for i, a := range stored {
		q := s.Q.Primes()[row]
		was := a.C[row][s.N()-1]
		a.C[row][s.N()-1] = (was + 1) % q
		got := keys.Digest(s, 2)
		if other, ok := seen[got]; ok {
			t.Errorf("the digest is the same after changes to polynomials %d and %d", i, other)
		}
		seen[got] = i
		if same := keys.PublicHash(s) == public; same != (i > 0) {
			t.Errorf("the hash of the public key is the same after a change to polynomial %d: %v", i, same)
		}
		a.C[row][s.N()-1] = was
	}
	for i := range keys.Seed {
		keys.Seed[i] ^= 1
		if keys.Digest(s, 2) == all || keys.PublicHash(s) == public {
			t.Errorf("no hash depends on byte %d of the seed", i)
		}
		keys.Seed[i] ^= 1
	}
	if keys.Digest(s, 1) != all {
		t.Error("the digest of the restored keys differs")
	}
}

// Whenever a run ends, s, u and the randomness are erased. The share of the secret key is erased
// too unless it is part of the result.
func TestEveryEndOfKeyGenerationErases(t *testing.T) {
	const n, culprit, watched = 2, round.Party(0), round.Party(1)
	s := testScheme(t, "insecure-6")
	for _, c := range []struct {
		name  string
		fault roundtest.Option
	}{
		{"success", nil},
		{"no commitment", roundtest.Rewrite(culprit, stepFirst+"/commit", roundtest.Drop)},
		{"no first message", roundtest.Rewrite(culprit, stepFirst+"/open", roundtest.Drop)},
		{"another first message", roundtest.Rewrite(culprit, stepFirst+"/open", roundtest.Flip(-9))},
		{"no second message", roundtest.Rewrite(culprit, stepSecond+"/open", roundtest.Drop)},
		{"no hash", roundtest.Rewrite(culprit, nameAgree, roundtest.Drop)},
		{"another hash", roundtest.Rewrite(culprit, nameAgree, roundtest.Flip(0))},
	} {
		var own *party
		var secret []int64
		var used *sample.Source
		h := byzantine.On(byzantine.New(), "keygen/party", func(p *party) { own, secret = p, p.secret })
		options := []roundtest.Option{roundtest.Watch(watched, h)}
		if c.fault != nil {
			options = append(options, c.fault)
		}
		out := roundtest.Lockstep(n, func(rs round.Session) (round.Transition[Result], error) {
			config := Config{Session: rs, Scheme: s, Dim: 1, Security: Passive, Source: source("run", rs.Self), Workers: 2}
			if rs.Self == watched {
				used = config.Source
			}
			return Start(config)
		}, options...)
		success := out.Errors[watched] == nil
		if success != (c.fault == nil) || own == nil {
			t.Fatalf("%s: the party returned %v", c.name, out.Errors[watched])
		}
		for what, v := range map[string]ring.NTT{"s": own.s, "u": own.u} {
			if !v.Equal(s.Q.NewNTT()) {
				t.Errorf("%s: %s was not erased", c.name, what)
			}
		}
		if zero := slices.Max(secret) == 0 && slices.Min(secret) == 0; zero == success {
			t.Errorf("%s: the share of the secret key was erased: %v", c.name, zero)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the source still returns randomness", c.name)
				}
			}()
			used.Stream("secret")
		}()
	}
}
