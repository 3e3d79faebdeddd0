// Package round defines the contract between a protocol and its driver. A protocol is a chain of
// rounds: each round declares the messages it wants, takes exactly those messages and returns the
// next round.
//
// A start function returns a [Transition]: the messages to send and the first [Round]. The driver
// delivers the wanted messages and calls Step, which returns the next Transition, until one carries
// Done. A round never uses a network, a clock, a disk or a source of randomness. Messages are bytes
// at this boundary, so that the lockstep driver of tests (package roundtest) and the runner of the
// services run the same code. Both drive a [Machine], which enforces sizes and order, hashes every
// message, keeps the transcript and applies the echo check to every broadcast.
//
// The rules of the chain:
//
//   - Every party passes through the same sequence of rounds. A party that has nothing to receive in a
//     round (the others send to a combiner, say) has a round with no wants.
//   - The next round of each recipient wants the messages that a transition sends, by the same names.
//   - A [Message] to [All] is a broadcast: its recipients want it with Broadcast set, and with three or more
//     parties Step runs only after all parties have compared the digests of what they received.
//   - The transition that carries Done sends nothing.
//   - Step runs once. It may change its receiver, as Frame of a [Streamer] does. It may keep slices of
//     its inbox: the driver does not change them later.
//   - Secrets that a round keeps for a later round belong to the [Secrets] of the [Session], so that they are erased
//     however the run ends.
//   - A fault of a peer is a [*Blame]. A failure for which no party can be identified is an [*Abort]. Any
//     other error is local to this party. After any error the chain is dead.
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

// Round is one step of a protocol whose result is an R. A [Machine] runs a chain of rounds.
type Round[R any] interface {
	// Wants names the messages that Step needs: at most one for each pair of From and Name.
	// It gives the same answer whenever it is called. It may be empty.
	Wants() []Want
	// Step runs when every want is met. The context only cancels.
	Step(ctx context.Context, in Inbox) (Transition[R], error)
}

// Streamer is a Round that wants messages with Stream set. The driver calls Frame with their frames
// as they arrive: for one sender and name in order from index 0, with last set on the final frame.
// Frames of different senders interleave. Calls are never concurrent with each other or with Step.
// The frame is valid only during the call. Nothing received this way may be used before Step has
// returned without an error.
type Streamer interface {
	Frame(ctx context.Context, from Party, name string, index int, last bool, frame []byte) error
}

// Transition is the outcome of a [Round]: messages to send and the next round, or the result.
// Exactly one of Next and Done is set.
type Transition[R any] struct {
	Send []Message
	Next Round[R]
	Done *R
}

// Message is one message of this party, with its content as a [Body]. Names are unique among the
// messages of one transition to one recipient, which gets them in their order.
type Message struct {
	To   Party // or All
	Name string
	Body Body

	shown bool // its content has passed the hooks of tests
}

// Body is the content of a message as one or more frames of at most [MaxFrame] bytes. Frame may
// compute its bytes when it is called. Calls are sequential, but they may come from another
// goroutine than Step's and while later rounds run. Until the next Step, Frame returns identical
// bytes for the same index. After that, the driver calls Frame at most once per index: it keeps
// frames that it may have to resend.
type Body interface {
	Frames() int
	Frame(i int) ([]byte, error)
}

// Want describes a message that a [Round] waits for.
type Want struct {
	From Party
	Name string
	// MaxFrames and MaxBytes bound the message. If MaxFrames is 0 and the message is not streamed,
	// the bound is the number of frames that Bytes makes of MaxBytes bytes. An empty message is one
	// empty frame.
	MaxFrames int
	MaxBytes  int64
	// Broadcast says that the sender sent this to All.
	Broadcast bool
	// Stream says that the frames go to the round's Frame; the inbox then holds the digest only.
	Stream bool
	// Keep says how long a driver that collects evidence keeps the frames of a streamed broadcast.
	// If KeepFrames is not 0, only the first KeepFrames frames are kept. Both are ignored for other
	// messages.
	Keep       Keep
	KeepFrames int
}

// Keep says how long frames may be needed as evidence that their sender cheated.
type Keep uint8

// The driver keeps the digests of all frames, whatever the value of Keep.
const (
	KeepNothing Keep = iota
	KeepRound        // until the round has stepped
	KeepRun          // until the chain has ended
)

// Bytes returns a Body over b, which must not change afterwards. It consists of full frames of
// [MaxFrame] bytes and one frame with the remaining bytes. Messages that are not streamed always
// have this framing.
func Bytes(b []byte) Body { return whole(b) }

type whole []byte

func (b whole) Frames() int { return framesFor(int64(len(b))) }

func (b whole) Frame(i int) ([]byte, error) {
	if i < 0 || i >= b.Frames() {
		return nil, fmt.Errorf("round: frame %d of %d", i, b.Frames())
	}
	return b[i*MaxFrame : min((i+1)*MaxFrame, len(b))], nil
}

// Encoded returns a Body with the bytes that encode makes of v. It encodes v once: when the machine
// enters the transition, or earlier if its frames are needed.
func Encoded[T any](v T, encode func(T) []byte) Body {
	return &encoded[T]{v: v, encode: func(v T) (Body, error) { return Bytes(encode(v)), nil }}
}

// EncodedFrames returns a Body with the frames that encode makes of v, once, as Encoded does.
func EncodedFrames[T any](v T, encode func(T) ([][]byte, error)) Body {
	return &encoded[T]{v: v, encode: func(v T) (Body, error) {
		list, err := encode(v)
		return FrameList(list), err
	}}
}

type encoded[T any] struct {
	v      T
	encode func(T) (Body, error) // nil after it has run
	made   Body
	err    error
}

func (e *encoded[T]) expose(s Session, name string, again bool) {
	if !again {
		Expose(s, name, e.v)
	}
}

func (e *encoded[T]) body() (Body, error) {
	if e.encode != nil {
		e.made, e.err = e.encode(e.v)
		e.encode = nil
	}
	return e.made, e.err
}

func (e *encoded[T]) Frames() int {
	b, err := e.body()
	if err != nil {
		return 1 // Frame returns the error
	}
	return b.Frames()
}

func (e *encoded[T]) Frame(i int) ([]byte, error) {
	b, err := e.body()
	if err != nil {
		return nil, err
	}
	return b.Frame(i)
}

// encode encodes the bodies that Encoded and EncodedFrames made.
func encode(send []Message) (err error) {
	for i := range send {
		if e, ok := send[i].Body.(interface{ body() (Body, error) }); ok {
			if send[i].Body, err = e.body(); err != nil {
				return err
			}
		}
	}
	return nil
}

// FrameList returns a Body of these frames, which must not change afterwards.
func FrameList(frames [][]byte) Body { return list(frames) }

type list [][]byte

func (l list) expose(s Session, name string, again bool) {
	if !again {
		Expose(s, name, [][]byte(l))
	}
}

func (l list) Frames() int                 { return len(l) }
func (l list) Frame(i int) ([]byte, error) { return l[i], nil }

// framesFor returns the number of frames of a message of n bytes that is not streamed.
func framesFor(n int64) int { return max(1, int((n+MaxFrame-1)/MaxFrame)) }

// Frames returns a Body of n frames, which make computes on demand.
func Frames(n int, make func(i int) ([]byte, error)) Body { return lazy{n, make} }

type lazy struct {
	n    int
	make func(i int) ([]byte, error)
}

func (l lazy) Frames() int                 { return l.n }
func (l lazy) Frame(i int) ([]byte, error) { return l.make(i) }

// FramesOf returns a Body of n frames, which make computes of v on demand. v must not change
// afterwards.
func FramesOf[T any](v T, n int, make func(v T, i int) ([]byte, error)) Body {
	return lazyOf[T]{lazy{n, func(i int) ([]byte, error) { return make(v, i) }}, v}
}

type lazyOf[T any] struct {
	lazy
	v T
}

func (l lazyOf[T]) expose(s Session, name string, _ bool) { Expose(s, name, l.v) }

// Broadcast returns a message with content b to all other parties.
func Broadcast(name string, b []byte) Message { return Message{To: All, Name: name, Body: Bytes(b)} }

// Each returns one copy of w for every party except self, in ascending order, with From filled in.
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

// Done returns the transition that ends a chain with the result r.
func Done[R any](r R) Transition[R] { return Transition[R]{Done: &r} }

// Next returns the transition that sends the messages and continues with the round next.
func Next[R any](next Round[R], send ...Message) Transition[R] {
	return Transition[R]{Send: send, Next: next}
}

// Local returns a round that wants no messages: the driver runs step at once. It hands work to the
// driver, and keeps this party in step in a round where only other parties receive messages.
func Local[R any](step func(ctx context.Context) (Transition[R], error)) Round[R] {
	return local[R](step)
}

type local[R any] func(ctx context.Context) (Transition[R], error)

func (local[R]) Wants() []Want { return nil }

func (l local[R]) Step(ctx context.Context, _ Inbox) (Transition[R], error) { return l(ctx) }

// Then runs the chain t, passes its result to f and runs the chain that f returns. The Step that
// produces the result of t also calls f.
func Then[A, B any](t Transition[A], f func(context.Context, A) (Transition[B], error)) Transition[B] {
	if t.Done != nil {
		a := *t.Done
		return Next(Local(func(ctx context.Context) (Transition[B], error) { return f(ctx, exposeResult(ctx, a)) }), t.Send...)
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
		return r.second(ctx, exposeResult(ctx, *t.Done))
	}
	return Next(Round[B](then[A, B]{t.Next, r.second}), t.Send...), nil
}

// Map returns the chain t with f applied to its result.
func Map[A, B any](t Transition[A], f func(A) (B, error)) Transition[B] {
	return Then(t, func(_ context.Context, a A) (Transition[B], error) {
		b, err := f(a)
		if err != nil {
			return Transition[B]{}, err
		}
		return Done(b), nil
	})
}

// Inbox holds the messages that a [Round] wanted. Its methods panic if the message is not in Wants.
type Inbox struct {
	received map[key]received
	broad    map[string]Digest
	// Transcript is the running hash over all broadcasts of the session so far, including those of
	// this inbox. It is the same at every honest party.
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

// Bytes returns the whole message, which the caller must not change. It returns nil for streamed
// messages.
func (in Inbox) Bytes(from Party, name string) []byte { return in.get(from, name).payload }

// Digest returns the digest of the message (see Hasher). The digest commits to the name, the bytes
// and their division into frames, but not to the sender or the session.
func (in Inbox) Digest(from Party, name string) Digest { return in.get(from, name).digest }

// Agreed returns the hash over the digests of all parties' broadcasts of this name, in the order of
// the roster and including this party's. The echo check has already compared these digests.
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
	CheckDuplicate  = "duplicate"  // a second copy of a message that has been received
	CheckEcho       = "echo"       // parties report different broadcasts of one sender
	CheckCommitment = "commitment" // an opening that does not match its commitment
)

// Blame is the fault of one peer; see [Abort] for failures in which no peer can be identified.
type Blame struct {
	Party  Party
	Check  string // one of the Check constants, or the protocol's own
	Reason string // lowercase, without secret values
	Cause  error  // may be nil
	// Charge is the frame that shows the fault. It is set if a single frame shows it and the driver
	// no longer has that frame.
	Charge *Charge
}

// Charge is a frame that the blamed party broadcast.
type Charge struct {
	Name  string
	Index int
	Frame []byte
}

func (b *Blame) Error() string {
	return fmt.Sprintf("round: party %d failed check %s: %s", b.Party, b.Check, b.Reason)
}

// Unwrap returns the cause.
func (b *Blame) Unwrap() error { return b.Cause }

// Malformed blames a sender for a message that does not decode.
func Malformed(from Party, err error) *Blame {
	return &Blame{Party: from, Check: CheckShape, Reason: err.Error(), Cause: err}
}

// Abort ends a session in which the cheating party cannot be identified with certainty.
type Abort struct {
	Check    string
	Reason   string
	Suspects []Party // ascending; at least one of these parties is at fault; empty if unknown
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
