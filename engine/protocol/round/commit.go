package round

import (
	"context"
	"errors"
	"io"
)

// NonceSize is the length in bytes of the nonces of commitments and sessions. Each opening begins
// with a nonce.
const NonceSize = 32

var errLength = errors.New("wrong length")

// Commit-then-open. Every party broadcasts
//
//	C_l = H("lodge commitment", sid, step, l, digest of l's opening)
//
// and, after the echo check of all C_l, its opening: a fresh 32-byte nonce followed by the content.
// The digest includes the nonce, so C_l hides the content. C_l includes the party, so that a party
// that copies another party's commitment cannot open it. No party sees any content before all
// parties are bound to theirs.

// Commitment returns C_l for a party's opening with this digest.
func Commitment(session Digest, step string, p Party, opening Digest) Digest {
	//lodge:check round/commitment/session [drop=session[:]] [run=@faults|@binding] a commitment of
	//  another session is accepted
	//lodge:check round/commitment/step [drop=[]byte(step)] [run=@faults|@binding] a commitment of
	//  another step is accepted
	//lodge:check round/commitment/party [drop=Uint(uint64(p))] [run=@faults|@binding] a party can
	//  copy another party's commitment and opening
	//lodge:check round/commitment/opening [swap=opening[:]=>opening[:0]] [run=@faults|@binding] a
	//  commitment does not bind its opening
	return Hash("lodge commitment", session[:], []byte(step), Uint(uint64(p)), opening[:])
}

// CommitName returns the message name of the commitments of a step. Other messages must not use it.
func CommitName(step string) string { return step + "/commit" }

// OpenName returns the message name of the openings, which follow one round after the commitments.
func OpenName(step string) string { return step + "/open" }

// Opened is the result of a commit-then-open step.
type Opened struct {
	// Payloads are the contents by party, including this party's. It is empty if they were
	// streamed.
	Payloads [][]byte
	// Agreed is the hash over all openings, the same at every honest party. Common challenges are
	// derived from it.
	Agreed Digest
	// Transcript is the hash over all broadcasts of the session, including the openings.
	Transcript Digest
}

// CommitOpen lets all parties reveal payloads of exactly size bytes at once. The hooks STEP/commit
// and STEP/open receive the payload (*[]byte), the first before the commitment and the second when
// all commitments are known. A mismatch is a [*Blame] with [CheckCommitment], unless the hooks skip
// that check.
func CommitOpen(s Session, step string, random io.Reader, payload []byte, size int) (Transition[Opened], error) {
	return CommitOpenSizes(s, step, random, payload, func(Party) int { return size })
}

// CommitOpenSizes is [CommitOpen] with a separate payload size for each party. A party whose
// payload is empty commits to its nonce.
func CommitOpenSizes(s Session, step string, random io.Reader, payload []byte, size func(Party) int) (Transition[Opened], error) {
	nonce, err := newNonce(random)
	if err != nil {
		return Transition[Opened]{}, err
	}
	Expose(s, CommitName(step), &payload)
	sum, err := DigestOf(OpenName(step), Bytes(concat(nonce, payload)))
	if err != nil {
		return Transition[Opened]{}, err
	}
	o := opening{
		Session: s,
		step:    step,
		nonce:   nonce,
		own:     payload,
		sum:     sum,
		limit:   func(p Party) Limit { return Limit{Bytes: int64(size(p))} },
	}
	return o.start(), nil
}

// Limit bounds the content of one party: exactly Frames frames and at most Bytes bytes.
type Limit struct {
	Frames int
	Bytes  int64
}

// Sink receives the frames of the other parties' contents as they arrive, numbered from 0. The
// rules for Streamer.Frame apply. Its contents must not be used before the step has returned its
// result.
type Sink interface {
	Frame(ctx context.Context, from Party, index int, last bool, frame []byte) error
}

// Streamed describes a commit-then-open step whose contents are too large to hold in memory.
type Streamed struct {
	Step  string
	Body  Body                   // this party's content; computed at least twice, identically
	Limit func(from Party) Limit // bounds of the other parties' contents
	Sink  Sink
	Keep  Keep // of the openings
}

// CommitOpenStream lets all parties reveal large contents at once. The opening is a frame with the
// nonce, followed by the frames of the body. The hooks STEP/commit and STEP/open receive the body
// (*Body).
func CommitOpenStream(s Session, c Streamed, random io.Reader) (Transition[Opened], error) {
	nonce, err := newNonce(random)
	if err != nil {
		return Transition[Opened]{}, err
	}
	Expose(s, CommitName(c.Step), &c.Body)
	sum, err := DigestOf(OpenName(c.Step), &prefixed{first: nonce, rest: c.Body})
	if err != nil {
		return Transition[Opened]{}, err
	}
	o := opening{Session: s, step: c.Step, nonce: nonce, content: c.Body, sum: sum, limit: c.Limit, sink: c.Sink, keep: c.Keep}
	return o.start(), nil
}

// opening is the state that both rounds of a commit-then-open step share.
type opening struct {
	Session
	step    string
	nonce   []byte
	own     []byte // this party's content unless streamed
	content Body   // this party's content if streamed
	sum     Digest // of this party's opening
	limit   func(Party) Limit
	sink    Sink // nil unless streamed
	keep    Keep
}

func (o opening) start() Transition[Opened] {
	c := Commitment(o.Session.ID, o.step, o.Self, o.sum)
	return Next(Round[Opened](committed{o}), Message{To: All, Name: CommitName(o.step), Body: Bytes(c[:]), shown: true})
}

// committed waits for all commitments.
type committed struct{ opening }

func (r committed) Wants() []Want {
	return r.Each(Want{Name: CommitName(r.step), MaxBytes: int64(len(Digest{})), Broadcast: true})
}

func (r committed) Step(_ context.Context, in Inbox) (Transition[Opened], error) {
	commitments := make([]Digest, r.Parties)
	for p := range Party(r.Parties) {
		if p == r.Self {
			continue
		}
		c := in.Bytes(p, CommitName(r.step))
		//lodge:check round/commitment-length [swap=len(c) != len(commitments[p])=>len(c) >
		//  len(commitments[p])] [run=@faults] a truncated commitment is accepted
		if len(c) != len(commitments[p]) {
			return Transition[Opened]{}, Malformed(p, errLength)
		}
		copy(commitments[p][:], c)
	}
	next := revealed{r.opening, commitments}
	return Next(Round[Opened](next), Message{To: All, Name: OpenName(r.step), Body: next.reveal(), shown: true}), nil
}

// revealed waits for all openings.
type revealed struct {
	opening
	commitments []Digest
}

// reveal returns this party's opening.
func (r *revealed) reveal() Body {
	if r.sink == nil {
		Expose(r.Session, OpenName(r.step), &r.own)
		return Bytes(concat(r.nonce, r.own))
	}
	changed := Expose(r.Session, OpenName(r.step), &r.content)
	body := &prefixed{first: r.nonce, rest: r.content}
	if !changed {
		return Digested(OpenName(r.step), body, r.sum)
	}
	return body
}

func (r revealed) Wants() []Want {
	wants := r.Each(Want{Name: OpenName(r.step), Broadcast: true, Stream: r.sink != nil, Keep: r.keep})
	for i := range wants {
		l := r.limit(wants[i].From)
		wants[i].MaxBytes = l.Bytes + NonceSize
		if r.sink != nil {
			wants[i].MaxFrames = l.Frames + 1
		}
	}
	return wants
}

// Frame consumes the nonce and passes the content to the sink.
func (r revealed) Frame(ctx context.Context, from Party, _ string, index int, last bool, frame []byte) error {
	//lodge:check round/opening-frames [run=@faults] an opening with the wrong frames, or without a
	//  nonce, is accepted
	//lodge:check round/opening-nonce [drop=index == 0 && len(frame) != NonceSize] [run=@faults] an
	//  opening with a truncated nonce is accepted
	if last != (index == r.limit(from).Frames) || index == 0 && len(frame) != NonceSize {
		return Malformed(from, errLength)
	}
	if index == 0 {
		return nil
	}
	return r.sink.Frame(ctx, from, index-1, last, frame)
}

func (r revealed) Step(_ context.Context, in Inbox) (Transition[Opened], error) {
	opened := Opened{Agreed: in.Agreed(OpenName(r.step)), Transcript: in.Transcript}
	if r.sink == nil {
		opened.Payloads = make([][]byte, r.Parties)
		opened.Payloads[r.Self] = r.own
	}
	for p := range Party(r.Parties) {
		if p == r.Self {
			continue
		}
		sum := in.Digest(p, OpenName(r.step))
		//lodge:check round/commitment [run=@faults] a party can open something else than it
		//  committed to
		//lodge:check keygen/commitment [tests=./engine/protocol/keygen]
		//  [run=TestCheatsAtEvery|TestARogueKey|TestARushing] a party chooses its share of a key after it has seen the others
		//lodge:check keygen/commitment-of-proofs [tests=./engine/protocol/keygen]
		//  [run=TestCheatsInProofs|TestCopied|TestARogue] a party chooses its statement after it has seen the others
		//lodge:check maccheck/commitment [tests=./engine/protocol/maccheck] a party chooses its
		//  sigma after the others and corrects an error with it
		if Commitment(r.Session.ID, r.step, p, sum) != r.commitments[p] && !r.Omits(CheckCommitment) {
			return Transition[Opened]{}, &Blame{Party: p, Check: CheckCommitment, Reason: "opening does not match the commitment of " + r.step}
		}
		if r.sink != nil {
			continue
		}
		b := in.Bytes(p, OpenName(r.step))
		//lodge:check round/opening-length [swap=int64(len(b)) !=
		//  NonceSize+r.limit(p).Bytes=>int64(len(b)) < NonceSize] [run=@faults] an opening of the
		//  wrong length is accepted
		if int64(len(b)) != NonceSize+r.limit(p).Bytes {
			return Transition[Opened]{}, Malformed(p, errLength)
		}
		opened.Payloads[p] = b[NonceSize:]
	}
	return Done(opened), nil
}

// Digested returns a body with a known digest for the message of this name. It saves the sender one
// pass over the body.
func Digested(name string, body Body, sum Digest) Body { return &digested{body, name, sum} }

type digested struct {
	Body
	name string
	sum  Digest
}

func (d *digested) digest(name string) (Digest, bool) { return d.sum, d.name == name }

// prefixed is a body with one frame in front of another body.
type prefixed struct {
	first []byte
	rest  Body
}

func (p *prefixed) Frames() int { return p.rest.Frames() + 1 }

func (p *prefixed) Frame(i int) ([]byte, error) {
	if i == 0 {
		return p.first, nil
	}
	return p.rest.Frame(i - 1)
}

func newNonce(random io.Reader) ([]byte, error) {
	nonce := make([]byte, NonceSize)
	_, err := io.ReadFull(random, nonce)
	return nonce, err
}

func concat(a, b []byte) []byte { return append(append(make([]byte, 0, len(a)+len(b)), a...), b...) }
