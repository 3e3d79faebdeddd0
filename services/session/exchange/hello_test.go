package exchange

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// A hello passes if it names a session and all its pins equal the local ones. Any other hello ends
// the session.
func FuzzHello(f *testing.F) {
	roster, pins := [32]byte{1}, Pins{ParamsHash: [32]byte{2}, SpecDigest: [32]byte{3}}
	good := &exchangev1.Hello{
		Ref: &jobv1.SessionRef{JobId: "job-1", Ordinal: 1}, ProtocolVersion: job.ProtocolVersion, RosterHash: roster[:],
		ParamsHash: pins.ParamsHash[:], SpecDigest: pins.SpecDigest[:], Incarnation: make([]byte, 16),
	}
	for _, change := range []func(h *exchangev1.Hello){
		func(*exchangev1.Hello) {},
		func(h *exchangev1.Hello) { h.Ref = nil },
		func(h *exchangev1.Hello) { h.ProtocolVersion++ },
		func(h *exchangev1.Hello) { h.RosterHash = nil },
		func(h *exchangev1.Hello) { h.ParamsHash = append(h.ParamsHash, 0) },
		func(h *exchangev1.Hello) { h.Incarnation = nil },
	} {
		h := proto.Clone(good).(*exchangev1.Hello)
		change(h)
		b, err := proto.Marshal(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h := new(exchangev1.Hello)
		if proto.Unmarshal(b, h) != nil {
			return
		}
		if ref, err := job.RefOf(h.GetRef()); err == nil {
			if again, err := job.RefOf(ref.Proto()); err != nil || again != ref {
				t.Errorf("%v is read as %v: %v", ref, again, err)
			}
		}
		s := fuzzSession(roster, pins)
		err := s.compare(1, h)
		same := h.GetProtocolVersion() == job.ProtocolVersion && bytes.Equal(h.GetRosterHash(), roster[:]) &&
			bytes.Equal(h.GetParamsHash(), pins.ParamsHash[:]) && bytes.Equal(h.GetSpecDigest(), pins.SpecDigest[:])
		if (err == nil) != (same && len(h.GetIncarnation()) == 16) {
			t.Errorf("%v: %v", h, err)
		}
		var lost *LostError
		if failed := s.Failed(); same != (failed == nil) || failed != nil && (!errors.As(failed, &lost) || lost.Peer != 1 || lost.Check != CheckPins) {
			t.Errorf("the session ends with %v", failed)
		}
		if e := new(rpc.Error); err != nil && !errors.As(err, &e) {
			t.Errorf("untyped error %v", err)
		}
	})
}

// A peer's abort text is shortened and made printable, and names only parties of the roster.
func FuzzAbort(f *testing.F) {
	one, many := uint32(1), uint32(1<<31)
	for _, a := range []*exchangev1.Abort{
		{Outcome: "blamed", Round: "3", Check: "shape", Reason: "x", Blamed: &one}, {Blamed: &many}, {Reason: string(make([]byte, 1000))}, {},
	} {
		b, err := proto.Marshal(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a := new(exchangev1.Abort)
		if proto.Unmarshal(b, a) != nil {
			return
		}
		e := fuzzSession([32]byte{}, Pins{}).abortOf(1, a)
		for _, text := range []string{e.Outcome, e.Round, e.Check, e.Reason} {
			if len(text) > 500 || bytes.ContainsFunc([]byte(text), func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("text %q", text)
			}
		}
		if e.Peer != 1 || e.Blamed != nil && (*e.Blamed < 0 || *e.Blamed > 1) {
			t.Errorf("names %d and %v", e.Peer, e.Blamed)
		}
	})
}

// fuzzSession returns a running session between two parties.
func fuzzSession(roster [32]byte, pins Pins) *Streams {
	x := &Exchange{cfg: Config{Peers: []rpc.PeerConn{{Name: "a"}, {Name: "b"}}, RosterHash: roster}}
	return &Streams{x: x, peers: x.cfg.Peers, pins: pins, changed: make(chan struct{}), broken: make(chan struct{})}
}
