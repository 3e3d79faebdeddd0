package popk

import (
	"context"
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// Judge verifies the messages of one party of a run for a third party that did not take part. It
// knows the values to which the party was bound: the session, the step, the instance and the key.
type Judge struct {
	c       Config
	culprit round.Party
}

// NewJudge returns a Judge for one party of a run. It uses the shared values of the configuration,
// the ID and number of parties of the session, and the workers.
func NewJudge(c Config, culprit round.Party) (*Judge, error) {
	switch {
	case c.Scheme == nil || c.Instance == nil:
		return nil, errors.New("popk: a judge without scheme or instance")
	//lodge:check popk/judge/prover [drop=!c.proves(culprit)] [run=TestJudge] a judge convicts a
	//  party that does not prove
	//lodge:check popk/judge/party [drop=culprit < 0] [drop=int(culprit) >= c.Session.Parties]
	//  [run=TestJudge] a judge accepts an index outside the session
	case culprit < 0 || int(culprit) >= c.Session.Parties || !c.proves(culprit):
		return nil, errors.New("popk: a judge of a party that does not prove")
	}
	//lodge:check popk/judge/serves [swap=c.Scheme.Serves(c.Instance, c.Session.Parties)=>nil]
	//  [run=TestJudge] a judge uses parameters for another number of parties
	return &Judge{c, culprit}, c.Scheme.Serves(c.Instance, c.Session.Parties)
}

// Statement returns the name of the step that commits to and opens statements.
func (j *Judge) Statement() string { return j.c.statementName() }

// Ciphertexts returns the message name of the ciphertexts, which follow the openings.
func (j *Judge) Ciphertexts() string { return j.c.ciphertextsName() }

// Response returns the message name of the responses, which follow the openings.
func (j *Judge) Response() string { return j.c.responseName() }

// StatementSize returns the length in bytes of a statement with its nonce.
func (j *Judge) StatementSize() int { return round.NonceSize + statementSize(j.c.sizes()) }

// Bound returns the check that a response frame fails without further data: CheckBound or "".
func (j *Judge) Bound(frame []byte) (check string, err error) {
	r := newResponse(j.c.Scheme.N(), j.c.sizes())
	//lodge:check popk/judge/bound-decodes [run=TestJudge] a judge applies the bound to responses
	//  that are not canonical
	if err := r.decode(j.c.sizes(), frame); err != nil {
		return "", err
	}
	return r.fault(j.c.sizes()), nil
}

// Promised returns the digest of the ciphertext message to which the statement commits. The
// argument opening is the message that opened the statement.
func (j *Judge) Promised(opening []byte) (sum round.Digest, err error) {
	//lodge:check popk/judge/promise [run=TestJudge] a judge accepts a statement of the wrong length
	//  as a promise
	if len(opening) != j.StatementSize() {
		return sum, errLength
	}
	copy(sum[:], opening[round.NonceSize:])
	return sum, nil
}

var errLength = errors.New("popk: a statement has the wrong length")

// Equation verifies the equation of one party's proof.
type Equation struct {
	j      *Judge
	st     *statement
	buffer ring.Poly
}

// Equation begins the verification. The argument opened is the agreed digest of all parties'
// openings, and opening is the accused party's. The caller then passes all frames of the
// ciphertexts to Take, in order.
func (j *Judge) Equation(opened round.Digest, opening []byte) (*Equation, error) {
	//lodge:check popk/judge/statement [run=TestJudge] a judge accepts a statement of the wrong
	//  length
	if len(opening) != j.StatementSize() {
		return nil, errLength
	}
	//lodge:check popk/judge/key [run=TestJudge] a judge verifies an equation without a public key
	if j.c.Key == nil {
		return nil, errors.New("popk: a judge without a key")
	}
	w, err := j.c.challenge(opened)
	if err != nil {
		return nil, err
	}
	return &Equation{j, newStatement(j.c.Scheme, w, opening[round.NonceSize:]), j.c.Scheme.Q.NewPoly()}, nil
}

// Take adds the next frame of the ciphertexts. It returns an error after the last frame, because
// the accused party may have signed more frames than the protocol has.
func (e *Equation) Take(ctx context.Context, frame []byte) error {
	//lodge:check popk/judge/more-ciphertexts [run=TestJudge] too many ciphertexts crash the judge
	if most := 2 * e.j.c.sizes().U; e.st.polys >= most {
		return fmt.Errorf("popk: more than %d polynomials of ciphertexts", most)
	}
	//lodge:check popk/judge/ciphertext-decodes [run=TestJudge] a judge accepts ciphertexts that are
	//  not canonical
	if err := codec.DecodePoly(e.buffer.C, e.j.c.Scheme.Q.Primes(), frame); err != nil {
		return err
	}
	return e.st.take(ctx, e.j.c.Workers, e.st.polys, e.buffer)
}

// Holds reports whether the response to a repetition opens its mask. All ciphertexts must have been
// taken before.
func (e *Equation) Holds(repetition int, frame []byte) (bool, error) {
	p := e.j.c.sizes()
	//lodge:check popk/judge/all-ciphertexts [drop=e.st.polys != 2*p.U] [run=TestJudge] a judge
	//  verifies a proof with ciphertexts missing
	//lodge:check popk/judge/repetition [drop=repetition < 0] [drop=repetition >= p.V]
	//  [run=TestJudge] a judge verifies a response to a repetition that does not exist
	if e.st.polys != 2*p.U || repetition < 0 || repetition >= p.V {
		return false, fmt.Errorf("popk: repetition %d after %d polynomials", repetition, e.st.polys)
	}
	r := newResponse(e.j.c.Scheme.N(), p)
	//lodge:check popk/judge/response-decodes [run=TestJudge] a judge verifies responses that are
	//  not canonical
	if err := r.decode(p, frame); err != nil {
		return false, err
	}
	//lodge:check popk/judge/own-mask [swap=e.st.mask(repetition)=>e.st.mask(0)] [run=TestJudge] a
	//  judge uses the mask of another repetition
	return opens(e.j.c.Scheme, p, e.j.c.Key, r, e.st.mask(repetition), func(mask *gbfv.Ciphertext) { e.st.subtract(mask, repetition) }), nil
}

// Free releases the memory.
func (e *Equation) Free() {
	e.st.free()
	e.buffer.Free()
}

// Shapes returns the shapes of the party's broadcasts in this run.
func (j *Judge) Shapes() map[string]round.Shape {
	p, n, primes := j.c.sizes(), j.c.Scheme.N(), j.c.Scheme.Q.Primes()
	room := j.c.Scheme.Q.NewPoly()
	return map[string]round.Shape{
		round.CommitName(j.Statement()): round.Bare(len(round.Digest{})),
		round.OpenName(j.Statement()):   round.Bare(j.StatementSize()),
		j.Ciphertexts():                 {Frames: 2 * p.U, Check: func(_ int, frame []byte) error { return codec.DecodePoly(room.C, primes, frame) }},
		j.Response(): {Frames: p.V, Check: func(_ int, frame []byte) error {
			r := newResponse(n, p)
			return r.decode(p, frame)
		}},
	}
}

// Silent returns the shapes of the broadcasts of a party that does not prove in this step.
func Silent(step string) map[string]round.Shape {
	c := Config{Step: step}
	return map[string]round.Shape{
		round.CommitName(c.statementName()): round.Bare(len(round.Digest{})),
		round.OpenName(c.statementName()):   round.Bare(round.NonceSize),
	}
}
