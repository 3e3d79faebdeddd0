package evidence

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/exchange"
)

// Bounds of what a session keeps in memory, in bytes: of one message after its round, and of all of these.
const (
	maxSmall = 64 << 10
	maxKept  = 16 << 20
)

// Recorder keeps what an accusation may need while a session runs: signatures and digests; small broadcasts; and of large ones
// the frames that their round wants kept, in a file without a name. Messages to single parties are not kept. What cannot be
// kept is missing from evidence, and nothing else. A nil *Recorder keeps nothing. It is not for concurrent use.
type Recorder struct {
	broadcasts map[at]*broadcast
	bytes      int // in memory, of messages of rounds that are over
	round, run spool
	// lost is called once with the first error of what could not be kept.
	lost func(error)
}

// at is the place of a broadcast in its session.
type at struct {
	round uint32 // as signatures count
	name  string
	from  round.Party
}

// broadcast is what is kept of one.
type broadcast struct {
	envelope  exchange.Envelope
	signature []byte
	frames    []round.Digest
	payload   []byte // of one that is not streamed; not nil then
	small     bool   // whether it is kept in memory after its round
	places    map[int]place
}

// NewRecorder keeps large messages in files in dir; lost may be nil. Close lets go of them.
func NewRecorder(dir string, lost func(error)) *Recorder {
	return &Recorder{broadcasts: map[at]*broadcast{}, round: spool{dir: dir}, run: spool{dir: dir}, lost: lost}
}

// Frame keeps one of a streamed broadcast, if its want asks for that.
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
		r.lost(fmt.Errorf("evidence: a large message is not kept: %w", err))
		r.lost = nil
	}
}

func (r *Recorder) get(k at) *broadcast {
	if r.broadcasts[k] == nil {
		r.broadcasts[k] = new(broadcast)
	}
	return r.broadcasts[k]
}

// Message keeps a broadcast that is complete, and signed. The payload is that of one that is not streamed, and is not changed
// any more.
func (r *Recorder) Message(e exchange.Envelope, signature []byte, frames []round.Digest, payload []byte) {
	//lodge:check evidence/kept/private [drop=e.To != round.All] [run=TestWhatIsKept] messages to
	//  one party, which hold shares, are kept as evidence
	if r == nil || e.To != round.All {
		return
	}
	b := r.get(at{e.Round, e.Name, e.From})
	b.envelope, b.signature, b.frames, b.payload = e, signature, frames, payload
}

// Own keeps a broadcast of this party, with the frames that are to be kept of it.
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

// Stepped lets go of what the rounds before this one alone needed.
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

// Close lets go of everything.
func (r *Recorder) Close() {
	if r != nil {
		r.round.close()
		r.run.close()
		clear(r.broadcasts)
	}
}

// frame is one that was kept.
func (b *broadcast) frame(i int) ([]byte, error) {
	if p, ok := b.places[i]; ok {
		return p.read()
	}
	if b.payload == nil || i < 0 || i >= len(b.frames) {
		return nil, fmt.Errorf("evidence: frame %d of %s is not kept", i, b.envelope.Name)
	}
	return b.payload[i*round.MaxFrame : min((i+1)*round.MaxFrame, len(b.payload))], nil
}
