package evidence

import (
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
)

// ofBroadcast drafts the accusations that a broadcast of the blamed party may prove, by the check
// that failed.
func (r *Recorder) ofBroadcast(c Case, b *broadcast, blame *round.Blame) (list []draft) {
	of := func(kind evidencev1.Kind, history bool, exhibits ...exhibit) {
		list = append(list, draft{kind: kind, culprit: blame.Party, history: history, list: exhibits})
	}
	accused := exhibit{broadcast: b, signed: true}
	if g := blame.Charge; g != nil {
		if g.Name != b.envelope.Name {
			return nil
		}
		accused.charged, accused.shown = g, []int{g.Index}
	}
	whole := accused
	whole.digest, whole.shown = b.envelope.Digest, nil
	switch blame.Check {
	case round.CheckCommitment:
		if commit := r.commitment(b); commit != nil {
			of(evidencev1.Kind_KIND_WRONG_OPENING, true, whole, exhibit{broadcast: commit, shown: []int{0}})
		}
		if statement := r.statement(b); statement != nil {
			of(evidencev1.Kind_KIND_BAD_PROOF, true, whole, exhibit{broadcast: statement, shown: []int{0}})
		}
	case popk.CheckBound:
		of(evidencev1.Kind_KIND_BAD_PROOF, false, accused)
	case popk.CheckEquation:
		step, _, _ := strings.Cut(b.envelope.Name, "/")
		statement, ciphertexts := r.statement(b), r.find(blame.Party, step+"/ciphertexts")
		if statement != nil && ciphertexts != nil {
			list = append(list, draft{kind: evidencev1.Kind_KIND_BAD_PROOF, culprit: blame.Party, history: true,
				key: true, list: []exhibit{
					accused, {broadcast: statement, shown: []int{0}},
					{broadcast: ciphertexts, signed: true, shown: all(len(ciphertexts.frames))},
				}})
		}
	case keygen.CheckBound:
		of(evidencev1.Kind_KIND_BAD_KEY_PROOF, false, accused)
	case keygen.CheckShare, keygen.CheckEquation:
		if d, ok := r.ofEquation(c, accused); ok {
			list = append(list, d)
		}
	case verdict.Check:
		accused.shown = []int{0}
		of(evidencev1.Kind_KIND_WRONG_VERDICT, false, accused)
		of(evidencev1.Kind_KIND_MALFORMED, false, accused)
	case round.CheckShape, round.CheckSize:
		if accused.shown == nil {
			accused.shown = []int{0}
		}
		of(evidencev1.Kind_KIND_MALFORMED, false, accused)
		accused.shown, accused.charged = nil, nil
		of(evidencev1.Kind_KIND_MALFORMED, false, accused)
	}
	return list
}

// statement returns the opened statement to which a message of a proof belongs, or nil.
func (r *Recorder) statement(b *broadcast) *broadcast {
	step, _, _ := strings.Cut(b.envelope.Name, "/")
	return r.find(b.envelope.From, round.OpenName(step+"/statement"))
}

// ofEquation drafts an accusation that shows that an equation of a proof of shares of the keys does
// not hold; see badKeyProof.
func (r *Recorder) ofEquation(c Case, accused exhibit) (d draft, ok bool) {
	judged := &referee{who: c.Members, spec: c.Spec, st: &evidencev1.Statement{Params: c.Params[:]}}
	j, err := judged.keys()
	if err != nil || accused.charged == nil {
		return d, false
	}
	from, equation := accused.envelope.From, accused.charged.Index-j.Heads()
	if equation < 0 || accused.charged.Index >= j.Frames() {
		return d, false
	}
	accused.shown = append(all(j.Heads()), accused.charged.Index)
	list := []exhibit{accused, {broadcast: r.find(from, round.OpenName(keygen.StepStatement)), shown: []int{0}}}
	for p := range c.Keys {
		list = append(list, exhibit{broadcast: r.find(round.Party(p), round.OpenName(keygen.StepSeed)), shown: []int{0}})
	}
	relin := func(p round.Party, shown ...int) {
		list = append(list, exhibit{broadcast: r.find(p, round.OpenName(keygen.StepRelin)), shown: shown})
	}
	if frame, ok := j.Opened(equation); ok {
		relin(from, frame)
	} else if h0, h1, ok := j.Sums(equation); ok {
		for p := range c.Keys {
			relin(round.Party(p), h0, h1)
		}
	}
	missing := slices.ContainsFunc(list, func(x exhibit) bool { return x.broadcast == nil })
	return draft{kind: evidencev1.Kind_KIND_BAD_KEY_PROOF, culprit: from, history: true, list: list}, !missing
}
