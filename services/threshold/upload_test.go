package threshold

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Alias and protobuf decode a part of a request to the same message.
func TestUploads(t *testing.T) {
	encode := func(m *thresholdv1.DecryptRequest) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	large := bytes.Repeat([]byte("ciphertexts "), 10000)
	part := encode(&thresholdv1.DecryptRequest{Ciphertexts: large})
	for name, x := range map[string]struct {
		encoded []byte
		aliased bool
	}{
		"a part":              {part, true},
		"the maximum size":    {encode(&thresholdv1.DecryptRequest{Ciphertexts: make([]byte, 1<<20)}), true},
		"above the maximum":   {encode(&thresholdv1.DecryptRequest{Ciphertexts: make([]byte, 1<<20+5)}), false},
		"little":              {encode(&thresholdv1.DecryptRequest{Ciphertexts: large[:100]}), false},
		"nothing":             {nil, false},
		"with a header":       {encode(&thresholdv1.DecryptRequest{Ciphertexts: large, Header: &thresholdv1.DecryptHeader{Epoch: 1}}), false},
		"twice":               {append(bytes.Clone(part), part...), false},
		"with further fields": {append(bytes.Clone(part), 0x78, 1), false},
		"cut":                 {part[:len(part)-1], false},
		"another field":       {append([]byte{0x7a}, part[1:]...), false},
		"no field":            {bytes.Repeat([]byte{0xff}, leastUpload), false},
	} {
		for range 2 { // the second may reuse the memory of the first
			came := mem.BufferSlice{}
			for rest := x.encoded; len(rest) > 0; {
				n := min(len(rest), 10_000)
				came, rest = append(came, mem.SliceBuffer(rest[:n])), rest[n:]
			}
			u := &upload{DecryptRequest: new(thresholdv1.DecryptRequest)}
			want := new(thresholdv1.DecryptRequest)
			wrong := proto.Unmarshal(x.encoded, want)
			err := rpc.Codec.Unmarshal(came, u)
			if (err == nil) != (wrong == nil) || err == nil && !proto.Equal(u.DecryptRequest, want) {
				t.Errorf("%s: another message, or another error: %v, %v", name, err, wrong)
			}
			if (u.buffer != nil) != x.aliased {
				t.Errorf("%s: in a buffer: %v", name, u.buffer != nil)
			}
			u.release()
		}
	}
}
