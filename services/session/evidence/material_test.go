package evidence_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// listener records the frames that one party sends and receives.
type listener struct {
	party int

	mu    sync.Mutex
	links map[[2]int]map[uint64]*exchangev1.Frame // by sequence number, because frames may be retransmitted
}

func (l *listener) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links = map[[2]int]map[uint64]*exchangev1.Frame{}
}

func (l *listener) sends(from, to int) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
		o ...grpc.CallOption) (grpc.ClientStream, error) {
		st, err := open(ctx, desc, cc, method, o...)
		if err != nil || from != l.party && to != l.party {
			return st, err
		}
		return &heard{st, l, [2]int{from, to}}, nil
	}
}

// both composes two interceptors.
func both(outer, inner grpc.StreamClientInterceptor) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
		o ...grpc.CallOption) (grpc.ClientStream, error) {
		within := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
			o ...grpc.CallOption) (grpc.ClientStream, error) {
			return inner(ctx, desc, cc, method, open, o...)
		}
		return outer(ctx, desc, cc, method, within, o...)
	}
}

type heard struct {
	grpc.ClientStream
	l    *listener
	link [2]int
}

func (s *heard) SendMsg(m any) error {
	if r, ok := m.(interface{ GetFrame() *exchangev1.Frame }); ok && r.GetFrame() != nil {
		s.l.note(s.link, r.GetFrame())
	}
	return s.ClientStream.SendMsg(m)
}

func (l *listener) note(link [2]int, f *exchangev1.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.links[link] == nil {
		l.links[link] = map[uint64]*exchangev1.Frame{}
	}
	l.links[link][f.GetSeq()] = &exchangev1.Frame{Start: f.GetStart(), Data: bytes.Clone(f.GetData()), End: f.GetEnd()}
}

// place is the position of a message in a session.
type place struct {
	from  round.Party
	round uint32
	name  string
}

// messages returns the complete messages, and the signatures of the messages that were sent only to
// this party.
func (l *listener) messages() (frames map[place][][]byte, private map[place][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	frames, private = map[place][][]byte{}, map[place][]byte{}
	for link, sent := range l.links {
		var at place
		var start *exchangev1.Start
		var list [][]byte
		for seq := range uint64(len(sent)) {
			f := sent[seq]
			if f.GetStart() != nil {
				start, list = f.GetStart(), nil
				at = place{round.Party(link[0]), start.GetRound(), start.GetName()}
			}
			if list = append(list, f.GetData()); f.GetEnd() == nil {
				continue
			}
			frames[at] = list
			if !start.GetBroadcast() && link[1] == l.party {
				private[at] = f.GetEnd().GetSignature()
			}
		}
	}
	return frames, private
}

// signed is a broadcast as an accusation shows it, or a message that is presented as one.
type signed struct {
	exchange.Envelope
	signature []byte
	frames    [][]byte
}

// material holds a party's knowledge of a session: all messages that it sent and received, and the
// session's terms.
type material struct {
	w       *world
	accuser int
	session round.Digest
	spec    *jobv1.SessionSpec
	params  round.Digest
	nonces  []round.Digest
	history []round.Agreement
	list    []signed // broadcasts of the session, by all parties
	strange []signed // messages of its prelude, and messages to one party
	key     func() (seed, half []byte)
	judge   *keygen.Judge // for a session of keys
}

// gather returns the material of the listening party.
func (w *world) gather(c evidence.Case, report runner.Report) *material {
	m := &material{
		w: w, accuser: int(c.Self), session: report.SessionID, spec: c.Spec, params: c.Params, nonces: report.Nonces,
		history: report.History, key: c.Key,
	}
	frames, private := w.listener.messages()
	for _, b := range report.Broadcasts {
		e := b.Envelope
		s := signed{e, b.Signature, frames[place{e.From, e.Round, e.Name}]}
		switch {
		case s.frames == nil:
			w.t.Errorf("the listener did not record %s of party %d in round %d", e.Name, e.From, e.Round)
		case e.Session != m.session:
			m.strange = append(m.strange, s)
		default:
			m.list = append(m.list, s)
		}
	}
	for at, signature := range private {
		h := round.NewHasher(at.name)
		for _, f := range frames[at] {
			h.Frame(f)
		}
		e := m.list[0].Envelope
		e.Round, e.Name, e.From, e.To, e.Transcript, e.Digest = at.round, at.name, at.from, c.Self, m.transcript(at.round), h.Sum()
		if !e.Verify(w.net.Keys[at.from], signature) {
			w.t.Errorf("the signature of %s of party %d in round %d does not verify", at.name, at.from, at.round)
		}
		e.To = round.All
		m.strange = append(m.strange, signed{e, signature, frames[at]})
	}
	if c.Spec.GetKind() == jobv1.Kind_KIND_KEYS {
		var err error
		if m.judge, err = keygen.NewJudge(m.session, w.n, w.scheme, 2, 1); err != nil {
			w.t.Error(err)
		}
	}
	return m
}

// transcript returns the transcript that signatures of a round cover, without echoes.
func (m *material) transcript(index uint32) round.Digest {
	t := round.NewTranscript(m.session, m.w.n)
	for _, a := range m.history {
		if uint32(a.Round)+1 < index {
			t = t.After(m.session, a)
		}
	}
	return round.Digest(t)
}

// of returns a party's broadcasts.
func (m *material) of(p int) (list []signed) {
	for _, s := range m.list {
		if int(s.From) == p {
			list = append(list, s)
		}
	}
	return list
}

// named returns the first broadcast of a party under a name.
func (m *material) named(p round.Party, name string) (signed, bool) {
	for _, s := range m.list {
		if s.From == p && s.Name == name {
			return s, true
		}
	}
	return signed{}, false
}

// before returns the history that corresponds to a message's transcript, or nil if there is none.
func (m *material) before(s signed) []round.Agreement {
	t := round.NewTranscript(m.session, m.w.n)
	for i := range m.history {
		if t = t.After(m.session, m.history[i]); round.Digest(t) == s.Transcript {
			return m.history[:i+1]
		}
	}
	return nil
}

// shown is a message of an accusation.
type shown struct {
	signed
	bare   bool // without a signature
	digest bool // without its frames
	frames []int
}

// accusation returns an accusation of this kind against q.
func (m *material) accusation(kind evidencev1.Kind, q int, history []round.Agreement, list ...shown) parsed {
	p := parsed{st: &evidencev1.Statement{
		Kind: kind, Culprit: uint32(q), Accuser: uint32(m.accuser), When: timestamppb.New(time.Unix(1_800_000_000, 0)),
		Spec: m.spec, Params: m.params[:], Nonces: joined(m.nonces), History: agreements(history),
	}}
	keyed := slices.Contains([]evidencev1.Kind{
		evidencev1.Kind_KIND_BAD_PROOF, evidencev1.Kind_KIND_WRONG_VERDICT, evidencev1.Kind_KIND_MALFORMED,
	}, kind)
	if keyed && m.key != nil {
		seed, half := m.key()
		hash := keygen.PublicHashOf(seed, half)
		p.st.KeyHash = hash[:]
		if kind == evidencev1.Kind_KIND_BAD_PROOF && len(list) == 3 {
			p.st.KeySeed = seed
			p.blocks = append(p.blocks, half)
		}
	}
	for _, x := range list {
		p.st.Messages = append(p.st.Messages, x.message())
		for _, i := range x.frames {
			p.blocks = append(p.blocks, x.signed.frames[i])
		}
	}
	return p
}

func (x shown) message() *evidencev1.Message {
	out := &evidencev1.Message{From: uint32(x.From), Round: x.Round, Name: x.Name, Transcript: x.Transcript[:]}
	if !x.bare {
		out.Signature = x.signature
	}
	if x.digest {
		out.Digest = x.Digest[:]
		return out
	}
	for _, f := range x.signed.frames {
		d := round.FrameDigest(f)
		out.Frames = append(out.Frames, d[:]...)
	}
	for _, i := range x.frames {
		out.Shown = append(out.Shown, uint32(i))
	}
	return out
}

func agreements(history []round.Agreement) (list []*evidencev1.Agreement) {
	for _, a := range history {
		list = append(list, &evidencev1.Agreement{Round: uint32(a.Round), Name: a.Name, Digests: joined(a.Digests)})
	}
	return list
}

func joined(list []round.Digest) (out []byte) {
	for _, d := range list {
		out = append(out, d[:]...)
	}
	return out
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
