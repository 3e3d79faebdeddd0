package keygen

import (
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// statement holds the public values of the proofs. Each share is
//
//	C_s s + C_u u + phi(s) g_j + e
//
// for public polynomials C_s and C_u, some of which are zero. This relation is linear over the
// challenges, because phi leaves them unchanged.
type statement struct {
	*Config
	proof     params.KeyProof
	norm      *sigma.Norm
	equations []slot
	seed      round.Digest
	h0, h1    []ring.NTT // sums of the parties' polynomials
}

// proved lists the equations of proved key generation in order: the public key, the rotation keys,
// h0 and h1, and the second part of the relinearisation key.
func (c *Config) proved() []slot { return append(c.slots(), c.relinSlots(relinSecond)...) }

// opened reports whether the share of an equation is opened before the challenge is known. This
// holds for h0 and h1, on which the second part of the relinearisation key depends.
func (at slot) opened() bool { return at.kind == relinH0 || at.kind == relinH1 }

// relation is one equation with its public polynomials.
type relation struct {
	*statement
	at   slot
	s, u ring.NTT // C_s and C_u; without limbs if zero
}

// relation expands the equation at a slot. The caller must release it with free.
func (st *statement) relation(at slot) relation {
	r, q := relation{statement: st, at: at}, st.Scheme.Q
	index := []uint64{uint64(at.g), uint64(at.digit)}
	switch at.kind {
	case publicKey: // -a s + e
		r.s = uniform(st.Scheme, st.seed, labelPublic)
		q.NegNTT(r.s, r.s)
	case rotation: // -a s + phi(s) g_j + e
		r.s = uniform(st.Scheme, st.seed, labelRotation, index...)
		q.NegNTT(r.s, r.s)
	case relinH0: // -a u + s g_j + e0
		r.u = uniform(st.Scheme, st.seed, labelRelin, uint64(at.digit))
		q.NegNTT(r.u, r.u)
	case relinH1: // a s + e1
		r.s = uniform(st.Scheme, st.seed, labelRelin, uint64(at.digit))
	case relinSecond: // (H0 - H1) s + H1 u + e2
		r.s, r.u = q.BorrowNTT(), st.h1[at.digit].Clone()
		q.SubNTT(r.s, st.h0[at.digit], r.u)
	}
	return r
}

func (r relation) free() {
	r.s.Free()
	r.u.Free()
}

// pair holds values for s and u of a relation: the masks or the responses of one repetition.
type pair struct {
	s, u  ring.NTT
	small intpoly.Poly // the coefficients of s
}

func (st *statement) newPair(s, u intpoly.Poly) pair {
	x, q := pair{s: st.Scheme.Q.BorrowNTT(), u: st.Scheme.Q.BorrowNTT(), small: s}, st.Scheme.Q
	p := q.Borrow()
	for _, c := range []struct {
		to   ring.NTT
		from intpoly.Poly
	}{{x.s, s}, {x.u, u}} {
		q.FromSmall(p, c.from)
		q.Forward(c.to, p)
	}
	p.Zero()
	p.Free()
	return x
}

// apply sets dst to the relation of a pair and an error with one word per coefficient. Both may be
// secret.
func (r relation) apply(dst ring.Poly, x pair, e intpoly.Poly) {
	q := r.Scheme.Q
	t, p := q.BorrowNTT(), q.Borrow()
	switch {
	case r.u.C == nil:
		q.MulNTT(t, r.s, x.s)
	case r.s.C == nil:
		q.MulNTT(t, r.u, x.u)
	default:
		q.MulNTT(t, r.s, x.s)
		q.MulAddNTT(t, r.u, x.u)
	}
	q.Inverse(dst, t)
	q.FromSmall(p, e)
	if g, ok := r.at.automorphism(); ok {
		sum := e.Clone()
		intpoly.AddAutomorphism(sum, x.small, g)
		lo, hi := r.Scheme.DigitPrimes(r.at.digit) // where g_j is 1
		q.Range(lo, hi).FromSmall(ring.Poly{C: p.C[lo:hi]}, sum)
		sum.Wipe()
	}
	q.Add(dst, dst, p)
	t.Zero()
	p.Zero()
	t.Free()
	p.Free()
}

// automorphism returns the Galois element of phi and whether the equation contains phi(s) g_j.
func (at slot) automorphism() (g int, ok bool) {
	switch at.kind {
	case rotation:
		return at.g, true
	case relinH0:
		return 1, true
	}
	return 0, false
}

// imageDigest returns the digest that represents the relation of the masks of one repetition, which
// is not sent.
func (st *statement) imageDigest(p ring.Poly) round.Digest {
	primes := st.Scheme.Q.Primes()
	//lodge:check keygen/equation-every-limb [swap=len(p.C)=>len(p.C) - 1] [run=TestEvery|@proofs]
	//  an equation need not hold modulo the last prime
	return round.HashEach("lodge keygen mask limbs", len(p.C), func(room []byte, i int) []byte {
		return codec.AppendPoly(room, p.C[i:i+1], primes[i:i+1])
	})
}

// masksDigest returns the digest that represents the relations of the masks of all repetitions.
func masksDigest(images []round.Digest) round.Digest {
	all := make([]byte, 0, len(images)*len(round.Digest{}))
	//lodge:check keygen/equation-every-repetition [swap=images=>images[1:]] [run=@proofs] the first
	//  repetition of an equation is not verified
	for _, d := range images {
		all = append(all, d[:]...)
	}
	return round.Hash("lodge keygen masks", all)
}

// shareDigest binds a party to a share that it sends after the challenge.
//
//lodge:check keygen/promises [swap=round.Hash("lodge keygen share", packed)=>round.Hash("lodge keygen share", packed[:8])] [run=@proofs] a promise binds only the start of a share
func shareDigest(packed []byte) round.Digest { return round.Hash("lodge keygen share", packed) }

// Sizes of a party's messages, in bytes.

func (st *statement) responseSize() int { return codec.SignedSize(st.Scheme.N(), st.proof.Bits) }

func (st *statement) shareSize(at slot) int {
	if at.opened() {
		return 0
	}
	return codec.PolySize(st.Scheme.N(), st.Scheme.Q.Primes())
}

// headSize is the size of a frame with the responses of one repetition for s and u.
func (st *statement) headSize() int { return 2 * st.responseSize() }

// frameSize is the size of the frame of an equation: its share, unless it is opened, and V
// responses.
func (st *statement) frameSize(at slot) int {
	return st.shareSize(at) + st.proof.V*st.responseSize()
}

// frames is the number of frames of one party's proofs.
func (st *statement) frames() int { return st.proof.V + len(st.equations) }

func (st *statement) bytes() int64 {
	total := int64(st.proof.V) * int64(st.headSize())
	for _, at := range st.equations {
		total += int64(st.frameSize(at))
	}
	return total
}

// digestsSize is the size of the digests that a party opens before the challenge: for every
// equation the digest of the share, unless the share is opened, and the digest of the masks.
func (st *statement) digestsSize() int {
	n := 2 * len(st.equations)
	for _, at := range st.equations {
		if at.opened() {
			n--
		}
	}
	return n * len(round.Digest{})
}

// promise holds the digests to which a party committed for one equation.
type promise struct{ share, masks round.Digest }

// promises decodes the digests of a party, of digestsSize bytes.
func (st *statement) promises(b []byte) []promise {
	list := make([]promise, len(st.equations))
	for i, at := range st.equations {
		if !at.opened() {
			b = b[copy(list[i].share[:], b):]
		}
		b = b[copy(list[i].masks[:], b):]
	}
	return list
}
