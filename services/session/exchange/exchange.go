// Package exchange carries messages between parties. Each session has one stream per direction,
// with numbered frames of at most 4 MiB. The receiver acknowledges frames when the protocol has
// accepted them, and the window of frames in flight is bounded.
//
// After a connection breaks, the sender reconnects and resumes with identical frames, from the
// first that the receiver lacks. A restarted process has another incarnation and is refused,
// because it could only send other frames. Every message ends with its sender's signature
// (Envelope). TLS authenticates the peer; the signature proves the message to third parties.
package exchange

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Config configures a party's exchange.
type Config struct {
	Self       round.Party
	Peers      []rpc.PeerConn // by index in the roster; the entry of Self is not used
	RosterHash [32]byte
	// Window is the most that is in flight to one peer in one session, in
	// bytes; 0 means 16 MiB.
	Window  int
	Metrics *metrics.Metrics
	// StartWait is how long a peer's stream waits for the session to start here. Then the peer must
	// retry. 0 means 5 s.
	StartWait time.Duration
	// BackoffMax is the longest pause between attempts to reach a peer; 0 means 2 s.
	BackoffMax time.Duration
	// Stall is how long a peer may receive nothing while its window is full; 0 means 2 min. It must
	// be longer than a peer computes, and shorter than the others' timeout for data that is held up
	// meanwhile.
	Stall time.Duration
	// Lull is the same while others who have taken their part of the same message wait for the
	// rest; at most Stall, and shorter than these wait within a message. 0 means Stall.
	Lull time.Duration
	// Farewell is how long Abort tries to tell the peers; 0 means 2 s.
	Farewell time.Duration
}

// Exchange serves and calls the peers of one party.
type Exchange struct {
	exchangev1.UnimplementedExchangeServiceServer
	cfg Config

	mu       sync.Mutex
	sessions map[job.Ref]*Streams
	over     []job.Ref     // ended sessions that are still remembered, oldest first
	changed  chan struct{} // closed and replaced when a session is opened
	pending  []int         // streams per peer that wait for a session to be opened
}

const (
	maxOver    = 256 // ended sessions remembered
	maxPending = 64  // streams of one peer that may wait for a session
	maxName    = 64  // bytes in a message's name
	maxFrames  = 1 << 20
)

// Method is the full name of the one method, for rules.
const Method = "/lodge.exchange.v1.ExchangeService/Exchange"

// New makes an exchange without sessions.
func New(cfg Config) (*Exchange, error) {
	if cfg.Self < 0 || int(cfg.Self) >= len(cfg.Peers) || len(cfg.Peers) < 2 {
		return nil, fmt.Errorf("exchange: party %d of %d", cfg.Self, len(cfg.Peers))
	}
	for i, p := range cfg.Peers {
		if p.Conn == nil && round.Party(i) != cfg.Self {
			return nil, fmt.Errorf("exchange: no connection to party %d", i)
		}
	}
	cfg.Window = cmp.Or(cfg.Window, 16<<20)
	cfg.StartWait = cmp.Or(cfg.StartWait, 5*time.Second)
	cfg.BackoffMax = cmp.Or(cfg.BackoffMax, 2*time.Second)
	cfg.Stall = cmp.Or(cfg.Stall, 2*time.Minute)
	cfg.Lull = min(cmp.Or(cfg.Lull, cfg.Stall), cfg.Stall)
	cfg.Farewell = cmp.Or(cfg.Farewell, 2*time.Second)
	return &Exchange{
		cfg:      cfg,
		sessions: map[job.Ref]*Streams{},
		changed:  make(chan struct{}),
		pending:  make([]int, len(cfg.Peers)),
	}, nil
}

// Pins are the values that the parties of a session compare before its first frame. ParamsHash
// covers the parameters of the protocol.
type Pins struct {
	ParamsHash [32]byte
	SpecDigest [32]byte
}

// ErrOpened is the error for a session that is open or was opened before.
var ErrOpened = errors.New("exchange: session was opened before")

// Open starts a session: it dials every peer and takes their streams until Finish or Abort. A
// reference that is open, or among the last 256 to have ended, is refused; the caller must not
// reuse older ones. group lists the parties of the session by ascending index in the roster,
// including this party; without it, all parties of the roster take part. The session numbers
// parties by their position in the group. The spec, whose digest the parties compare, must name the
// group.
func (x *Exchange) Open(ref job.Ref, pins Pins, group ...round.Party) (*Streams, error) {
	s := &Streams{x: x, ref: ref, pins: pins, changed: make(chan struct{}), broken: make(chan struct{})}
	if err := s.join(group); err != nil {
		return nil, err
	}
	rand.Read(s.incarnation[:])
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for i := range s.peers {
		s.in = append(s.in, &inbox{})
		s.out = append(s.out, &outbox{s: s, peer: round.Party(i)})
	}
	x.mu.Lock()
	//lodge:check exchange/hello/once
	//  [run=TestFinish|TestMessages|TestLate|TestRestarted|TestResume|TestAbort] a session is
	//  opened twice
	if _, taken := x.sessions[ref]; taken {
		x.mu.Unlock()
		s.cancel()
		return nil, fmt.Errorf("%w: %s", ErrOpened, ref)
	}
	x.sessions[ref] = s
	close(x.changed)
	x.changed = make(chan struct{})
	x.mu.Unlock()
	for p, o := range s.out {
		if round.Party(p) != s.self {
			s.streams.Add(1)
			go o.run()
		}
	}
	return s, nil
}

// join sets the parties of the session and their numbers.
func (s *Streams) join(group []round.Party) error {
	all := s.x.cfg.Peers
	if len(group) == 0 {
		group = make([]round.Party, len(all))
		for i := range group {
			group[i] = round.Party(i)
		}
	}
	self, among := slices.BinarySearch(group, s.x.cfg.Self)
	for i, p := range group {
		if p < 0 || int(p) >= len(all) || i > 0 && p <= group[i-1] {
			return fmt.Errorf("exchange: %d are not parties of the roster in order", group)
		}
		s.peers = append(s.peers, all[p])
	}
	if !among || len(group) < 2 {
		return fmt.Errorf("exchange: %d is not a valid group of party %d", group, s.x.cfg.Self)
	}
	s.group, s.self = slices.Clone(group), round.Party(self)
	return nil
}

// number returns the number in the session of a party of the roster, and whether it takes part.
func (s *Streams) number(p round.Party) (place round.Party, among bool) {
	i, among := slices.BinarySearch(s.group, p)
	return round.Party(i), among
}

// remember keeps an ended session's reference, for peers that reconnect late.
func (x *Exchange) remember(ref job.Ref) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = append(x.over, ref)
	if len(x.over) > maxOver {
		delete(x.sessions, x.over[0])
		x.over = x.over[1:]
	}
}

// await returns an open session. It waits up to StartWait for the session to start here.
func (x *Exchange) await(ctx context.Context, ref job.Ref, from round.Party) (*Streams, error) {
	ctx, cancel := context.WithTimeout(ctx, x.cfg.StartWait)
	defer cancel()
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.sessions[ref]; s != nil {
		return s, nil
	}
	if x.pending[from] >= maxPending {
		return nil, rpc.Errorf(rpc.Unavailable, "try again", "too many streams wait for sessions to be started")
	}
	x.pending[from]++
	defer func() { x.pending[from]-- }()
	for {
		changed := x.changed
		x.mu.Unlock()
		select {
		case <-changed:
			x.mu.Lock()
		case <-ctx.Done():
			x.mu.Lock()
			return nil, rpc.Errorf(rpc.Unavailable, "try again", "session %s is not started here", ref)
		}
		if s := x.sessions[ref]; s != nil {
			return s, nil
		}
	}
}

// Exchange takes one peer's stream of one session.
func (x *Exchange) Exchange(st exchangev1.ExchangeService_ExchangeServer) error {
	caller, ok := rpc.Caller(st.Context())
	//lodge:check exchange/peers [drop=caller.Role != rpc.Peer] [drop=round.Party(caller.Party) ==
	//  x.cfg.Self] [run=TestStrangers] [redundant=the authorisation rules of the server admit peers
	//  only] a caller that is not another party can open an exchange
	if !ok || caller.Role != rpc.Peer || caller.Party < 0 || caller.Party >= len(x.cfg.Peers) || round.Party(caller.Party) == x.cfg.Self {
		return rpc.Errorf(rpc.Forbidden, "", "only peers exchange")
	}
	from := round.Party(caller.Party)
	hello, err := x.hello(st)
	if err != nil {
		return err
	}
	ref, err := job.RefOf(hello.GetRef())
	if err != nil {
		return err
	}
	s, err := x.await(st.Context(), ref, from)
	if err != nil {
		return err
	}
	place, among := s.number(from)
	if !among {
		return rpc.Errorf(rpc.Forbidden, "", "session %s is one of others", ref)
	}
	from = place
	if err := s.compare(from, hello); err != nil {
		return err
	}
	return s.receive(st, from, hello.GetIncarnation())
}

// hello receives the first message of a stream. The peer has StartWait to send it.
func (x *Exchange) hello(st exchangev1.ExchangeService_ExchangeServer) (*exchangev1.Hello, error) {
	timer := time.NewTimer(x.cfg.StartWait)
	defer timer.Stop()
	m, err := rpc.Within(timer, rpc.Errorf(rpc.Unavailable, "", "no hello came within %s", x.cfg.StartWait), st.Recv)
	if err != nil {
		return nil, err
	}
	//lodge:check exchange/hello/first [run=TestAStream|TestStrangers] a stream need not begin
	//  with a hello
	if m.GetHello() == nil {
		return nil, rpc.Errorf(rpc.Invalid, "", "a stream begins with a hello")
	}
	return m.GetHello(), nil
}

// compare checks a hello against the local pins. A difference ends the session: the parties do not
// agree on its terms.
func (s *Streams) compare(from round.Party, h *exchangev1.Hello) error {
	var what string
	switch {
	//lodge:check exchange/hello/version [run=TestPinsDiffer|TestStrangers|FuzzHello] parties with
	//  different protocol versions connect
	case h.GetProtocolVersion() != job.ProtocolVersion:
		what = fmt.Sprintf("protocol version %d, here %d", h.GetProtocolVersion(), job.ProtocolVersion)
	//lodge:check exchange/hello/roster [run=TestPinsDiffer|TestStrangers] parties with different
	//  rosters connect
	case !bytes.Equal(h.GetRosterHash(), s.x.cfg.RosterHash[:]):
		what = "another roster"
	//lodge:check exchange/hello/params [run=TestPinsDiffer|TestStrangers] parties with different
	//  parameters connect
	case !bytes.Equal(h.GetParamsHash(), s.pins.ParamsHash[:]):
		what = "another hash of parameters and keys"
	//lodge:check exchange/hello/spec [run=TestPinsDiffer|TestStrangers] parties with different
	//  specs connect
	case !bytes.Equal(h.GetSpecDigest(), s.pins.SpecDigest[:]):
		what = "another session spec"
	//lodge:check exchange/hello/incarnation [run=FuzzHello] a
	//  hello does not identify its process
	case len(h.GetIncarnation()) != len(s.incarnation):
		return rpc.Errorf(rpc.Invalid, "", "the incarnation has %d bytes", len(h.GetIncarnation()))
	default:
		return nil
	}
	s.fail(&LostError{Peer: from, Name: s.peers[from].Name, Check: CheckPins, Reason: "it has " + what})
	return rpc.Errorf(rpc.PinMismatch, "compare rosters, parameter hashes and releases",
		"%s has %s", s.peers[from].Name, what)
}

// The checks under which a peer is lost.
const (
	CheckPins        = "pins"        // it has another roster, parameter hash, version or spec
	CheckIncarnation = "incarnation" // its process restarted within the session
	CheckStalled     = "stalled"     // it receives nothing
	CheckRefused     = "refused"     // it refused our stream for good
)

// LostError reports that a peer can no longer take part in the session.
type LostError struct {
	Peer   round.Party
	Name   string
	Check  string
	Reason string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("exchange: %s is lost: %s: %s", e.Name, e.Check, e.Reason)
}

// AbortedError reports that a peer has ended the session.
type AbortedError struct {
	Peer    round.Party
	Name    string
	Outcome string // as the peer puts it
	Round   string
	Check   string
	Reason  string
	Blamed  *round.Party // whom the peer blames
	// Signature of Peer over this value and the session; the caller, who knows the session,
	// verifies it.
	Signature []byte
	// Relayed has the signed farewells of other parties, which ended the session of Peer.
	Relayed []*AbortedError
}

func (e *AbortedError) Error() string {
	return fmt.Sprintf("exchange: %s ended the session in round %s: %s: %s", e.Name, e.Round, e.Outcome, e.Reason)
}

var (
	errSuperseded = errors.New("exchange: a newer stream of the same session took over")
	errAborted    = errors.New("exchange: the session was aborted here")
)
