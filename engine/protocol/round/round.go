// Package round is the contract between a protocol and whatever drives it: a protocol is a chain of
// values, each of which takes exactly the messages it said it wants and gives the next one.
//
// A start function returns a Transition: the messages to send and the first Round. The driver delivers
// what that round wants and calls Step, which returns the next Transition, until one carries Done. No
// round knows a network, a clock, a disk or a source of randomness; messages are bytes at this boundary,
// so that the lockstep driver of tests (package roundtest) and the one runner of the services run the
// same code. Both drive a Machine, which enforces sizes and order, hashes every message, keeps the
// transcript and applies the echo check to every broadcast.
//
// The rules of the chain:
//
//   - Every party passes through the same sequence of rounds. A party that has nothing to receive in a
//     round (the others send to a combiner, say) has a round with no wants.
//   - What a transition sends is wanted by the next round of its recipients, under the same name.
//   - A message to All is a broadcast: its recipients want it with Broadcast set, and with three or more
//     parties Step runs only after all parties have compared the digests of what they received.
//   - The transition that carries Done sends nothing.
//   - Step runs once. It may fold into its receiver, as Frame of a Streamer does, and keep what its inbox holds,
//     which nobody changes any more.
//   - Secrets that a round keeps for a later one belong to Session.Secrets, so that every end erases them.
//   - A fault of a peer is a *Blame; a failure that nobody can be named for is an *Abort; any other
//     error is the party's own. After any error the chain is dead.
package round

import (
	"context"
	"fmt"
	"slices"
)

// Party is an index into the roster, 0 to n-1.
type Party int

// All addresses a message to every other party: a broadcast.
const All Party = -1

// MaxFrame is the largest frame in bytes.
const MaxFrame = 4 << 20

// Round is one step of a protocol whose result is an R.
type Round[R any] interface {
	// Wants names the messages that Step needs: at most one for each pair of From and Name.
	// It gives the same answer whenever it is called. It may be empty.
	Wants() []Want
	// Step runs when every want is met. The context only cancels.
	Step(ctx context.Context, in Inbox) (Transition[R], error)
}

// Streamer is a Round that wants messages with Stream set. Frame gets their frames as they arrive: for
// one sender and name in order from index 0, with last set on the final one; different senders
// interleave. Calls are never concurrent with each other or with Step. The frame is valid during the
// call only. What has been folded counts for nothing until Step has run and returned no error.
type Streamer interface {
	Frame(ctx context.Context, from Party, name string, index int, last bool, frame []byte) error
}

// Transition is where a round leads: messages to send and the next round, or the result.
// Exactly one of Next and Done is set.
type Transition[R any] struct {
	Send []Message
	Next Round[R]
	Done *R
}

// Message is one message of this party. Names are unique among the messages of one transition to one
// recipient, which gets them in their order.
type Message struct {
	To   Party // or All
	Name string
	Body Body
}

// Body is the content of a message as one or more frames of at most MaxFrame bytes. Frame may make its
// bytes when it is called. It is called for one index at a time but possibly from another goroutine than
// Step's and while later rounds run. It gives identical bytes for an index whenever it is called again before
// the next Step, and once at any time: the driver keeps what it may have to send again.
type Body interface {
	Frames() int
	Frame(i int) ([]byte, error)
}

// Want describes a message that a round waits for.
type Want struct {
	From Party
	Name string
	// MaxFrames and MaxBytes bound the message. MaxFrames may be 0 for a message that is not streamed:
	// then it has as many frames as Bytes makes of MaxBytes. Zero bytes is one empty frame.
	MaxFrames int
	MaxBytes  int64
	// Broadcast says that the sender sent this to All.
	Broadcast bool
	// Stream says that the frames go to the round's Frame; the inbox then holds the digest only.
	Stream bool
	// Keep says how long a driver that gathers evidence keeps the frames of a streamed broadcast, the first KeepFrames of
	// them if that is not 0. It has no meaning for other messages.
	Keep       Keep
	KeepFrames int
}

// Keep is how long frames may be needed to prove to others that their sender has cheated.
type Keep uint8

// The digests of frames are kept in any case.
const (
	KeepNothing Keep = iota
	KeepRound        // until the round has stepped
	KeepRun          // until the chain has ended
)

// Bytes is a Body over b, which must not change afterwards: full frames of MaxFrame bytes and the rest.
// A message that is not streamed always has this framing.
func Bytes(b []byte) Body { return whole(b) }

type whole []byte

func (b whole) Frames() int { return framesFor(int64(len(b))) }

func (b whole) Frame(i int) ([]byte, error) {
	if i < 0 || i >= b.Frames() {
		return nil, fmt.Errorf("round: frame %d of %d", i, b.Frames())
	}
	return b[i*MaxFrame : min((i+1)*MaxFrame, len(b))], nil
}

// framesFor is the number of frames of n bytes that are not streamed.
func framesFor(n int64) int { return max(1, int((n+MaxFrame-1)/MaxFrame)) }

// Frames is a Body of n frames that make gives on demand.
func Frames(n int, make func(i int) ([]byte, error)) Body { return lazy{n, make} }

type lazy struct {
	n    int
	make func(i int) ([]byte, error)
}

func (l lazy) Frames() int                 { return l.n }
func (l lazy) Frame(i int) ([]byte, error) { return l.make(i) }

// Broadcast is the message of b to all other parties.
func Broadcast(name string, b []byte) Message { return Message{To: All, Name: name, Body: Bytes(b)} }

// Each wants w from every party but self, in order; From is filled in.
func Each(self Party, parties int, w Want) []Want {
	wants := make([]Want, 0, parties-1)
	for p := range Party(parties) {
		if p != self {
			w.From = p
			wants = append(wants, w)
		}
	}
	return wants
}

// Done is the transition that ends a chain with the result r.
func Done[R any](r R) Transition[R] { return Transition[R]{Done: &r} }

// Next is the transition that sends and goes on.
func Next[R any](next Round[R], send ...Message) Transition[R] {
	return Transition[R]{Send: send, Next: next}
}

// Local is a round that wants nothing: it runs step at once. It defers work to the driver, and stands
// where only other parties have something to receive.
func Local[R any](step func(ctx context.Context) (Transition[R], error)) Round[R] {
	return local[R](step)
}

type local[R any] func(ctx context.Context) (Transition[R], error)

func (local[R]) Wants() []Want { return nil }

func (l local[R]) Step(ctx context.Context, _ Inbox) (Transition[R], error) { return l(ctx) }

// Then runs the chain t and, with its result, the chain that f starts. The results of t go to f in the
// same Step that produced them.
func Then[A, B any](t Transition[A], f func(context.Context, A) (Transition[B], error)) Transition[B] {
	if t.Done != nil {
		a := *t.Done
		return Next(Local(func(ctx context.Context) (Transition[B], error) { return f(ctx, a) }), t.Send...)
	}
	return Next(Round[B](then[A, B]{t.Next, f}), t.Send...)
}

type then[A, B any] struct {
	first  Round[A]
	second func(context.Context, A) (Transition[B], error)
}

func (r then[A, B]) Wants() []Want { return r.first.Wants() }

func (r then[A, B]) streams() bool { return streams(r.first) }

func (r then[A, B]) Frame(ctx context.Context, from Party, name string, index int, last bool, frame []byte) error {
	return r.first.(Streamer).Frame(ctx, from, name, index, last, frame)
}

func (r then[A, B]) Step(ctx context.Context, in Inbox) (Transition[B], error) {
	t, err := r.first.Step(ctx, in)
	switch {
	case err != nil:
		return Transition[B]{}, err
	case t.Done != nil && len(t.Send) > 0:
		panic("round: a last transition that sends")
	case t.Done != nil:
		return r.second(ctx, *t.Done)
	}
	return Next(Round[B](then[A, B]{t.Next, r.second}), t.Send...), nil
}

// Map gives the chain t with its result turned by f.
func Map[A, B any](t Transition[A], f func(A) (B, error)) Transition[B] {
	return Then(t, func(_ context.Context, a A) (Transition[B], error) {
		b, err := f(a)
		if err != nil {
			return Transition[B]{}, err
		}
		return Done(b), nil
	})
}

// Inbox holds what a round wanted. Its methods panic when asked for what was not in Wants.
type Inbox struct {
	received map[key]received
	broad    map[string]Digest
	// Transcript is the running hash of the session over all broadcasts so far, those of this inbox
	// included. It is the same at every honest party.
	Transcript Digest
}

type key struct {
	from Party
	name string
}

type received struct {
	payload []byte // nil when streamed
	digest  Digest
	frames  []Digest
}

// Bytes is the whole message, which must not be changed. It is for messages that are not streamed.
func (in Inbox) Bytes(from Party, name string) []byte { return in.get(from, name).payload }

// Digest is the digest of the message (see Hasher), which commits to its name, its bytes and their
// division into frames, but to neither sender nor session.
func (in Inbox) Digest(from Party, name string) Digest { return in.get(from, name).digest }

// Agreed is the hash over the digests of all parties' broadcasts of this name in the order of the roster,
// this party's own included. The echo check has compared it.
func (in Inbox) Agreed(name string) Digest {
	d, ok := in.broad[name]
	if !ok {
		panic("round: no broadcast named " + name)
	}
	return d
}

func (in Inbox) get(from Party, name string) received {
	r, ok := in.received[key{from, name}]
	if !ok {
		panic(fmt.Sprintf("round: no message %s of party %d", name, from))
	}
	return r
}

// The checks that every protocol shares. Protocols name theirs in the same style.
const (
	CheckShape      = "shape"      // wrong length, value out of range, frame out of order, unwanted message
	CheckSize       = "size"       // more frames or bytes than wanted
	CheckDuplicate  = "duplicate"  // a second message in the place of one that has been received
	CheckEcho       = "echo"       // parties report different broadcasts of one sender
	CheckCommitment = "commitment" // an opening that does not match its commitment
)

// Blame is the fault of one peer.
type Blame struct {
	Party  Party
	Check  string // one of the Check constants, or the protocol's own
	Reason string // lowercase, without secret values
	Cause  error  // may be nil
	// Charge is the frame that shows the fault, where it is that of one frame and the driver does not have it any more.
	Charge *Charge
}

// Charge is a frame of a broadcast of the party that is blamed.
type Charge struct {
	Name  string
	Index int
	Frame []byte
}

func (b *Blame) Error() string {
	return fmt.Sprintf("round: party %d failed check %s: %s", b.Party, b.Check, b.Reason)
}

// Unwrap gives the cause.
func (b *Blame) Unwrap() error { return b.Cause }

// Malformed blames a sender for a message that does not decode.
func Malformed(from Party, err error) *Blame {
	return &Blame{Party: from, Check: CheckShape, Reason: err.Error(), Cause: err}
}

// Abort ends a session where nobody can be named for certain.
type Abort struct {
	Check    string
	Reason   string
	Suspects []Party // ascending; at least one of them is at fault; empty when nothing is known
	// Conflicts are the reports behind a failed echo check.
	Conflicts []Conflict
}

func (a *Abort) Error() string {
	if len(a.Suspects) == 0 {
		return fmt.Sprintf("round: check %s failed: %s", a.Check, a.Reason)
	}
	return fmt.Sprintf("round: check %s failed: %s (suspects %v)", a.Check, a.Reason, a.Suspects)
}

// Suspect reports whether p is among the suspects.
func (a *Abort) Suspect(p Party) bool { return slices.Contains(a.Suspects, p) }
