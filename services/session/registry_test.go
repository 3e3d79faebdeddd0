package session

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/ring"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// The engine's cached memory is freed when a session is admitted that would otherwise lack memory,
// unless the session will use it.
func TestAdmissionCountsWhatIsKept(t *testing.T) {
	const kept = 1 << 20
	free := func(logN, bytes int) { // the cached memory is of this degree
		basis, err := ring.NewBasis(logN, primes(t))
		if err != nil {
			t.Fatal(err)
		}
		list := make([]ring.Poly, bytes/(8<<logN))
		for i := range list {
			list[i] = basis.NewPoly()
		}
		for _, p := range list {
			p.Free()
		}
	}
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
	for _, c := range []struct {
		name   string
		logN   int
		memory uint64
		want   int64
	}{
		{"others' beside enough", 13, 2 * kept, kept},
		{"others' beside too little", 13, 2*kept + 1, 0},
		{"its own", 14, 3 * kept, kept},
	} {
		ring.Trim()
		free(c.logN, kept)
		release, err := r.admit(spec, c.memory, nil)
		if err != nil {
			t.Fatal(err)
		}
		release()
		if same, other := ring.Kept(0); same+other != c.want {
			t.Errorf("%s: %d bytes are kept, want %d", c.name, same+other, c.want)
		}
	}
	ring.Trim()
	free(14, 4*kept) // more memory of its own degree than the limit
	release, err := r.admit(spec, kept/2, nil)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if own, _ := ring.Kept(1 << 14); own != 0 {
		t.Errorf("%d bytes stay cached for a session that uses fewer", own)
	}
}

// primes returns one prime of a shipped set.
func primes(t *testing.T) []uint64 {
	t.Helper()
	set, err := params.Lookup("S14-32")
	if err != nil {
		t.Fatal(err)
	}
	return set.Q[:1]
}
