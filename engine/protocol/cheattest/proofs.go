package cheattest

import (
	"math/big"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// ofProofs lists the cheats in proofs of plaintext knowledge: of a batch, and of a MAC key.
func ofProofs() []*Cheat {
	bound, equation := blamed(popk.CheckBound), blamed(popk.CheckEquation)
	var list []*Cheat
	for _, step := range []struct {
		name string
		in   Kind
	}{{"triple", Scalars}, {"mackey", First}} {
		row := func(name, does string, ends Ends, threat int, set func(h byzantine.Hooks, e *Env)) {
			list = append(list, &Cheat{Name: name + ":" + step.name, Does: does, In: step.in, From: 2, Ends: ends,
				Threats: []int{threat}, set: set})
		}
		answers := func(change func(p params.Proof, r []popk.Response)) func(h byzantine.Hooks, e *Env) {
			return func(h byzantine.Hooks, _ *Env) {
				var sizes params.Proof
				byzantine.On(h, step.name+"/witness", func(p *popk.Prover) { sizes = p.Sizes() })
				byzantine.On(h, step.name+"/response", func(r []popk.Response) { change(sizes, r) })
			}
		}
		set := func(p intpoly.Poly, v *big.Int, off int64) { p.SetBig(0, new(big.Int).Add(v, big.NewInt(off))) }
		add := func(p intpoly.Poly, k int, v int64) { p.SetBig(k, new(big.Int).Add(p.Big(k), big.NewInt(v))) }
		row("response-at-bound", "answers with a message that is at its bound", bound, 3, answers(func(p params.Proof,
			r []popk.Response) {
			set(r[0].Z(), p.B1, 0)
		}))
		row("response-over-bound", "answers with a message that is one over its bound", bound, 3,
			answers(func(p params.Proof, r []popk.Response) { set(r[0].Z(), p.B1, 1) }))
		row("randomness-at-bound", "answers with randomness that is at minus its bound", bound, 3,
			answers(func(p params.Proof, r []popk.Response) { set(r[1].T()[2], new(big.Int).Neg(p.Bt1), 0) }))
		row("randomness-over-bound", "answers with randomness that is one over its bound", bound, 3,
			answers(func(p params.Proof, r []popk.Response) { set(r[1].T()[1], p.Bt1, 1) }))
		row("response-off-by-one", "adds 1 to a coefficient of a response", equation, 2, answers(func(_ params.Proof,
			r []popk.Response) {
			add(r[0].Z(), 0, 1)
		}))
		for k := range 3 {
			row("randomness-off-by-one-"+string(rune('0'+k)),
				"adds 1 to a coefficient of the randomness of a response", equation, 2,
				answers(func(_ params.Proof, r []popk.Response) { add(r[1].T()[k], 3, 1) }))
		}
		for place, what := range []string{"session", "step", "instance", "number of ciphertexts", "number of repetitions", "kind of proof", "key", "statements"} {
			row("challenge-"+dashed(what), "answers a challenge over another "+what, equation, 6,
				func(h byzantine.Hooks, _ *Env) {
					byzantine.On(h, step.name+"/challenge", func(f [][]byte) {
						f[place] = append([]byte(nil), f[place]...)
						f[place][0] ^= 1
					})
				})
		}
		row("other-ciphertext", "proves a ciphertext, and sends it with one bit changed", committed, 2,
			func(h byzantine.Hooks, _ *Env) {
				byzantine.On(h, step.name+"/ciphertexts", func(b *round.Body) { *b = bodyOf(flip(nil, 0, framesOf(*b))) })
			})
		row("wrong-ciphertext", "states another ciphertext than it proves", equation, 2,
			func(h byzantine.Hooks, e *Env) {
				byzantine.On(h, step.name+"/encrypted", func(list []*gbfv.Ciphertext) { list[0].C0.C[0][0] ^= 1 })
			})
		row("residue", "sends q itself as a residue of a ciphertext", malformed, 10, func(h byzantine.Hooks, e *Env) {
			byzantine.On(h, step.name+"/encrypted",
				func(list []*gbfv.Ciphertext) { list[0].C0.C[0][0] = e.Scheme.Q.Primes()[0] })
		})
		row("wrong-mask", "states another mask than it responds with", equation, 2, func(h byzantine.Hooks, _ *Env) {
			byzantine.On(h, step.name+"/statement/commit", func(b *[]byte) { (*b)[len(*b)-1] ^= 1 })
		})
		row("other-statement", "opens another statement than it committed to", committed, 2, func(h byzantine.Hooks,
			_ *Env) {
			byzantine.On(h, step.name+"/statement/open", func(b *[]byte) { (*b)[0] ^= 1 })
		})
		row("other-nonce", "opens its statement with another nonce", committed, 7, func(h byzantine.Hooks, e *Env) {
			rewrite(h, e, step.name+"/statement/open", flip)
		})
		names := []string{step.name + "/statement/commit", step.name + "/statement/open", step.name + "/ciphertexts",
			step.name + "/response"}
		row("copied-proof", "copies all messages of its proof from party 0", committed, 1, func(h byzantine.Hooks,
			e *Env) {
			copies(h, e, names...)
		})
		row("negated-proof", "sends minus the sum of the others' ciphertexts", committed, 1, func(h byzantine.Hooks,
			e *Env) {
			rewrite(h, e, step.name+"/ciphertexts", func(e *Env, _ round.Party, f [][]byte) [][]byte {
				for i := range f {
					f[i] = minusOthers(e, step.name+"/ciphertexts", i, nil)
				}
				return f
			})
		})
		row("replayed-proof", "replays all messages of its proof from an earlier session", committed, 9,
			func(h byzantine.Hooks, e *Env) { replays(h, e, names...) })
		list[len(list)-1].Replays = true
	}
	return append(list, ofWitnesses()...)
}

// ofWitnesses lists the cheats with the proved values and with their number.
func ofWitnesses() []*Cheat {
	bound, equation := blamed(popk.CheckBound), blamed(popk.CheckEquation)
	return []*Cheat{
		&Cheat{Name: "long-witness", Does: "encrypts a message whose encoding is longer than a proof allows",
			In: Scalars, From: 2, Ends: bound, Threats: []int{4},
			set: func(h byzantine.Hooks, e *Env) {
				var longest *big.Int // what the encoding of a response can state
				byzantine.On(h, "triple/witness", func(p *popk.Prover) {
					b, b1 := e.Scheme.Spec.B, p.Sizes().B1
					longest = new(big.Int).Lsh(big.NewInt(1), uint(b1.BitLen()))
					longest.Sub(longest, big.NewInt(1))
					x := new(big.Int).Div(new(big.Int).Mul(b1, big.NewInt(21)), new(big.Int).Mul(b, big.NewInt(20))).Int64()
					lengthen(e, p.Witness(0), x)
				})
				byzantine.On(h, "triple/response", func(list []popk.Response) {
					eachCoefficient(e, list, func(v *big.Int) {
						if v.CmpAbs(longest) > 0 {
							v.Mul(longest, big.NewInt(int64(v.Sign())))
						}
					})
				})
			}},
		&Cheat{Name: "witness-of-2-to-20-b", Does: "encrypts a message whose encoding contains 2^20 b, and reduces its responses", In: Scalars, From: 2, Ends: equation, Threats: []int{4},
			set: func(h byzantine.Hooks, e *Env) {
				var sizes params.Proof
				byzantine.On(h, "triple/witness", func(p *popk.Prover) {
					sizes = p.Sizes()
					lengthen(e, p.Witness(0), 1<<20)
				})
				byzantine.On(h, "triple/response", func(list []popk.Response) {
					eachCoefficient(e, list, func(v *big.Int) {
						if v.CmpAbs(sizes.B1) >= 0 {
							v.Rem(v, sizes.B1)
						}
					})
				})
			}},
		&Cheat{Name: "uneven-mac-key", Does: "encrypts a MAC key that differs between slots", In: First,
			From: 2, Ends: equation, Threats: []int{5},
			set: func(h byzantine.Hooks, e *Env) {
				byzantine.On(h, "mackey/encrypted", func(list []*gbfv.Ciphertext) {
					e.Scheme.Q.AddMonomial(list[0].C0,
						e.Scheme.Delta(), 1)
				})
			}},
		&Cheat{Name: "uneven-mac-response", Does: "responds for a MAC key with a coefficient that no constant has",
			In: First, From: 2, Ends: blamed(round.CheckSize), Threats: []int{5},
			set: func(h byzantine.Hooks, e *Env) {
				rewrite(h, e, "mackey/response", func(_ *Env, _ round.Party, f [][]byte) [][]byte {
					last := len(f) - 1
					f[last] = append(f[last], make([]byte, codec.SignedSize(1, 8))...)
					return f
				})
			}},
		&Cheat{Name: "proves-more", Does: "proves one ciphertext too many", In: Scalars, From: 2,
			Ends: malformed, Threats: []int{6},
			set: func(h byzantine.Hooks, e *Env) {
				rewrite(h, e, "triple/ciphertexts", func(_ *Env, _ round.Party, f [][]byte) [][]byte {
					return append(f,
						f[0], f[1])
				})
			}},
		&Cheat{Name: "proves-less", Does: "proves one ciphertext too few", In: Scalars, From: 2,
			Ends: malformed, Threats: []int{6},
			set: func(h byzantine.Hooks, e *Env) {
				rewrite(h, e, "triple/ciphertexts", func(_ *Env, _ round.Party,
					f [][]byte) [][]byte {
					return f[:len(f)-2]
				})
			}},
	}
}

// eachCoefficient lets change alter every coefficient of the messages of responses.
func eachCoefficient(e *Env, list []popk.Response, change func(v *big.Int)) {
	for _, r := range list {
		for k := range e.Scheme.N() {
			v := r.Z().Big(k)
			change(v)
			r.Z().SetBig(k, v)
		}
	}
}

// lengthen replaces a witness by another encoding of its message: mu + x P X^5 for P = X^D - b,
// whose norm is about |x| b.
func lengthen(e *Env, mu intpoly.Poly, x int64) {
	s, b := e.Scheme, e.Scheme.Spec.B
	for _, c := range []struct {
		k int
		v *big.Int
	}{{5, new(big.Int).Mul(b, big.NewInt(-x))}, {5 + s.Slots(), big.NewInt(x)}} {
		mu.SetBig(c.k, new(big.Int).Add(mu.Big(c.k), c.v))
	}
}
