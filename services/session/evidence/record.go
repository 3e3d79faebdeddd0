package evidence

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// Limits of a session's memory in bytes: for one message after its round, and for all of these
// messages.
const (
	maxSmall = 64 << 10
	maxKept  = 16 << 20
)

// Recorder keeps the data that an accusation may need while a session runs: signatures, digests and
// small broadcasts in memory, and in an unnamed file those frames of large broadcasts that their
// round marks to keep. It does not keep messages to single parties. If data cannot be kept,
// accusations lack it, without other effects. A nil *Recorder keeps nothing. A Recorder is not safe
// for concurrent use.
type Recorder struct {
	broadcasts map[at]*broadcast
	bytes      int // in memory, for messages of past rounds
	round, run spool
	// lost is called once, with the first error of keeping a large message.
	lost func(error)
}

// at is the position of a broadcast in its session.
type at struct {
	round uint32 // as numbered in signatures
	name  string
	from  round.Party
}

// broadcast holds the kept parts of one broadcast.
type broadcast struct {
	envelope  exchange.Envelope
	signature []byte
	frames    []round.Digest
	payload   []byte // if the broadcast is not streamed; then not nil
	small     bool   // whether it stays in memory after its round
	places    map[int]place
}

// NewRecorder returns a recorder that keeps large messages in files in dir; lost may be nil. The
// caller must call Close.
func NewRecorder(dir string, lost func(error)) *Recorder {
	return &Recorder{broadcasts: map[at]*broadcast{}, round: spool{dir: dir}, run: spool{dir: dir}, lost: lost}
}

// Frame keeps a frame of a streamed broadcast if its want demands that.
func (r *Recorder) Frame(index uint32, w round.Want, i int, frame []byte) {
	//lodge:check evidence/kept/frames [drop=w.KeepFrames > 0 && i >= w.KeepFrames]
	//  [run=TestWhatIsKept] more frames of a stream are kept than its round needs
	//lodge:check evidence/kept/broadcasts [drop=!w.Broadcast] [run=TestWhatIsKept] streams to one
	//  party, which hold shares, are kept as evidence
	if r == nil || !w.Broadcast || !w.Stream || w.KeepFrames > 0 && i >= w.KeepFrames {
		return
	}
	spool := r.spool(w.Keep)
	if spool == nil {
		return
	}
	p, err := spool.add(frame)
	if err != nil {
		r.lose(err)
		return
	}
	b := r.get(at{index, w.Name, w.From})
	if b.places == nil {
		b.places = map[int]place{}
	}
	b.places[i] = p
}

func (r *Recorder) spool(k round.Keep) *spool {
	switch k {
	case round.KeepRound:
		return &r.round
	case round.KeepRun:
		return &r.run
	}
	return nil
}

func (r *Recorder) lose(err error) {
	if r.lost != nil {
		r.lost(fmt.Errorf("evidence: cannot keep a large message: %w", err))
		r.lost = nil
	}
}

func (r *Recorder) get(k at) *broadcast {
	if r.broadcasts[k] == nil {
		r.broadcasts[k] = new(broadcast)
	}
	return r.broadcasts[k]
}

// Message keeps a complete and signed broadcast. The payload is that of a broadcast that is not
// streamed; the caller must not change it afterwards.
func (r *Recorder) Message(e exchange.Envelope, signature []byte, frames []round.Digest, payload []byte) {
	//lodge:check evidence/kept/private [drop=e.To != round.All] [run=TestWhatIsKept] messages to
	//  one party, which hold shares, are kept as evidence
	if r == nil || e.To != round.All {
		return
	}
	b := r.get(at{e.Round, e.Name, e.From})
	b.envelope, b.signature, b.frames, b.payload = e, signature, frames, payload
}

// Own keeps a broadcast of this party, with the frames that keep selects.
func (r *Recorder) Own(e exchange.Envelope, signature []byte, keep round.Keep, body round.Body) error {
	if r == nil {
		return nil
	}
	b := r.get(at{e.Round, e.Name, e.From})
	b.envelope, b.signature = e, signature
	if body.Frames() > 1 && keep != round.KeepRun {
		return nil
	}
	for i := range body.Frames() {
		frame, err := body.Frame(i)
		if err != nil {
			return err
		}
		b.frames = append(b.frames, round.FrameDigest(frame))
		if body.Frames() == 1 {
			b.payload = frame
			return nil
		}
		r.Frame(e.Round, round.Want{From: e.From, Name: e.Name, Broadcast: true, Stream: true, Keep: keep}, i, frame)
	}
	return nil
}

// Stepped releases the data that only rounds before now needed.
func (r *Recorder) Stepped(now uint32) {
	if r == nil {
		return
	}
	for k, b := range r.broadcasts {
		switch {
		case k.round >= now || b.small:
			continue
		case len(b.places) > 0 && b.places[0].of == &r.run:
			b.small = true
			continue
		//lodge:check evidence/kept/small [drop=len(b.payload) <= maxSmall] [run=TestWhatIsKept] a
		//  kept message takes any amount of memory
		//lodge:check evidence/kept/all [drop=r.bytes+len(b.payload) <= maxKept]
		//  [run=TestWhatIsKept] the kept messages together take any amount of memory
		case b.payload != nil && len(b.payload) <= maxSmall && r.bytes+len(b.payload) <= maxKept:
			b.small = true
			r.bytes += len(b.payload)
			continue
		}
		delete(r.broadcasts, k)
	}
	r.round.reset()
}

// Close releases all data.
func (r *Recorder) Close() {
	if r != nil {
		r.round.close()
		r.run.close()
		clear(r.broadcasts)
	}
}

// frame returns a kept frame.
func (b *broadcast) frame(i int) ([]byte, error) {
	if p, ok := b.places[i]; ok {
		return p.read()
	}
	if b.payload == nil || i < 0 || i >= len(b.frames) {
		return nil, fmt.Errorf("evidence: frame %d of %s is not kept", i, b.envelope.Name)
	}
	return b.payload[i*round.MaxFrame : min((i+1)*round.MaxFrame, len(b.payload))], nil
}
