package keygen

import (
	"context"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// prover is one party's side of the proof.
type prover struct {
	*party
	*statement
	gauss *sample.Gaussian
	masks []pair // of s and u, by repetition
	u     []intpoly.Poly
	own   []ring.Poly // shares by equation; without limbs if opened
	// sent are the frames of the proofs. They hold the shares, and the masks until responses
	// replace them.
	sent     [][]byte
	answered bool // whether responses have replaced all masks
}

func newProver(p *party, st *statement) (*prover, error) {
	gauss, err := sample.NewGaussian(st.proof.MaskWidth)
	if err != nil {
		return nil, err
	}
	x := &prover{party: p, statement: st, gauss: gauss}
	for v := range st.proof.V {
		s, u := intpoly.New(st.Scheme.N(), 1), intpoly.New(st.Scheme.N(), 1)
		x.mask(s, "secret", uint64(v))
		x.mask(u, "relinearisation secret", uint64(v))
		x.masks, x.u = append(x.masks, st.newPair(s, u)), append(x.u, u)
	}
	round.Own(p.Session, "keygen/prover", x)
	return x, nil
}

// mask samples the mask of this name.
func (p *prover) mask(dst intpoly.Poly, name string, index ...uint64) {
	y := make([]int64, dst.N())
	stream := p.party.Source.Stream("mask "+name, index...)
	round.Draw(p.party.Session, "keygen/mask/"+name, p.gauss.Sample, y, stream)
	stream.Wipe()
	intpoly.FromInt64(dst, y)
	clear(y)
}

// commit computes the shares and the relations of the masks, and returns the digests of both.
func (p *prover) commit(ctx context.Context) ([]byte, error) {
	st := p.statement
	p.own, p.sent = make([]ring.Poly, len(st.equations)), make([][]byte, st.frames())
	digests := make([][]byte, len(st.equations))
	err := parallel.Try(ctx, st.Workers, len(st.equations), func(i int) error {
		at := st.equations[i]
		frame := make([]byte, 0, st.frameSize(at))
		if !at.opened() {
			p.own[i] = p.share(at)
			frame = codec.AppendPoly(frame, p.own[i].C, st.Scheme.Q.Primes())
			d := shareDigest(frame)
			digests[i] = append(digests[i], d[:]...)
		}
		d, frame, err := p.maskErrors(at, frame)
		p.sent[st.proof.V+i] = frame
		digests[i] = append(digests[i], d[:]...)
		return err
	})
	return slices.Concat(digests...), err
}

// share returns this party's polynomial of any slot.
func (p *prover) share(at slot) ring.Poly {
	if at.kind == relinSecond {
		return p.party.shown(at, p.party.second(p.h0[at.digit], p.h1[at.digit], at.digit))
	}
	return p.party.shown(at, p.party.share(at))
}

// maskErrors appends the masks of the error of an equation to its frame, and returns the digest of
// their relations.
func (p *prover) maskErrors(at slot, frame []byte) (round.Digest, []byte, error) {
	images, q := make([]round.Digest, p.proof.V), p.party.Scheme.Q
	label, index := at.name()
	r, x, y := p.relation(at), q.Borrow(), intpoly.New(q.N(), 1)
	defer func() {
		y.Wipe()
		x.Zero()
		x.Free()
		r.free()
	}()
	for v := range images {
		p.mask(y, label, append(slices.Clone(index), uint64(v))...)
		r.apply(x, p.masks[v], y)
		images[v] = p.imageDigest(x)
		var err error
		if frame, err = p.append(frame, y); err != nil {
			return round.Digest{}, frame, err
		}
	}
	return masksDigest(images), frame, nil
}

// respond turns masks into responses by adding challenge times secret, for s and u in each
// repetition and for the error in each equation.
func (p *prover) respond(ctx context.Context, w sigma.Challenge) error {
	st := p.statement
	s, u := intpoly.New(len(p.secret), 1), intpoly.New(len(p.secret), 1)
	intpoly.FromInt64(s, p.secret)
	intpoly.FromInt64(u, p.ephemeral)
	defer s.Wipe()
	defer u.Wipe()
	for v := range st.proof.V {
		frame := make([]byte, 0, st.headSize())
		for _, c := range []struct{ mask, secret intpoly.Poly }{{p.masks[v].small, s}, {p.u[v], u}} {
			var err error
			w.Respond(c.mask, v, []intpoly.Poly{c.secret})
			if frame, err = p.append(frame, c.mask); err != nil {
				return err
			}
		}
		p.sent[v] = frame
	}
	err := parallel.Try(ctx, st.Workers, len(st.equations), func(i int) error { return p.answer(w, i) })
	p.answered = err == nil
	return err
}

// answer replaces the masks in the frame of an equation by responses.
func (p *prover) answer(w sigma.Challenge, i int) error {
	st := p.statement
	at, size := st.equations[i], st.responseSize()
	label, index := at.name()
	e, z := p.drawError(label, index...), intpoly.New(st.Scheme.N(), 1)
	defer e.Wipe()
	frame := p.sent[st.proof.V+i]
	for v := range st.proof.V {
		start := st.shareSize(at) + v*size
		if err := codec.DecodeSigned(z, st.proof.Bits, frame[start:start+size]); err != nil {
			return err
		}
		w.Respond(z, v, []intpoly.Poly{e})
		if _, err := p.append(frame[:start], z); err != nil {
			return err
		}
	}
	return nil
}

// append appends a mask or a response to a frame.
func (p *prover) append(frame []byte, z intpoly.Poly) ([]byte, error) {
	frame, err := codec.AppendSigned(frame, z, p.proof.Bits)
	if err != nil {
		return frame, fmt.Errorf("keygen: own response: %w", err)
	}
	return frame, nil
}

// Wipe erases the masks. Masks that have become responses are public.
func (p *prover) Wipe() {
	for i, x := range p.masks {
		x.s.Zero()
		x.u.Zero()
		x.small.Wipe()
		p.u[i].Wipe()
	}
	if !p.answered {
		for _, frame := range p.sent {
			clear(frame)
		}
	}
}
