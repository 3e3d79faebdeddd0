package session

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/ring"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
)

// Memory that the engine keeps for later is let go of when a session is admitted that leaves too little beside it.
func TestAdmissionCountsWhatIsKept(t *testing.T) {
	set, err := params.Lookup("insecure-6")
	if err != nil {
		t.Fatal(err)
	}
	basis, err := ring.NewBasis(set.LogN, set.Q)
	if err != nil {
		t.Fatal(err)
	}
	ring.Trim()
	basis.NewPoly().Free()
	kept := ring.Kept()
	pin := config.ParamsPin{Name: "S14-32", Hash: strings.Repeat("11", 32)}
	hash := pin.Sum()
	r := NewRegistry(Config{Gate: job.NewGate(job.Terms{
		Policy: config.Policy{
			Params: []config.ParamsPin{pin}, Kinds: []string{"scalar"}, Fields: []string{"p128"}, Purposes: []string{"triples"},
			Tenants: []string{"acme"}, MaxCount: 1, MaxDim: 1, MaxConcurrent: 2, JobsPerHour: 10, MaxMemory: config.Bytes(3 * kept),
		},
		AllowPassiveKeygen: true, Insecure: func(string) bool { return false }, Now: time.Now,
	})})
	roster := [32]byte{}
	spec := &jobv1.SessionSpec{
		Ref: &jobv1.SessionRef{JobId: "job-1", Ordinal: 1}, Protocol: jobv1.Protocol_PROTOCOL_TRIPLES, ProtocolVersion: job.ProtocolVersion,
		Params: pin.Name, ParamsHash: hash[:], RosterHash: roster[:], Field: "p128", Kind: jobv1.Kind_KIND_SCALAR, Dim: 1, Count: 1,
		Epoch: 1, Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: "acme", Deadline: timestamppb.New(time.Now().Add(time.Hour)),
	}
	for _, c := range []struct{ memory, want int64 }{{2 * kept, kept}, {kept, 0}} {
		release, err := r.admit(spec, uint64(c.memory), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if got := ring.Kept(); got != c.want {
			t.Errorf("%d bytes are kept beside %d more, want %d", got, c.memory, c.want)
		}
	}
}
