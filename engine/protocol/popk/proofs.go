package popk

import (
	"context"
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

//lodge:tests cheats TestCheats|TestEvery|TestLong|TestALong|TestBound|TestAnother|TestDisagreement|TestResponses|TestOne|TestReplay|TestVerdict|TestEquivocation|Fuzz

// proofs receives the ciphertexts and responses of all parties and verifies each party's proof
// separately, so that a failed check identifies the cheating party. The challenge is known before
// the first ciphertext arrives. If a party sends many ciphertexts, proofs accumulates their
// combinations as they arrive and does not store them.
type proofs struct {
	Config
	challenge sigma.Challenge
	prover    *prover            // nil if this party does not prove
	own       *ciphertexts       // nil if this party does not prove
	sums      []*gbfv.Ciphertext // of the ciphertexts received so far
	others    []*statement       // by party; nil for this party and for parties that do not prove
	buffer    ring.Poly          // the polynomial being received
	answers   []answer           // a batch of responses that are verified together
	waiting   int                // number of responses in the batch
	blame     *round.Blame
}

// answer is a received response that waits for verification.
type answer struct {
	response
	from       round.Party
	repetition int
	wrong      bool
}

// newProofs returns the state before the first frame, from this party's prover and the statements
// of all parties.
func newProofs(c Config, w sigma.Challenge, p *prover, own *ciphertexts, opened [][]byte) *proofs {
	r := &proofs{
		Config: c, challenge: w, prover: p, own: own, others: make([]*statement, c.Session.Parties), buffer: c.Scheme.Q.NewPoly(),
	}
	for range c.sizes().U {
		r.sums = append(r.sums, c.Scheme.NewCiphertext())
	}
	provers := 0
	for from, b := range opened {
		if from := round.Party(from); from != c.Session.Self && c.proves(from) {
			r.others[from] = newStatement(c.Scheme, w, b)
			provers++
		}
	}
	r.answers = make([]answer, max(1, min(c.Workers, provers*c.sizes().V)))
	for i := range r.answers {
		r.answers[i].response = newResponse(c.Scheme.N(), c.sizes())
	}
	return r
}

func (r *proofs) Wants() []round.Want {
	p := r.sizes()
	poly := int64(codec.PolySize(r.Scheme.N(), r.Scheme.Q.Primes()))
	ciphertexts := round.Want{
		Name: r.ciphertextsName(), MaxFrames: 2 * p.U, MaxBytes: 2 * int64(p.U) * poly, Broadcast: true, Stream: true,
		Keep: round.KeepRound,
	}
	responses := round.Want{
		Name: r.responseName(), MaxFrames: p.V, MaxBytes: int64(p.V) * int64(responseSize(r.Scheme.N(), p)), Broadcast: true, Stream: true,
		Keep: round.KeepRound,
	}
	return append(r.fromProvers(ciphertexts), r.fromProvers(responses)...)
}

func (r *proofs) Frame(ctx context.Context, from round.Party, name string, index int, last bool, frame []byte) error {
	if name == r.responseName() {
		return r.takeResponse(ctx, from, index, last, frame)
	}
	return r.takePoly(ctx, from, index, last, frame)
}

// takePoly receives one polynomial, half a ciphertext, of a party.
func (r *proofs) takePoly(ctx context.Context, from round.Party, index int, last bool, frame []byte) error {
	//lodge:check popk/last-ciphertext [run=@cheats] a prover can send fewer or more ciphertexts
	//  than it promised
	if want := 2 * r.sizes().U; last != (index == want-1) {
		return round.Malformed(from, fmt.Errorf("%d polynomials of ciphertexts, want %d", index+1, want))
	}
	//lodge:check popk/ciphertext-decodes [run=@cheats] ciphertexts that are not canonical pass
	if err := codec.DecodePoly(r.buffer.C, r.Scheme.Q.Primes(), frame); err != nil {
		return round.Malformed(from, err)
	}
	sum := ring.Poly{C: part(r.sums, index)}
	r.Scheme.Q.Add(sum, sum, r.buffer)
	return r.others[from].take(ctx, r.Workers, index, r.buffer)
}

// takeResponse receives a party's response to one repetition. The equations of a batch of responses
// are verified together, on all cores.
func (r *proofs) takeResponse(ctx context.Context, from round.Party, index int, last bool, frame []byte) error {
	p := r.sizes()
	a := &r.answers[r.waiting]
	switch {
	//lodge:check popk/response-after-ciphertexts [run=@cheats] the equation is verified before all
	//  ciphertexts have arrived
	case r.others[from].polys < 2*p.U:
		return round.Malformed(from, errors.New("a response before the ciphertexts"))
	//lodge:check popk/last-response [run=@cheats] some repetitions have no response
	case last != (index == p.V-1):
		return round.Malformed(from, fmt.Errorf("%d repetitions, want %d", index+1, p.V))
	}
	//lodge:check popk/response-decodes [run=@cheats] responses that are not canonical pass
	if err := a.decode(p, frame); err != nil {
		return round.Malformed(from, err)
	}
	//lodge:check popk/bound [run=@cheats] long witnesses pass
	if check := a.fault(p); check != "" && !r.Session.Omits(check) {
		return &round.Blame{Party: from, Check: check, Reason: fmt.Sprintf("response to repetition %d", index)}
	}
	a.from, a.repetition = from, index
	if r.waiting++; r.waiting == len(r.answers) {
		return r.verify(ctx)
	}
	return nil
}

// verify checks the waiting responses. Step reports failures, after the echo check has shown that
// all parties received the same responses.
func (r *proofs) verify(ctx context.Context) error {
	err := parallel.Try(ctx, r.Workers, r.waiting, func(i int) error {
		a := &r.answers[i]
		s := r.others[a.from]
		a.wrong = !opens(r.Scheme, r.sizes(), r.Key, a.response, s.mask(a.repetition), func(mask *gbfv.Ciphertext) { s.subtract(mask, a.repetition) })
		return nil
	})
	for _, a := range r.answers[:r.waiting] {
		//lodge:check popk/equation [run=@cheats] a response for other ciphertexts passes
		if a.wrong && (r.blame == nil || a.from < r.blame.Party) {
			r.blame = &round.Blame{Party: a.from, Check: CheckEquation, Reason: fmt.Sprintf(
				"the response to repetition %d does not open the combination of ciphertexts and mask", a.repetition),
				Charge: &round.Charge{Name: r.responseName(), Index: a.repetition}}
		}
	}
	r.waiting = 0
	return err
}

// Step accepts if all ciphertexts match their commitments and every response opens its mask.
// Otherwise it blames the first cheating party in the order of the roster.
func (r *proofs) Step(ctx context.Context, in round.Inbox) (round.Transition[Result], error) {
	var none round.Transition[Result]
	//lodge:check popk/equation-rest [swap=r.verify(ctx)=>error(nil)] [run=@cheats] responses still
	//  waiting when the last one arrives are not verified
	if err := r.verify(ctx); err != nil {
		return none, err
	}
	for p, s := range r.others {
		from := round.Party(p)
		switch {
		case s == nil:
		//lodge:check popk/commitment [run=@cheats] a party can send other ciphertexts than the
		//  challenge was made for
		case in.Digest(from, r.ciphertextsName()) != s.sum && !r.Session.Omits(round.CheckCommitment):
			return none, &round.Blame{Party: from, Check: round.CheckCommitment, Reason: "the ciphertexts do not match the statement"}
		//lodge:check popk/equation-verdict [run=@cheats] a failed proof is accepted
		case r.blame != nil && r.blame.Party == from && !r.Session.Omits(CheckEquation):
			return none, r.blame
		}
	}
	for _, s := range r.others {
		s.free()
	}
	r.buffer.Free()
	if r.own != nil {
		if err := r.own.addTo(ctx, r.sums, r.Workers); err != nil {
			return none, err
		}
	}
	//lodge:check popk/doubled-ciphertexts [run=TestHonest] the parties use ciphertexts that are not
	//  the ones proved (twice the sum)
	for _, ct := range r.sums {
		r.Scheme.Double(ct, ct)
	}
	return round.Done(Result{Ciphertexts: r.sums, Shares: r.shares()}), nil
}

// shares returns twice this party's messages, or zeros if it does not prove.
func (r *proofs) shares() []field.Vec {
	if r.prover != nil {
		return r.prover.doubled()
	}
	shares := make([]field.Vec, r.sizes().U)
	for i := range shares {
		shares[i] = r.Scheme.Field.NewVec(r.Scheme.Slots())
	}
	return shares
}
