package keygen

import (
	"context"
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// The steps and message names of proved key generation that a judge needs.
const (
	StepSeed      = stepSeed
	StepRelin     = stepRelin
	StepStatement = stepStatement
	NameProofs    = nameProofs
)

// Judge verifies the messages of one party in a run of proved key generation, for a third party
// that did not take part.
type Judge struct{ st *statement }

// NewJudge returns a Judge for a session with this ID and number of parties.
func NewJudge(id round.Digest, parties int, s *gbfv.Scheme, dim, workers int) (*Judge, error) {
	//lodge:check keygen/judge/dimension [run=TestJudge] [redundant=parameters of the proof exist
	//  for valid dimensions only] a judge accepts a dimension that has no rotations
	if err := checkDim(s, dim); err != nil {
		return nil, err
	}
	proof, err := s.Set.KeyProof(parties, dim)
	if err != nil {
		return nil, fmt.Errorf("keygen: %w", err)
	}
	c := &Config{Session: round.Session{ID: id, Parties: parties}, Scheme: s, Dim: dim, Security: Proved, Workers: workers}
	st := &statement{Config: c, proof: proof, equations: c.proved()}
	st.norm, err = sigma.NewNorm(s.N(), proof.Bits, proof.Bound)
	return &Judge{st}, err
}

// Frames returns the number of frames of a proof. The first Heads frames hold the responses for the
// secrets, one per repetition; each later frame belongs to one equation.
func (j *Judge) Frames() int { return j.st.frames() }

// Heads returns the number of frames before those of the equations.
func (j *Judge) Heads() int { return j.st.proof.V }

// StatementSize returns the length in bytes of a statement with its nonce.
func (j *Judge) StatementSize() int { return round.NonceSize + j.st.digestsSize() }

// Opened returns the index of the frame in the openings of h0 and h1 that holds the share of an
// equation. ok is false if the share is in the equation's frame of the proof.
func (j *Judge) Opened(equation int) (frame int, ok bool) {
	at := j.st.equations[equation]
	return 1 + openedIndex(at, j.st.Scheme), at.opened()
}

// Sums returns the indexes of the frames in these openings whose sums over all parties enter an
// equation. ok is false if no sums enter it.
func (j *Judge) Sums(equation int) (h0, h1 int, ok bool) {
	at := j.st.equations[equation]
	return 1 + at.digit, 1 + j.st.Scheme.GadgetDigits() + at.digit, at.kind == relinSecond
}

// OpenedFrames returns the number of frames of the openings of h0 and h1.
func (j *Judge) OpenedFrames() int { return 1 + 2*j.st.Scheme.GadgetDigits() }

// signed decodes the response at an offset of a frame.
func (st *statement) signed(frame []byte, at int) (intpoly.Poly, error) {
	z, size := intpoly.New(st.Scheme.N(), 1), st.responseSize()
	return z, codec.DecodeSigned(z, st.proof.Bits, frame[at:at+size])
}

// responses decodes all responses of a frame of a proof. It returns an error if the frame is
// malformed.
func (j *Judge) responses(index int, frame []byte) (list []intpoly.Poly, err error) {
	st, start, size, count := j.st, 0, j.st.headSize(), 2
	//lodge:check keygen/judge/frame [run=TestJudge] a judge accepts a frame number outside the
	//  proof
	if index < 0 || index >= st.frames() {
		return nil, errors.New("keygen: frame index out of range")
	}
	if index >= st.proof.V {
		at := st.equations[index-st.proof.V]
		start, size, count = st.shareSize(at), st.frameSize(at), st.proof.V
	}
	//lodge:check keygen/judge/length [run=TestJudge] a judge accepts a frame of the wrong length
	if len(frame) != size {
		return nil, fmt.Errorf("keygen: a frame of %d bytes, want %d", len(frame), size)
	}
	if start > 0 {
		//lodge:check keygen/judge/share-decodes [run=TestJudge] a judge accepts shares that are not
		//  canonical
		if _, err := j.poly(frame[:start]); err != nil {
			return nil, err
		}
	}
	for i := range count {
		z, err := st.signed(frame, start+i*st.responseSize())
		if err != nil {
			return nil, err
		}
		list = append(list, z)
	}
	return list, nil
}

func (j *Judge) poly(packed []byte) (ring.Poly, error) {
	p := j.st.Scheme.Q.NewPoly()
	return p, codec.DecodePoly(p.C, j.st.Scheme.Q.Primes(), packed)
}

// Bound returns the check that a frame fails without further data: CheckBound or "". It returns an
// error if the frame is malformed.
func (j *Judge) Bound(index int, frame []byte) (check string, err error) {
	list, err := j.responses(index, frame)
	if err != nil {
		return "", err
	}
	for _, z := range list {
		//lodge:check keygen/judge/bound [run=TestJudge] a judge accepts long responses
		if !j.st.norm.Within(z) {
			return CheckBound, nil
		}
	}
	return "", nil
}

// Exhibits are the data needed to verify an equation of a party.
type Exhibits struct {
	Seeds      [][]byte     // contents of the openings of all parties' seeds
	Statement  []byte       // the party's opening, with its nonce
	Transcript round.Digest // of the broadcasts before the proofs
	Heads      [][]byte     // the first frames of its proof
	Frame      []byte       // the frame of the equation
	Share      []byte       // the frame that Opened names, if any
	H0, H1     [][]byte     // the frames that Sums names, of all parties, if they enter the equation
}

// Equation returns the check that a party fails with the frame of an equation: CheckShare,
// CheckEquation or "". It returns an error if the exhibits do not decide this.
func (j *Judge) Equation(ctx context.Context, equation int, x Exhibits) (check string, err error) {
	st := *j.st
	//lodge:check keygen/judge/equation [drop=equation < 0] [drop=equation >= len(st.equations)]
	//  [run=TestJudge] a judge accepts an equation number outside the proof
	//lodge:check keygen/judge/statement [drop=len(x.Statement) != j.StatementSize()]
	//  [run=TestJudge] a judge accepts a statement of the wrong length
	//lodge:check keygen/judge/heads [drop=len(x.Heads) != st.proof.V] [run=TestJudge] a judge
	//  verifies an equation with responses missing
	if equation < 0 || equation >= len(st.equations) || len(x.Statement) != j.StatementSize() || len(x.Heads) != st.proof.V {
		return "", errors.New("keygen: the exhibits belong to another proof")
	}
	at, promise := st.equations[equation], st.promises(x.Statement[round.NonceSize:])[equation]
	list, err := j.responses(st.proof.V+equation, x.Frame)
	if err != nil {
		return "", err
	}
	packed := x.Frame[:st.shareSize(at)]
	if at.opened() {
		packed = x.Share
		//lodge:check keygen/judge/share [run=TestJudge] a judge accepts another share than the
		//  statement promises
	} else if shareDigest(packed) != promise.share {
		return CheckShare, nil
	}
	share, err := j.poly(packed)
	//lodge:check keygen/judge/opened-share-decodes [run=TestJudge] a judge accepts opened shares
	//  that are not canonical
	if err != nil {
		return "", err
	}
	st.seed = round.Coin(st.Session.ID, stepSeed, x.Seeds)
	if at.kind == relinSecond {
		st.h0, st.h1 = make([]ring.NTT, st.Scheme.GadgetDigits()), make([]ring.NTT, st.Scheme.GadgetDigits())
		if st.h0[at.digit], err = j.sum(x.H0); err != nil {
			return "", err
		}
		if st.h1[at.digit], err = j.sum(x.H1); err != nil {
			return "", err
		}
	}
	w, err := st.challenge(st.bound(x.Transcript))
	if err != nil {
		return "", err
	}
	images, relation := make([]round.Digest, st.proof.V), st.relation(at)
	defer relation.free()
	for v := range images {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		z, err := j.responses(v, x.Heads[v])
		if err != nil {
			return "", err
		}
		pair := st.newPair(z[0], z[1])
		images[v] = st.image(relation, pair, list[v], share, w.At(v, 0))
		pair.s.Free()
		pair.u.Free()
	}
	//lodge:check keygen/judge/masks [swap=masksDigest(images) != promise.masks=>masksDigest(images)
	//  == promise.masks] [run=TestJudge] a judge accepts responses that do not open their masks
	if masksDigest(images) != promise.masks {
		return CheckEquation, nil
	}
	return "", nil
}

// sum adds up the polynomials of all parties.
func (j *Judge) sum(frames [][]byte) (ring.NTT, error) {
	//lodge:check keygen/judge/sum-of-all [run=TestJudge] a judge sums h0 and h1 with parties
	//  missing
	if len(frames) != j.st.Session.Parties {
		return ring.NTT{}, errors.New("keygen: the polynomials of all parties are needed")
	}
	sum := j.st.Scheme.Q.NewPoly()
	for _, frame := range frames {
		p, err := j.poly(frame)
		//lodge:check keygen/judge/sum-decodes [run=TestJudge] a judge sums h0 and h1 that are not
		//  canonical
		if err != nil {
			return ring.NTT{}, err
		}
		j.st.Scheme.Q.Add(sum, sum, p)
	}
	j.st.Scheme.Q.Forward(ring.NTT(sum), sum)
	return ring.NTT(sum), nil
}

// Shapes returns the shapes of the broadcasts of a run.
func (j *Judge) Shapes() map[string]round.Shape {
	digest := round.Bare(len(round.Digest{}))
	return map[string]round.Shape{
		round.CommitName(stepSeed):      digest,
		round.OpenName(stepSeed):        round.Bare(2 * round.NonceSize),
		round.CommitName(stepRelin):     digest,
		round.OpenName(stepRelin):       {Frames: j.OpenedFrames(), Check: j.opening},
		round.CommitName(stepStatement): digest,
		round.OpenName(stepStatement):   round.Bare(j.StatementSize()),
		nameProofs: {Frames: j.Frames(), Check: func(i int, frame []byte) error {
			_, err := j.responses(i, frame)
			return err
		}},
		nameAgree: digest,
	}
}

// opening returns an error for a malformed frame of an opening of h0 and h1.
func (j *Judge) opening(i int, frame []byte) error {
	if i > 0 {
		_, err := j.poly(frame)
		//lodge:check keygen/judge/opening-decodes [return=nil] [run=TestJudge] a judge accepts an
		//  opening whose polynomials are not canonical
		return err
	}
	//lodge:check keygen/judge/opening-nonce [run=TestJudge] a judge accepts an opening without its
	//  nonce
	if len(frame) != round.NonceSize {
		return fmt.Errorf("a nonce of %d bytes", len(frame))
	}
	return nil
}
