package bgvdecrypt

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// Outside denotes a recipient that is not in the quorum: it receives the parties' answers as their
// results and combines them.
const Outside round.Party = -1

// CheckAgreement fails if another party's message belongs to a different run: with other
// ciphertexts, or another set, flood or recipient.
const CheckAgreement = "flooding-agreement"

// FloodingConfig holds the values that all parties of a run agree on, and the party's own values.
// The parties of the session are the quorum.
type FloodingConfig struct {
	Session     round.Session
	Step        string
	Flooding    *Flooding
	Ciphertexts []*bgv.Ciphertext
	// Secret is this party's additive share of the key among the quorum, see Flooding.Secret. The
	// caller keeps ownership.
	Secret    ring.NTT
	Recipient round.Party // a party of the quorum, or Outside
	Source    *sample.Source
	Workers   int
}

// Result is the output of a party.
type Result struct {
	// Messages has N coefficients for each ciphertext if this party is the recipient, and is nil
	// otherwise.
	Messages [][]uint64
	// Answers are this party's answers for a recipient outside the quorum, one for each ciphertext.
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

// Format prints a placeholder, whatever the verb, so that a log cannot reveal the result.
func (*Result) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

const headerSize = len(round.Digest{})

// flooding is the state of one party.
type flooding struct {
	FloodingConfig
	low   []*bgv.Ciphertext // at the level where they are flooded
	head  round.Digest
	seeds []*sample.Source // of shares of zero, by party
	// answers are this party's answers. The recipient adds the other parties' answers to its own.
	answers []ring.Poly
}

// Wipe erases everything except the share of the key.
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

// StartFlooding begins a run. Before, the caller must have counted each ciphertext, and must make
// sure that no run, with this quorum or another, was ever started for a ciphertext with the same
// Key: Distance holds only for the number of answers that the set permits.
//
// The test hook STEP/answer receives this party's answers before they are sent ([]ring.Poly).
func StartFlooding(c FloodingConfig) (round.Transition[*Result], error) {
	none := round.Transition[*Result]{}
	if c.Flooding == nil || c.Source == nil || len(c.Ciphertexts) == 0 {
		return none, errors.New("bgvdecrypt: configuration without parameters, source or ciphertexts")
	}
	f := c.Flooding
	switch {
	case c.Session.Parties != f.quorum || len(c.Secret.C) != f.basis.Len():
		return none, fmt.Errorf("%w: the session has %d parties, the key %d primes", ErrParams, c.Session.Parties, len(c.Secret.C))
	case c.Recipient < Outside || int(c.Recipient) >= c.Session.Parties:
		return none, fmt.Errorf("%w: recipient %d is not a party of the quorum", ErrParams, c.Recipient)
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

// header returns a digest of the values on which the parties of a run must agree.
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

// of returns the prefix of the answers for ciphertext k.
func (r *flooding) of(k int) round.Digest {
	return round.Hash("lodge bgv flooded answer", r.head[:], round.Uint(uint64(k)))
}

// seeded is the round in which the seeds of shares of zero arrive, with each party's header.
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
			blame := &round.Blame{Party: w.From, Check: CheckAgreement, Reason: "its message belongs to another run (other ciphertexts, set, flood or recipient)"}
			return round.Transition[*Result]{}, blame
		}
		if w.From < r.Session.Self {
			r.seeds[w.From] = expander(b[headerSize:])
			clear(b[headerSize:])
		}
	}
	return r.answer(ctx)
}

// answer computes this party's answers and sends them to the recipient.
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
	return round.Next(last, round.Message{To: r.Recipient, Name: r.name("answer"), Body: round.FrameList(frames)}), nil
}

// answers is the round in which a recipient in the quorum receives the answers.
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
		return round.Malformed(from, errors.New("an answer has the wrong length"))
	}
	//lodge:check bgvdecrypt/agreement-of-answers answers of another run or another ciphertext are
	//  combined
	if round.Digest(frame[:headerSize]) != r.of(k) {
		return &round.Blame{Party: from, Check: CheckAgreement, Reason: "its answer belongs to another run"}
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
