package threshold

import (
	"sync"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
)

const (
	uploadField = 2         // DecryptRequest.ciphertexts
	leastUpload = 64 << 10  // minimum size for which the buffer is worthwhile
	mostUpload  = 1<<20 + 8 // size of clients' messages
)

// uploads keeps buffers for the next parts of requests.
var uploads = sync.Pool{New: func() any { return new([mostUpload]byte) }}

// upload is a received part of a request. If buffer is set, it contains the ciphertexts.
type upload struct {
	*thresholdv1.DecryptRequest
	buffer *[mostUpload]byte
}

// Alias decodes a part that contains only ciphertexts, and many of them, into a buffer (rpc.Codec).
func (u *upload) Alias(came mem.BufferSlice) bool {
	n := came.Len()
	if n < leastUpload || n > mostUpload {
		return false
	}
	buffer, _ := uploads.Get().(*[mostUpload]byte)
	b := buffer[:n]
	came.CopyTo(b)
	num, typ, tag := protowire.ConsumeTag(b)
	if tag < 0 || num != uploadField || typ != protowire.BytesType {
		uploads.Put(buffer)
		return false
	}
	ciphertexts, size := protowire.ConsumeBytes(b[tag:])
	//lodge:check threshold/request/part [drop=tag+size != n] [run=TestUploads] a part of a request
	//  can have missing or trailing bytes
	if size < 0 || tag+size != n {
		uploads.Put(buffer)
		return false
	}
	u.Ciphertexts, u.buffer = ciphertexts, buffer
	return true
}

// release returns the buffer. The ciphertexts must no longer be in use.
func (u *upload) release() {
	if u.buffer != nil {
		u.Ciphertexts = nil
		uploads.Put(u.buffer)
		u.buffer = nil
	}
}

// receive receives the next part of a request.
func receive(stream thresholdv1.ThresholdService_DecryptServer) (*upload, error) {
	u := &upload{DecryptRequest: new(thresholdv1.DecryptRequest)}
	return u, stream.RecvMsg(u)
}
