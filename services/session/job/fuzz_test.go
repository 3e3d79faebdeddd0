package job

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Any spec of a coordinator is refused with an *rpc.Error, or it is complete and has a digest.
func FuzzSpec(f *testing.F) {
	for _, change := range []func(*jobv1.SessionSpec){
		func(*jobv1.SessionSpec) {}, matrix, keys, convolution,
		func(s *jobv1.SessionSpec) { s.Deadline = nil },
		func(s *jobv1.SessionSpec) { s.Ref = nil },
		func(s *jobv1.SessionSpec) { s.Deadline.Nanos = -1 },
	} {
		s := spec()
		change(s)
		b, err := proto.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := new(jobv1.SessionSpec)
		if proto.Unmarshal(b, s) != nil {
			return
		}
		Digest(s)
		err := Validate(s, start)
		if err != nil {
			if e := new(rpc.Error); !errors.As(err, &e) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		if !config.ValidName(s.GetRef().GetJobId()) || len(s.GetParamsHash()) != 32 || len(s.GetRosterHash()) != 32 || s.GetEpoch() == 0 ||
			s.GetDim()&(s.GetDim()-1) != 0 || !s.GetDeadline().AsTime().After(start) {
			t.Errorf("accepted: %v", s)
		}
	})
}
