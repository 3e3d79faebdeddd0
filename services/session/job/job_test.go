package job

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

var start = time.Unix(1_800_000_000, 0)

func terms() Terms {
	return Terms{
		Policy: config.Policy{
			Params: []config.ParamsPin{{Name: "S14-32", Hash: strings.Repeat("11", 32)}, {Name: "TOY", Hash: strings.Repeat("22", 32)}},
			Kinds:  []string{"keys", "scalar", "matrix"}, Fields: []string{"p128"},
			Purposes: []string{"triples"}, Tenants: []string{"acme"},
			MaxCount: 1000, MaxDim: 128, JobsPerHour: 3, MaxConcurrent: 2, MaxMemory: 100, DecryptionsPerHour: 1,
		},
		RosterHash:         [32]byte{7},
		AllowPassiveKeygen: true,
		Insecure:           func(p string) bool { return p == "TOY" },
		Now:                func() time.Time { return start },
	}
}

func spec() *jobv1.SessionSpec {
	hash, _ := config.Pin(terms().Policy.Params, "S14-32")
	roster := terms().RosterHash
	return &jobv1.SessionSpec{
		Ref:      &jobv1.SessionRef{JobId: "job-1", Ordinal: 1},
		Protocol: jobv1.Protocol_PROTOCOL_TRIPLES, ProtocolVersion: ProtocolVersion,
		Params: "S14-32", ParamsHash: hash[:], RosterHash: roster[:],
		Field: "p128", Kind: jobv1.Kind_KIND_SCALAR, Dim: 1, Count: 1000, Epoch: 1,
		Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: "acme",
		Deadline: timestamppb.New(start.Add(time.Minute)),
	}
}

func matrix(s *jobv1.SessionSpec) {
	s.Kind, s.Dim, s.Shape = jobv1.Kind_KIND_MATRIX, 64, &jobv1.Shape{Rows: 100, Inner: 128, Columns: 1}
}

func input(s *jobv1.SessionSpec) { s.Kind, s.InputParty = jobv1.Kind_KIND_INPUT, 2 }

func keys(s *jobv1.SessionSpec) {
	s.Protocol, s.Kind = jobv1.Protocol_PROTOCOL_KEYGEN, jobv1.Kind_KIND_KEYS
	s.Field, s.Dim, s.Count, s.Tenant = "", 0, 0, ""
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  func(*jobv1.SessionSpec)
		terms func(*Terms)
		want  rpc.Code // "" allowed
	}{
		{name: "scalar"},
		{name: "matrix", spec: matrix},
		{name: "keys", spec: keys},
		{name: "input masks", spec: input, terms: func(t *Terms) { t.Policy.Kinds = []string{"input"} }},
		{name: "input masks refused", spec: input, want: rpc.PolicyRefused},
		{name: "input masks of too high a party", spec: func(s *jobv1.SessionSpec) { input(s); s.InputParty = config.MaxParties }, want: rpc.Invalid},
		{name: "input masks with dim", spec: func(s *jobv1.SessionSpec) { input(s); s.Dim = 2 }, want: rpc.Invalid},
		{name: "triples of one party", spec: func(s *jobv1.SessionSpec) { s.InputParty = 1 }, want: rpc.Invalid},
		{name: "keys of one party", spec: func(s *jobv1.SessionSpec) { keys(s); s.InputParty = 1 }, want: rpc.Invalid},
		{name: "bad job id", spec: func(s *jobv1.SessionSpec) { s.Ref.JobId = "../x" }, want: rpc.Invalid},
		{name: "no ordinal", spec: func(s *jobv1.SessionSpec) { s.Ref.Ordinal = 0 }, want: rpc.Invalid},
		{name: "no ref", spec: func(s *jobv1.SessionSpec) { s.Ref = nil }, want: rpc.Invalid},
		{name: "kind and protocol", spec: func(s *jobv1.SessionSpec) { s.Kind = jobv1.Kind_KIND_KEYS }, want: rpc.Invalid},
		{name: "kind of another protocol", spec: func(s *jobv1.SessionSpec) { s.Protocol = jobv1.Protocol_PROTOCOL_POPK }, want: rpc.Invalid},
		{name: "nothing", spec: func(s *jobv1.SessionSpec) { s.Count = 0 }, want: rpc.Invalid},
		{name: "matrix dim 0", spec: func(s *jobv1.SessionSpec) { matrix(s); s.Dim = 0 }, want: rpc.Invalid},
		{name: "no params", spec: func(s *jobv1.SessionSpec) { s.Params = "" }, want: rpc.Invalid},
		{name: "short hash", spec: func(s *jobv1.SessionSpec) { s.ParamsHash = nil }, want: rpc.Invalid},
		{name: "short roster", spec: func(s *jobv1.SessionSpec) { s.RosterHash = nil }, want: rpc.Invalid},
		{name: "epoch 0", spec: func(s *jobv1.SessionSpec) { s.Epoch = 0 }, want: rpc.Invalid},
		{name: "no purpose", spec: func(s *jobv1.SessionSpec) { s.Purpose = 0 }, want: rpc.Invalid},
		{name: "no deadline", spec: func(s *jobv1.SessionSpec) { s.Deadline = nil }, want: rpc.Invalid},
		{name: "late", spec: func(s *jobv1.SessionSpec) { s.Deadline = timestamppb.New(start) }, want: rpc.TimedOut},
		{name: "keys with dim 3", spec: func(s *jobv1.SessionSpec) { keys(s); s.Dim = 3 }, want: rpc.Invalid},
		{name: "keys with a count", spec: func(s *jobv1.SessionSpec) { keys(s); s.Count = 1 }, want: rpc.Invalid},
		{name: "no field", spec: func(s *jobv1.SessionSpec) { s.Field = "" }, want: rpc.Invalid},
		{name: "no tenant", spec: func(s *jobv1.SessionSpec) { s.Tenant = "" }, want: rpc.Invalid},
		{name: "scalar with dim", spec: func(s *jobv1.SessionSpec) { s.Dim = 2 }, want: rpc.Invalid},
		{name: "matrix without shape", spec: func(s *jobv1.SessionSpec) { matrix(s); s.Shape = nil }, want: rpc.Invalid},
		{name: "matrix dim 3", spec: func(s *jobv1.SessionSpec) { matrix(s); s.Dim = 3 }, want: rpc.Invalid},
		{name: "triples for decryption", spec: func(s *jobv1.SessionSpec) { s.Purpose = jobv1.Purpose_PURPOSE_DECRYPTION }, want: rpc.KeyPurpose},
		{name: "version", spec: func(s *jobv1.SessionSpec) { s.ProtocolVersion++ }, want: rpc.PinMismatch},
		{name: "roster", spec: func(s *jobv1.SessionSpec) { s.RosterHash = slices.Repeat([]byte{9}, 32) }, want: rpc.PinMismatch},
		{name: "params hash", spec: func(s *jobv1.SessionSpec) { s.ParamsHash = slices.Repeat([]byte{9}, 32) }, want: rpc.PinMismatch},
		{name: "params unpinned", spec: func(s *jobv1.SessionSpec) { s.Params = "S13-8" }, want: rpc.PolicyRefused},
		{name: "insecure", spec: func(s *jobv1.SessionSpec) { s.Params, s.ParamsHash = "TOY", slices.Repeat([]byte{0x22}, 32) }, want: rpc.PolicyRefused},
		{name: "insecure allowed", spec: func(s *jobv1.SessionSpec) { s.Params, s.ParamsHash = "TOY", slices.Repeat([]byte{0x22}, 32) },
			terms: func(t *Terms) { t.AllowInsecureParams = true }},
		{name: "passive keygen", spec: keys, terms: func(t *Terms) { t.AllowPassiveKeygen = false }, want: rpc.PassiveKeygen},
		{name: "keys of a legacy set", spec: keys, terms: func(t *Terms) {
			t.NewKeys = func(string) error { return rpc.Errorf(rpc.PolicyRefused, "", "legacy") }
		}, want: rpc.PolicyRefused},
		{name: "triples under keys of a legacy set", terms: func(t *Terms) {
			t.NewKeys = func(string) error { return rpc.Errorf(rpc.PolicyRefused, "", "legacy") }
		}},
		{name: "no sacrifice", spec: func(s *jobv1.SessionSpec) { s.NoSacrifice = true }, want: rpc.PolicyRefused},
		{name: "no sacrifice allowed", spec: func(s *jobv1.SessionSpec) { s.NoSacrifice = true },
			terms: func(t *Terms) { t.Policy.AllowNoSacrifice = true }},
		{name: "no sacrifice of input masks", spec: func(s *jobv1.SessionSpec) { input(s); s.NoSacrifice = true },
			terms: func(t *Terms) { t.Policy.AllowNoSacrifice = true }, want: rpc.Invalid},
		{name: "no sacrifice of keys", spec: func(s *jobv1.SessionSpec) { keys(s); s.NoSacrifice = true },
			terms: func(t *Terms) { t.Policy.AllowNoSacrifice = true }, want: rpc.Invalid},
		{name: "proved keygen", spec: keys, terms: func(t *Terms) {
			t.AllowPassiveKeygen, t.Proved = false, func(name string) bool { return name == spec().GetParams() }
		}},
		{name: "passive keygen of another set", spec: keys, terms: func(t *Terms) {
			t.AllowPassiveKeygen, t.Proved = false, func(name string) bool { return name != spec().GetParams() }
		}, want: rpc.PassiveKeygen},
		{name: "kind", terms: func(t *Terms) { t.Policy.Kinds = []string{"keys"} }, want: rpc.PolicyRefused},
		{name: "purpose", spec: func(s *jobv1.SessionSpec) { keys(s); s.Purpose = jobv1.Purpose_PURPOSE_DECRYPTION }, want: rpc.PolicyRefused},
		{name: "field", spec: func(s *jobv1.SessionSpec) { s.Field = "p64" }, want: rpc.PolicyRefused},
		{name: "tenant", spec: func(s *jobv1.SessionSpec) { s.Tenant = "other" }, want: rpc.PolicyRefused},
		{name: "count", spec: func(s *jobv1.SessionSpec) { s.Count = 1001 }, want: rpc.PolicyRefused},
		{name: "dim", spec: func(s *jobv1.SessionSpec) { matrix(s); s.Shape.Columns = 129 }, want: rpc.PolicyRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, tm := spec(), terms()
			if c.spec != nil {
				c.spec(s)
			}
			if c.terms != nil {
				c.terms(&tm)
			}
			err := NewGate(tm).Check(s)
			if c.want == "" && err != nil || c.want != "" && !errors.Is(err, &rpc.Error{Code: c.want}) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestWhatIsRefusedIsNotAdmitted(t *testing.T) {
	for want, change := range map[rpc.Code]func(*jobv1.SessionSpec){
		rpc.Invalid:       func(s *jobv1.SessionSpec) { s.Epoch = 0 },
		rpc.PinMismatch:   func(s *jobv1.SessionSpec) { s.ProtocolVersion++ },
		rpc.PolicyRefused: func(s *jobv1.SessionSpec) { s.Tenant = "other" },
	} {
		s := spec()
		change(s)
		if _, err := NewGate(terms()).Admit(s, 1); !errors.Is(err, &rpc.Error{Code: want}) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAdmit(t *testing.T) {
	tm := terms()
	now := start
	tm.Now = func() time.Time { return now }
	g := NewGate(tm)
	admit := func(memory uint64, want rpc.Code) func() {
		t.Helper()
		release, err := g.Admit(spec(), memory)
		if want == "" && err != nil || want != "" && !errors.Is(err, &rpc.Error{Code: want}) {
			t.Fatalf("got %v, want %q", err, want)
		}
		return release
	}
	spare := func(want uint64) {
		t.Helper()
		if got := g.Spare(); got != want {
			t.Errorf("%d to spare, want %d", got, want)
		}
	}
	admit(101, rpc.PolicyRefused)
	spare(100)
	one := admit(60, "")
	spare(40)
	admit(41, rpc.Busy)
	two := admit(40, "")
	spare(0)
	admit(0, rpc.Busy)
	one()
	spare(60)
	one() // counts once
	admit(61, rpc.Busy)
	two()
	admit(100, "")()
	admit(1, rpc.RateLimited)
	now = now.Add(30 * time.Second)
	admit(1, rpc.RateLimited)
	if err := g.AdmitDecryption(); err != nil {
		t.Fatal(err)
	}
	if err := g.AdmitDecryption(); !errors.Is(err, &rpc.Error{Code: rpc.RateLimited}) {
		t.Fatalf("got %v", err)
	}
	now = start.Add(time.Hour)
	s := spec()
	s.Deadline = timestamppb.New(now.Add(time.Minute))
	if _, err := g.Admit(s, 1); err != nil {
		t.Fatal(err)
	}
}

// Uploads use no memory until data arrives, each client has at most two slots, and calls use no
// memory of sessions.
func TestCallsHaveTheirOwnBudget(t *testing.T) {
	tm := terms()
	tm.Now = nil
	g := NewGate(tm) // 100 bytes for sessions, 25 for calls
	call := func(client string, memory uint64, want rpc.Code) *Call {
		t.Helper()
		c, err := g.AdmitCall(client, memory)
		if want == "" && err != nil || want != "" && !errors.Is(err, &rpc.Error{Code: want}) {
			t.Fatalf("got %v, want %q", err, want)
		}
		return c
	}
	call("a", 26, rpc.PolicyRefused)
	var calls []*Call
	for _, client := range []string{"a", "a", "b", "b"} {
		calls = append(calls, call(client, 25, ""))
	}
	call("a", 1, rpc.Busy)
	call("b", 1, rpc.Busy)
	if err := calls[0].Compute(); err != nil {
		t.Fatal(err)
	}
	if err := calls[2].Compute(); !errors.Is(err, &rpc.Error{Code: rpc.Busy}) {
		t.Fatalf("beyond the budget: %v", err)
	}
	calls[2].Release() // held no memory
	if err := calls[3].Compute(); !errors.Is(err, &rpc.Error{Code: rpc.Busy}) {
		t.Fatalf("beyond the budget: %v", err)
	}
	calls[0].Release()
	calls[0].Release() // counts once
	if err := calls[3].Compute(); err != nil {
		t.Fatal(err)
	}
	calls[3].Release()
	some := call("b", 25, "")
	for _, part := range []uint64{10, 0} { // what has come
		if err := some.Take(part); err != nil || g.callMemory != 10 {
			t.Fatalf("%v, and %d bytes are held", err, g.callMemory)
		}
	}
	other := call("b", 20, "")
	if err := other.Compute(); !errors.Is(err, &rpc.Error{Code: rpc.Busy}) || g.callMemory != 10 {
		t.Fatalf("a call next to another one: %v, and %d bytes are held", err, g.callMemory)
	}
	if err := other.Take(15); err != nil {
		t.Fatal(err)
	}
	if err := some.Compute(); !errors.Is(err, &rpc.Error{Code: rpc.Busy}) {
		t.Fatalf("what is left: %v", err)
	}
	other.Release()
	if err := errors.Join(some.Compute(), some.Compute(), some.Take(1)); err != nil || g.callMemory != 25 {
		t.Fatalf("%v, and %d bytes are held", err, g.callMemory)
	}
	some.Release()
	if g.callMemory != 0 {
		t.Fatalf("%d bytes are held for nobody", g.callMemory)
	}
	call("b", 1, "")
	call("a", 1, "")
	call("a", 1, rpc.Busy)
	if (*Call)(nil).Release(); len(g.calls) != 2 {
		t.Errorf("calls of %v", g.calls)
	}
	now := time.Now()
	s := spec()
	s.Deadline = timestamppb.New(now.Add(time.Minute))
	if _, err := g.Admit(s, 100); err != nil {
		t.Errorf("calls take the sessions' memory: %v", err)
	}
}

// Every field of a spec changes its digest.
func TestDigestBindsEverything(t *testing.T) {
	full := spec()
	matrix(full)
	want := Digest(full)
	if Digest(proto.Clone(full).(*jobv1.SessionSpec)) != want {
		t.Fatal("not a function of the content")
	}
	seen := map[[32]byte]bool{want: true}
	for i, change := range []func(*jobv1.SessionSpec){
		func(s *jobv1.SessionSpec) { s.Ref.JobId += "x" },
		func(s *jobv1.SessionSpec) { s.Ref.Ordinal++ },
		func(s *jobv1.SessionSpec) { s.Protocol++ },
		func(s *jobv1.SessionSpec) { s.ProtocolVersion++ },
		func(s *jobv1.SessionSpec) { s.Params += "x" },
		func(s *jobv1.SessionSpec) { s.ParamsHash[0]++ },
		func(s *jobv1.SessionSpec) { s.RosterHash[0]++ },
		func(s *jobv1.SessionSpec) { s.Field += "x" },
		func(s *jobv1.SessionSpec) { s.Kind++ },
		func(s *jobv1.SessionSpec) { s.Dim++ },
		func(s *jobv1.SessionSpec) { s.Shape.Rows++ },
		func(s *jobv1.SessionSpec) { s.Shape.Inner++ },
		func(s *jobv1.SessionSpec) { s.Shape.Columns++ },
		func(s *jobv1.SessionSpec) { s.Count++ },
		func(s *jobv1.SessionSpec) { s.Epoch++ },
		func(s *jobv1.SessionSpec) { s.Purpose++ },
		func(s *jobv1.SessionSpec) { s.Tenant += "x" },
		func(s *jobv1.SessionSpec) { s.Deadline.Seconds++ },
		func(s *jobv1.SessionSpec) { s.Deadline.Nanos++ },
		func(s *jobv1.SessionSpec) { s.InputParty++ },
		func(s *jobv1.SessionSpec) { s.NoSacrifice = true },
		func(s *jobv1.SessionSpec) { s.Threshold++ },
		func(s *jobv1.SessionSpec) { s.Form++ },
		func(s *jobv1.SessionSpec) { s.FromEpoch++ },
		func(s *jobv1.SessionSpec) { s.Group = []uint32{1, 2} },
		func(s *jobv1.SessionSpec) { s.Group = []uint32{1} },
		func(s *jobv1.SessionSpec) { s.FromHolders = []uint32{1, 2} },
		func(s *jobv1.SessionSpec) { s.FromThreshold++ },
		func(s *jobv1.SessionSpec) { s.FromDigest = []byte{1} },
		func(s *jobv1.SessionSpec) { s.Group, s.FromHolders = []uint32{1}, []uint32{2} },
		func(s *jobv1.SessionSpec) { s.Galois = []uint32{3} },
		func(s *jobv1.SessionSpec) { s.FromHolders, s.Galois = []uint32{2}, []uint32{3} },
	} {
		s := proto.Clone(full).(*jobv1.SessionSpec)
		change(s)
		if d := Digest(s); seen[d] {
			t.Errorf("change %d does not change the digest", i)
		} else {
			seen[d] = true
		}
	}
	fields := (&jobv1.SessionSpec{}).ProtoReflect().Descriptor().Fields().Len()
	if fields != 25 {
		t.Errorf("the spec has %d fields; bind the new ones and extend this test", fields)
	}
}

func TestMayFollow(t *testing.T) {
	const last = jobv1.JobState_JOB_STATE_TIMED_OUT
	for a := jobv1.JobState(1); a <= last; a++ {
		for b := jobv1.JobState(1); b <= last; b++ {
			want := false
			switch {
			case a >= jobv1.JobState_JOB_STATE_COMPLETED: // an end
			case a == jobv1.JobState_JOB_STATE_ACTIVATING:
				want = b == jobv1.JobState_JOB_STATE_COMPLETED
			default:
				want = b > a && b != jobv1.JobState_JOB_STATE_COMPLETED
			}
			if got := MayFollow(a, b); got != want {
				t.Errorf("%s to %s: %v", a, b, got)
			}
		}
	}
}
