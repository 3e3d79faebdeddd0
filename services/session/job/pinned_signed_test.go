package job_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/internal/testnet"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// signers are the parties' signing keys, always the same.
func signers() (private []ed25519.PrivateKey, public []ed25519.PublicKey) {
	for p := range parties {
		k := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(p + 1)}, ed25519.SeedSize))
		private, public = append(private, k), append(public, k.Public().(ed25519.PublicKey))
	}
	return private, public
}

// wire records the frames on a session's connections, by message name, link and number.
// Retransmitted frames are recorded once.
type wire struct {
	mu     sync.Mutex
	frames map[string]map[string][]byte
}

func (w *wire) sends(from, to int) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
		o ...grpc.CallOption) (grpc.ClientStream, error) {
		st, err := open(ctx, desc, cc, method, o...)
		return &tap{st, w, fmt.Sprintf("%d to %d", from, to)}, err
	}
}

type tap struct {
	grpc.ClientStream
	*wire
	link string
}

func (s *tap) SendMsg(m any) error {
	if r, ok := m.(interface{ GetFrame() *exchangev1.Frame }); ok && r.GetFrame() != nil {
		f := r.GetFrame()
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(f)
		if err != nil {
			return err
		}
		name := f.GetStart().GetName()
		s.mu.Lock()
		if s.wire.frames[name] == nil {
			s.wire.frames[name] = map[string][]byte{}
		}
		s.wire.frames[name][fmt.Sprintf("%s %04d", s.link, f.GetSeq())] = b
		s.mu.Unlock()
	}
	return s.ClientStream.SendMsg(m)
}

// private sends a different message to each other party.
type private struct{ round.Session }

func (r private) start() round.Transition[bool] {
	var send []round.Message
	for p := range round.Party(r.Parties) {
		if p != r.Self {
			send = append(send, round.Message{To: p, Name: "pinned/private", Body: round.Bytes([]byte{byte(r.Self), byte(p)})})
		}
	}
	return round.Next(round.Round[bool](r), send...)
}

func (r private) Wants() []round.Want {
	return r.Each(round.Want{Name: "pinned/private", MaxBytes: 2})
}

func (r private) Step(context.Context, round.Inbox) (round.Transition[bool], error) {
	return round.Done(true), nil
}

// frames notes the frames of a session between runners over connections: of the prelude, of a
// commitment that is opened, of messages to one party each, of a verdict, and of the echoes; with
// their place in the session, the digests and the signatures.
func frames(t *testing.T, note note) {
	t.Helper()
	w := &wire{frames: map[string]map[string][]byte{}}
	net := testnet.New(t, parties, testnet.Options{Sends: w.sends})
	private, public := signers()
	var sessions []*exchange.Streams
	for p := range parties {
		x, err := net.Parties[p].Exchange.Open(job.Ref{JobID: "pinned", Ordinal: 1}, exchange.Pins{})
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, x)
	}
	ends := make([]error, parties)
	var wg sync.WaitGroup
	for p, x := range sessions {
		source := seeded("frames", round.Party(p))
		o := runner.Options{
			Terms: round.Terms{
				Version: pinnedVersion, Protocol: "pinned", Params: round.Hash("params"), Roster: round.Hash("roster"), Epoch: 1,
				Job: round.Hash("job"),
			},
			Session: x, Self: round.Party(p), Names: net.Names, Signer: private[p], Keys: public,
			Random: source.Stream("prelude"), Limits: runner.Limits{Idle: 2 * time.Minute, Compute: 2 * time.Minute, MinRate: 1},
		}
		wg.Go(func() {
			_, _, ends[p] = runner.Run(context.Background(), o, func(s round.Session) (round.Transition[round.Digest], error) {
				return said(s, source.Stream("opening"))
			})
		})
	}
	wg.Wait()
	for p, err := range ends {
		if err != nil {
			t.Fatalf("party %d: %v", p, err)
		}
	}
	for name, list := range w.frames {
		var all [][]byte
		for _, at := range slices.Sorted(maps.Keys(list)) {
			all = append(all, []byte(at), list[at])
		}
		note("frames/"+name, round.Hash("frames", all...))
	}
}

// said is a chain with every kind of message.
func said(s round.Session, random io.Reader) (round.Transition[round.Digest], error) {
	t, err := round.CommitOpen(s, "pinned", random, []byte{byte(s.Self)}, 1)
	return round.Then(t, func(_ context.Context, o round.Opened) (round.Transition[round.Digest], error) {
		return round.Then(private{s}.start(), func(context.Context, bool) (round.Transition[round.Digest], error) {
			return verdict.Accept(s, o.Transcript), nil
		}), nil
	}), err
}

// signed notes the signed values of the parties, and their signatures.
func signed(t *testing.T, note note) {
	t.Helper()
	private, _ := signers()
	e := exchange.Envelope{
		Protocol: "pinned", Version: pinnedVersion, Session: round.Hash("session"), Round: 7, Name: "pinned/message", From: 1,
		To: round.All, Transcript: round.Hash("transcript"), Digest: round.Hash("message"),
	}
	note("signed/broadcast", round.Hash("signature", e.Sign(private[1])))
	e.To = 2
	note("signed/message to one party", round.Hash("signature", e.Sign(private[1])))

	f := exchange.Farewell{
		Protocol: "pinned", Version: pinnedVersion, Session: round.Hash("session"), From: 1, Outcome: string(runner.Aborted),
		Round: "triple/mac", Check: "mac", Reason: "the reason",
	}
	note("signed/farewell", round.Hash("signature", f.Sign(private[1])))
	blamed := round.Party(2)
	f.Blamed = &blamed
	note("signed/farewell with a blame", round.Hash("signature", f.Sign(private[1])))

	d := job.Digest(pinnedSpec(round.Hash("roster")))
	note("signed/spec", d)
	for name, file := range accusations(t) {
		note("signed/evidence of "+name, round.Hash("file", file))
	}
}

// pinnedSpec has every field.
func pinnedSpec(roster round.Digest) *jobv1.SessionSpec {
	params := round.Hash("params")
	return &jobv1.SessionSpec{
		Ref: job.Ref{JobID: "pinned", Ordinal: 2}.Proto(), Protocol: jobv1.Protocol_PROTOCOL_TRIPLES,
		ProtocolVersion: pinnedVersion, Params: "insecure-6", ParamsHash: params[:], RosterHash: roster[:], Field: "p128",
		Kind: jobv1.Kind_KIND_MATRIX, Dim: 4, Shape: &jobv1.Shape{Rows: 5, Inner: 6, Columns: 7}, Count: 8, Epoch: 9,
		Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: "tenant",
		Deadline: timestamppb.New(time.Unix(4_000_000_000, 5)), InputParty: 1, NoSacrifice: true,
	}
}

// accusations returns files of evidence: about two versions of a broadcast, and about an opening
// that contradicts its commitment.
func accusations(t *testing.T) map[string][]byte {
	t.Helper()
	const culprit = 1
	private, public := signers()
	c := evidence.Case{
		Members: evidence.Members{Names: []string{"a", "b", "c"}, Keys: public, Hash: round.Hash("roster")},
		Signer:  private[0], Spec: pinnedSpec(round.Hash("roster")), Params: round.Hash("terms"),
		Nonces: []round.Digest{{1}, {2}, {3}}, When: time.Unix(1_800_000_000, 0).UTC(),
	}
	c.Spec.ProtocolVersion = job.ProtocolVersion // others are not judged
	session := round.SessionID(round.Terms{
		Version: job.ProtocolVersion, Protocol: "triples", Params: c.Params, Roster: c.Hash, Epoch: c.Spec.GetEpoch(),
		Job: job.Digest(c.Spec),
	}, c.Nonces)
	content := bytes.Repeat([]byte{5}, 32)
	broadcast := func(index uint32, name string, after round.Transcript) (e exchange.Envelope, frames []round.Digest) {
		h := round.NewHasher(name)
		h.Frame(content)
		return exchange.Envelope{
			Protocol: "triples", Version: job.ProtocolVersion, Session: session, Round: index, Name: name, From: culprit,
			To: round.All, Transcript: round.Digest(after), Digest: h.Sum(),
		}, h.Digests()
	}
	kept := evidence.NewRecorder(t.TempDir(), nil)
	defer kept.Close()
	accuse := func(err error) []byte {
		c.Err = err
		_, file, err := kept.Accuse(t.Context(), c, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		b, err := io.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	files := map[string][]byte{}

	const committed, opened = 2, 4 // the rounds, with those of the echoes
	begin := round.NewTranscript(session, parties)
	commit, frames := broadcast(committed, round.CommitName("pinned"), begin)
	kept.Message(commit, commit.Sign(private[culprit]), frames, content)
	all := []round.Digest{{7}, commit.Digest, {9}}
	c.History = []round.Agreement{{Round: committed - 1, Name: commit.Name, Digests: all}}
	open, frames := broadcast(opened, round.OpenName("pinned"), begin.After(session, c.History...))
	kept.Message(open, open.Sign(private[culprit]), frames, content)
	c.Round = opened
	files["a wrong opening"] = accuse(&round.Blame{Party: culprit, Check: round.CheckCommitment})

	other := commit
	other.Digest = round.Hash("another")
	conflicts := []round.Conflict{{
		Reporter: 2, About: culprit, Name: commit.Name, Seen: commit.Digest, Reported: other.Digest,
		SeenSignature: commit.Sign(private[culprit]), ReportedSignature: other.Sign(private[culprit]),
	}}
	files["two versions"] = accuse(&round.Blame{
		Party: culprit, Check: round.CheckEcho, Cause: &round.Abort{Conflicts: conflicts},
	})
	return files
}
