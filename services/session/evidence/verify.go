package evidence

import (
	"context"
	"crypto/ed25519"
	"io"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Members holds the roster's data about the parties.
type Members struct {
	Names []string
	Keys  []ed25519.PublicKey
	Hash  [32]byte
}

// Verify reads an accusation and checks that it proves its claim, using only the roster. The error
// is an *Error if the file is at fault, and otherwise the error of the reader or of the context.
// Verify reads the file once and holds one statement and the frames of a proof in memory, but no
// whole large message.
func Verify(ctx context.Context, file io.Reader, roster *config.Roster) (*Finding, error) {
	who := Members{Keys: roster.SigningKeys(), Hash: roster.Hash()}
	for _, p := range roster.Parties {
		who.Names = append(who.Names, p.Name)
	}
	return verify(ctx, file, who)
}

// referee judges one accusation.
type referee struct {
	ctx     context.Context
	in      io.Reader
	who     Members
	st      *evidencev1.Statement
	spec    *jobv1.SessionSpec
	session round.Digest
	history []round.Agreement
	list    []message
	room    []byte // buffer of the last frame read
	read    int    // number of messages whose frames have been read or skipped
}

// message is a broadcast in a file. The first message is the accused one.
type message struct {
	exchange.Envelope
	frames []round.Digest
	shown  []int
}

// judges holds the judge of each kind. A judge returns the check that the accused party fails, and
// the reason.
var judges = map[evidencev1.Kind]struct {
	kind  Kind
	judge func(r *referee) (check, reason string, err error)
}{
	evidencev1.Kind_KIND_EQUIVOCATION:  {Equivocation, (*referee).equivocation},
	evidencev1.Kind_KIND_WRONG_OPENING: {WrongOpening, (*referee).wrongOpening},
	evidencev1.Kind_KIND_BAD_PROOF:     {BadProof, (*referee).badProof},
	evidencev1.Kind_KIND_BAD_KEY_PROOF: {BadKeyProof, (*referee).badKeyProof},
	evidencev1.Kind_KIND_MALFORMED:     {Malformed, (*referee).malformed},
	evidencev1.Kind_KIND_FALSE_ECHO:    {FalseEcho, (*referee).falseEcho},
	evidencev1.Kind_KIND_WRONG_VERDICT: {WrongVerdict, (*referee).wrongVerdict},
}

func verify(ctx context.Context, file io.Reader, who Members) (*Finding, error) {
	r := &referee{ctx: ctx, in: file, who: who}
	var err error
	if r.st, err = head(file, who); err != nil {
		return nil, err
	}
	if err := r.place(); err != nil {
		return nil, err
	}
	if err := r.messages(); err != nil {
		return nil, err
	}
	j, ok := judges[r.st.GetKind()]
	switch {
	//lodge:check evidence/file/kind [swap=!ok=>!ok && j.kind != ""] [run=TestLimitsOfWhoIsAccused]
	//  a file of an unknown kind crashes the judge
	case !ok:
		return nil, unreadable("unknown kind of proof")
	//lodge:check evidence/file/no-names [drop=len(r.st.GetNames()) > 0 && j.kind != FalseEcho]
	//  [run=TestLimitsOfWhoIsAccused] one cheat can be filed many times with unused names
	//lodge:check evidence/file/no-key-hash [drop=len(r.st.GetKeyHash()) > 0 && !keyed(r.st)]
	//  [run=TestLimitsOfWhoIsAccused] one cheat can be filed many times with an unused key hash
	//lodge:check evidence/file/no-seed [drop=len(r.st.GetKeySeed()) > 0 && j.kind != BadProof]
	//  [run=TestLimitsOfWhoIsAccused] one cheat can be filed many times with an unused key seed
	case len(r.st.GetNames()) > 0 && j.kind != FalseEcho, len(r.st.GetKeyHash()) > 0 && !keyed(r.st), len(r.st.GetKeySeed()) > 0 && j.kind != BadProof:
		return nil, unreadable("fields that this kind of proof does not have")
	}
	check, reason, err := j.judge(r)
	if err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	ref, err := job.RefOf(r.spec.GetRef())
	if err != nil {
		return nil, unreadable("%v", err)
	}
	party := func(p uint32) Party { return Party{round.Party(p), who.Names[p]} }
	return &Finding{
		Kind: j.kind, Culprit: party(r.st.GetCulprit()), Accuser: party(r.st.GetAccuser()), Check: check, Reason: reason,
		Session: r.session, Protocol: plan.Name(r.spec.GetProtocol()), Job: ref, When: r.st.GetWhen().AsTime(),
	}, nil
}

// keyed reports whether a statement has the hash of the key that its session's terms contain.
func keyed(st *evidencev1.Statement) bool {
	switch st.GetKind() {
	case evidencev1.Kind_KIND_BAD_PROOF, evidencev1.Kind_KIND_WRONG_VERDICT:
		return true
	case evidencev1.Kind_KIND_MALFORMED:
		return st.GetSpec().GetProtocol() != jobv1.Protocol_PROTOCOL_KEYGEN
	}
	return false
}

// place derives the session's identifier and the transcript of the history.
func (r *referee) place() error {
	r.spec = r.st.GetSpec()
	n := len(r.who.Keys)
	nonces, err := digests(r.st.GetNonces())
	switch {
	case err != nil:
		return err
	//lodge:check evidence/session/nonces [run=TestLimitsOfWhoIsAccused] [redundant=the session
	//  identifier binds the number of nonces, and the culprit signed it] a session is judged with
	//  nonces missing
	case len(nonces) != n:
		return unreadable("%d nonces of %d parties", len(nonces), n)
	//lodge:check evidence/session/version [run=TestOneEncoding] a session is judged by the rules of
	//  another protocol version
	case r.spec.GetProtocolVersion() != job.ProtocolVersion:
		return problem(OtherVersion, "the session has version %d, but this program judges version %d", r.spec.GetProtocolVersion(), job.ProtocolVersion)
	//lodge:check evidence/session/terms [drop=len(r.st.GetParams()) != len(round.Digest{})]
	//  [run=TestLimitsOfWhoIsAccused] a session is judged with malformed terms
	case plan.Name(r.spec.GetProtocol()) == "" || len(r.st.GetParams()) != len(round.Digest{}):
		return unreadable("the session's protocol is unknown")
	}
	terms := round.Terms{
		Version: uint64(r.spec.GetProtocolVersion()), Protocol: plan.Name(r.spec.GetProtocol()), Params: round.Digest(r.st.GetParams()),
		Roster: r.who.Hash, Epoch: r.spec.GetEpoch(), Job: job.Digest(r.spec),
	}
	r.session = round.SessionID(terms, nonces)
	for i, a := range r.st.GetHistory() {
		list, err := digests(a.GetDigests())
		if err != nil {
			return err
		}
		next := round.Agreement{Round: int(a.GetRound()), Name: a.GetName(), Digests: list}
		//lodge:check evidence/session/history-of-all [drop=len(list) != n]
		//  [run=TestLimitsOfWhoIsAccused] a broadcast in the history can lack parties
		//lodge:check evidence/session/history-in-order [drop=i > 0 && !before(r.history[i-1],
		//  next)] [run=TestLimitsOfWhoIsAccused] [redundant=the transcript that the culprit signed
		//  binds the order] the history can be out of order, so its last broadcast is not the last
		if len(list) != n || len(next.Name) > maxName || i > 0 && !before(r.history[i-1], next) {
			return unreadable("the history is not in order")
		}
		r.history = append(r.history, next)
	}
	return nil
}

func before(a, b round.Agreement) bool {
	return a.Round < b.Round || a.Round == b.Round && strings.Compare(a.Name, b.Name) < 0
}

// messages reads the messages. The accused party must have signed the first; every other message
// must be signed by its sender or be in the history.
func (r *referee) messages() error {
	for i, m := range r.st.GetMessages() {
		x, err := r.message(m)
		if err != nil {
			return err
		}
		switch {
		//lodge:check evidence/message/culprit [run=TestRefereeOfSignatures] the accused message
		//  need not be the culprit's
		case i == 0 && x.From != round.Party(r.st.GetCulprit()):
			return unproven("the first message is not from the accused party")
		//lodge:check evidence/message/signature [run=TestRefereeOfSignatures] the accused message
		//  can have an invalid signature
		case len(m.GetSignature()) > 0 && !x.Verify(r.who.Keys[x.From], m.GetSignature()):
			return unproven("%s has not signed this %s in this session", r.who.Names[x.From], x.Name)
		//lodge:check evidence/message/unsigned [swap=(i == 0 || !r.agreed(x))=>!r.agreed(x)]
		//  [run=TestRefereeOfSignatures] the accused message needs no signature
		//lodge:check evidence/message/agreed [swap=(i == 0 || !r.agreed(x))=>i == 0]
		//  [run=TestRefereeOfSignatures] a message that the culprit never received counts
		case len(m.GetSignature()) == 0 && (i == 0 || !r.agreed(x)):
			return unproven("neither its sender nor the accused party has signed a %s", x.Name)
		}
		r.list = append(r.list, x)
	}
	//lodge:check evidence/message/none [run=TestRefereeOfSignatures] a file without messages
	//  crashes the judge
	if len(r.list) == 0 {
		return unreadable("no message")
	}
	t := round.NewTranscript(r.session, len(r.who.Keys)).After(r.session, r.history...)
	//lodge:check evidence/message/transcript [run=TestRefereeOfSignatures] the history need not be
	//  the one that the culprit signed
	if len(r.history) > 0 && round.Digest(t) != r.list[0].Transcript {
		return unproven("the history does not match the accused message")
	}
	return nil
}

func (r *referee) message(m *evidencev1.Message) (x message, err error) {
	if x.frames, err = digests(m.GetFrames()); err != nil {
		return x, err
	}
	//lodge:check evidence/message/sender [drop=int64(m.GetFrom()) >= int64(len(r.who.Keys))]
	//  [run=TestRefereeOfSignatures] a sender outside the roster crashes the judge
	//lodge:check evidence/message/transcript-length [drop=len(m.GetTranscript()) !=
	//  len(round.Digest{})] [run=TestRefereeOfSignatures] a transcript of the wrong length is
	//  accepted
	if int64(m.GetFrom()) >= int64(len(r.who.Keys)) || len(m.GetName()) > maxName || len(m.GetTranscript()) != len(round.Digest{}) {
		return x, unreadable("a message of an unknown party")
	}
	x.Envelope = exchange.Envelope{
		Protocol: plan.Name(r.spec.GetProtocol()), Version: r.spec.GetProtocolVersion(), Session: r.session, Round: m.GetRound(),
		Name: m.GetName(), From: round.Party(m.GetFrom()), To: round.All, Transcript: round.Digest(m.GetTranscript()),
	}
	switch {
	case len(x.frames) == 0 && len(m.GetDigest()) == len(x.Digest) && len(m.GetShown()) == 0:
		copy(x.Digest[:], m.GetDigest())
		return x, nil
	//lodge:check evidence/message/one-digest [drop=len(m.GetDigest()) > 0]
	//  [run=TestRefereeOfSignatures] a message can claim another digest than that of its frames
	case len(x.frames) == 0 || len(m.GetDigest()) > 0:
		return x, unreadable("a message without a digest, or with two")
	}
	h := round.NewHasher(x.Name)
	for _, d := range x.frames {
		h.FrameDigest(d)
	}
	x.Digest = h.Sum()
	for i, s := range m.GetShown() {
		//lodge:check evidence/message/shown-are-there [drop=int64(s) >= int64(len(x.frames))]
		//  [run=TestReferee|TestLimitsOfWhoIsAccused] a file shows a frame that the message does
		//  not have
		//lodge:check evidence/message/shown-once [drop=i > 0 && int(s) <= x.shown[i-1]]
		//  [run=TestRefereeOfSignatures] one frame can be shown in the place of another
		if int64(s) >= int64(len(x.frames)) || i > 0 && int(s) <= x.shown[i-1] {
			return x, unreadable("the shown frames are not in order")
		}
		x.shown = append(x.shown, int(s))
	}
	return x, nil
}

// agreed reports whether a message is in the history, which the accused party has signed.
func (r *referee) agreed(m message) bool {
	return slices.ContainsFunc(r.history, func(a round.Agreement) bool {
		//lodge:check evidence/message/agreed-name [drop=a.Name == m.Name]
		//  [run=TestRefereeOfSignatures] a broadcast of another name counts as the agreed one
		//lodge:check evidence/message/agreed-round [drop=sent(a) == m.Round]
		//  [run=TestRefereeOfSignatures] a broadcast of another round counts as the agreed one
		//lodge:check evidence/message/agreed-digest [drop=a.Digests[m.From] == m.Digest]
		//  [run=TestRefereeOfSignatures] a broadcast with other content counts as the agreed one
		return a.Name == m.Name && sent(a) == m.Round && a.Digests[m.From] == m.Digest
	})
}

// sent returns the round number in signatures of the broadcasts in an agreement. Signatures count
// from the prelude, which has one round and, with three or more parties, an echo round. The
// transcript counts without the prelude, and by the round of the echo.
func sent(a round.Agreement) uint32 { return uint32(a.Round) + 1 }
