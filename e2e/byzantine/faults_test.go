package byzantine

import (
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
)

// fault gives a message as it goes out with a fault, in numbers of the stream. l.mu is held.
func (c *cheater) fault(l *link, f *cheattest.Fault, m []*exchangev1.Frame) []*exchangev1.Frame {
	start, last := m[0].GetStart(), m[len(m)-1]
	switch f.Kind {
	case cheattest.NotForOne, cheattest.Silence:
		return nil
	case cheattest.SignedEarlier:
		c.mu.Lock()
		old := c.signed[place{c.cheat.In, l.peer, start.GetName()}]
		c.mu.Unlock()
		var again []*exchangev1.Frame
		for _, f := range old {
			again = append(again, proto.Clone(f).(*exchangev1.Frame))
		}
		again[0].Start.Round = start.GetRound()
		m = again
	case cheattest.TwoVersions:
		m[0].Data = slices.Clone(m[0].Data)
		m[0].Data[0] ^= 1
		c.resign(l, m, digestOf(start.GetName(), m))
	case cheattest.Twice:
		for _, f := range slices.Clone(m) {
			m = append(m, proto.Clone(f).(*exchangev1.Frame))
		}
	case cheattest.Renamed:
		start.Name = "another"
	case cheattest.RoundBefore:
		start.Round--
	case cheattest.RoundAfter:
		start.Round++
	case cheattest.OtherDigest:
		d := digestOf(start.GetName(), m)
		d[0] ^= 1
		c.resign(l, m, d)
	case cheattest.Unsigned:
		last.End.Signature[5] ^= 1
	case cheattest.ShortSignature:
		last.End.Signature = last.End.Signature[1:]
	case cheattest.NotBroadcast:
		start.Broadcast = false
	case cheattest.FalselyOpen:
		start.Broadcast = true
	default:
		return l.frames(f.Kind, m)
	}
	for _, f := range m {
		l.number(f)
	}
	return m
}

// frames are the faults of frames and their numbers.
func (l *link) frames(kind cheattest.FaultKind, m []*exchangev1.Frame) []*exchangev1.Frame {
	start, last := m[0].GetStart(), m[len(m)-1]
	switch kind {
	case cheattest.NoEnd:
		last.End = nil
	case cheattest.ManyFrames:
		start.Frames = 1 << 20
	case cheattest.TooManyFrames:
		start.Frames = math.MaxUint32
	case cheattest.NoFrames:
		start.Frames = 0
	case cheattest.LargeFrame:
		m[0].Data = make([]byte, round.MaxFrame+1)
	case cheattest.LongName:
		start.Name = strings.Repeat("n", 65)
	case cheattest.NoName:
		start.Name = ""
	case cheattest.Inside:
		m[1].Start = proto.Clone(start).(*exchangev1.Start)
	case cheattest.EmptyFrames:
		empty := []*exchangev1.Frame{{Start: proto.Clone(start).(*exchangev1.Start)}}
		empty[0].Start.Frames = 1 << 19
		for range 9999 {
			empty = append(empty, &exchangev1.Frame{})
		}
		m = append(empty, m...)
	}
	for _, f := range m {
		l.number(f)
	}
	switch kind {
	case cheattest.Reversed:
		slices.Reverse(m)
	case cheattest.Skipped:
		for _, f := range m {
			f.Seq++
		}
	case cheattest.Repeated:
		m = append(m, proto.Clone(last).(*exchangev1.Frame))
	}
	return m
}

// digestOf is the digest of a message.
func digestOf(name string, m []*exchangev1.Frame) round.Digest {
	h := round.NewHasher(name)
	for _, f := range m {
		h.Frame(f.GetData())
	}
	return h.Sum()
}

// resign signs a message as one with this digest.
func (c *cheater) resign(l *link, m []*exchangev1.Frame, digest round.Digest) {
	end := m[len(m)-1].End
	end.Digest, end.Signature = digest[:], c.sign(m[0].GetStart(), l.peer, digest)
}
