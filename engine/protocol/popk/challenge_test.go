package popk

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Indexes into the values that the challenge hashes; see Config.bound.
const (
	ofSession = iota
	ofStep
	ofInstance
	ofU
	ofV
	ofKind
	ofKey
	ofOpened
	places
)

// The cheating party responds to a challenge that it derived from other values than the honest
// parties.
func TestAnotherChallengeIsRefused(t *testing.T) {
	terms := round.Terms{Version: 1, Protocol: "popk", Epoch: 7}
	epoch := terms
	epoch.Epoch++
	session := terms.ID()
	for _, n := range []int{2, 3} {
		b, culprit := newBench(t, n), round.Party(n-1)
		more, err := params.Resolve(b.scheme.Set, "p128", params.Use{Parties: n, Dim: 1, U: 4})
		if err != nil {
			t.Fatal(err)
		}
		other, instance, later := round.Hash("another"), more.Hash(), epoch.ID()
		for _, c := range []struct {
			name  string
			place int
			value func(p params.Proof) []byte
		}{
			{"another session", ofSession, func(params.Proof) []byte { return other[:] }},
			{"another epoch", ofSession, func(params.Proof) []byte { return later[:] }},
			{"another step", ofStep, func(params.Proof) []byte { return []byte("q") }},
			{"another instance", ofInstance, func(params.Proof) []byte { return instance[:] }},
			{"another U", ofU, func(p params.Proof) []byte { return round.Uint(uint64(p.U + 1)) }},
			{"another V", ofV, func(p params.Proof) []byte { return round.Uint(uint64(p.V - 1)) }},
			{"the other kind of proof", ofKind, func(p params.Proof) []byte {
				if p.Diag {
					return round.Uint(0)
				}
				return round.Uint(1)
			}},
			{"another key", ofKey, func(params.Proof) []byte { return other[:] }},
			{"openings without the last", ofOpened, func(params.Proof) []byte { return other[:] }},
		} {
			for _, mac := range []bool{false, true} {
				t.Run(fmt.Sprint(c.name, ", MAC key: ", mac, ", ", n, " parties"), func(t *testing.T) {
					p := b.instance.Proof
					if mac {
						p = b.instance.MACKey
					}
					h := byzantine.On(byzantine.New(), "p/challenge", func(fields [][]byte) {
						if len(fields) != places {
							t.Errorf("the challenge hashes %d values, want %d", len(fields), places)
						}
						if string(fields[c.place]) == string(c.value(p)) {
							t.Error("the cheat changes nothing")
						}
						fields[c.place] = c.value(p)
					})
					b.run(mac, nil, roundtest.Cheat(culprit, h), roundtest.ID(session)).Blamed(t, culprit, CheckEquation)
				})
			}
		}
	}
}

// Parties that disagree on the statement or its context reject each other's proofs.
func TestDisagreementIsRefused(t *testing.T) {
	for _, n := range []int{2, 3} {
		b, culprit := newBench(t, n), round.Party(n-1)
		instance := func(u int) *params.Instance {
			i, err := params.Resolve(b.scheme.Set, "p128", params.Use{Parties: n, Dim: 1, U: u})
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		epoch := round.Terms{Epoch: 1}
		repetitions := *b.instance
		repetitions.Proof.V++
		for _, c := range []struct {
			name   string
			change func(c *Config)
			check  string
		}{
			{"session", func(c *Config) { c.Session.ID[0] ^= 1 }, round.CheckCommitment},
			{"epoch", func(c *Config) { c.Session.ID = epoch.ID() }, round.CheckCommitment},
			{"key hash", func(c *Config) { c.KeyHash[0] ^= 1 }, CheckEquation},
			{"one U more", func(c *Config) { c.Instance = instance(4) }, round.CheckShape},
			{"one U less", func(c *Config) { c.Instance = instance(2) }, round.CheckShape},
			{"one V more", func(c *Config) { c.Instance = &repetitions }, round.CheckSize},
			{"kind of proof", func(c *Config) { c.MACKey = true }, round.CheckSize},
		} {
			t.Run(fmt.Sprint("another ", c.name, ", ", n, " parties"), func(t *testing.T) {
				b.run(false, c.change, roundtest.Cheat(culprit, byzantine.New())).Blamed(t, culprit, c.check)
			})
		}
	}
}

// simulated makes the cheating party simulate a proof without a witness: it guesses the challenge w
// before anybody opens, and takes random polynomials as its ciphertexts, short z_j and t_j as its
// responses, and Enc(z_j; t_j) - sum_i w_ij ct_i as its masks.
func simulated(b *bench, c *Config, guess [][]byte) {
	var masks []response
	h := byzantine.On(c.Session.Hooks, "p/witness", func(p *prover) {
		for _, m := range p.secret[p.sizes.U:] {
			masks = append(masks, m.clone())
		}
	})
	s, sizes := b.scheme, c.sizes()
	list := zeros(s, sizes.U)
	byzantine.On(h, "p/encrypted", func(own []*gbfv.Ciphertext) {
		for i, ct := range list {
			sample.Expand(ct.C0.C, s.Q.Primes(), make([]byte, 32), "simulated", uint64(i), 0)
			sample.Expand(ct.C1.C, s.Q.Primes(), make([]byte, 32), "simulated", uint64(i), 1)
			own[i] = ct.Clone()
		}
	})
	byzantine.On(h, "p/statement/commit", func(statement *[]byte) {
		w, err := newChallenge(s, sizes, round.XOF("lodge popk challenge", guess...))
		if err != nil {
			panic(err)
		}
		for j := range masks {
			ct := encryption(s, sizes, b.key.Public, masks[j])
			subtractCombination(s, ct, w, list, j)
			d := maskDigest(s, ct)
			copy(digestAt((*statement)[len(d):], j), d[:])
		}
	})
	byzantine.On(h, "p/response", func(own []response) {
		for j, r := range own {
			r.wipe()
			intpoly.Add(r.z, r.z, masks[j].z)
			for k := range r.t {
				intpoly.Add(r.t[k], r.t[k], masks[j].t[k])
			}
		}
	})
}

// A statement built for one challenge fails for any other. If the challenge did not hash the
// openings, the prover would know it in advance and pass without a witness.
func TestAChallengeBeforeTheOpeningsProvesNothing(t *testing.T) {
	constant := make([]byte, 32)
	for _, n := range []int{2, 3} {
		b, culprit := newBench(t, n), round.Party(n-1)
		var own Config
		var guess [][]byte
		known := func(c *Config) {
			own = *c
			guess = own.bound(round.Digest(constant))
			simulated(b, &own, guess)
			byzantine.On(c.Session.Hooks, "p/challenge", func(fields [][]byte) { fields[ofOpened] = constant }).Skip(CheckEquation)
		}
		b.run(false, known, roundtest.Cheat(culprit, byzantine.New())).Blamed(t, culprit, CheckEquation)

		options := []roundtest.Option{roundtest.Cheat(culprit, byzantine.New())}
		for p := range culprit {
			options = append(options, roundtest.Watch(p, byzantine.On(byzantine.New(), "p/challenge", func(fields [][]byte) { fields[ofOpened] = constant })))
		}
		out := b.run(false, known, options...)
		for p := range culprit {
			if out.Errors[p] != nil {
				t.Errorf("%d parties: with a challenge that is known in advance party %d ends with %v", n, p, out.Errors[p])
			}
		}
	}
}
