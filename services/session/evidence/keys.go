package evidence

import (
	"bytes"
	"fmt"
	"runtime"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/host/plan"
)

// keys returns the judge of a session of proved key generation.
func (r *referee) keys() (*keygen.Judge, error) {
	set, scheme, err := r.set()
	if err != nil {
		return nil, err
	}
	h, name := set.Hash(), plan.Name(r.spec.GetProtocol())
	//lodge:check evidence/keys/protocol [drop=name != plan.Keygen] [run=TestRefereeOfKeys] keys are
	//  judged in a session that makes none
	//lodge:check evidence/keys/terms [drop=!bytes.Equal(r.st.GetParams(), h[:])]
	//  [run=TestRefereeOfKeys] keys are judged by other parameters than the session's
	//lodge:check evidence/keys/proved [drop=set.KeygenSecurity() != params.Proved]
	//  [run=TestRefereeOfKeys] [redundant=a set without proofs has no bounds and so no judge] a
	//  party is convicted for the proof of keys that have none
	if name != plan.Keygen || !bytes.Equal(r.st.GetParams(), h[:]) || set.KeygenSecurity() != params.Proved {
		return nil, unproven("not a session of proved key generation")
	}
	j, err := keygen.NewJudge(r.session, len(r.who.Keys), scheme, max(1, int(r.spec.GetDim())), runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, unproven("%v", err)
	}
	return j, nil
}

// badKeyProof judges a proof of shares of the keys. A party has not followed the protocol if a
// response is not short, if its share is not the promised one, or if its responses do not open the
// masks of an equation. All messages except the proof must be in the transcript of the proof's
// signature.
//
// Messages: the proof with one frame that is not short; or the proof with the frames of all
// responses for secrets and the frame of one equation, followed by the party's statement, the seeds
// of all parties, and the frames of the openings of h0 and h1 that the equation contains.
func (r *referee) badKeyProof() (check, reason string, err error) {
	j, err := r.keys()
	if err != nil {
		return "", "", err
	}
	//lodge:check evidence/keys/proofs [drop=m.Name != keygen.NameProofs] [run=TestRefereeOfKeys]
	//  another message is judged as the proofs
	//lodge:check evidence/keys/frames [drop=len(m.frames) != j.Frames()] [run=TestRefereeOfKeys] a
	//  proof with the wrong number of frames is judged
	if m := r.list[0]; m.Name != keygen.NameProofs || len(m.frames) != j.Frames() {
		return "", "", unproven("a %s of %d frames is not a proof", m.Name, len(m.frames))
	}
	if len(r.list) == 1 {
		if len(r.history) > 0 {
			return "", "", unreadable("data that a bound does not need")
		}
		index, frame, err := r.one()
		if err != nil {
			return "", "", err
		}
		//lodge:check evidence/keys/bound [drop=check == ""] [run=TestLimitsOfWhatIsProved] a party
		//  whose responses are short is convicted
		if check, err = j.Bound(index, frame); err != nil || check == "" {
			return "", "", unproven("the responses are short, or malformed: %v", err)
		}
		return check, fmt.Sprintf("a response in frame %d of its proof", index), nil
	}
	x := keygen.Exhibits{Transcript: r.list[0].Transcript}
	equation, err := r.proof(j, &x)
	if err != nil {
		return "", "", err
	}
	if x.Statement, _, err = r.opening(1, round.OpenName(keygen.StepStatement), j.StatementSize()); err != nil {
		return "", "", err
	}
	next, err := r.seeds(2, &x)
	if err != nil {
		return "", "", err
	}
	if next, err = r.shares(j, next, equation, &x); err != nil {
		return "", "", err
	}
	//lodge:check evidence/keys/nothing-else [run=TestLimitsOfWhoIsAccused] one cheat can be filed
	//  many times with unused messages
	if next != len(r.list) {
		return "", "", unreadable("messages that the accusation does not need")
	}
	check, err = j.Equation(r.ctx, equation, x)
	switch {
	case r.ctx.Err() != nil:
		return "", "", r.ctx.Err()
	case err != nil:
		return "", "", unproven("%v", err)
	case check == keygen.CheckShare:
		return check, fmt.Sprintf("the share of equation %d is not the one of its statement", equation), nil
	case check == keygen.CheckEquation:
		return check, fmt.Sprintf("the responses do not open the masks of equation %d", equation), nil
	}
	return "", "", unproven("the proof of equation %d holds", equation)
}

// proof reads the frames of messages[0]: the heads of all responses, and one equation.
func (r *referee) proof(j *keygen.Judge, x *keygen.Exhibits) (equation int, err error) {
	//lodge:check evidence/keys/heads [drop=len(r.list[0].shown) != j.Heads()+1]
	//  [run=TestLimitsOfWhoIsAccused] [redundant=the judge of the equation demands all responses]
	//  an equation is judged with responses for secrets missing
	//lodge:check evidence/keys/heads-first [drop=r.list[0].shown[j.Heads()-1] != j.Heads()-1]
	//  [run=TestLimitsOfWhoIsAccused] [redundant=frames come in order, and the judge of the
	//  equation demands all earlier ones] an equation is judged with other frames than the
	//  responses for secrets
	if len(r.list[0].shown) != j.Heads()+1 || r.list[0].shown[j.Heads()-1] != j.Heads()-1 {
		return 0, unproven("the frames are not those of one equation's proof")
	}
	err = r.frames(0, func(i int, frame []byte) error {
		if i < j.Heads() {
			x.Heads = append(x.Heads, bytes.Clone(frame))
			return nil
		}
		equation, x.Frame = i-j.Heads(), bytes.Clone(frame)
		return nil
	})
	return equation, err
}

// named returns the given frames of messages[i], which must be a message of this party and name in
// the history.
func (r *referee) named(i int, from round.Party, name string, frames ...int) (list [][]byte, err error) {
	//lodge:check evidence/keys/missing [run=TestRefereeOfNames] a file with messages missing
	//  crashes the judge
	if i >= len(r.list) {
		return nil, unproven("a message is missing: %s of %s", name, r.who.Names[from])
	}
	m := r.list[i]
	//lodge:check evidence/keys/name [drop=m.Name != name] [run=TestRefereeOfNames] a message of
	//  another name takes the place of the expected one
	//lodge:check evidence/keys/sender [drop=m.From != from] [run=TestRefereeOfNames] a message of
	//  another party takes the place of the expected one
	//lodge:check evidence/keys/agreed [drop=!r.agreed(m)] [run=TestRefereeOfNames] a message that
	//  not all parties heard takes the place of the expected one
	//lodge:check evidence/keys/shown [drop=len(m.shown) != len(frames)] [run=TestRefereeOfNames] a
	//  message shows other frames than expected
	if m.Name != name || m.From != from || !r.agreed(m) || len(m.shown) != len(frames) {
		return nil, unproven("found %s of party %d, expected %s of party %d", m.Name, m.From, name, from)
	}
	err = r.frames(i, func(index int, frame []byte) error {
		//lodge:check evidence/keys/frame [run=TestRefereeOfNames] another frame takes the place of
		//  the expected one
		if index != frames[len(list)] {
			return unproven("found frame %d of %s, expected frame %d", index, name, frames[len(list)])
		}
		list = append(list, bytes.Clone(frame))
		return nil
	})
	return list, err
}

// seeds reads the openings of the parties' seeds, starting at messages[i].
func (r *referee) seeds(i int, x *keygen.Exhibits) (next int, err error) {
	for p := range r.who.Keys {
		list, err := r.named(i+p, round.Party(p), round.OpenName(keygen.StepSeed), 0)
		if err != nil {
			return 0, err
		}
		//lodge:check evidence/keys/seed [run=TestRefereeOfNames] a seed of the wrong length is
		//  accepted
		if len(list[0]) != 2*round.NonceSize {
			return 0, unproven("a seed of %d bytes", len(list[0]))
		}
		x.Seeds = append(x.Seeds, list[0][round.NonceSize:])
	}
	return i + len(r.who.Keys), nil
}

// shares reads the parts of the openings of h0 and h1 that an equation contains, starting at
// messages[i].
func (r *referee) shares(j *keygen.Judge, i, equation int, x *keygen.Exhibits) (next int, err error) {
	name := round.OpenName(keygen.StepRelin)
	if frame, ok := j.Opened(equation); ok {
		list, err := r.named(i, r.list[0].From, name, frame)
		if err != nil {
			return 0, err
		}
		x.Share = list[0]
		return i + 1, nil
	}
	h0, h1, ok := j.Sums(equation)
	if !ok {
		return i, nil
	}
	for p := range r.who.Keys {
		list, err := r.named(i+p, round.Party(p), name, h0, h1)
		if err != nil {
			return 0, err
		}
		x.H0, x.H1 = append(x.H0, list[0]), append(x.H1, list[1])
	}
	return i + len(r.who.Keys), nil
}
