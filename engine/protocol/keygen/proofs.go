package keygen

import (
	"bytes"
	"context"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

//lodge:tests proofs TestCheatsInProofs|TestOnlyTheNorm|TestResponsesNext|TestCopied|TestARogue|TestMalformedProofs|TestEveryResponse|TestScaledSharesAreRefused|FuzzProofs

// The checks of proofs.
const (
	CheckBound    = "keygen-bound"    // a response is not short
	CheckShare    = "keygen-share"    // a share differs from the one to which its sender committed before the challenge
	CheckEquation = "keygen-equation" // the responses of an equation do not open its masks
)

// proofs receives the shares and proofs of all parties, equation by equation, and stores only the
// sums of the shares.
type proofs struct {
	*statement
	challenge sigma.Challenge
	party     *party
	sums      []ring.Poly // of the shares, by equation; without limbs for opened shares
	peers     []*peer     // by party; nil for this party
	blame     *round.Blame

	share     ring.Poly      // the share being received
	responses []intpoly.Poly // of one equation
}

// peer is the state of another party's proof.
type peer struct {
	promises  []promise
	opened    []ring.Poly // its polynomials h0 and h1
	responses []pair      // to s and u, by repetition
}

// newProofs returns the state before the first frame, from this party's shares and the other
// parties' openings.
func newProofs(p *prover, w sigma.Challenge, opened [][]byte, polys [][]ring.Poly) *proofs {
	st := p.statement
	r := &proofs{
		statement: st, challenge: w, party: p.party, sums: p.own, peers: make([]*peer, st.Session.Parties),
		share: st.Scheme.Q.NewPoly(), responses: make([]intpoly.Poly, st.proof.V),
	}
	for from, b := range opened {
		if round.Party(from) != st.Session.Self {
			r.peers[from] = &peer{promises: st.promises(b), opened: polys[from]}
		}
	}
	for v := range r.responses {
		r.responses[v] = intpoly.New(st.Scheme.N(), 1)
	}
	return r
}

func (r *proofs) Wants() []round.Want {
	return r.Session.Each(round.Want{
		Name: nameProofs, MaxFrames: r.frames(), MaxBytes: r.bytes(), Broadcast: true, Stream: true,
		Keep: round.KeepRound, KeepFrames: r.proof.V, // a charge has the frame of its equation
	})
}

func (r *proofs) Frame(ctx context.Context, from round.Party, _ string, index int, last bool, frame []byte) error {
	//lodge:check keygen/frames-of-proofs [run=@proofs] an equation can lack its proof
	if last != (index == r.frames()-1) {
		return round.Malformed(from, fmt.Errorf("%d frames of proofs, want %d", index+1, r.frames()))
	}
	if index < r.proof.V {
		return r.takeHead(from, index, frame)
	}
	return r.takeEquation(ctx, from, index-r.proof.V, frame)
}

// takeHead receives the responses for s and u of one repetition.
func (r *proofs) takeHead(from round.Party, v int, frame []byte) error {
	//lodge:check keygen/length-of-heads [swap=len(frame) != r.headSize()=>len(frame) <
	//  r.headSize()] [run=@proofs] responses for secrets can be longer than expected
	if len(frame) != r.headSize() {
		return round.Malformed(from, fmt.Errorf("%d bytes of responses for secrets, want %d", len(frame), r.headSize()))
	}
	var z [2]intpoly.Poly
	for i := range z {
		z[i] = intpoly.New(r.Scheme.N(), 1)
		//lodge:check keygen/head-decodes [run=@proofs] [redundant=N coefficients have no padding
		//  and the length is checked before, so every frame decodes] responses for secrets that are
		//  not canonical pass
		if err := codec.DecodeSigned(z[i], r.proof.Bits, frame[i*r.responseSize():(i+1)*r.responseSize()]); err != nil {
			return round.Malformed(from, err)
		}
		//lodge:check keygen/bound-of-secrets [run=@proofs] a party can use a long secret, which
		//  leaks through decryptions
		//lodge:check keygen/bound-of-both-secrets [swap=!r.norm.Within(z[i])=>i == 0 &&
		//  !r.norm.Within(z[i])] [run=@proofs] a party can use a long ephemeral secret
		if !r.norm.Within(z[i]) && !r.Session.Omits(CheckBound) {
			return &round.Blame{Party: from, Check: CheckBound, Reason: fmt.Sprintf("response %d of repetition %d for secrets", i, v)}
		}
	}
	p := r.peers[from]
	p.responses = append(p.responses, r.newPair(z[0], z[1]))
	return nil
}

// takeEquation receives the share and the responses of one equation. A failure that only counts
// after the echo check is reported by Step, when all parties are known to have the same frames.
func (r *proofs) takeEquation(ctx context.Context, from round.Party, i int, frame []byte) error {
	at, p := r.equations[i], r.peers[from]
	//lodge:check keygen/length-of-equations [swap=len(frame) != r.frameSize(at)=>len(frame) <
	//  r.frameSize(at)] [run=@proofs] the proof of an equation can be longer than expected
	if len(frame) != r.frameSize(at) {
		return round.Malformed(from, fmt.Errorf("%d bytes of equation %d, want %d", len(frame), i, r.frameSize(at)))
	}
	share, size := r.share, r.shareSize(at)
	if at.opened() {
		share = p.opened[openedIndex(at, r.Scheme)]
	} else {
		//lodge:check keygen/share-decodes [run=@proofs] shares that are not canonical pass
		if err := codec.DecodePoly(share.C, r.Scheme.Q.Primes(), frame[:size]); err != nil {
			return round.Malformed(from, err)
		}
		//lodge:check keygen/share [run=@proofs] a party can send another share than the challenge
		//  was made for
		if shareDigest(frame[:size]) != p.promises[i].share && !r.Session.Omits(CheckShare) {
			r.accuse(from, CheckShare, "the share of equation %d is not the one of its statement", i, frame)
		}
		r.Scheme.Q.Add(r.sums[i], r.sums[i], share)
	}
	images := make([]round.Digest, r.proof.V)
	relation := r.relation(at)
	defer relation.free()
	err := parallel.Try(ctx, r.Workers, r.proof.V, func(v int) error {
		z, bytes := r.responses[v], r.responseSize()
		//lodge:check keygen/response-decodes [run=@proofs] [redundant=N coefficients have no
		//  padding and the length is checked before, so every frame decodes] responses for errors
		//  that are not canonical pass
		if err := codec.DecodeSigned(z, r.proof.Bits, frame[size+v*bytes:size+(v+1)*bytes]); err != nil {
			return round.Malformed(from, err)
		}
		//lodge:check keygen/bound-of-errors [run=@proofs] a party can use long errors, which leak
		//  through decryptions
		if !r.norm.Within(z) && !r.Session.Omits(CheckBound) {
			return &round.Blame{Party: from, Check: CheckBound, Reason: fmt.Sprintf("response of repetition %d in equation %d", v, i)}
		}
		images[v] = r.image(relation, p.responses[v], z, share, r.challenge.At(v, 0))
		return nil
	})
	if err != nil {
		return err
	}
	//lodge:check keygen/equation [run=@proofs] a share need not follow from the proved secrets
	if masksDigest(images) != p.promises[i].masks && !r.Session.Omits(CheckEquation) {
		r.accuse(from, CheckEquation, "the responses do not open the masks of equation %d", i, frame)
	}
	return nil
}

// image returns the digest of the relation of the responses minus X^e times the share. It equals
// the digest of the masks' relation if the responses are right.
func (st *statement) image(rel relation, x pair, z intpoly.Poly, share ring.Poly, e int) round.Digest {
	q := st.Scheme.Q
	y := q.Borrow()
	defer y.Free()
	rel.apply(y, x, z)
	q.AddMonomial(y, share, (e+q.N())%(2*q.N())) // -X^e = X^(e+N)
	return st.imageDigest(y)
}

// accuse records the fault of a party, unless a fault of this party or of an earlier party in the
// roster is already recorded.
func (r *proofs) accuse(p round.Party, check, format string, i int, frame []byte) {
	if r.blame == nil || p < r.blame.Party {
		charge := &round.Charge{Name: nameProofs, Index: r.proof.V + i, Frame: bytes.Clone(frame)}
		r.blame = &round.Blame{Party: p, Check: check, Reason: fmt.Sprintf(format, i), Charge: charge}
	}
}

// Step reports a failed proof, or computes the keys that the proofs cover.
func (r *proofs) Step(context.Context, round.Inbox) (round.Transition[Result], error) {
	//lodge:check keygen/verdict [run=@proofs] a failed proof is accepted
	if r.blame != nil {
		return round.Transition[Result]{}, r.blame
	}
	for _, p := range r.peers {
		if p == nil {
			continue
		}
		for _, x := range p.responses {
			x.s.Free()
			x.u.Free()
		}
		for _, x := range p.opened {
			x.Free()
		}
	}
	r.share.Free()
	return conclude(r.party, r.keys()), nil
}

// keys returns the keys for twice the sum of the secrets, because the proofs are about twice the
// shares: with S = 2s and E = 2e,
//
//	2 p0 = -a S + E,  2 k = -a S + phi(S) g + E,  4 k = -2 H1 S + S^2 g + (S E0 + U E1 + 2 E2)
//
// for the public key, rotation keys and relinearisation key, whose uniform halves are a, a and 2
// H1.
func (r *proofs) keys() *PublicKeys {
	q := r.Scheme.Q
	parallel.For(r.Workers, len(r.sums), func(i int) {
		if r.equations[i].opened() {
			return
		}
		//lodge:check keygen/doubled [run=TestProvedKeysAreDoubled|TestProvedKeysWork] the parties
		//  use keys that are not the ones proved (twice the shares)
		q.Double(r.sums[i], r.sums[i])
		if r.equations[i].kind == relinSecond {
			q.Double(r.sums[i], r.sums[i])
		}
		q.Forward(ring.NTT(r.sums[i]), r.sums[i])
	})
	keys := &PublicKeys{Seed: r.seed, Dim: r.Dim, K0: map[int][]ring.NTT{}, Relin: &gbfv.SwitchKey{}}
	for i, at := range r.equations {
		switch at.kind {
		case publicKey:
			keys.Public = &gbfv.PublicKey{P0: ring.NTT(r.sums[i]), P1: uniform(r.Scheme, r.seed, labelPublic)}
		case rotation:
			keys.K0[at.g] = append(keys.K0[at.g], ring.NTT(r.sums[i]))
		case relinSecond:
			keys.Relin.K0 = append(keys.Relin.K0, ring.NTT(r.sums[i]))
		}
	}
	for _, h := range r.h1 {
		q.AddNTT(h, h, h)
		keys.Relin.K1 = append(keys.Relin.K1, h)
	}
	for i := range r.party.secret {
		r.party.secret[i] *= 2
	}
	return keys
}
