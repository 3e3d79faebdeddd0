package coordinator

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
)

// A stored job decodes or is rejected; a decoded job encodes to the same bytes.
func FuzzRecord(f *testing.F) {
	for _, r := range []record{
		{job: &coordinatorv1.Job{Id: "job-1", Request: keysJob()}, key: "client/key"},
		{job: &coordinatorv1.Job{Id: "job-2", Request: scalarJob(3)}},
	} {
		b, err := encodeRecord(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:5])
		f.Add(append(bytes.Clone(b), 0))
	}
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := encodeRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		same, err := decodeRecord(again)
		if err != nil || same.key != r.key || !proto.Equal(same.job, r.job) {
			t.Errorf("%v changes to %v: %v", r, same, err)
		}
	})
}
