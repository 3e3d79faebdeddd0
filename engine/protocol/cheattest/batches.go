package cheattest

import (
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// ofBatches lists the cheats after the proof of a batch.
func ofBatches() []*Cheat {
	evaluated := Ends{Check: triple.CheckEvaluated, Named: Suspects}
	row := func(name, does string, in Kind, ends Ends, threat int, set func(h byzantine.Hooks, e *Env)) *Cheat {
		c := &Cheat{Name: name, Does: does, In: in, From: 2, Ends: ends, set: set}
		if threat > 0 {
			c.Threats = []int{threat}
		}
		return c
	}
	add := func(x field.Element, f *field.Field) { f.Add(x, x, f.One()) }
	return []*Cheat{
		row("undoubled", "keeps the messages of its proof instead of their doubles", Scalars, failsMAC, 11,
			func(h byzantine.Hooks, e *Env) {
				byzantine.On(h, "popk.Result", func(r *popk.Result) {
					f := e.Scheme.Field
					half := f.NewElement()
					f.SetUint64(half, 2)
					f.Inverse(half, half)
					for _, x := range r.Shares {
						f.ScaleVec(x, x, half)
					}
				})
			}),
		row("share-plus-delta", "adds Delta to a decryption share", Scalars, failsMAC, 12, shares(0, func(e *Env,
			d ring.Poly) {
			plusDelta(e, d, 0)
		})),
		row("share-plus-residue", "adds 1 to one residue of a decryption share", Scalars, failsMAC, 12, shares(0,
			func(e *Env, d ring.Poly) {
				d.C[0][3] = (d.C[0][3] + 1) % e.Scheme.Prefix(len(d.C)).Primes()[0]
			})),
		row("share-plus-one", "adds an encoded one to a decryption share", Scalars, failsMAC, 12, shares(0, plusOne)),
		row("mac-share-plus-delta", "adds Delta to its decryption share of the last MAC", Scalars, failsMAC, 12,
			shares(-1, func(e *Env, d ring.Poly) { plusDelta(e, d, 1) })),
		row("shifted", "adds an encoded one to a decryption share, and takes one from its own share to match", Scalars,
			passes, 27, func(h byzantine.Hooks, e *Env) {
				shares(0, plusOne)(h, e)
				byzantine.On(h, "ddec.Shares", func(s ddec.Shares) {
					f := e.Scheme.Field
					one := f.NewVec(s[0].Len())
					f.Fill(one, f.One())
					f.SubVec(s[0], s[0], one)
				})
			}),
		row("shifted-after", "adds 1 to its own share after decryption", Scalars, failsMAC, 12, func(h byzantine.Hooks,
			e *Env) {
			byzantine.On(h, "ddec.Shares", func(s ddec.Shares) { add(s[0].At(0), e.Scheme.Field) })
		}),
		row("wrong-product", "adds 1 to its share of one entry of a matrix product", Matrices, failsMAC, 18,
			func(h byzantine.Hooks, e *Env) {
				byzantine.On(h, "ddec.Shares", func(s ddec.Shares) { add(s[0].At(0), e.Scheme.Field) })
			}),
		row("wrong-sacrificed-product", "adds 1 to its share of a product that is sacrificed for matrices", Matrices,
			failsMAC, 18, func(h byzantine.Hooks, e *Env) {
				byzantine.On(h, "ddec.Shares", func(s ddec.Shares) { add(s[len(s)/2].At(0), e.Scheme.Field) })
			}),
		row("padding", "encrypts a matrix factor whose padding is not zero", Matrices, failsZero, 0,
			func(h byzantine.Hooks, _ *Env) { h.Skip(triple.Padding) }),
		row("windows", "encrypts windows that do not come from one image as a factor of convolutions", Convolutions, failsZero, 0,
			func(h byzantine.Hooks, e *Env) {
				byzantine.On(h, "triple/window", func(tamper *func(int, field.Vec)) {
					*tamper = func(i int, slots field.Vec) {
						if i == 0 {
							add(slots.At(0), e.Scheme.Field)
						}
					}
				})
			}),
		row("other-evaluation", "computes another ciphertext than the others", Scalars, evaluated, 14,
			func(h byzantine.Hooks, _ *Env) {
				byzantine.On(h, "triple/compared", func(list []*gbfv.Ciphertext) { list[0].C0.C[0][0] ^= 1 })
			}),
		row("decrypted-before", "replaces a ciphertext to decrypt with a copy of another", Scalars, evaluated, 14,
			func(h byzantine.Hooks, _ *Env) {
				byzantine.On(h, "triple/compared", func(list []*gbfv.Ciphertext) { list[0] = list[len(list)-1].Clone() })
			}),
		row("masked-factor", "adds 1 to its share of a factor that the sacrifice opens, and continues with that value", Scalars,
			failsMAC, 18, func(h byzantine.Hooks, e *Env) {
				byzantine.On(h, "triple/sacrifice", func(v field.Vec) { add(v.At(v.Len()-1), e.Scheme.Field) })
			}),
		row("masked-matrix-factor", "adds 1 to its share of a factor of matrices that the sacrifice opens", Matrices,
			failsMAC, 18, func(h byzantine.Hooks, e *Env) {
				byzantine.On(h, "triple/sacrifice", func(v field.Vec) { add(v.At(v.Len()-1), e.Scheme.Field) })
			}),
		row("reused-mask", "masks a factor with the mask of another", Scalars, failsMAC, 18, func(h byzantine.Hooks,
			_ *Env) {
			byzantine.On(h, "triple/sacrifice", func(v field.Vec) { copy(v.At(1), v.At(0)) })
		}),
		// Half of the opened values are then not squares, which the parties detect before the MAC
		// check.
		row("wrong-squares", "adds 1 to its shares of all squares that bits open, and continues with these values", Bits,
			failsZero, 0, func(h byzantine.Hooks, e *Env) {
				byzantine.On(h, "triple/products", func(v field.Vec) {
					for i := range v.Len() {
						add(v.At(i), e.Scheme.Field)
					}
				})
			}),
		row("wrong-opening", "adds 1 to its opening in the MAC check", Scalars, failsMAC, 15, func(h byzantine.Hooks,
			e *Env) {
			byzantine.On(h, "triple/mac/open", func(v field.Vec) { add(v.At(0), e.Scheme.Field) })
		}),
		row("wrong-relation", "adds 1 to the relation of the sacrifice in the MAC check", Scalars, failsMAC, 18,
			func(h byzantine.Hooks, e *Env) {
				byzantine.On(h, "triple/mac/open", func(v field.Vec) { add(v.At(2), e.Scheme.Field) })
			}),
		row("wrong-z", "commits to a wrong z", Scalars, failsMAC, 15, flipped("triple/mac/z/commit")),
		row("other-z", "opens another z than it committed to", Scalars, unopened, 15,
			flipped("triple/mac/z/open")),
		row("wrong-m", "adds 1 to the value that hides its MAC in the MAC check", Scalars, failsMAC, 15, func(h byzantine.Hooks, e *Env) {
			byzantine.On(h, "triple/mac/open", func(v field.Vec) { add(v.At(maccheck.Combinations), e.Scheme.Field) })
		}),
		row("wrong-check-triple", "adds 1 to its share of the product of a check triple", Scalars, failsMAC, 15, func(h byzantine.Hooks, e *Env) {
			byzantine.On(h, "triple/material", func(m *maccheck.Material) { add(m.Triples[0].C.At(0), e.Scheme.Field) })
		}),
		row("other-coin", "opens another seed of the coin of the MAC check than it committed to", Scalars, committed,
			0, flipped("triple/mac/coin/open")),
		row("other-sacrifice-coin", "opens another seed of the coin of the sacrifice than it committed to", Scalars,
			committed, 0, flipped("triple/sacrifice/coin/open")),
		row("own-coin", "commits to a chosen seed", Scalars, passes, 0, flipped("triple/mac/coin/commit")),
		row("own-sacrifice-coin", "commits to a chosen seed for the sacrifice", Scalars, passes, 0,
			flipped("triple/sacrifice/coin/commit")),
	}
}

// shares changes the decryption share at this index; -1 is the last one.
func shares(at int, change func(e *Env, d ring.Poly)) func(h byzantine.Hooks, e *Env) {
	return func(h byzantine.Hooks, e *Env) {
		byzantine.On(h, "triple/share", func(messages []ring.Poly) {
			change(e,
				messages[(at+len(messages))%len(messages)])
		})
	}
}

// plusDelta adds Delta to a coefficient.
func plusDelta(e *Env, d ring.Poly, k int) {
	delta := e.Scheme.Delta()
	for l, q := range e.Scheme.Prefix(len(d.C)).Primes() {
		d.C[l][k] = (d.C[l][k] + delta.C[l][0]) % q
	}
}

// plusOne adds the encoding of one in every slot.
func plusOne(e *Env, d ring.Poly) {
	s := e.Scheme
	b := s.Prefix(len(d.C))
	one, coeffs, p := s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots()), b.NewPoly()
	s.Field.Fill(one, s.Field.One())
	s.Pack.Pack(coeffs, one)
	s.ScalePlain(p, coeffs, b.Len())
	b.Add(d, d, p)
}

// flipped changes a bit of the value that a commit-then-open step commits to or opens.
func flipped(name string) func(h byzantine.Hooks, e *Env) {
	return func(h byzantine.Hooks, _ *Env) {
		byzantine.On(h, name, func(b *[]byte) { *b = append([]byte{(*b)[0] ^ 1}, (*b)[1:]...) })
	}
}
