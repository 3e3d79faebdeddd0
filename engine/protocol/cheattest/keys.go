package cheattest

import (
	"slices"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// longer adds to every coefficient what still fits a response, but is not short as a polynomial.
func longer(v []int64) {
	for i := range v {
		v[i] += 250
	}
}

// scaled is 2^30 times what was drawn.
func scaled(v []int64) {
	for i := range v {
		v[i] <<= 30
	}
}

// ofKeys are the cheats inside key generation.
func ofKeys() []*Cheat {
	equation, bound, share := blamed(keygen.CheckEquation), blamed(keygen.CheckBound), blamed(keygen.CheckShare)
	row := func(name, does string, ends Ends, set func(h byzantine.Hooks, e *Env), threats ...int) *Cheat {
		return &Cheat{Name: name, Does: does, In: Keys, From: 2, Ends: ends, set: set, Threats: threats}
	}
	// wrong changes the share of the first digit of a kind of key.
	wrong := func(label string, change func(e *Env, x *keygen.Sharing)) func(h byzantine.Hooks, e *Env) {
		return func(h byzantine.Hooks, e *Env) {
			byzantine.On(h, "keygen/share", func(x *keygen.Sharing) {
				if of, digit := x.Of(); of == label && digit == 0 {
					change(e, x)
				}
			})
		}
	}
	one := func(e *Env, x *keygen.Sharing) { x.Poly().C[0][3] = (x.Poly().C[0][3] + 1) % e.Scheme.Q.Primes()[0] }
	quarter := func(e *Env, x *keygen.Sharing) {
		for i, q := range e.Scheme.Q.Primes() {
			x.Poly().C[i][0] = (x.Poly().C[i][0] + q/4) % q
		}
	}
	on := func(name string, cheat func(v []int64)) func(h byzantine.Hooks, e *Env) {
		return func(h byzantine.Hooks, _ *Env) { byzantine.On(h, name, cheat) }
	}
	sent := func(change func(frames [][]byte)) func(h byzantine.Hooks, e *Env) {
		return func(h byzantine.Hooks, _ *Env) { byzantine.On(h, "keygen/proofs", change) }
	}
	list := []*Cheat{
		row("wrong-public-key", "adds 1 to a residue of its share of the public key", equation, wrong("public", one)),
		row("wrong-rotation-key", "adds 1 to a residue of its share of the rotation keys", equation, wrong("rotation",
			one)),
		row("wrong-relin-h0", "adds 1 to a residue of its h0", equation, wrong("relin h0", one)),
		row("wrong-relin-h1", "adds 1 to a residue of its h1", equation, wrong("relin h1", one)),
		row("malformed-relin", "adds q/4 to its share of a digit of the relinearisation key", equation,
			wrong("relin second", quarter), 13),
		row("long-secret", "uses a long secret", bound, on("keygen/secret", longer), 24),
		row("long-ephemeral-secret", "uses a long ephemeral secret", bound, on("keygen/secret/relin",
			longer), 24),
		row("reused-challenge", "answers the challenge of another session", equation, func(h byzantine.Hooks, _ *Env) {
			byzantine.On(h, "keygen/challenge", func(f [][]byte) {
				f[0] = slices.Clone(f[0])
				f[0][1] ^= 2
			})
		}, 6),
		row("early-challenge", "answers a challenge that it knew before the last statement was open", equation,
			func(h byzantine.Hooks, _ *Env) {
				byzantine.On(h, "keygen/challenge", func(f [][]byte) { f[len(f)-1] = make([]byte, 32) })
			}, 6),
		row("rogue-share", "chooses its share of the public key so that it knows the secret of the sum", share,
			rogueShare, 19),
		row("rushing-relin", "opens h0 and h1 that make the others' sums zero", committed, rushingRelin, 25),
		row("wrong-response", "changes a bit of a response", equation, sent(func(f [][]byte) { f[0][0] ^= 1 })),
		row("swapped-keys", "exchanges its shares of two keys", share, func(h byzantine.Hooks, e *Env) {
			rewrite(h, e, "keygen/proofs", func(_ *Env, _ round.Party, f [][]byte) [][]byte {
				last := len(f) - 1
				f[last], f[last-1] = f[last-1], f[last]
				return f
			})
		}),
		row("copied-keys", "copies all messages of its proofs from party 0", committed, func(h byzantine.Hooks, e *Env) {
			copies(h, e, "keygen/relin/commit", "keygen/relin/open", "keygen/statement/commit",
				"keygen/statement/open", "keygen/proofs")
		}, 1),
		row("last-residue", "sends q itself as a residue of its h0", malformed, func(h byzantine.Hooks, e *Env) {
			rewrite(h, e, "keygen/relin/open", func(e *Env, _ round.Party, f [][]byte) [][]byte {
				f[1] = withResidue(e, f[1])
				return f
			})
		}, 10),
	}
	for _, label := range []string{"public", "rotation", "relin h0", "relin h1", "relin second"} {
		list = append(list,
			row("long-error-"+dashed(label), "uses a long error in its "+label, bound,
				on("keygen/error/"+label, longer), 24),
			row("long-mask-"+dashed(label), "uses a long mask for an error in its "+label, bound,
				on("keygen/mask/"+label, longer)))
	}
	// Its responses have no room for 2^30 times a secret: an honest prover that holds it cannot speak.
	list = append(list, row("scaled-secret", "scales its secret by 2^30, and cannot respond",
		Ends{Check: CheckLate, Named: Suspects}, on("keygen/secret", scaled), 24),
		row("scaled-error", "scales an error of its public key by 2^30, and cannot respond",
			Ends{Check: CheckLate, Named: Suspects}, on("keygen/error/public", scaled), 24))
	return list
}

func dashed(label string) string {
	b := []byte(label)
	for i, c := range b {
		if c == ' ' {
			b[i] = '-'
		}
	}
	return string(b)
}

// copies says at every one of these places what party 0 says there.
func copies(h byzantine.Hooks, e *Env, names ...string) {
	edits := map[string]func(e *Env, to round.Party, frames [][]byte) [][]byte{}
	for _, name := range names {
		edits[name] = func(e *Env, _ round.Party, _ [][]byte) [][]byte { return e.Peer(0, name) }
	}
	rewriteAll(h, e, edits)
}

// replays says at every one of these places what this party said in an earlier session.
func replays(h byzantine.Hooks, e *Env, names ...string) {
	edits := map[string]func(e *Env, to round.Party, frames [][]byte) [][]byte{}
	for _, name := range names {
		edits[name] = func(e *Env, to round.Party, _ [][]byte) [][]byte { return e.Earlier(to, name) }
	}
	rewriteAll(h, e, edits)
}

// withResidue is the frame of a polynomial whose first residue is the first prime.
func withResidue(e *Env, frame []byte) []byte {
	q := e.Scheme.Q
	p := q.NewPoly()
	size := codec.PolySize(e.Scheme.N(), q.Primes())
	if err := codec.DecodePoly(p.C, q.Primes(), frame[:size]); err != nil {
		panic(err)
	}
	p.C[0][0] = q.Primes()[0]
	return append(codec.AppendPoly(nil, p.C, q.Primes()), frame[size:]...)
}

// minusOthers is target less what the others send at place i of this message.
func minusOthers(e *Env, name string, i int, target []byte) []byte {
	q := e.Scheme.Q
	size := codec.PolySize(e.Scheme.N(), q.Primes())
	sum, x := q.NewPoly(), q.NewPoly()
	if target != nil {
		if err := codec.DecodePoly(sum.C, q.Primes(), target[:size]); err != nil {
			panic(err)
		}
	}
	for p := range round.Party(e.Parties) {
		if p == e.Self {
			continue
		}
		if err := codec.DecodePoly(x.C, q.Primes(), e.Peer(p, name)[i][:size]); err != nil {
			panic(err)
		}
		q.Sub(sum, sum, x)
	}
	return codec.AppendPoly(nil, sum.C, q.Primes())
}

// rogueShare replaces the share of the public key, behind the responses, by its own less the others'.
func rogueShare(h byzantine.Hooks, e *Env) {
	rewrite(h, e, "keygen/proofs", func(e *Env, _ round.Party, f [][]byte) [][]byte {
		proof, err := e.Scheme.Set.KeyProof(e.Parties, keyDim)
		if err != nil {
			panic(err)
		}
		copy(f[proof.V], minusOthers(e, "keygen/proofs", proof.V, f[proof.V]))
		return f
	})
}

// keyDim is the dimension of the rotation keys of the sessions of the table.
const keyDim = 4

// rushingRelin replaces h0 and h1 by minus those of the others.
func rushingRelin(h byzantine.Hooks, e *Env) {
	rewrite(h, e, "keygen/relin/open", func(e *Env, _ round.Party, f [][]byte) [][]byte {
		for i := 1; i < len(f); i++ {
			f[i] = minusOthers(e, "keygen/relin/open", i, nil)
		}
		return f
	})
}
