package popk

import (
	"context"
	"fmt"
	"sync"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// Start begins a run.
//
// Hooks of tests: STEP/witness gets *prover after sampling, STEP/statement/commit and .../open the body,
// STEP/responses gets the list of responses.
func Start(c Config) (round.Transition[Result], error) {
	if err := c.check(); err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Next(round.Local(func(ctx context.Context) (round.Transition[Result], error) { return commit(ctx, c) })), nil
}

// commit samples and encrypts, commits to the ciphertexts and masks and opens them.
func commit(ctx context.Context, c Config) (round.Transition[Result], error) {
	sizes := c.sizes()
	p := &prover{scheme: c.Scheme, sizes: sizes, key: c.Key, source: c.Source, message: c.Message, workers: c.Workers}
	c.Session.Secrets.Own(p, c.Source)
	if err := p.sample(ctx); err != nil {
		return round.Transition[Result]{}, err
	}
	byzantine.Apply(c.Session.Hooks, c.Step+"/witness", p)
	own := make([]*gbfv.Ciphertext, sizes.U, sizes.U+sizes.V)
	stream := round.Streamed{Step: c.statementName(), Limit: func(round.Party) round.Limit { return c.statementLimit() }}
	var frames [][]byte
	var next func(w sigma.Challenge, answers []response) round.Round[Result]
	var err error
	if c.separate() {
		frames, err = p.encryptHashed(ctx, func(i int, ct *gbfv.Ciphertext) { own[i] = ct })
		all := newStatements(&c, own)
		stream.Sink = all
		next = func(w sigma.Challenge, _ []response) round.Round[Result] { return newSeparate(all, w, p) }
	} else {
		own = own[:cap(own)]
		frames, err = p.encrypt(ctx, func(i int, ct *gbfv.Ciphertext) { own[i] = ct })
		stream.Sink, stream.Spool = newSums(c.Scheme, own), true
		next = func(w sigma.Challenge, answers []response) round.Round[Result] {
			return &responses{Config: c, challenge: w, statement: own, prover: p, total: answers, buffer: newResponse(c.Scheme.N(), sizes)}
		}
	}
	if err != nil {
		return round.Transition[Result]{}, err
	}
	stream.Body = round.Frames(len(frames), func(i int) ([]byte, error) { return frames[i], nil })
	t, err := round.CommitOpenStream(c.Session, stream, c.Source.Stream("nonce"))
	if err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Then(t, func(ctx context.Context, o round.Opened) (round.Transition[Result], error) {
		return respond(ctx, c, p, o.Agreed, next)
	}), nil
}

// respond answers the challenge; next makes the round that takes the others' answers.
func respond(
	ctx context.Context, c Config, p *prover, opened round.Digest, next func(w sigma.Challenge, own []response) round.Round[Result],
) (round.Transition[Result], error) {
	var none round.Transition[Result]
	w, err := c.challenge(opened)
	if err != nil {
		return none, err
	}
	own, err := p.respond(ctx, w)
	if err != nil {
		return none, err
	}
	byzantine.Apply(c.Session.Hooks, c.Step+"/responses", own)
	frames := make([][]byte, len(own))
	for j := range own {
		if frames[j], err = own[j].encode(p.sizes); err != nil {
			return none, fmt.Errorf("popk: own response: %w", err)
		}
	}
	return round.Next(next(w, own), round.Message{
		To: round.All, Name: c.responseName(),
		Body: round.Frames(len(frames), func(i int) ([]byte, error) { return frames[i], nil }),
	}), nil
}

// responseWant is the message with the responses of one party.
func (c *Config) responseWant() round.Want {
	p := c.sizes()
	return round.Want{
		Name: c.responseName(), MaxFrames: p.V, MaxBytes: int64(p.V) * int64(responseSize(c.Scheme.N(), p)),
		Broadcast: true, Stream: true, Spool: true,
	}
}

// takeResponse decodes a frame of the responses of a party into r, and checks what can be seen of it alone.
func (c *Config) takeResponse(r response, from round.Party, index int, last bool, frame []byte) error {
	p := c.sizes()
	if last != (index == p.V-1) {
		return &round.Blame{Party: from, Check: round.CheckShape, Reason: fmt.Sprintf("%d repetitions, want %d", index+1, p.V)}
	}
	if err := r.decode(p, frame); err != nil {
		return round.Malformed(from, err)
	}
	if check := r.fault(c.Scheme, p); check != "" && !c.Session.Hooks.Skips(check) {
		return &round.Blame{Party: from, Check: check, Reason: fmt.Sprintf("response to repetition %d", index)}
	}
	return nil
}

// result is what a run that passed gives: twice the sums and twice this party's messages.
func (c *Config) result(sums []*gbfv.Ciphertext, p *prover) Result {
	for _, ct := range sums {
		c.Scheme.Double(ct, ct)
	}
	return Result{Ciphertexts: sums, Shares: p.doubled()}
}

// responses takes the responses of all parties, checks each on its own, and the sum.
type responses struct {
	Config
	challenge sigma.Challenge
	statement []*gbfv.Ciphertext // sums over the parties
	prover    *prover
	total     []response // sums over the parties whose frames have come
	buffer    response
}

func (r *responses) Wants() []round.Want { return r.Session.Each(r.responseWant()) }

func (r *responses) Frame(_ context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	if err := r.takeResponse(r.buffer, from, index, last, frame); err != nil {
		return err
	}
	r.total[index].add(r.buffer)
	return nil
}

// Step checks Enc(sum z; sum t) = sum comm_j + sum_i w_ij sum ct_i for every repetition j.
func (r *responses) Step(ctx context.Context, _ round.Inbox) (round.Transition[Result], error) {
	var mu sync.Mutex
	failed := false
	err := parallel.Try(ctx, r.Workers, len(r.total), func(j int) error {
		left, right := encryption(r.Scheme, r.Key, r.total[j].z, r.total[j].t), combined(r.Scheme, r.challenge, r.statement, j)
		if !left.Equal(right) {
			mu.Lock()
			failed = true
			mu.Unlock()
		}
		left.Free()
		right.Free()
		return nil
	})
	if err != nil {
		return round.Transition[Result]{}, err
	}
	if failed && !r.Session.Hooks.Skips(CheckEquation) {
		return blameFrom(r.Config, r.challenge, 0), nil
	}
	u := r.sizes().U
	for _, mask := range r.statement[u:] {
		mask.Free()
	}
	return round.Done(r.result(r.statement[:u:u], r.prover)), nil
}
