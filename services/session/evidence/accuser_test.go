package evidence_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
	"github.com/lodge-mpc/lodge/services/session/evidence"
)

// trial accuses honest parties of cheats that they did not commit.
type trial struct {
	*material
	t     *testing.T
	other *material // another session of the same parties
	// only one in every of the less likely accusations is tried
	every, seen int
	reasons     map[string]bool // the reasons for which accusations were rejected
}

// refuse tries one in every accusations with refused.
func (x *trial) refuse(what string, p parsed) {
	if x.seen++; x.seen%x.every == 0 {
		x.refused(what, p)
	}
}

// refused signs an accusation as its accuser, and fails the test if it proves anything.
func (x *trial) refused(what string, p parsed) {
	what = fmt.Sprintf("%s of party %d, %s", p.st.GetKind(), p.st.GetCulprit(), what)
	found, err := evidence.Verify(x.t.Context(), bytes.NewReader(p.file(x.w)), x.w.roster)
	var known *evidence.Error
	switch {
	case err == nil:
		x.t.Errorf("%s: proves %v", what, found)
	case !errors.As(err, &known):
		x.t.Errorf("%s: %v", what, err)
	default:
		x.reasons[known.Reason] = true
	}
}

// lied tries a well-formed but false accusation, and all variants that its accuser can make by
// changing a part.
func (x *trial) lied(what string, p parsed) {
	x.refused(what, p)
	for how, lie := range lies(x.w, p, x.otherwise(p)) {
		c := p.clone()
		lie(&c)
		x.refuse(what+", with "+how, c)
	}
}

// otherwise returns the same accusation for the other session.
func (x *trial) otherwise(p parsed) parsed {
	p = p.clone()
	p.st.Nonces, p.st.Spec, p.st.History = joined(x.other.nonces), x.other.spec, agreements(x.other.history)
	return p
}

// accuse tries every accusation against every other party.
func (x *trial) accuse() {
	for q := range x.w.n {
		if q == x.accuser {
			continue
		}
		for _, s := range x.of(q) {
			x.equivocation(q, s)
			x.wrongOpening(q, s)
			x.badProof(q, s)
			x.badKeyProof(q, s)
			x.alone(q, s)
			x.falseEcho(q, s)
			x.foreign(q, s)
		}
		for _, s := range slices.Concat(x.list, x.strange, x.other.of(q), x.other.strange) {
			x.passedOff(q, s)
		}
	}
}

// samples returns selections of one frame of a message: the first, the middle and the last frame.
func samples(s signed) [][]int {
	n := len(s.frames)
	return [][]int{{0}, {n / 2}, {n - 1}}
}

// kinds returns all kinds.
func kinds() (list []evidencev1.Kind) {
	for k := range evidencev1.Kind_name {
		if k > 0 {
			list = append(list, evidencev1.Kind(k))
		}
	}
	slices.Sort(list)
	return list
}

// resigned returns a message with the accuser's signature.
func (x *trial) resigned(s signed) signed {
	s.signature = s.Sign(x.w.net.Parties[x.accuser].Signer)
	return s
}

// as returns the message s with the sender, round and name of another message.
func as(s, like signed) signed {
	like.Digest = s.Digest
	s.Envelope = like.Envelope
	return s
}

// invented returns a history in which a different message replaces the sent one.
func invented(history []round.Agreement, s signed) (list []round.Agreement) {
	for _, a := range history {
		if a.Name == s.Name && uint32(a.Round)+1 == s.Round {
			a.Digests = slices.Clone(a.Digests)
			a.Digests[s.From] = s.Digest
		}
		list = append(list, a)
	}
	return list
}

// changed returns a message with different content and the original signature.
func changed(s signed) signed {
	s.frames = slices.Clone(s.frames)
	s.frames[0] = bytes.Clone(s.frames[0])
	s.frames[0][len(s.frames[0])-1] ^= 1
	h := round.NewHasher(s.Name)
	for _, f := range s.frames {
		h.Frame(f)
	}
	s.Digest = h.Sum()
	return s
}

// cut returns a message without its last frame.
func cut(s signed) signed {
	s.frames = s.frames[:max(1, len(s.frames)-1)]
	return s
}

// equivocation accuses q of two versions of a broadcast, although q signed one version of
// everything.
func (x *trial) equivocation(q int, s signed) {
	const kind = evidencev1.Kind_KIND_EQUIVOCATION
	two := func(what string, y signed) {
		x.refuse(what, x.accusation(kind, q, nil, shown{signed: s, digest: true}, shown{signed: y, digest: true}))
	}
	x.lied("the same twice", x.accusation(kind, q, nil, shown{signed: s, digest: true}, shown{signed: s, digest: true}))
	for _, y := range slices.Concat(x.list, x.strange, x.other.list, x.other.strange) {
		same := y.From == s.From && y.Round == s.Round && y.Name == s.Name && y.Session == s.Session
		if same || y.From != s.From && y.Round != s.Round && y.Name != s.Name {
			continue
		}
		what := fmt.Sprintf("%s of round %d and %s of party %d in round %d", s.Name, s.Round, y.Name, y.From, y.Round)
		two(what, y)
		two(what+" under its name", as(y, s))
		two(what+" signed by the accuser", x.resigned(as(y, s)))
	}
	two("another version with the same signature", changed(s))
	two("another version signed by the accuser", x.resigned(changed(s)))
}

// wrongOpening accuses q of wrong openings, although q opened its commitments correctly.
func (x *trial) wrongOpening(q int, s signed) {
	history := x.before(s)
	step, opens := strings.CutSuffix(s.Name, round.OpenName(""))
	for _, y := range x.list {
		if !opens && (y.From != s.From || y.Round >= s.Round) {
			continue
		}
		what := fmt.Sprintf("%s and %s of party %d", s.Name, y.Name, y.From)
		named := y
		named.From, named.Name = s.From, round.CommitName(step)
		for i, y := range []signed{y, named, changed(named), x.resigned(changed(named)), x.resigned(changed(y))} {
			for _, bare := range []bool{false, true} {
				x.refuse(fmt.Sprint(what, i, bare), x.accusation(evidencev1.Kind_KIND_WRONG_OPENING, q, history,
					shown{signed: s, digest: true}, shown{signed: y, bare: bare, frames: []int{0}}))
			}
		}
		if y.From == s.From && y.Name == round.CommitName(step) {
			x.lied(what, x.accusation(evidencev1.Kind_KIND_WRONG_OPENING, q, history,
				shown{signed: s, digest: true}, shown{signed: y, bare: true, frames: []int{0}}))
			x.refused(what+" of an invented history", x.accusation(evidencev1.Kind_KIND_WRONG_OPENING, q, invented(history, changed(y)),
				shown{signed: s, digest: true}, shown{signed: changed(y), bare: true, frames: []int{0}}))
		}
	}
}

// ends returns the broadcasts whose names end with the suffix.
func (m *material) ends(suffix string) (list []signed) {
	for _, s := range m.list {
		if strings.HasSuffix(s.Name, suffix) {
			list = append(list, s)
		}
	}
	return list
}

// badProof accuses q of wrong proofs of plaintext knowledge, although its proofs hold.
func (x *trial) badProof(q int, s signed) {
	const kind = evidencev1.Kind_KIND_BAD_PROOF
	history, step := x.before(s), s.Name[:strings.Index(s.Name+"/", "/")]
	for _, frames := range samples(s) {
		x.refused(fmt.Sprint("bounds of ", s.Name, frames), x.accusation(kind, q, nil, shown{signed: s, frames: frames}))
	}
	if !strings.HasSuffix(s.Name, "/ciphertexts") && !strings.HasSuffix(s.Name, "/response") {
		return
	}
	for _, y := range x.ends("/statement/open") {
		own := y.From == s.From && strings.HasPrefix(y.Name, step+"/")
		like := y
		like.From = s.From
		for i, y := range []signed{y, like, changed(like), x.resigned(changed(like)), x.resigned(changed(y))} {
			statement := shown{signed: y, bare: i < 3, frames: []int{0}}
			what := fmt.Sprintf("%s and %s of party %d (%d)", s.Name, y.Name, y.From, i)
			try := x.refuse
			if i == 0 {
				try = x.refused
			}
			try(what, x.accusation(kind, q, history, shown{signed: s, digest: true}, statement))
			for _, c := range x.ends("/ciphertexts") {
				if !own && c.From != s.From {
					continue
				}
				for j, c := range []signed{c, x.resigned(as(c, like)), cut(c), changed(c), x.resigned(changed(c))} {
					p := x.accusation(kind, q, history,
						shown{signed: s, frames: []int{0}}, statement, shown{signed: c, frames: upTo(len(c.frames))})
					if what := fmt.Sprintf("%s, and %s of party %d (%d)", what, c.Name, c.From, j); own && i+j == 0 {
						x.lied(what, p)
					} else if j == 0 {
						try(what, p)
					} else {
						x.refuse(what, p)
					}
				}
			}
		}
		if own {
			x.lied(s.Name+" of another statement", x.accusation(kind, q, history,
				shown{signed: s, digest: true}, shown{signed: y, bare: true, frames: []int{0}}))
			x.refused(s.Name+" of an invented history", x.accusation(kind, q, invented(history, changed(y)),
				shown{signed: s, digest: true}, shown{signed: changed(y), bare: true, frames: []int{0}}))
		}
	}
}

// badKeyProof accuses q of wrong shares of the keys, although q proved its shares.
func (x *trial) badKeyProof(q int, s signed) {
	const kind = evidencev1.Kind_KIND_BAD_KEY_PROOF
	for _, frames := range samples(s) {
		x.refused(fmt.Sprint("bounds of ", s.Name, frames), x.accusation(kind, q, nil, shown{signed: s, frames: frames}))
	}
	if x.judge == nil || s.Name != keygen.NameProofs {
		return
	}
	for equation := range x.judge.Frames() - x.judge.Heads() {
		list, ok := x.equation(s, equation)
		if !ok {
			x.t.Errorf("equation %d of party %d cannot be shown", equation, q)
			continue
		}
		what := fmt.Sprint("equation ", equation)
		x.refuse(what, x.accusation(kind, q, x.before(s), list...))
		if equation%7 == 0 {
			x.lied(what, x.accusation(kind, q, x.before(s), list...))
		}
		for i := range list[1:] {
			for j := range list[1 : i+1] { // with the two exchanged
				swapped := slices.Clone(list)
				swapped[i+1], swapped[j+1] = swapped[j+1], swapped[i+1]
				x.refuse(fmt.Sprint(what, ", messages ", i, j), x.accusation(kind, q, x.before(s), swapped...))
				swapped[i+1].From, swapped[j+1].From = swapped[j+1].From, swapped[i+1].From
				x.refuse(fmt.Sprint(what, ", messages and senders ", i, j), x.accusation(kind, q, x.before(s), swapped...))
			}
			others := slices.Clone(list)
			others[i+1].signed, others[i+1].bare = x.resigned(changed(list[i+1].signed)), false
			x.refuse(fmt.Sprint(what, ", another message ", i), x.accusation(kind, q, x.before(s), others...))
			others[i+1].bare = true
			history := invented(x.before(s), others[i+1].signed)
			x.refuse(fmt.Sprint(what, ", another message and history ", i), x.accusation(kind, q, history, others...))
		}
		others, ok := x.equation(s, (equation+1)%(x.judge.Frames()-x.judge.Heads()))
		if ok && len(others) == len(list) {
			others[0] = list[0]
			x.refuse(what+", with the messages of the next equation", x.accusation(kind, q, x.before(s), others...))
		}
	}
}

// equation returns the messages that show whether an equation of a proof of keys holds.
func (x *trial) equation(s signed, equation int) (list []shown, ok bool) {
	ok = true
	add := func(p round.Party, name string, frames ...int) {
		y, found := x.named(p, name)
		ok = ok && found
		list = append(list, shown{signed: y, bare: true, frames: frames})
	}
	list = append(list, shown{signed: s, frames: append(upTo(x.judge.Heads()), x.judge.Heads()+equation)})
	add(s.From, round.OpenName(keygen.StepStatement), 0)
	for p := range x.w.n {
		add(round.Party(p), round.OpenName(keygen.StepSeed), 0)
	}
	if frame, opened := x.judge.Opened(equation); opened {
		add(s.From, round.OpenName(keygen.StepRelin), frame)
	} else if h0, h1, sums := x.judge.Sums(equation); sums {
		for p := range x.w.n {
			add(round.Party(p), round.OpenName(keygen.StepRelin), h0, h1)
		}
	}
	return list, ok
}

// alone makes accusations that need only one message, although q's messages are well-formed and its
// verdict is correct.
func (x *trial) alone(q int, s signed) {
	for _, kind := range []evidencev1.Kind{evidencev1.Kind_KIND_MALFORMED, evidencev1.Kind_KIND_WRONG_VERDICT} {
		for _, y := range []signed{s, cut(s), changed(s), x.resigned(cut(s)), x.resigned(changed(s))} {
			for _, frames := range append(samples(y), nil, upTo(len(y.frames))) {
				x.refuse(fmt.Sprint(s.Name, frames), x.accusation(kind, q, nil, shown{signed: y, frames: frames}))
			}
		}
		x.lied(s.Name, x.accusation(kind, q, nil, shown{signed: s, frames: []int{0}}))
	}
}

// falseEcho accuses q of false echoes, although q reported what others signed.
func (x *trial) falseEcho(q int, s signed) {
	names := map[uint32][]string{}
	for _, y := range x.list {
		if y.Name != round.EchoName && !slices.Contains(names[y.Round], y.Name) {
			names[y.Round] = append(names[y.Round], y.Name)
			slices.Sort(names[y.Round])
		}
	}
	reported := names[s.Round-1]
	try := func(what string, s signed, names []string) parsed {
		p := x.accusation(evidencev1.Kind_KIND_FALSE_ECHO, q, nil, shown{signed: s, frames: upTo(len(s.frames))})
		p.st.Names = names
		x.refuse(fmt.Sprintf("%s of round %d about %v: %s", s.Name, s.Round, names, what), p)
		return p
	}
	for _, list := range names {
		if s.Name != round.EchoName && !slices.Equal(list, reported) {
			continue
		}
		for _, name := range list { // of other rounds, too few, and too many
			try("names", s, []string{name})
			try("more names", s, slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(reported), name)))))
		}
		try("all names", s, list)
	}
	x.lied("an echo", try("as it is", s, reported))
	try("cut", cut(s), reported)
	try("changed", changed(s), reported)
	try("changed by the accuser", x.resigned(changed(s)), reported)
	for index := range names {
		y := s
		y.Round = index + 1
		try("of another round", y, names[index])
		try("of another round, by the accuser", x.resigned(y), names[index])
	}
	for _, y := range x.ends(round.EchoName) { // instead of the echo
		try("of another", as(y, s), reported)
		try("of another, by the accuser", x.resigned(as(y, s)), reported)
	}
}

// foreign tries histories that do not belong to the message.
func (x *trial) foreign(q int, s signed) {
	exact := x.before(s)
	next := exact
	if len(exact) < len(x.history) {
		next = x.history[:len(exact)+1]
	}
	past := x.other.history
	histories := [][]round.Agreement{nil, x.history, next, exact, past, past[:min(len(exact), len(past))]}
	if len(exact) > 0 {
		histories = append(histories, exact[:len(exact)-1], exact[1:])
	}
	for _, kind := range kinds() {
		for i, history := range histories {
			for _, list := range [][]shown{
				{{signed: s, frames: []int{0}}}, {{signed: s, digest: true}, {signed: s, bare: true, frames: []int{0}}},
				{{signed: s, digest: true}, {signed: x.list[0], bare: true, frames: []int{0}}},
			} {
				what := fmt.Sprintf("%s after history %d with %d messages", s.Name, i, len(list))
				x.refuse(what, x.accusation(kind, q, history, list...))
			}
		}
	}
}

// passedOff presents messages that others signed, or that q signed in another session or for one
// party only, as q's broadcasts.
func (x *trial) passedOff(q int, s signed) {
	own := func(y signed) bool { return bytes.Equal(y.signature, s.signature) }
	if slices.ContainsFunc(x.of(q), own) {
		return
	}
	s.From = round.Party(q)
	for _, kind := range kinds() {
		for i, y := range []signed{s, x.resigned(s)} {
			p := x.accusation(kind, q, nil, shown{signed: y, frames: []int{0}})
			if kind == evidencev1.Kind_KIND_FALSE_ECHO {
				p.st.Names = []string{"triple/mackey"}
			}
			x.refuse(fmt.Sprintf("%s of round %d that is not its own (%d)", s.Name, s.Round, i), p)
		}
	}
}
