package bgvdecrypt

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// Outside is a recipient that is not in the quorum: it gets the parties' answers as their results, and combines them.
const Outside round.Party = -1

// CheckAgreement fails where a party's message belongs to another run than this party's: other ciphertexts, another
// set, flood or recipient.
const CheckAgreement = "flooding-agreement"

// FloodingConfig is what all parties of a run agree on, and what is this party's own. The parties of the session are
// the quorum.
type FloodingConfig struct {
	Session     round.Session
	Step        string
	Flooding    *Flooding
	Ciphertexts []*bgv.Ciphertext
	// Secret is this party's additive share of the key among the quorum, see Flooding.Secret. The caller keeps it.
	Secret    ring.NTT
	Recipient round.Party // in the quorum, or Outside
	Source    *sample.Source
	Workers   int
}

// Result is what a party has at the end.
type Result struct {
	// Messages are N coefficients for each ciphertext, at the recipient in the quorum; nil elsewhere.
	Messages [][]uint64
	// Answers are this party's for a recipient outside, one for each ciphertext.
	Answers [][]byte
}

// Wipe erases the result.
func (r *Result) Wipe() {
	for _, m := range r.Messages {
		clear(m)
	}
	for _, a := range r.Answers {
		clear(a)
	}
}

// Format shows nothing, whatever the verb.
func (*Result) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

const headerSize = len(round.Digest{})

// flooding is this party's state.
type flooding struct {
	FloodingConfig
	low   []*bgv.Ciphertext // at the level where they are flooded
	head  round.Digest
	seeds []*sample.Source // of shares of zero, by party
	// answers are this party's; at the recipient, what the others' are added to.
	answers []ring.Poly
}

// Wipe erases everything but the share of the key.
func (r *flooding) Wipe() {
	for _, s := range r.seeds {
		if s != nil {
			s.Wipe()
		}
	}
	for _, a := range r.answers {
		a.Zero()
	}
}

func (c *FloodingConfig) name(message string) string { return c.Step + "/" + message }

// StartFlooding begins a run. Whoever starts it must not have started one, with this quorum or another, for a
// ciphertext of the same Key, and have counted it: Distance is for so many answers as the set allows.
//
// The hook STEP/answer of tests gets this party's answers before they are sent ([]ring.Poly).
func StartFlooding(c FloodingConfig) (round.Transition[*Result], error) {
	none := round.Transition[*Result]{}
	if c.Flooding == nil || c.Source == nil || len(c.Ciphertexts) == 0 {
		return none, errors.New("bgvdecrypt: configuration without parameters, source or ciphertexts")
	}
	f := c.Flooding
	switch {
	case c.Session.Parties != f.quorum || len(c.Secret.C) != f.basis.Len():
		return none, fmt.Errorf("%w: a session of %d, a key modulo %d primes", ErrParams, c.Session.Parties, len(c.Secret.C))
	case c.Recipient < Outside || int(c.Recipient) >= c.Session.Parties:
		return none, fmt.Errorf("%w: recipient %d", ErrParams, c.Recipient)
	}
	r := &flooding{FloodingConfig: c, seeds: make([]*sample.Source, c.Session.Parties)}
	for _, ct := range c.Ciphertexts {
		low, err := f.lower(ct)
		if err != nil {
			return none, err
		}
		r.low = append(r.low, low)
	}
	r.head = r.header()
	c.Session.Secrets.Own(r, c.Source)
	var send []round.Message
	for p := range round.Party(c.Session.Parties) {
		if p == c.Session.Self {
			continue
		}
		body := append([]byte(nil), r.head[:]...)
		if c.Session.Self < p {
			seed := make([]byte, sample.SeedSize)
			if _, err := io.ReadFull(c.Source.Stream("seed", uint64(p)), seed); err != nil {
				return none, err
			}
			r.seeds[p] = expander(seed)
			body = append(body, seed...)
			clear(seed)
		}
		send = append(send, round.Message{To: p, Name: c.name("seed"), Body: round.Bytes(body)})
	}
	return round.Next(round.Round[*Result](seeded{r}), send...), nil
}

// header is what the parties of a run must agree on.
func (r *flooding) header() round.Digest {
	f := r.Flooding
	set := f.scheme.Hash()
	fields := [][]byte{
		r.Session.ID[:], []byte(r.Step), set[:], f.bound.Bytes(), round.Uint(uint64(r.Recipient + 1)),
		round.Uint(uint64(r.Session.Parties)),
	}
	for _, c := range r.low {
		//lodge:check bgvdecrypt/ciphertexts [drop=c.C0] parties agree on only one half of each
		//  ciphertext
		for _, p := range []ring.Poly{c.C0, c.C1} {
			d := round.Hash("lodge bgv polynomial", codec.AppendPoly(nil, p.C, f.basis.Primes()))
			fields = append(fields, d[:])
		}
	}
	return round.Hash("lodge bgv flooding", fields...)
}

// of is what the answers for ciphertext k begin with.
func (r *flooding) of(k int) round.Digest {
	return round.Hash("lodge bgv flooded answer", r.head[:], round.Uint(uint64(k)))
}

// seeded waits for the seeds of shares of zero, and for what the others take to be the run.
type seeded struct{ *flooding }

func (r seeded) size(from round.Party) int {
	if from < r.Session.Self {
		return headerSize + sample.SeedSize
	}
	return headerSize
}

func (r seeded) Wants() []round.Want {
	wants := r.Session.Each(round.Want{Name: r.name("seed")})
	for i := range wants {
		wants[i].MaxBytes = int64(r.size(wants[i].From))
	}
	return wants
}

func (r seeded) Step(ctx context.Context, in round.Inbox) (round.Transition[*Result], error) {
	for _, w := range r.Wants() {
		b := in.Bytes(w.From, w.Name)
		//lodge:check bgvdecrypt/seed [swap=len(b) != r.size(w.From)=>len(b) > r.size(w.From)] a
		//  truncated seed is accepted
		if len(b) != r.size(w.From) {
			return round.Transition[*Result]{}, round.Malformed(w.From, errors.New("wrong length"))
		}
		//lodge:check bgvdecrypt/agreement parties answer for different ciphertexts or different
		//  recipients
		if round.Digest(b[:headerSize]) != r.head {
			blame := &round.Blame{Party: w.From, Check: CheckAgreement, Reason: "its message is of another run"}
			return round.Transition[*Result]{}, blame
		}
		if w.From < r.Session.Self {
			r.seeds[w.From] = expander(b[headerSize:])
			clear(b[headerSize:])
		}
	}
	return r.answer(ctx)
}

// answer makes this party's answers, and sends them to the recipient.
func (r *flooding) answer(ctx context.Context) (round.Transition[*Result], error) {
	f := r.Flooding
	r.answers = make([]ring.Poly, len(r.low))
	err := parallel.Try(ctx, r.Workers, len(r.low), func(k int) error {
		stream := r.Source.Stream("flood", uint64(k))
		defer stream.Wipe()
		d, zero := f.share(r.low[k].C1, r.Secret, stream), f.basis.NewPoly()
		defer zero.Zero()
		for p, seed := range r.seeds {
			if seed == nil {
				continue
			}
			//lodge:check bgvdecrypt/zero one answer reveals a key share to a recipient that knows
			//  other shares
			f.zero(zero, seed, k)
			if round.Party(p) < r.Session.Self {
				f.basis.Sub(d, d, zero)
			} else {
				f.basis.Add(d, d, zero)
			}
		}
		r.answers[k] = d
		return nil
	})
	if err != nil {
		return round.Transition[*Result]{}, err
	}
	byzantine.Apply(r.Session.Hooks, r.name("answer"), r.answers)
	if r.Recipient == r.Session.Self {
		return round.Next(round.Round[*Result](&answers{r, f.basis.NewPoly()})), nil
	}
	frames := make([][]byte, len(r.answers))
	for k, a := range r.answers {
		head := r.of(k)
		frames[k] = codec.AppendPoly(append(make([]byte, 0, f.AnswerSize()), head[:]...), a.C, f.basis.Primes())
	}
	r.Wipe()
	if r.Recipient == Outside {
		return round.Done(&Result{Answers: frames}), nil
	}
	last := round.Local(func(context.Context) (round.Transition[*Result], error) { return round.Done(&Result{}), nil })
	body := round.Frames(len(frames), func(k int) ([]byte, error) { return frames[k], nil })
	return round.Next(last, round.Message{To: r.Recipient, Name: r.name("answer"), Body: body}), nil
}

// answers is the round of the recipient in the quorum.
type answers struct {
	*flooding
	part ring.Poly
}

func (r *answers) Wants() []round.Want {
	n := len(r.low)
	return r.Session.Each(round.Want{
		Name: r.name("answer"), MaxFrames: n, MaxBytes: int64(n) * int64(r.Flooding.AnswerSize()), Stream: true,
	})
}

func (r *answers) Frame(_ context.Context, from round.Party, _ string, k int, last bool, frame []byte) error {
	f := r.Flooding
	//lodge:check bgvdecrypt/frame [drop=last != (k == len(r.low)-1)] a ciphertext can lack its
	//  answer
	if last != (k == len(r.low)-1) || len(frame) != f.AnswerSize() {
		return round.Malformed(from, errors.New("an answer of the wrong length"))
	}
	//lodge:check bgvdecrypt/agreement-of-answers answers of another run or another ciphertext are
	//  combined
	if round.Digest(frame[:headerSize]) != r.of(k) {
		return &round.Blame{Party: from, Check: CheckAgreement, Reason: "its answer is of another run"}
	}
	//lodge:check bgvdecrypt/residues an answer has several encodings
	if err := codec.DecodePoly(r.part.C, f.basis.Primes(), frame[headerSize:]); err != nil {
		return round.Malformed(from, err)
	}
	f.basis.Add(r.flooding.answers[k], r.flooding.answers[k], r.part)
	return nil
}

func (r *answers) Step(context.Context, round.Inbox) (round.Transition[*Result], error) {
	f, result := r.Flooding, &Result{}
	for k, c := range r.low {
		sum, message := r.flooding.answers[k], make([]uint64, f.scheme.N())
		f.basis.Add(sum, sum, c.C0)
		f.scheme.Decode(message, c, sum)
		result.Messages = append(result.Messages, message)
	}
	r.part.Zero()
	r.Wipe()
	return round.Done(result), nil
}
