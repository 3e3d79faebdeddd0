package evidence

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io"
	"testing"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// trial is a referee of a session of three parties after it has read the statement. A test gives it
// messages that no accuser could have signed. The shown frames follow in the order of the messages.
type trial struct {
	*referee
	signers []ed25519.PrivateKey
	file    *bytes.Buffer
}

func newTrial(t *testing.T, protocol jobv1.Protocol) *trial {
	t.Helper()
	set, err := params.Lookup("insecure-8")
	if err != nil {
		t.Fatal(err)
	}
	hash := set.Hash()
	x := &trial{file: new(bytes.Buffer)}
	x.referee = &referee{ctx: t.Context(), in: x.file, session: round.Hash("a session"), st: &evidencev1.Statement{Params: bytes.Clone(hash[:])}}
	for i := range 3 {
		k := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize))
		x.signers, x.who.Keys = append(x.signers, k), append(x.who.Keys, k.Public().(ed25519.PublicKey))
		x.who.Names = append(x.who.Names, string(rune('a'+i)))
	}
	x.spec = &jobv1.SessionSpec{Protocol: protocol, Params: set.Name, ParamsHash: hash[:], Field: "p64", Kind: jobv1.Kind_KIND_SCALAR, Count: 1, Dim: 2}
	x.st.Spec = x.spec
	if protocol == jobv1.Protocol_PROTOCOL_KEYGEN {
		return x
	}
	key := round.Hash("a key")
	var instance *params.Instance
	if protocol == jobv1.Protocol_PROTOCOL_TRIPLES {
		var b *triple.Plan
		if b, _, err = plan.Batch(x.spec, set.Proved(), 3, set.N(), false); err == nil {
			instance = b.Instance
		}
	} else {
		instance, err = plan.Proof(x.spec, set.Proved(), 3)
	}
	if err != nil {
		t.Fatal(err)
	}
	terms := plan.Terms(plan.Name(protocol), instance, key)
	x.st.Params, x.st.KeyHash = terms[:], key[:]
	return x
}

// sees adds a message with all its frames.
func (x *trial) sees(from round.Party, index uint32, name string, frames ...[]byte) *message {
	m := message{Envelope: exchange.Envelope{Session: x.session, From: from, To: round.All, Round: index, Name: name}}
	h := round.NewHasher(name)
	for i, f := range frames {
		h.Frame(f)
		m.shown = append(m.shown, i)
		_ = writeBlock(x.file, f) // never fails
	}
	m.frames, m.Digest = h.Digests(), h.Sum()
	x.list = append(x.list, m)
	return &x.list[len(x.list)-1]
}

// knows adds broadcasts of all parties to the history.
func (x *trial) knows(index int, name string, digests ...round.Digest) {
	x.history = append(x.history, round.Agreement{Round: index, Name: name, Digests: digests})
}

func digestOf(name string, content []byte) round.Digest {
	h := round.NewHasher(name)
	h.Frame(content)
	return h.Sum()
}

// unprovenBy requires that the file proves nothing and is at fault; proved requires that it proves
// the failure of a check.
func unprovenBy(t *testing.T, what, check string, err error) {
	t.Helper()
	var known *Error
	if err == nil {
		t.Errorf("%s: proves a failure of %q", what, check)
	} else if !errors.As(err, &known) {
		t.Errorf("%s: %v", what, err)
	}
}

func provenBy(t *testing.T, what, check, want string, err error) {
	t.Helper()
	if err != nil || check != want {
		t.Errorf("%s: %q, %v", what, check, err)
	}
}

// An opening is wrong only if it differs from what its sender committed to under that name in the
// previous round.
func TestRefereeOfOpenings(t *testing.T) {
	const step = "s"
	digest := round.Hash("an opening")
	type hearing struct {
		committed []byte // by party 1
		open      message
		about     round.Party // the sender of the shown commitment
		shownAs   string      // its name
		at        uint32      // its round
		historyOf string      // name of the last entry of the history
		other     bool        // the history has another commitment
		none      bool        // there is no history
	}
	judge := func(change func(h *hearing)) (string, error) {
		x := newTrial(t, jobv1.Protocol_PROTOCOL_KEYGEN)
		honest := round.Commitment(x.session, step, 1, digest)
		h := hearing{committed: bytes.Clone(honest[:]), about: 1, shownAs: round.CommitName(step), at: 5, historyOf: round.CommitName(step)}
		h.open.Envelope = exchange.Envelope{From: 1, Round: 7, Name: round.OpenName(step), Digest: digest}
		h.committed[0] ^= 1
		change(&h)
		x.list = append(x.list, h.open)
		contents := [][]byte{make([]byte, 32), h.committed, bytes.Repeat([]byte{2}, 32)}
		x.sees(h.about, h.at, h.shownAs, contents[h.about])
		if !h.none {
			var all []round.Digest
			for _, c := range contents {
				all = append(all, digestOf(h.shownAs, c))
			}
			if h.other {
				all[1][0] ^= 1
			}
			x.knows(4, h.historyOf, all...)
		}
		check, _, err := x.wrongOpening()
		return check, err
	}
	check, err := judge(func(*hearing) {})
	provenBy(t, "a wrong opening", check, round.CheckCommitment, err)
	for name, change := range map[string]func(h *hearing){
		"an honest opening":                          func(h *hearing) { h.committed[0] ^= 1 },
		"the commitment of another party":            func(h *hearing) { h.about = 2 },
		"a commitment in another round":              func(h *hearing) { h.at = 4 },
		"a later opening":                            func(h *hearing) { h.open.Round = 9 },
		"an earlier opening":                         func(h *hearing) { h.open.Round = 6 },
		"a commitment that differs from the history": func(h *hearing) { h.other = true },
		"under another name than in the history":     func(h *hearing) { h.historyOf = "t/commit" },
		"a commitment of another step":               func(h *hearing) { h.shownAs, h.historyOf = "t/commit", "t/commit" },
		"not an opening":                             func(h *hearing) { h.open.Name = step },
		"a truncated commitment":                     func(h *hearing) { h.committed = h.committed[:31] },
		"a commitment that is too long":              func(h *hearing) { h.committed = append(h.committed, 0) },
		"a commitment without a history":             func(h *hearing) { h.none = true },
	} {
		check, err := judge(change)
		unprovenBy(t, name, check, err)
	}
}

// An echo is false if it reports a message without a valid signature of its sender.
func TestRefereeOfEchoes(t *testing.T) {
	names := []string{"x", "y"}
	var none round.Digest
	x := newTrial(t, jobv1.Protocol_PROTOCOL_KEYGEN)
	about := round.Hash("lodge echo names", []byte("x"), []byte("y"))
	echo := func(change func(p round.Party, name string, digest *round.Digest, e *exchange.Envelope)) (content []byte) {
		for _, name := range names {
			for p, k := range x.signers {
				digest := round.Hash("the correct content", []byte(name), []byte{byte(p)})
				e := exchange.Envelope{Session: x.session, From: round.Party(p), To: round.All, Round: 5, Name: name, Digest: digest}
				change(round.Party(p), name, &digest, &e)
				content = append(append(content, digest[:]...), e.Sign(k)...)
			}
		}
		return append(content, about[:]...)
	}
	honest := func(round.Party, string, *round.Digest, *exchange.Envelope) {}
	silent := func(p round.Party, name string, digest *round.Digest, _ *exchange.Envelope) {
		if p == 2 && name == "y" {
			*digest = none
		}
	}
	judge := func(name string, names []string, frames ...[]byte) (string, error) {
		x.file.Reset()
		x.list, x.read, x.st.Names = nil, 0, names
		x.sees(1, 6, name, frames...)
		check, _, err := x.falseEcho()
		return check, err
	}
	for what, lie := range map[string]func(p round.Party, name string, digest *round.Digest, e *exchange.Envelope){
		"another digest": func(p round.Party, _ string, digest *round.Digest, _ *exchange.Envelope) { digest[p] ^= 1 },
		"of another round": func(p round.Party, name string, _ *round.Digest, e *exchange.Envelope) {
			if p == 0 && name == "y" {
				e.Round--
			}
		},
		"another transcript": func(p round.Party, name string, _ *round.Digest, e *exchange.Envelope) {
			if p == 2 && name == "x" {
				e.Transcript[0] ^= 1
			}
		},
	} {
		check, err := judge(round.EchoName, names, echo(lie))
		provenBy(t, what, check, round.CheckEcho, err)
	}
	lying := echo(func(_ round.Party, _ string, digest *round.Digest, _ *exchange.Envelope) { digest[0] ^= 1 })
	for what, c := range map[string]struct {
		name   string
		names  []string
		frames [][]byte
	}{
		"an honest echo":                     {round.EchoName, names, [][]byte{echo(honest)}},
		"a report that a party sent nothing": {round.EchoName, names, [][]byte{echo(silent)}},
		"not an echo":                        {"x", names, [][]byte{lying}},
		"of other names":                     {round.EchoName, []string{"x", "z"}, [][]byte{lying}},
		"of one name":                        {round.EchoName, names[:1], [][]byte{lying}},
		"without a name":                     {round.EchoName, nil, [][]byte{about[:]}},
		"a truncated echo":                   {round.EchoName, names, [][]byte{lying[1:]}},
		"an echo with a byte more":           {round.EchoName, names, [][]byte{append([]byte{0}, lying...)}},
		"an echo that is not shown":          {round.EchoName, names, nil},
	} {
		check, err := judge(c.name, c.names, c.frames...)
		unprovenBy(t, what, check, err)
	}
	x.file.Reset()
	x.list, x.read, x.st.Names = nil, 0, names
	x.sees(1, 6, round.EchoName, lying)
	x.sees(1, 6, "x").shown = nil
	check, _, err := x.falseEcho()
	unprovenBy(t, "an echo and another message", check, err)
}

// A message is malformed if it does not have the form of its name. One frame, or the number of
// frames, shows this.
func TestRefereeOfShapes(t *testing.T) {
	const name = "triple/mackey" // a digest
	good, short := make([]byte, 32), make([]byte, 31)
	judge := func(name string, change func(x *trial, m *message), frames ...[]byte) (string, error) {
		x := newTrial(t, jobv1.Protocol_PROTOCOL_TRIPLES)
		change(x, x.sees(1, 6, name, frames...))
		check, _, err := x.malformed()
		return check, err
	}
	as := func(*trial, *message) {}
	unseen := func(_ *trial, m *message) { m.shown = nil }
	check, err := judge(name, as, short)
	provenBy(t, "a short message", check, round.CheckShape, err)
	check, err = judge(name, unseen, good, good)
	provenBy(t, "a message of two frames", check, round.CheckShape, err)
	for what, c := range map[string]struct {
		name   string
		change func(x *trial, m *message)
		frames [][]byte
	}{
		"an honest message":              {name, as, [][]byte{good}},
		"whose frame is not shown":       {name, unseen, [][]byte{short}},
		"a message given by its digest":  {name, func(_ *trial, m *message) { m.frames, m.shown = nil, nil }, [][]byte{short}},
		"a message with an unknown name": {"triple/nothing", as, [][]byte{short}},
		"an echo":                        {round.EchoName, unseen, [][]byte{short, short}},
		"two frames, and one is shown":   {name, func(_ *trial, m *message) { m.shown = []int{0} }, [][]byte{short, good}},
		"and another message":            {name, func(x *trial, _ *message) { x.sees(1, 6, name, good) }, [][]byte{short}},
		"of another key":                 {name, func(x *trial, _ *message) { x.st.KeyHash[0] ^= 1 }, [][]byte{short}},
		"without the hash of a key":      {name, func(x *trial, _ *message) { x.st.KeyHash = nil }, [][]byte{short}},
		"of another set":                 {name, func(x *trial, _ *message) { x.spec.ParamsHash = make([]byte, 32) }, [][]byte{short}},
		"without a set":                  {name, func(x *trial, _ *message) { x.spec.Params = "insecure-0" }, [][]byte{short}},
		"of another field":               {name, func(x *trial, _ *message) { x.spec.Field = "p0" }, [][]byte{short}},
		"of a session of proofs": {name, func(x *trial, _ *message) {
			p := newTrial(t, jobv1.Protocol_PROTOCOL_POPK)
			x.spec, x.st.Params = p.spec, p.st.Params
		}, [][]byte{short}},
	} {
		check, err := judge(c.name, c.change, c.frames...)
		unprovenBy(t, what, check, err)
	}
}

// A verdict is wrong if it is about another batch than that of all broadcasts. No other message of
// 32 bytes is a verdict.
func TestRefereeOfVerdicts(t *testing.T) {
	judge := func(protocol jobv1.Protocol, name string, content func(x *trial) []byte, change func(x *trial)) (string, error) {
		x := newTrial(t, protocol)
		x.sees(1, 9, name, content(x))
		change(x)
		check, _, err := x.wrongVerdict()
		return check, err
	}
	as, other := func(*trial) {}, func(*trial) []byte { return make([]byte, 32) }
	right := func(x *trial) []byte {
		c, err := x.computed()
		if err != nil {
			t.Fatal(err)
		}
		d := c.plan.Digest(x.session, c.key, c.plan.Count, round.Digest{})
		return d[:]
	}
	const triples, proofs = jobv1.Protocol_PROTOCOL_TRIPLES, jobv1.Protocol_PROTOCOL_POPK
	check, err := judge(triples, verdict.Name, other, as)
	provenBy(t, "another batch", check, verdict.Check, err)
	check, err = judge(triples, verdict.Name, right, func(x *trial) { x.list[0].Transcript[0] ^= 1 })
	provenBy(t, "the batch of other broadcasts", check, verdict.Check, err)
	for what, c := range map[string]struct {
		protocol jobv1.Protocol
		name     string
		content  func(x *trial) []byte
		change   func(x *trial)
	}{
		"the right verdict":           {triples, verdict.Name, right, as},
		"a commitment":                {triples, round.CommitName("mackey/statement"), other, as},
		"of a session of proofs":      {proofs, verdict.Name, other, as},
		"a verdict of 31 bytes":       {triples, verdict.Name, func(*trial) []byte { return make([]byte, 31) }, as},
		"a verdict of 33 bytes":       {triples, verdict.Name, func(*trial) []byte { return make([]byte, 33) }, as},
		"and another message":         {triples, verdict.Name, other, func(x *trial) { x.sees(1, 9, verdict.Name, make([]byte, 32)) }},
		"a verdict that is not shown": {triples, verdict.Name, other, func(x *trial) { x.list[0].shown = nil }},
	} {
		check, err := judge(c.protocol, c.name, c.content, c.change)
		unprovenBy(t, what, check, err)
	}
}

// A message's shown frames are those it lists: all of them if the whole message is required, within
// its bound, and none of a message that is not required.
func TestRefereeOfFrames(t *testing.T) {
	a, b := []byte("first"), []byte("second")
	fresh := func() *trial {
		x := newTrial(t, jobv1.Protocol_PROTOCOL_KEYGEN)
		x.sees(0, 1, "x", a, b)
		return x
	}
	x := fresh()
	if got, err := x.whole(0, 11); err != nil || string(got) != "firstsecond" || x.end() != nil {
		t.Errorf("%q, %v", got, err)
	}
	x = fresh()
	_, err := x.whole(0, 10)
	unprovenBy(t, "longer than allowed", "", err)
	x = fresh()
	x.list[0].shown = []int{0}
	_, err = x.whole(0, 100)
	unprovenBy(t, "one frame of two, for all", "", err)
	x = fresh()
	x.list[0].frames, x.list[0].shown = nil, nil
	_, err = x.whole(0, 100)
	unprovenBy(t, "a digest, for all", "", err)
	x = fresh()
	_, _, err = x.one()
	unprovenBy(t, "two frames, for one", "", err)
	x = fresh()
	x.list[0].shown = nil
	_, _, err = x.one()
	unprovenBy(t, "no frame, for one", "", err)
	x = fresh()
	x.sees(0, 1, "y", a)
	_, err = x.whole(1, 100)
	unprovenBy(t, "frames of a skipped message", "", err)
	x = fresh()
	x.file.Reset()
	unprovenBy(t, "listed frames that are not in the file", "", x.end())
	x = fresh()
	if _, err := x.whole(0, 11); err != nil {
		t.Fatal(err)
	}
	x.file.WriteByte(0)
	unprovenBy(t, "a byte left at the end", "", x.end())

	in := new(bytes.Buffer)
	if err := writeBlock(in, make([]byte, 11)); err != nil {
		t.Fatal(err)
	}
	_, err = block(in, nil, 10)
	unprovenBy(t, "a block beyond its limit", "", err)
	if _, err := block(io.MultiReader(bytes.NewReader([]byte{4, 0, 0, 0, 1})), nil, 10); err == nil {
		t.Error("a truncated block")
	}
	_, err = digests(make([]byte, 33))
	unprovenBy(t, "digests of 33 bytes", "", err)
}

// The accused party must have signed the accused message. Every other message must be signed by its
// sender or be in the history that the accused party signed.
func TestRefereeOfSignatures(t *testing.T) {
	spec := newTrial(t, jobv1.Protocol_PROTOCOL_KEYGEN)
	said := round.Hash("what party 2 said")
	history := round.Agreement{Round: 4, Name: "y", Digests: []round.Digest{{1}, {2}, said}}
	transcript := round.Digest(round.NewTranscript(spec.session, 3).After(spec.session, history))
	signed := func(from int, name string, digest round.Digest) *evidencev1.Message {
		e := exchange.Envelope{
			Protocol: plan.Keygen, Session: spec.session, Round: 6, Name: name, From: round.Party(from), To: round.All, Transcript: transcript, Digest: digest,
		}
		return &evidencev1.Message{From: uint32(from), Round: 6, Name: name, Transcript: transcript[:], Digest: digest[:], Signature: e.Sign(spec.signers[from])}
	}
	judge := func(change func(st *evidencev1.Statement)) error {
		x := newTrial(t, jobv1.Protocol_PROTOCOL_KEYGEN)
		x.history = []round.Agreement{history}
		x.st = &evidencev1.Statement{Culprit: 1, Messages: []*evidencev1.Message{
			signed(1, "x", round.Hash("accused")), {From: 2, Round: 5, Name: "y", Transcript: make([]byte, 32), Digest: said[:]},
		}}
		change(x.st)
		return x.messages()
	}
	if err := judge(func(*evidencev1.Statement) {}); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(st *evidencev1.Statement){
		"none":                           func(st *evidencev1.Statement) { st.Messages = nil },
		"signed by another party":        func(st *evidencev1.Statement) { st.Culprit = 2 },
		"with a wrong signature":         func(st *evidencev1.Statement) { st.Messages[0].Signature[9] ^= 1 },
		"with another's wrong signature": func(st *evidencev1.Statement) { st.Messages[1].Signature = make([]byte, 64) },
		"in the history, but unsigned": func(st *evidencev1.Statement) {
			st.Messages, st.Culprit = st.Messages[1:], 2
			st.Messages[0].Transcript = transcript[:]
		},
		"not in the history":      func(st *evidencev1.Statement) { st.Messages[1].Digest = make([]byte, 32) },
		"sent by another party":   func(st *evidencev1.Statement) { st.Messages[1].From = 0 },
		"of another name":         func(st *evidencev1.Statement) { st.Messages[1].Name = "z" },
		"of another round":        func(st *evidencev1.Statement) { st.Messages[1].Round = 4 },
		"of nobody":               func(st *evidencev1.Statement) { st.Messages[1].From = 3 },
		"of a long name":          func(st *evidencev1.Statement) { st.Messages[1].Name = string(make([]byte, maxName+1)) },
		"with a short transcript": func(st *evidencev1.Statement) { st.Messages[1].Transcript = make([]byte, 31) },
		"with another transcript": func(st *evidencev1.Statement) {
			e := exchange.Envelope{Protocol: plan.Keygen, Session: spec.session, Round: 6, Name: "x", From: 1, To: round.All, Digest: round.Hash("accused")}
			st.Messages[0].Transcript, st.Messages[0].Signature = make([]byte, 32), e.Sign(spec.signers[1])
		},
		"without a digest": func(st *evidencev1.Statement) { st.Messages[1].Digest = nil },
		"with two digests": func(st *evidencev1.Statement) {
			e := round.NewHasher("x")
			e.FrameDigest(round.Digest{5})
			st.Messages[0] = signed(1, "x", e.Sum())
			st.Messages[0].Frames = append([]byte{5}, make([]byte, 31)...)
		},
		"with a frame shown twice": func(st *evidencev1.Statement) {
			e := round.NewHasher("x")
			e.FrameDigest(round.Digest{})
			e.FrameDigest(round.Digest{})
			st.Messages[0] = signed(1, "x", e.Sum())
			st.Messages[0].Digest, st.Messages[0].Frames, st.Messages[0].Shown = nil, make([]byte, 64), []uint32{0, 0}
		},
		"with a shown frame that does not exist": func(st *evidencev1.Statement) {
			e := round.NewHasher("x")
			e.FrameDigest(round.Digest{})
			st.Messages[0] = signed(1, "x", e.Sum())
			st.Messages[0].Digest, st.Messages[0].Frames, st.Messages[0].Shown = nil, make([]byte, 32), []uint32{1}
		},
		"with half a digest": func(st *evidencev1.Statement) { st.Messages[1].Frames = make([]byte, 48) },
	} {
		unprovenBy(t, "a message "+what, "", judge(change))
	}
}

// Two messages are versions of one if one party signed both in the same round under the same name.
func TestRefereeOfVersions(t *testing.T) {
	judge := func(change func(x *trial)) (string, error) {
		x := newTrial(t, jobv1.Protocol_PROTOCOL_KEYGEN)
		for i := range byte(2) {
			x.sees(1, 3, "x", []byte{i})
			x.list[i].shown = nil
			x.st.Messages = append(x.st.Messages, &evidencev1.Message{Signature: []byte("checked before")})
		}
		change(x)
		check, _, err := x.equivocation()
		return check, err
	}
	check, err := judge(func(*trial) {})
	provenBy(t, "two versions", check, round.CheckEcho, err)
	for what, change := range map[string]func(x *trial){
		"of two parties":              func(x *trial) { x.list[1].From = 2 },
		"of two rounds":               func(x *trial) { x.list[1].Round++ },
		"of two names":                func(x *trial) { x.list[1].Name = "y" },
		"that are the same":           func(x *trial) { x.list[1].Digest = x.list[0].Digest },
		"only one of which is signed": func(x *trial) { x.st.Messages[1].Signature = nil },
		"one":                         func(x *trial) { x.list = x.list[:1] },
		"three":                       func(x *trial) { x.list = append(x.list, x.list[0]) },
		"with a history":              func(x *trial) { x.knows(1, "x") },
	} {
		check, err := judge(change)
		unprovenBy(t, "versions "+what, check, err)
	}
}

// A batch that drops zero tuples may have any number of tuples; every other batch has a fixed
// number.
func TestRefereeOfCounts(t *testing.T) {
	for kind, drops := range map[jobv1.Kind]bool{jobv1.Kind_KIND_SCALAR: false, jobv1.Kind_KIND_BIT: true, jobv1.Kind_KIND_INVERSE: true} {
		x := newTrial(t, jobv1.Protocol_PROTOCOL_TRIPLES)
		x.spec.Kind = kind
		b, _, err := plan.Batch(x.spec, mustSet(t).Proved(), 3, mustSet(t).N(), false)
		if err != nil {
			t.Fatal(err)
		}
		terms := plan.Terms(plan.Triples, b.Instance, round.Digest(x.st.GetKeyHash()))
		x.st.Params = terms[:]
		for _, count := range []int{b.Count, b.Count - 1, 0} {
			d := b.Digest(x.session, round.Digest(x.st.GetKeyHash()), count, round.Digest{})
			x.list, x.read = nil, 0
			x.file.Reset()
			x.sees(1, 9, verdict.Name, d[:])
			check, _, err := x.wrongVerdict()
			if honest := drops || count == b.Count; honest {
				unprovenBy(t, "an honest verdict", check, err)
			} else {
				provenBy(t, "a verdict on fewer tuples", check, verdict.Check, err)
			}
		}
	}
}
