package popk

import (
	"context"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Start begins a run.
//
// Hooks of tests: STEP/witness receives the *prover after sampling, STEP/encrypted the ciphertexts
// before the commitment ([]*gbfv.Ciphertext), STEP/statement/commit and .../open the statement,
// STEP/ciphertexts the body that is sent, and STEP/response the list of responses.
func Start(c Config) (round.Transition[Result], error) {
	if err := c.check(); err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Next(round.Local(func(ctx context.Context) (round.Transition[Result], error) { return commit(ctx, c) })), nil
}

// commit samples, encrypts, and commits to the digests of the ciphertexts and masks. A party that
// does not prove commits only to a nonce.
func commit(ctx context.Context, c Config) (round.Transition[Result], error) {
	var p *prover
	var own *ciphertexts
	var statement []byte
	c.Session.Secrets.Own(c.Source)
	if c.proves(c.Session.Self) {
		var err error
		if p, own, statement, err = prepare(ctx, c); err != nil {
			return round.Transition[Result]{}, err
		}
	}
	t, err := round.CommitOpenSizes(c.Session, c.statementName(), c.Source.Stream("nonce"), statement, func(from round.Party) int {
		if !c.proves(from) {
			return 0
		}
		return statementSize(c.sizes())
	})
	if err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Then(t, func(ctx context.Context, o round.Opened) (round.Transition[Result], error) {
		return respond(ctx, c, p, own, o)
	}), nil
}

// prepare samples, encrypts and returns the statement.
func prepare(ctx context.Context, c Config) (p *prover, all *ciphertexts, statement []byte, err error) {
	p = &prover{scheme: c.Scheme, sizes: c.sizes(), key: c.Key, source: c.Source, message: c.Message, workers: c.Workers}
	if err = p.sample(ctx); err != nil {
		p.Wipe()
		return nil, nil, nil, err
	}
	round.Own(c.Session, c.Step+"/witness", p)
	own := make([]*gbfv.Ciphertext, p.sizes.U)
	masks, err := p.encrypt(ctx, func(i int, ct *gbfv.Ciphertext) { own[i] = ct })
	if err != nil {
		return nil, nil, nil, err
	}
	all = newCiphertexts(c.Scheme, own)
	all.sum = round.Bind(c.Session, c.Step+"/encrypted", own, func([]*gbfv.Ciphertext) round.Digest {
		return all.digest(c.ciphertextsName())
	})
	return p, all, append(all.sum[:], masks...), nil
}

// respond derives the challenge from the statements of all parties, and sends the ciphertexts and
// the responses.
func respond(ctx context.Context, c Config, p *prover, own *ciphertexts, opened round.Opened) (round.Transition[Result], error) {
	var none round.Transition[Result]
	w, err := c.challenge(opened.Agreed)
	if err != nil {
		return none, err
	}
	if p == nil {
		return round.Next(round.Round[Result](newProofs(c, w, nil, nil, opened.Payloads))), nil
	}
	answers, err := p.respond(ctx, w)
	if err != nil {
		return none, err
	}
	return round.Next(round.Round[Result](newProofs(c, w, p, own, opened.Payloads)),
		round.Message{To: round.All, Name: c.ciphertextsName(), Body: round.Digested(c.ciphertextsName(), own, own.sum)},
		round.Message{To: round.All, Name: c.responseName(), Body: round.EncodedFrames(answers, p.encode)}), nil
}

// encode returns the frames of the responses.
func (p *prover) encode(answers []response) (frames [][]byte, err error) {
	frames = make([][]byte, len(answers))
	for j := range answers {
		if frames[j], err = answers[j].encode(p.sizes); err != nil {
			return nil, fmt.Errorf("popk: own response: %w", err)
		}
	}
	return frames, nil
}
