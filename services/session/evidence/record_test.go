package evidence

import (
	"bytes"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// A session keeps its broadcasts within bounds, and no messages to single parties.
func TestWhatIsKept(t *testing.T) {
	r := NewRecorder(t.TempDir(), func(err error) { t.Error(err) })
	defer r.Close()
	hear := func(from, to round.Party, name string, size int) {
		e := exchange.Envelope{Round: 3, Name: name, From: from, To: to}
		r.Message(e, []byte("signed"), []round.Digest{{}}, make([]byte, size))
	}
	hear(1, 0, "share", 10)
	if len(r.broadcasts) != 0 {
		t.Error("a message to one party is kept")
	}
	stream := func(w round.Want, frames int) (kept int) {
		w.From, w.Name, w.Stream = 1, "stream", true
		for i := range frames {
			r.Frame(3, w, i, bytes.Repeat([]byte{byte(i)}, 100))
		}
		if b := r.broadcasts[at{3, "stream", 1}]; b != nil {
			kept = len(b.places)
		}
		delete(r.broadcasts, at{3, "stream", 1})
		return kept
	}
	for what, c := range map[string]struct {
		want round.Want
		kept int
	}{
		"to one party":     {round.Want{Keep: round.KeepRun}, 0},
		"not asked for":    {round.Want{Broadcast: true}, 0},
		"for a round":      {round.Want{Broadcast: true, Keep: round.KeepRound}, 5},
		"for the run":      {round.Want{Broadcast: true, Keep: round.KeepRun}, 5},
		"of two frames":    {round.Want{Broadcast: true, Keep: round.KeepRun, KeepFrames: 2}, 2},
		"of as many again": {round.Want{Broadcast: true, Keep: round.KeepRun, KeepFrames: 5}, 5},
	} {
		if got := stream(c.want, 5); got != c.kept {
			t.Errorf("of a stream %s %d frames are kept, want %d", what, got, c.kept)
		}
	}
	hear(1, round.All, "small", maxSmall)
	hear(1, round.All, "large", maxSmall+1)
	r.Stepped(4)
	if r.broadcasts[at{3, "small", 1}] == nil || r.broadcasts[at{3, "large", 1}] != nil {
		t.Errorf("%d are kept after their round", len(r.broadcasts))
	}
	for p := range round.Party(2 * maxKept / maxSmall) {
		hear(p, round.All, "many", maxSmall)
	}
	r.Stepped(5)
	held := 0
	for _, b := range r.broadcasts {
		held += len(b.payload)
	}
	if held > maxKept || r.bytes != held {
		t.Errorf("%d bytes are kept, counted as %d", held, r.bytes)
	}
}
