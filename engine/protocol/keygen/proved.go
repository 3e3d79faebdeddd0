package keygen

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

//lodge:tests fields TestEachFieldChangesTheChallenge

// The steps of proved key generation after the reference string.
const (
	stepRelin     = "keygen/relin"
	stepStatement = "keygen/statement"
	nameProofs    = "keygen/proofs"
)

// openedPolys stores the polynomials h0 and h1 of each party. It is the sink of their openings.
type openedPolys struct {
	scheme *gbfv.Scheme
	byFrom [][]ring.Poly
}

// openedIndex returns the index of h0 or h1 in a party's opening.
func openedIndex(at slot, s *gbfv.Scheme) int {
	if at.kind == relinH1 {
		return s.GadgetDigits() + at.digit
	}
	return at.digit
}

func (o *openedPolys) Frame(_ context.Context, from round.Party, index int, _ bool, frame []byte) error {
	p := o.byFrom[from][index]
	//lodge:check keygen/opened-decodes [run=@proofs|TestMalformed] h0 and h1 that are not canonical
	//  pass
	if err := codec.DecodePoly(p.C, o.scheme.Q.Primes(), frame); err != nil {
		return round.Malformed(from, err)
	}
	return nil
}

// relin commits to and opens h0 and h1, on whose sums the second part of the relinearisation key
// depends.
func relin(ctx context.Context, p *party) (round.Transition[Result], error) {
	var none round.Transition[Result]
	list := p.relinSlots(relinH0, relinH1)
	o := &openedPolys{scheme: p.Scheme, byFrom: make([][]ring.Poly, p.Session.Parties)}
	for from := range o.byFrom {
		for range list {
			o.byFrom[from] = append(o.byFrom[from], p.Scheme.Q.NewPoly())
		}
	}
	frames, primes := make([][]byte, len(list)), p.Scheme.Q.Primes()
	err := parallel.Try(ctx, p.Workers, len(list), func(i int) error {
		x := p.shown(list[i], p.share(list[i]))
		o.byFrom[p.Session.Self][i].Copy(x)
		frames[i] = codec.AppendPoly(nil, x.C, primes)
		return nil
	})
	if err != nil {
		return none, err
	}
	t, err := round.CommitOpenStream(p.Session, round.Streamed{
		Step:  stepRelin,
		Body:  round.FrameList(frames),
		Limit: func(round.Party) round.Limit { return p.limit(len(list)) },
		Sink:  o,
		Keep:  round.KeepRun, // the proofs refer to these frames
	}, p.Source.Stream("nonce "+stepRelin))
	if err != nil {
		return none, err
	}
	return round.Then(t, func(ctx context.Context, _ round.Opened) (round.Transition[Result], error) {
		return commit(ctx, p, o.byFrom)
	}), nil
}

// newStatement adds up h0 and h1.
func newStatement(p *party, polys [][]ring.Poly) (*statement, error) {
	proof, err := p.Scheme.Set.KeyProof(p.Session.Parties, p.Dim)
	if err != nil {
		return nil, err
	}
	st := &statement{Config: p.Config, proof: proof, equations: p.proved(), seed: p.seed}
	if st.norm, err = sigma.NewNorm(p.Scheme.N(), proof.Bits, proof.Bound); err != nil {
		return nil, err
	}
	q, digits := p.Scheme.Q, p.Scheme.GadgetDigits()
	for i := range 2 * digits {
		sum := q.NewPoly()
		for _, list := range polys {
			q.Add(sum, sum, list[i])
		}
		q.Forward(ring.NTT(sum), sum)
		if i < digits {
			st.h0 = append(st.h0, ring.NTT(sum))
		} else {
			st.h1 = append(st.h1, ring.NTT(sum))
		}
	}
	return st, nil
}

// commit binds every party to its shares and masks: it commits to and opens their digests.
func commit(ctx context.Context, p *party, polys [][]ring.Poly) (round.Transition[Result], error) {
	var none round.Transition[Result]
	st, err := newStatement(p, polys)
	if err != nil {
		return none, err
	}
	x, err := newProver(p, st)
	if err != nil {
		return none, err
	}
	digests, err := x.commit(ctx)
	if err != nil {
		return none, err
	}
	t, err := round.CommitOpen(p.Session, stepStatement, p.Source.Stream("nonce "+stepStatement), digests, st.digestsSize())
	if err != nil {
		return none, err
	}
	return round.Then(t, func(ctx context.Context, o round.Opened) (round.Transition[Result], error) {
		return prove(ctx, x, polys, o)
	}), nil
}

// prove derives the challenge from all openings so far, and sends shares and proofs.
func prove(ctx context.Context, p *prover, polys [][]ring.Poly, o round.Opened) (round.Transition[Result], error) {
	var none round.Transition[Result]
	w, err := p.challenge(p.bound(o.Transcript))
	if err != nil {
		return none, err
	}
	if err := p.respond(ctx, w); err != nil {
		return none, err
	}
	return round.Next(round.Round[Result](newProofs(p, w, o.Payloads, polys)), round.Message{
		To: round.All, Name: nameProofs, Body: round.FrameList(p.sent),
	}), nil
}

// bound lists the values that the challenge hashes: the session, the set, the dimension of the
// rotations, the number of parties, the sizes of the proof, and the transcript, which includes the
// reference string, h0, h1 and the digests.
func (st *statement) bound(transcript round.Digest) [][]byte {
	set, p := st.Scheme.Set.Hash(), st.proof
	//lodge:check keygen/challenge/set [drop=set[:]] [run=@fields] the challenge does not bind the
	//  parameter set
	//lodge:check keygen/challenge/dimension [drop=round.Uint(uint64(st.Dim))] [run=@fields] the
	//  challenge does not bind the rotations
	//lodge:check keygen/challenge/parties [drop=round.Uint(uint64(st.Session.Parties))]
	//  [run=@fields] the challenge does not bind the number of parties
	//lodge:check keygen/challenge/space [drop=round.Uint(uint64(p.Challenges))] [run=@fields] the
	//  challenge does not bind its own space
	//lodge:check keygen/challenge/bound [drop=round.Uint(uint64(p.Bound))] [run=@fields] the
	//  challenge does not bind the bound
	//lodge:check keygen/challenge/length [drop=round.Uint(uint64(p.Bits))] [run=@fields] the
	//  challenge does not bind the length of coefficients
	//lodge:check keygen/challenge/transcript [drop=transcript[:]] [run=@fields] a party knows the
	//  challenge before the others' statements
	return [][]byte{
		//lodge:check keygen/challenge/session [drop=st.Session.ID[:]] [run=@fields] a proof can be
		//  replayed in another session
		st.Session.ID[:], set[:], round.Uint(uint64(st.Dim)), round.Uint(uint64(st.Session.Parties)), round.Uint(uint64(p.Challenges)),
		//lodge:check keygen/challenge/repetitions [drop=round.Uint(uint64(p.V))] [run=@fields] the
		//  challenge does not bind the number of repetitions
		round.Uint(uint64(p.V)), round.Uint(uint64(p.Bound)), round.Uint(uint64(p.Bits)), transcript[:],
	}
}

func (st *statement) challenge(bound [][]byte) (sigma.Challenge, error) {
	return sigma.NewChallenge(st.Session.Challenge("keygen", "lodge keygen challenge", bound...), st.proof.V, 1, st.proof.Stride, st.proof.Challenges)
}

// conclude compares the hash of the keys.
func conclude(p *party, keys *PublicKeys) round.Transition[Result] {
	digest := keys.Digest(p.Scheme, p.Workers)
	return round.Next(round.Round[Result](agree{p.Session, p, keys, digest}), round.Broadcast(nameAgree, digest[:]))
}
