// Package ddec implements distributed decryption (MatriGear, Fig. 6) to additive shares and, for
// clients, to the client. Differences from the figure:
//
//   - Ciphertexts are switched to a small modulus q' first, which divides the traffic.
//   - The flooding is uniform in [-E, E] for the largest E that leaves decoding correct, and at least
//     2^lambda times the bound on the phase error. The figure uses a relative noise, which does not bound
//     coefficients, and omits the number of parties.
//   - The combiner rotates with the index of the ciphertext.
//   - All parties must compare hashes of the ciphertexts before Start: decrypting a ciphertext that the
//     parties did not all compute is an oracle for the key.
//
// A corrupted message adds an error that its sender knows to one vector of shares; the MAC check
// that follows detects it. Each ciphertext is decrypted only once: decrypting it again spends as
// much statistical distance as decrypting another ciphertext.
package ddec

import (
	"context"
	"errors"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Config is the configuration of a run: values on which all parties agree, and this party's
// secrets.
type Config struct {
	Session  round.Session
	Step     string
	Scheme   *gbfv.Scheme
	Instance *params.Instance
	// Ciphertexts are on the basis Prefix(Instance.DDecPrimes), the same at all parties.
	Ciphertexts []*gbfv.Ciphertext
	Secret      ring.NTT // this party's share of the secret key
	Source      *sample.Source
	Workers     int
}

// Shares are this party's additive shares of the messages, D slots for each ciphertext.
type Shares []field.Vec

// Wipe erases the shares.
func (s Shares) Wipe() {
	for _, v := range s {
		v.Wipe()
	}
}

func (c *Config) name() string { return c.Step + "/share" }

func (c *Config) basis() *ring.Basis { return c.Scheme.Prefix(c.Instance.DDecPrimes) }

// combined lists the ciphertexts that party p combines: those whose index is p modulo the number of
// parties.
func (c *Config) combined(p round.Party) []int {
	var list []int
	for k := int(p); k < len(c.Ciphertexts); k += c.Session.Parties {
		list = append(list, k)
	}
	return list
}

// message returns this party's share of the decryption of one ciphertext: c1 s_l + e plus the
// encoded mask.
func message(s *gbfv.Scheme, i *params.Instance, c1 ring.Poly, secret ring.NTT, mask field.Vec, flood *sample.Stream) ring.Poly {
	k := i.DDecPrimes
	e := intpoly.New(s.N(), (i.FloodBound.BitLen()+1+64)/64)
	//lodge:check ddec/flooding [run=TestMasks|TestAnswers|TestSharesOf] a decryption share reveals
	//  the key
	sample.Flood(e, i.FloodBound, flood)
	d := s.Prefix(k).Borrow()
	s.DecryptionShare(d, c1, secret, e, mask, k)
	e.Wipe()
	return d
}

// Start begins a run. The hook STEP/share receives this party's messages before they are sent
// ([]ring.Poly).
func Start(c Config) (round.Transition[Shares], error) {
	if c.Scheme == nil || c.Instance == nil || c.Source == nil || len(c.Ciphertexts) == 0 {
		return round.Transition[Shares]{}, errors.New("ddec: configuration without scheme, instance, source or ciphertexts")
	}
	//lodge:check ddec/serves [run=TestStartRefuses] the flooding is that of another scheme or
	//  another number of parties
	if err := c.Scheme.Serves(c.Instance, c.Session.Parties); err != nil {
		return round.Transition[Shares]{}, err
	}
	return round.Next(round.Local(func(ctx context.Context) (round.Transition[Shares], error) { return share(ctx, c) })), nil
}

// share computes this party's messages and sends each to the combiner of its ciphertext.
func share(ctx context.Context, c Config) (round.Transition[Shares], error) {
	s := c.Scheme
	r := &combine{Config: c, shares: make(Shares, len(c.Ciphertexts)), sum: make([]ring.Poly, len(c.Ciphertexts)), buffer: c.basis().NewPoly()}
	c.Session.Secrets.Own(r, c.Source)
	messages := make([]ring.Poly, len(c.Ciphertexts))
	err := parallel.Try(ctx, c.Workers, len(messages), func(k int) error {
		mask, slots := s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots())
		defer mask.Wipe()
		if err := s.Field.Random(mask, c.Source.Stream("mask", uint64(k))); err != nil {
			return err
		}
		s.Pack.Unpack(slots, mask)
		s.Field.NegVec(slots, slots)
		r.shares[k] = slots
		messages[k] = message(s, c.Instance, c.Ciphertexts[k].C1, c.Secret, mask, c.Source.Stream("flood", uint64(k)))
		return nil
	})
	if err != nil {
		for _, m := range messages {
			m.Zero()
		}
		return round.Transition[Shares]{}, err
	}
	primes := c.basis().Primes()
	size := codec.PolySize(s.N(), primes)
	var send []round.Message
	for p := range round.Party(c.Session.Parties) {
		mine := c.combined(p)
		if p == c.Session.Self {
			for _, k := range mine {
				r.sum[k] = messages[k]
			}
			continue
		}
		if len(mine) == 0 {
			continue
		}
		body := round.EncodedFrames(messages, func(messages []ring.Poly) ([][]byte, error) {
			frames := make([][]byte, len(mine))
			parallel.For(c.Workers, len(mine), func(i int) {
				m := messages[mine[i]]
				frames[i] = codec.AppendPoly(make([]byte, 0, size), m.C, primes)
				m.Zero()
				m.Free()
			})
			return frames, nil
		})
		send = append(send, round.Message{To: p, Name: c.name(), Body: body})
	}
	return round.Next(round.Round[Shares](r), send...), nil
}

// combine is the combiner's round.
type combine struct {
	Config
	shares Shares
	sum    []ring.Poly // by ciphertext; set for the ciphertexts that this party combines
	buffer ring.Poly
}

func (r *combine) Wants() []round.Want {
	mine := len(r.combined(r.Session.Self))
	if mine == 0 {
		return nil
	}
	size := codec.PolySize(r.Scheme.N(), r.basis().Primes())
	return r.Session.Each(round.Want{Name: r.name(), MaxFrames: mine, MaxBytes: int64(mine) * int64(size), Stream: true})
}

func (r *combine) Frame(_ context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	mine := r.combined(r.Session.Self)
	//lodge:check ddec/number-of-shares [swap=last != (index == len(mine)-1)=>len(mine) < 0]
	//  [run=TestMalformed|TestSharesOf] a ciphertext can lack the share of a party
	if last != (index == len(mine)-1) {
		return &round.Blame{Party: from, Check: round.CheckShape, Reason: "wrong number of decryption shares"}
	}
	//lodge:check ddec/share-decodes [run=TestMalformed|FuzzShare] decryption shares that are not
	//  canonical pass
	if err := codec.DecodePoly(r.buffer.C, r.basis().Primes(), frame); err != nil {
		return round.Malformed(from, err)
	}
	sum := r.sum[mine[index]]
	r.basis().Add(sum, sum, r.buffer)
	return nil
}

func (r *combine) Step(ctx context.Context, _ round.Inbox) (round.Transition[Shares], error) {
	s := r.Scheme
	mine := r.combined(r.Session.Self)
	err := parallel.Try(ctx, r.Workers, len(mine), func(i int) error {
		k := mine[i]
		slots := s.Field.NewVec(s.Slots())
		decode(s, r.Instance, slots, r.Ciphertexts[k].C0, r.sum[k])
		s.Field.AddVec(r.shares[k], r.shares[k], slots)
		slots.Wipe()
		r.sum[k].Zero()
		r.sum[k].Free()
		r.sum[k] = ring.Poly{}
		return nil
	})
	if err != nil {
		return round.Transition[Shares]{}, err
	}
	shares := r.shares
	r.shares = nil // the caller owns them now
	return round.Done(shares), nil
}

// Wipe erases the shares, unless the caller owns them, and the sums that decrypt to the combined
// messages.
func (r *combine) Wipe() {
	r.shares.Wipe()
	for _, p := range r.sum {
		if p.C != nil {
			p.Zero()
		}
	}
}

// decode sets slots to the message of c0 + sum, where sum holds the parties' messages and is
// overwritten.
func decode(s *gbfv.Scheme, i *params.Instance, slots field.Vec, c0, sum ring.Poly) {
	s.Prefix(i.DDecPrimes).Add(sum, sum, c0)
	coeffs := s.Field.NewVec(s.Slots())
	s.Decode(coeffs, sum, i.DDecPrimes)
	s.Pack.Unpack(slots, coeffs)
	coeffs.Wipe()
}
