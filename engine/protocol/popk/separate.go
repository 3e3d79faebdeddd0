package popk

import (
	"context"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// Proofs that are checked one by one. Each party's responses must open the masks whose digests it was bound to, for its own
// ciphertexts, so a cheat is named by the check itself, and each party's witness is extracted by itself: the digests
// collide, or two responses to one statement open the same masks.

// statements holds the ciphertexts of all parties and the digests of their masks; it is the sink of the openings.
type statements struct {
	*Config
	list    [][]*gbfv.Ciphertext // by party
	digests [][]byte             // by party; V digests each
}

// newStatements begins with this party's ciphertexts.
func newStatements(c *Config, own []*gbfv.Ciphertext) *statements {
	s := &statements{Config: c, list: make([][]*gbfv.Ciphertext, c.Session.Parties), digests: make([][]byte, c.Session.Parties)}
	s.list[c.Session.Self] = own
	return s
}

func (s *statements) Frame(_ context.Context, from round.Party, index int, _ bool, frame []byte) error {
	u := s.sizes().U
	if index == 2*u {
		if len(frame) != digestsSize(s.sizes()) {
			return round.Malformed(from, fmt.Errorf("digests of masks of %d bytes, want %d", len(frame), digestsSize(s.sizes())))
		}
		s.digests[from] = append([]byte(nil), frame...)
		return nil
	}
	if index%2 == 0 {
		s.list[from] = append(s.list[from], s.Scheme.Borrow())
	}
	if err := codec.DecodePoly(part(s.list[from], index), s.Scheme.Q.Primes(), frame); err != nil {
		return round.Malformed(from, err)
	}
	return nil
}

// sums adds the others' ciphertexts to this party's, and gives their storage back.
func (s *statements) sums(ctx context.Context) ([]*gbfv.Ciphertext, error) {
	own := s.list[s.Session.Self]
	err := parallel.Try(ctx, s.Workers, len(own), func(i int) error {
		for p, list := range s.list {
			if round.Party(p) != s.Session.Self {
				s.Scheme.Add(own[i], own[i], list[i])
				list[i].Free()
			}
		}
		return nil
	})
	return own, err
}

// answer is a response that has come and waits for its check.
type answer struct {
	response
	from       round.Party
	repetition int
	wrong      bool
}

// separate takes the responses of all parties and checks each.
type separate struct {
	*statements
	challenge sigma.Challenge
	prover    *prover
	answers   []answer // room for as many as are checked at a time
	waiting   int      // how many are there
	blame     *round.Blame
}

func newSeparate(s *statements, w sigma.Challenge, p *prover) *separate {
	r := &separate{statements: s, challenge: w, prover: p, answers: make([]answer, max(1, s.Workers))}
	for i := range r.answers {
		r.answers[i].response = newResponse(s.Scheme.N(), s.sizes())
	}
	return r
}

func (r *separate) Wants() []round.Want {
	w := r.responseWant()
	w.Spool = false
	return r.Session.Each(w)
}

func (r *separate) Frame(ctx context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	a := &r.answers[r.waiting]
	if err := r.takeResponse(a.response, from, index, last, frame); err != nil {
		return err
	}
	a.from, a.repetition = from, index
	if r.waiting++; r.waiting == len(r.answers) {
		return r.verify(ctx)
	}
	return nil
}

// verify checks the answers that wait. A verdict is given in Step, when it is known that all parties have the same ones.
func (r *separate) verify(ctx context.Context) error {
	err := parallel.Try(ctx, r.Workers, r.waiting, func(i int) error {
		a := &r.answers[i]
		a.wrong = !opens(r.Scheme, r.Key, r.challenge, r.list[a.from], a.repetition, a.response, r.digests[a.from])
		return nil
	})
	for _, a := range r.answers[:r.waiting] {
		if a.wrong && (r.blame == nil || a.from < r.blame.Party) {
			r.blame = &round.Blame{Party: a.from, Check: CheckEquation, Reason: fmt.Sprintf(
				"the response to repetition %d does not open the combination of ciphertexts and mask", a.repetition)}
		}
	}
	r.waiting = 0
	return err
}

// Step gives the verdict: every response opens its mask, or who cheated.
func (r *separate) Step(ctx context.Context, _ round.Inbox) (round.Transition[Result], error) {
	if err := r.verify(ctx); err != nil {
		return round.Transition[Result]{}, err
	}
	if r.blame != nil && !r.Session.Hooks.Skips(CheckEquation) {
		return round.Transition[Result]{}, r.blame
	}
	list, err := r.sums(ctx)
	if err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Done(r.result(list, r.prover)), nil
}
