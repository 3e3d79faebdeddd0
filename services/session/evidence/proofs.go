package evidence

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/services/host/plan"
)

// computed holds the inputs of a session's computation, as its terms bind them.
type computed struct {
	scheme *gbfv.Scheme
	key    round.Digest
	proof  *params.Instance // for a session of proofs
	plan   *triple.Plan     // for a session of triples
	mac    *params.Instance // for a session of triples: the proof of its MAC key
}

// set returns the session's parameter set, and a scheme: that of the field or, for keys, any scheme
// over the set.
func (r *referee) set() (*params.Set, *gbfv.Scheme, error) {
	set, err := params.Lookup(r.spec.GetParams())
	if err != nil {
		return nil, nil, problem(OtherVersion, "this program does not have the session's parameters: %v", err)
	}
	//lodge:check evidence/computed/set [run=TestRefereeOfShapes] a session is judged by other
	//  parameters than its own
	if h := set.Hash(); !bytes.Equal(r.spec.GetParamsHash(), h[:]) {
		return nil, nil, problem(OtherVersion, "this program has other parameters under the name %s", set.Name)
	}
	field := set.Fields[0]
	if name := r.spec.GetField(); name != "" {
		if field, err = set.Field(name); err != nil {
			return nil, nil, unproven("%v", err)
		}
	}
	s, err := schemes.of(set, field)
	return set, s, err
}

// schemes caches the last scheme, because making a scheme takes longer than judging most proofs.
var schemes lastScheme

type lastScheme struct {
	mu     sync.Mutex
	name   string
	scheme *gbfv.Scheme
}

func (l *lastScheme) of(set *params.Set, field params.FieldSpec) (s *gbfv.Scheme, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name := set.Name + "/" + field.Name; l.name != name {
		if s, err = gbfv.New(set, field); err != nil {
			return nil, err
		}
		l.name, l.scheme = name, s
	}
	return l.scheme, nil
}

// computed derives the inputs of the session's computation. The hash of its keys is not in the spec
// but in the terms.
func (r *referee) computed() (*computed, error) {
	set, scheme, err := r.set()
	if err != nil {
		return nil, err
	}
	//lodge:check evidence/computed/key-hash [run=TestRefereeOfShapes] a session is judged without
	//  the hash of its key
	if len(r.st.GetKeyHash()) != len(round.Digest{}) {
		return nil, unreadable("the hash of the key is missing")
	}
	c, terms, n := &computed{scheme: scheme, key: round.Digest(r.st.GetKeyHash())}, round.Digest(r.st.GetParams()), len(r.who.Keys)
	for _, s := range []*params.Set{set, set.Proved()} {
		switch name := plan.Name(r.spec.GetProtocol()); name {
		case plan.Popk:
			//lodge:check evidence/computed/terms-of-proofs [swap=plan.Terms(name, c.proof, c.key)
			//  == terms=>len(terms) > 0] [run=TestRefereeOfTerms] a session of proofs is judged by
			//  another key or other parameters
			if c.proof, err = plan.Proof(r.spec, s, n); err == nil && plan.Terms(name, c.proof, c.key) == terms {
				return c, nil
			}
		case plan.Triples:
			c.plan, c.mac, err = plan.Batch(r.spec, s, n, scheme.N(), false)
			//lodge:check evidence/computed/terms-of-triples [swap=plan.Terms(name, c.plan.Instance,
			//  c.key) == terms=>len(terms) > 0] [run=TestRefereeOf] a session of triples is judged
			//  by another key or other parameters
			if err == nil && plan.Terms(name, c.plan.Instance, c.key) == terms {
				return c, nil
			}
		}
	}
	return nil, unproven("the session's terms do not match this key and spec")
}

// judge returns the judge of a party's proof in a step.
func (r *referee) judge(c *computed, step string, of round.Party) (*popk.Judge, *popk.Config, error) {
	cfg := &popk.Config{
		Session: round.Session{ID: r.session, Parties: len(r.who.Keys)}, Step: step, Scheme: c.scheme, KeyHash: c.key,
		Workers: runtime.GOMAXPROCS(0),
	}
	switch {
	case c.proof != nil && step == plan.StepProof:
		cfg.Instance = c.proof
	case c.plan != nil && step == triple.StepMACKey:
		cfg.Instance, cfg.MACKey = c.mac, true
	case c.plan != nil && step == triple.StepBatch:
		cfg.Instance = c.plan.Instance
		//lodge:check evidence/proof/only [run=TestRefereeOfProvers] a party that does not prove
		//  input masks is convicted for their proof
		if c.plan.Kind.Owned() {
			cfg.Only = &c.plan.Owner
		}
	case c.plan != nil && step == triple.StepPair && c.plan.Pair != nil:
		cfg.Instance = c.plan.Pair
	//lodge:check evidence/proof/step [run=TestRefereeOfStatements] [redundant=without an instance
	//  there is no judge] a judge accepts a proof of a step that the session does not have
	default:
		return nil, nil, unproven("a session of %s has no proof %q", plan.Name(r.spec.GetProtocol()), step)
	}
	j, err := popk.NewJudge(*cfg, of)
	if err != nil {
		return nil, nil, unproven("%v", err)
	}
	return j, cfg, nil
}

// badProof judges a proof of plaintext knowledge. A party has not followed the protocol if a
// response is out of bounds, if its ciphertexts are not those of its statement, or if a response
// does not open its mask. The challenge follows from the openings of all parties, which are in the
// transcript of the signature.
func (r *referee) badProof() (check, reason string, err error) {
	c, err := r.computed()
	if err != nil {
		return "", "", err
	}
	accused := r.list[0]
	step, what, _ := strings.Cut(accused.Name, "/")
	j, cfg, err := r.judge(c, step, accused.From)
	if err != nil {
		return "", "", err
	}
	switch {
	//lodge:check evidence/proof/bound-of-responses [drop=accused.Name == j.Response()]
	//  [run=TestRefereeOf|TestLimitsOfWhoIsAccused] [redundant=no other message has frames of the
	//  length of responses] the bound is applied to a message that is not a response
	case accused.Name == j.Response() && len(r.list) == 1:
		return r.responseBound(j)
	//lodge:check evidence/proof/ciphertexts [drop=accused.Name == j.Ciphertexts()]
	//  [run=TestRefereeOfStatements] another message is judged as ciphertexts
	case accused.Name == j.Ciphertexts() && len(r.list) == 2:
		return r.otherCiphertexts(j)
	case accused.Name == j.Response() && len(r.list) == 3:
		return r.proofEquation(c, cfg)
	}
	return "", "", unproven("a %s is not a proof", what)
}

// one returns the only shown frame of messages[0] and its index.
func (r *referee) one() (index int, frame []byte, err error) {
	//lodge:check evidence/frames/one [run=TestRefereeOfFrames|TestRefereeOfShapes] a file that
	//  shows no frame crashes the judge
	if len(r.list[0].shown) != 1 {
		return 0, nil, unproven("%d frames of %s are shown, not one", len(r.list[0].shown), r.list[0].Name)
	}
	err = r.frames(0, func(i int, b []byte) error {
		index, frame = i, bytes.Clone(b)
		return nil
	})
	return index, frame, err
}

// responseBound judges a response that is out of bounds. It needs no other message.
func (r *referee) responseBound(j *popk.Judge) (check, reason string, err error) {
	//lodge:check evidence/proof/bound-alone [run=TestRefereeOfProvers] one cheat can be filed many
	//  times with unused parts
	if len(r.history) > 0 || len(r.st.GetKeySeed()) > 0 {
		return "", "", unreadable("data that a bound does not need")
	}
	index, frame, err := r.one()
	if err != nil {
		return "", "", err
	}
	//lodge:check evidence/proof/bound [drop=check == ""] [run=TestLimitsOfWhatIsProved] a party
	//  whose response is short is convicted
	if check, err = j.Bound(frame); err != nil || check == "" {
		return "", "", unproven("the response is within its bounds, or malformed: %v", err)
	}
	return check, fmt.Sprintf("response to repetition %d", index), nil
}

// opening returns messages[i], which must be the accused party's opening of this name in the round
// before that of messages[0], in which all parties opened.
func (r *referee) opening(i int, name string, size int) (b []byte, agreed round.Digest, err error) {
	//lodge:check evidence/statement/heard [run=TestRefereeOfStatements] a proof is judged without
	//  the statement that all parties heard
	if len(r.history) == 0 {
		return nil, agreed, unreadable("no history")
	}
	last, m := r.history[len(r.history)-1], r.list[i]
	//lodge:check evidence/statement/last [drop=last.Name != name] [run=TestRefereeOfStatements] a
	//  proof is judged by another broadcast than the last statement
	//lodge:check evidence/statement/round [drop=r.list[0].Round != r.next(last)]
	//  [run=TestRefereeOfStatements] a proof of a later round is judged by the statement
	//lodge:check evidence/statement/name [drop=m.Name != name] [run=TestRefereeOfStatements]
	//  [redundant=the digest of a message binds its name, and the history binds the digest] another
	//  message is judged as the statement
	//lodge:check evidence/statement/sender [drop=m.From != r.list[0].From]
	//  [run=TestRefereeOfStatements] a proof is judged by another party's statement
	//lodge:check evidence/statement/agreed [drop=m.Digest != last.Digests[m.From]]
	//  [run=TestRefereeOfStatements] a proof is judged by a statement that not all parties heard
	if last.Name != name || r.list[0].Round != r.next(last) || m.Name != name || m.From != r.list[0].From || m.Digest != last.Digests[m.From] ||
		//lodge:check evidence/statement/sent [run=TestRefereeOfStatements] a proof is judged by a
		//  statement of another round
		m.Round != sent(last) {
		return nil, agreed, unproven("%s of the previous round is required", name)
	}
	if b, err = r.whole(i, size); err != nil {
		return nil, agreed, err
	}
	return b, round.Agreed(r.session, name, last.Digests), nil
}

// otherCiphertexts judges ciphertexts that are not those of the statement.
func (r *referee) otherCiphertexts(j *popk.Judge) (check, reason string, err error) {
	//lodge:check evidence/ciphertexts/no-seed [run=TestRefereeOfStatements] one cheat can be filed
	//  many times with an unused key seed
	if len(r.st.GetKeySeed()) > 0 {
		return "", "", unreadable("a key that the accusation does not need")
	}
	b, _, err := r.opening(1, round.OpenName(j.Statement()), j.StatementSize())
	if err != nil {
		return "", "", err
	}
	promised, err := j.Promised(b)
	//lodge:check evidence/ciphertexts/promised [drop=promised == r.list[0].Digest]
	//  [run=TestRefereeOfStatements] a party that sent the promised ciphertexts is convicted
	if err != nil || promised == r.list[0].Digest {
		return "", "", unproven("the ciphertexts are those of the statement, or the statement is malformed")
	}
	return round.CheckCommitment, "the ciphertexts do not match the statement", nil
}

// proofEquation judges a response, shown by one frame, that does not open its mask.
func (r *referee) proofEquation(c *computed, cfg *popk.Config) (check, reason string, err error) {
	if cfg.Key, err = r.key(c); err != nil {
		return "", "", err
	}
	j, err := popk.NewJudge(*cfg, r.list[0].From)
	if err != nil {
		return "", "", err
	}
	index, frame, err := r.one()
	if err != nil {
		return "", "", err
	}
	b, opened, err := r.opening(1, round.OpenName(j.Statement()), j.StatementSize())
	if err != nil {
		return "", "", err
	}
	promised, err := j.Promised(b)
	//lodge:check evidence/equation/ciphertexts [drop=m.Digest != promised]
	//  [run=TestLimitsOfWhoIsAccused] a proof is judged by other ciphertexts than the statement
	//  promised
	//lodge:check evidence/equation/ciphertexts-name [drop=m.Name != j.Ciphertexts()]
	//  [run=TestLimitsOfWhoIsAccused] [redundant=the digest of a message binds its name, and the
	//  statement binds the digest] a proof is judged by another message than its ciphertexts
	//lodge:check evidence/equation/all-ciphertexts [drop=len(m.shown) != len(m.frames)]
	//  [run=TestLimitsOfWhoIsAccused] [redundant=the judge of the equation demands all ciphertexts]
	//  a proof is judged with ciphertexts missing
	if m := r.list[2]; err != nil || m.Digest != promised || m.Name != j.Ciphertexts() || len(m.shown) != len(m.frames) {
		return "", "", unproven("not all ciphertexts of the statement are shown")
	}
	e, err := j.Equation(opened, b)
	if err != nil {
		return "", "", err
	}
	defer e.Free()
	err = r.frames(2, func(_ int, b []byte) error {
		if err := e.Take(r.ctx, b); err != nil {
			return unproven("a malformed ciphertext: %v", err)
		}
		return nil
	})
	if err != nil {
		return "", "", err
	}
	holds, err := e.Holds(index, frame)
	switch {
	case err != nil:
		return "", "", unproven("%v", err)
	//lodge:check evidence/equation/holds [run=TestLimitsOfWhatIsProved] a party whose response
	//  opens its mask is convicted
	case holds:
		return "", "", unproven("the response opens its mask")
	}
	return popk.CheckEquation, fmt.Sprintf("the response to repetition %d does not open the combination of ciphertexts and mask", index), nil
}

// key reads the public key, which precedes the frames of messages.
func (r *referee) key(c *computed) (*gbfv.PublicKey, error) {
	b, err := block(r.in, r.room, round.MaxFrame)
	if err != nil {
		return nil, err
	}
	r.room = b
	key, hash, err := keygen.DecodePublic(c.scheme, r.st.GetKeySeed(), b)
	//lodge:check evidence/equation/key [drop=hash != c.key] [run=TestLimitsOfWhoIsAccused] a proof
	//  is judged under another key than the session's
	if err != nil || hash != c.key {
		return nil, unproven("not the key of the session")
	}
	return key, nil
}
