package linear

import (
	"crypto/sha256"
	"fmt"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// witness is the secret knowledge of a key's owner, for a proof.
type witness struct{ s, e intpoly.Poly }

// Wipe zeroes both.
func (w *witness) Wipe() {
	w.s.Wipe()
	w.e.Wipe()
}

// prover generates the proof of one list of inputs. Responses overwrite the masks.
type prover struct {
	*Scheme
	key        *witness
	secrets    []ring.NTT        // masks of the secret
	own        [2][]intpoly.Poly // the same in coefficients, and those of the error of the key
	inputs     []intpoly.Poly    // v of each input
	inputMasks [][]intpoly.Poly  // of v, by input and repetition
}

// proveInputs encrypts as encrypt does, with v on the coset of the message, and generates the proof
// of the inputs.
func (k *SecretKey) proveInputs(
	count, workers int, fill func(i int, m []uint64), source *sample.Source,
) (*Inputs, error) {
	//lodge:check linear/proof-once [swap=!k.proves.CompareAndSwap(false, true)=>k.proves.Load()]
	//  one key makes two proofs, whose responses reveal its secret
	if !k.proves.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("%w: a key proves one list of inputs; draw another key", ErrKeys)
	}
	s, key := k.scheme, k.s.Open()
	in := &Inputs{scheme: s, key: k.digest, b: make([]ring.NTT, count)}
	seed := source.Stream("linear input seed")
	_, _ = seed.Read(in.seed[:])
	p := &prover{Scheme: s, key: k.witness.Open(), inputs: make([]intpoly.Poly, count), inputMasks: make([][]intpoly.Poly, count)}
	defer p.wipe()
	p.maskKey(source)
	t := newTranscript(count)
	t.seed = in.seed
	own := k.public
	t.images[0] = s.imagesDigest(func(r int, dst ring.NTT) { s.image(dst, own.a[0], p.secrets[r], p.own[1][r], false) })
	parallel.For(workers, count, func(i int) {
		m := make([]uint64, s.N())
		fill(i, m)
		p.inputs[i] = s.coset(m, s.witnesses, source.Stream("linear input error", uint64(i)))
		clear(m)
		a := s.expand(&in.seed, "linear input", uint64(i))
		in.b[i] = s.basis.NewNTT()
		s.image(in.b[i], a, key.NTT, p.inputs[i], true)
		t.ciphertexts[i] = sha256.Sum256(codec.AppendPoly(nil, in.b[i].C, s.Q))
		p.maskInput(i, source)
		t.images[1+i] = s.imagesDigest(func(r int, dst ring.NTT) { s.image(dst, a, p.secrets[r], p.inputMasks[i][r], true) })
		a.Free()
	})
	challenge := t.digest(own)
	return in, p.respond(in, challenge, workers)
}

// maskKey draws the masks of the secret and of the error of the key.
func (p *prover) maskKey(source *sample.Source) {
	y := make([]int64, p.N())
	defer clear(y)
	for j, label := range []string{"linear mask secret", "linear mask key"} {
		for r := range p.repetitions() {
			stream := source.Stream(label, uint64(r))
			p.masks.Sample(y, stream)
			stream.Wipe()
			x := intpoly.New(p.N(), 1)
			intpoly.FromInt64(x, y)
			p.own[j] = append(p.own[j], x)
			if j == 0 {
				p.secrets = append(p.secrets, p.transform(x))
			}
		}
	}
}

// maskInput draws the masks for v of an input, with uniform messages.
func (p *prover) maskInput(i int, source *sample.Source) {
	m := make([]uint64, p.N())
	defer clear(m)
	for r := range p.repetitions() {
		messages := source.Stream("linear mask message", uint64(i), uint64(r))
		//lodge:check linear/proof-messages responses reveal messages
		sample.Uniform(m, p.T, messages)
		messages.Wipe()
		p.inputMasks[i] = append(p.inputMasks[i], p.coset(m, p.masks, source.Stream("linear mask input", uint64(i), uint64(r))))
	}
}

// coset draws v that is m modulo T, with v/T Gaussian: v = T k - c for c = -m modulo T and k with
// the centre c/T.
func (s *Scheme) coset(m []uint64, g *sample.Gaussian, stream *sample.Stream) intpoly.Poly {
	defer stream.Wipe()
	n, mod := s.N(), s.plaintext()
	centres, k := make([]sample.Frac, n), make([]int64, n)
	for i, x := range m {
		//lodge:check linear/proof-coset [as=centres[i], _ = sample.Frac{}, x] the errors of
		//  a response depend on the message
		centres[i] = s.fraction(mod.Neg(x))
	}
	g.SampleAt(k, centres, stream)
	v := intpoly.New(n, 1)
	for i, x := range m {
		v.C[i] = uint64(k[i])*s.T - mod.Neg(x)
	}
	clear(centres)
	clear(k)
	return v
}

// fraction returns c/T in units of 2^-128, rounded down with an error of less than two units: c
// floor(2^192/T)/2^192.
func (s *Scheme) fraction(c uint64) sample.Frac {
	h0, _ := bits.Mul64(c, s.inverse[0])
	h1, l1 := bits.Mul64(c, s.inverse[1])
	_, l2 := bits.Mul64(c, s.inverse[2])
	lo, carry := bits.Add64(l1, h0, 0)
	hi, _ := bits.Add64(l2, h1, carry)
	return sample.Frac{Hi: hi, Lo: lo}
}

// respond turns masks into responses and packs them.
func (p *prover) respond(in *Inputs, challenge [sha256.Size]byte, workers int) error {
	c := p.monomials(challenge)
	in.sent = make([][]byte, p.ProofFrames(len(in.b)))
	errs := make([]error, len(in.sent))
	frame := func(i int, masks []intpoly.Poly, x intpoly.Poly, width int, head []byte) {
		in.sent[i], errs[i] = p.pack(head, c, masks, x, width)
	}
	frame(0, p.own[0], p.key.s, proofBits, append(make([]byte, 0, p.ProofFrameSize(0)), challenge[:]...))
	frame(1, p.own[1], p.key.e, proofBits, nil)
	parallel.For(workers, len(in.b), func(i int) { frame(2+i, p.inputMasks[i], p.inputs[i], p.inputBits(), nil) })
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("linear: the response is too long; encrypt again with a new key: %w", err)
		}
	}
	return nil
}

func (p *prover) pack(dst []byte, c sigma.Challenge, masks []intpoly.Poly, x intpoly.Poly, width int) (_ []byte, err error) {
	for r, y := range masks {
		c.Respond(y, r, []intpoly.Poly{x})
		if dst, err = codec.AppendSigned(dst, y, width); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// wipe erases masks and messages. Masks that became responses are public.
func (p *prover) wipe() {
	for _, y := range p.secrets {
		y.Zero()
	}
	for _, list := range append(p.inputMasks, p.own[0], p.own[1], p.inputs) {
		for _, y := range list {
			y.Wipe()
		}
	}
}
