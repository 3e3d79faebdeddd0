package evidence

import (
	"fmt"
	"maps"

	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	"github.com/lodge-mpc/lodge/services/host/plan"
)

// shapes returns the shapes of a party's broadcasts in the session.
func (r *referee) shapes(of round.Party) (map[string]round.Shape, error) {
	if plan.Name(r.spec.GetProtocol()) == plan.Keygen {
		j, err := r.keys()
		if err != nil {
			return nil, err
		}
		return j.Shapes(), nil
	}
	c, err := r.computed()
	if err != nil {
		return nil, err
	}
	shapes, steps := map[string]round.Shape{}, []string{plan.StepProof}
	if c.plan != nil {
		shapes = c.plan.Shapes(c.scheme)
		shapes[verdict.Name] = round.Bare(len(round.Digest{}))
		steps = []string{triple.StepMACKey, triple.StepBatch}
		if c.plan.Pair != nil {
			steps = append(steps, triple.StepPair)
		}
	}
	for _, step := range steps {
		//lodge:check evidence/shape/silent [swap=c.plan.Owner != of=>c.plan.Owner == of]
		//  [run=TestRefereeOfProvers] a party that has nothing to prove is judged by a statement
		if c.plan != nil && step == triple.StepBatch && c.plan.Kind.Owned() && c.plan.Owner != of {
			maps.Copy(shapes, popk.Silent(step))
			continue
		}
		j, _, err := r.judge(c, step, of)
		if err != nil {
			return nil, err
		}
		maps.Copy(shapes, j.Shapes())
	}
	return shapes, nil
}

// malformed judges a message whose length or values no message of its name can have. The expected
// form follows from the session's spec, which the signature binds. Either the message has a wrong
// number of frames, or a wrong frame is shown.
func (r *referee) malformed() (check, reason string, err error) {
	m := r.list[0]
	//lodge:check evidence/shape/alone [run=TestRefereeOfShapes] one cheat can be filed many times
	//  with unused parts
	if len(r.list) != 1 || len(r.history) > 0 {
		return "", "", unreadable("the accusation must contain exactly one message")
	}
	shapes, err := r.shapes(m.From)
	if err != nil {
		return "", "", err
	}
	shape, ok := shapes[m.Name]
	switch {
	//lodge:check evidence/shape/known [swap=!ok=>!ok && shape.Frames > 0] [run=TestRefereeOfShapes]
	//  a party is convicted for a message that this version does not know
	case !ok:
		return "", "", unproven("the form of %q is not known", m.Name)
	//lodge:check evidence/shape/frames [run=TestRefereeOfShapes] a party is convicted for a message
	//  of which only the digest is shown
	case len(m.frames) == 0:
		return "", "", unproven("the frames of %s are missing", m.Name)
	case len(m.frames) != shape.Frames && len(m.shown) == 0:
		return round.CheckShape, fmt.Sprintf("%s has %d frames, not %d", m.Name, len(m.frames), shape.Frames), nil
	//lodge:check evidence/shape/number [run=TestRefereeOfShapes] one cheat can be filed many times
	//  with other numbers of frames
	case len(m.frames) != shape.Frames:
		return "", "", unreadable("a frame that the accusation does not need")
	}
	index, frame, err := r.one()
	if err != nil {
		return "", "", err
	}
	//lodge:check evidence/shape/malformed [swap=err != nil=>len(frame) > 0]
	//  [run=TestRefereeOfShapes] a party that sent a well-formed message is convicted
	if err := shape.Check(index, frame); err != nil {
		return round.CheckShape, fmt.Sprintf("frame %d of %s: %v", index, m.Name, err), nil
	}
	return "", "", unproven("frame %d of %s is well-formed", index, m.Name)
}

// wrongVerdict judges the acceptance of a batch other than the batch of all broadcasts, which the
// same signature names. For kinds that drop some of their tuples, every number of tuples is
// allowed.
func (r *referee) wrongVerdict() (check, reason string, err error) {
	c, err := r.computed()
	if err != nil {
		return "", "", err
	}
	m := r.list[0]
	//lodge:check evidence/verdict/alone [drop=len(r.list) != 1] [drop=len(r.history) > 0]
	//  [run=TestRefereeOfVerdicts] one cheat can be filed many times with unused parts
	//lodge:check evidence/verdict/triples [drop=c.plan == nil] [run=TestRefereeOfVerdicts] a
	//  session without verdicts is judged for one
	//lodge:check evidence/verdict/is-one [drop=m.Name != verdict.Name] [run=TestRefereeOfVerdicts]
	//  another message is judged as a verdict
	if len(r.list) != 1 || len(r.history) > 0 || c.plan == nil || m.Name != verdict.Name {
		return "", "", unproven("the accusation must contain exactly one verdict")
	}
	b, err := r.whole(0, len(round.Digest{}))
	switch {
	case err != nil:
		return "", "", err
	//lodge:check evidence/verdict/length [run=TestRefereeOfVerdicts] a verdict of the wrong length
	//  is judged
	case len(b) != len(round.Digest{}):
		return "", "", unproven("a verdict of %d bytes", len(b))
	}
	least, most := c.plan.Counts()
	for count := least; count <= most; count++ {
		//lodge:check evidence/verdict/wrong [run=TestRefereeOfVerdicts] a party that accepted the
		//  agreed batch is convicted
		if c.plan.Digest(r.session, c.key, count, m.Transcript) == round.Digest(b) {
			return "", "", unproven("the verdict is about the batch of the broadcasts")
		}
	}
	return verdict.Check, "accepts a result that differs from the one the broadcasts give", nil
}
