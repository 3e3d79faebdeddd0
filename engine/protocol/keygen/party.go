package keygen

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// party is one party's secrets during a run.
type party struct {
	*Config
	seed   round.Digest
	secret []int64
	s, u   ring.NTT
	errors *sample.Gaussian

	ephemeral []int64 // the coefficients of u, with proofs
}

func newParty(c *Config, seed round.Digest) (*party, error) {
	p := &party{Config: c, seed: seed, secret: make([]int64, c.Scheme.N()), ephemeral: make([]int64, c.Scheme.N())}
	c.Session.Secrets.Own(c.Source)
	if err := p.sample(); err != nil {
		p.Wipe()
		return nil, err
	}
	round.Own(c.Session, "keygen/party", p)
	return p, nil
}

// sample samples s and u.
func (p *party) sample() (err error) {
	if p.errors, err = sample.NewGaussian(p.Scheme.Set.ErrorWidth); err != nil {
		return err
	}
	if err := p.sampleSecret("keygen/secret", p.secret, "secret"); err != nil {
		return err
	}
	if err := p.sampleSecret("keygen/secret/relin", p.ephemeral, "relinearisation secret"); err != nil {
		return err
	}
	p.s, p.u = p.lift(p.secret), p.lift(p.ephemeral)
	if p.Security != Proved {
		clear(p.ephemeral)
		p.ephemeral = nil
	}
	return nil
}

// sampleSecret samples from the set's distribution of secrets.
func (p *party) sampleSecret(name string, dst []int64, label string) error {
	set, draw := p.Scheme.Set, sample.Ternary
	if set.Secret != params.Ternary {
		g, err := sample.NewGaussian(set.SecretWidth)
		if err != nil {
			return err
		}
		draw = g.Sample
	}
	round.Draw(p.Session, name, draw, dst, p.Source.Stream(label))
	return nil
}

func (p *party) lift(v []int64) ring.NTT { return Lift(p.Scheme, v) }

// Lift returns the evaluation form, on basis Q, of a polynomial with small coefficients, such as a
// secret.
func Lift(s *gbfv.Scheme, v []int64) ring.NTT {
	small, poly, out := intpoly.New(s.N(), 1), s.Q.NewPoly(), s.Q.NewNTT()
	intpoly.FromInt64(small, v)
	s.Q.FromInt(poly, small)
	s.Q.Forward(out, poly)
	small.Wipe()
	poly.Zero()
	return out
}

// fresh returns a new error in coefficient form.
func (p *party) fresh(label string, index ...uint64) ring.Poly {
	small, poly := p.drawError(label, index...), p.Scheme.Q.NewPoly()
	p.Scheme.Q.FromInt(poly, small)
	small.Wipe()
	return poly
}

// drawError returns the error of this name, which is the same for every call.
func (p *party) drawError(label string, index ...uint64) intpoly.Poly {
	e := make([]int64, p.Scheme.N())
	round.Draw(p.Session, "keygen/error/"+label, p.errors.Sample, e, p.Source.Stream("error "+label, index...))
	small := intpoly.New(len(e), 1)
	intpoly.FromInt64(small, e)
	clear(e)
	return small
}

// share returns this party's polynomial for one slot of the first round, in coefficient form.
func (p *party) share(at slot) ring.Poly {
	q := p.Scheme.Q
	t, x := q.NewNTT(), q.NewPoly()
	index := []uint64{uint64(at.g), uint64(at.digit)}
	var e ring.Poly
	switch at.kind {
	case publicKey: // -a s + e
		q.MulNTT(t, uniform(p.Scheme, p.seed, labelPublic), p.s)
		q.NegNTT(t, t)
		e = p.fresh("public")
	case rotation: // -a s + phi(s) g_j + e
		q.MulNTT(t, uniform(p.Scheme, p.seed, labelRotation, index...), p.s)
		q.NegNTT(t, t)
		rotated := q.NewNTT()
		q.AutomorphismNTT(rotated, p.s, at.g)
		p.Scheme.AddGadget(t, rotated, at.digit)
		rotated.Zero()
		e = p.fresh("rotation", index...)
	case relinH0: // -u a + s g_j + e0
		q.MulNTT(t, uniform(p.Scheme, p.seed, labelRelin, uint64(at.digit)), p.u)
		q.NegNTT(t, t)
		p.Scheme.AddGadget(t, p.s, at.digit)
		e = p.fresh("relin h0", uint64(at.digit))
	case relinH1: // s a + e1
		q.MulNTT(t, uniform(p.Scheme, p.seed, labelRelin, uint64(at.digit)), p.s)
		e = p.fresh("relin h1", uint64(at.digit))
	}
	q.Inverse(x, t)
	q.Add(x, x, e)
	t.Zero()
	e.Zero()
	return x
}

// second returns this party's polynomial of the second round: s H0 + (u-s) H1 + e.
func (p *party) second(h0, h1 ring.NTT, digit int) ring.Poly {
	q := p.Scheme.Q
	t, d, x := q.NewNTT(), q.NewNTT(), q.NewPoly()
	q.MulNTT(t, p.s, h0)
	q.SubNTT(d, p.u, p.s)
	q.MulAddNTT(t, d, h1)
	q.Inverse(x, t)
	e := p.fresh("relin second", uint64(digit))
	q.Add(x, x, e)
	t.Zero()
	d.Zero()
	e.Zero()
	return x
}

// Wipe erases the secrets and errors, and the share of the secret key unless the caller owns it.
func (p *party) Wipe() {
	for _, x := range []ring.NTT{p.s, p.u} {
		if x.C != nil {
			x.Zero()
		}
	}
	clear(p.secret)
	clear(p.ephemeral)
}

// folded adds up the parties' polynomials, slot by slot. It is the sink of their openings.
type folded struct {
	scheme *gbfv.Scheme
	sum    []ring.Poly
	buffer ring.Poly
}

// fold computes this party's polynomials, packs them as the frames of its message and initialises
// the sums with them.
func (p *party) fold(ctx context.Context, n int, make1 func(i int) ring.Poly) (*folded, [][]byte, error) {
	f := &folded{scheme: p.Scheme, sum: make([]ring.Poly, n), buffer: p.Scheme.Q.NewPoly()}
	frames := make([][]byte, n)
	primes := p.Scheme.Q.Primes()
	size := codec.PolySize(p.Scheme.N(), primes)
	err := parallel.Try(ctx, p.Workers, n, func(i int) error {
		f.sum[i] = make1(i)
		frames[i] = codec.AppendPoly(make([]byte, 0, size), f.sum[i].C, primes)
		return nil
	})
	return f, frames, err
}

func (f *folded) Frame(_ context.Context, from round.Party, index int, _ bool, frame []byte) error {
	q := f.scheme.Q
	//lodge:check keygen/passive-decodes [run=@passive] passive key shares that are not canonical
	//  pass
	if err := codec.DecodePoly(f.buffer.C, q.Primes(), frame); err != nil {
		return round.Malformed(from, err)
	}
	q.Add(f.sum[index], f.sum[index], f.buffer)
	return nil
}

// evaluations converts the sums to evaluation form, in place.
func (f *folded) evaluations(workers int) []ring.NTT {
	out := make([]ring.NTT, len(f.sum))
	parallel.For(workers, len(out), func(i int) {
		out[i] = ring.NTT(f.sum[i])
		f.scheme.Q.Forward(out[i], f.sum[i])
	})
	return out
}
