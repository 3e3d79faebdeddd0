package popk

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// prover is one party's side of the argument: witnesses and masks in one list, the U witnesses
// first.
type prover struct {
	scheme *gbfv.Scheme
	sizes  params.Proof
	key    *gbfv.PublicKey
	source *sample.Source
	// message as in Config; nil draws uniformly
	message func(i int, slots, coeffs field.Vec, s *sample.Stream)
	workers int

	shares []field.Vec // messages x_i, not yet doubled
	secret []response  // (mu, r) of the witnesses, followed by those of the masks
}

// samplers are the four Gaussians of a proof.
type samplers struct{ x, y, r, s *sample.Gaussian }

func newSamplers(p params.Proof) (g samplers, err error) {
	for _, c := range []struct {
		at    **sample.Gaussian
		width float64
	}{{&g.x, p.WidthX}, {&g.y, p.WidthY}, {&g.r, p.WidthR}, {&g.s, p.WidthS}} {
		if *c.at, err = sample.NewGaussian(c.width); err != nil {
			return g, err
		}
	}
	return g, nil
}

// sample draws messages, witnesses and masks (Fig. 3, sampling and commitment phases).
func (p *prover) sample(ctx context.Context) error {
	g, err := newSamplers(p.sizes)
	if err != nil {
		return err
	}
	u, total := p.sizes.U, p.sizes.U+p.sizes.V
	p.shares = make([]field.Vec, u)
	p.secret = make([]response, total)
	return parallel.Try(ctx, p.workers, total, func(i int) error {
		s := p.scheme
		mu, r, label, w := g.x, g.r, "witness", response{}
		if i < u {
			w = newWitness(s)
			p.shares[i] = s.Field.NewVec(s.Slots())
		} else {
			mu, r, label, w = g.y, g.s, "mask", newResponse(s.N(), p.sizes) // respond overwrites the mask
		}
		p.secret[i] = w
		stream := p.source.Stream(label, uint64(i))
		if p.sizes.Diag {
			alpha := s.Field.NewVec(1)
			defer alpha.Wipe()
			if err := s.Field.Random(alpha, stream); err != nil {
				return err
			}
			if i < u {
				s.Field.Fill(p.shares[i], alpha.At(0))
			}
			s.RandPackDiag(w.z, alpha.At(0), mu, stream)
		} else {
			coeffs := s.Field.NewVec(s.Slots())
			defer coeffs.Wipe()
			if i < u && p.message != nil {
				p.message(i, p.shares[i], coeffs, stream)
			} else if err := s.Field.Random(coeffs, stream); err != nil { // no packing is needed for a random message
				return err
			} else if i < u {
				s.Pack.Unpack(p.shares[i], coeffs)
			}
			s.RandPack(w.z, coeffs, mu, stream)
		}
		z := make([]int64, s.N())
		defer clear(z)
		for k := range w.t {
			r.Sample(z, stream)
			intpoly.FromInt64(w.t[k], z)
		}
		return nil
	})
}

// encrypt encrypts witnesses and masks and returns the digests of the masks, whose ciphertexts it
// does not keep. It passes the ciphertext of each witness to take, concurrently and in any order.
func (p *prover) encrypt(ctx context.Context, take func(i int, ct *gbfv.Ciphertext)) (masks []byte, err error) {
	u := p.sizes.U
	masks = make([]byte, digestsSize(p.sizes))
	err = parallel.Try(ctx, p.workers, len(p.secret), func(i int) error {
		ct := encryption(p.scheme, p.sizes, p.key, p.secret[i])
		if i < u {
			take(i, ct)
			return nil
		}
		d := maskDigest(p.scheme, ct)
		copy(digestAt(masks, i-u), d[:])
		ct.Free()
		return nil
	})
	return masks, err
}

// respond overwrites the masks with the responses (Fig. 3, response phase).
func (p *prover) respond(ctx context.Context, w sigma.Challenge) ([]response, error) {
	u := p.sizes.U
	masks := p.secret[u:]
	witnesses := make([]intpoly.Poly, u)
	combine := func(pick func(r *response) *intpoly.Poly) error {
		for i := range witnesses {
			witnesses[i] = *pick(&p.secret[i])
		}
		return parallel.Try(ctx, p.workers, len(masks), func(j int) error {
			w.Respond(*pick(&masks[j]), j, witnesses)
			return nil
		})
	}
	if err := combine(func(r *response) *intpoly.Poly { return &r.z }); err != nil {
		return nil, err
	}
	for k := range 3 {
		if err := combine(func(r *response) *intpoly.Poly { return &r.t[k] }); err != nil {
			return nil, err
		}
	}
	for i, x := range p.secret[:u] {
		x.wipe()
		p.secret[i] = response{} // masks has the same array
	}
	p.secret = nil // the masks have become responses
	return masks, nil
}

// doubled returns 2x for every message x and gives up ownership of the messages.
func (p *prover) doubled() []field.Vec {
	shares := p.shares
	p.shares = nil
	for _, x := range shares {
		p.scheme.Field.AddVec(x, x, x)
	}
	return shares
}

// Wipe erases witnesses, masks and messages that doubled has not returned.
func (p *prover) Wipe() {
	for _, x := range p.secret {
		x.wipe()
	}
	for _, x := range p.shares {
		x.Wipe()
	}
	p.secret, p.shares = nil, nil
}
