package exchange

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
)

// Numbers of the protobuf fields that contain a frame's data.
const (
	frameField = 2 // of ExchangeRequest
	dataField  = 3 // of Frame
)

// departure is an outgoing request. rpc.Codec does not copy the data of its frame.
type departure struct{ *exchangev1.ExchangeRequest }

// Pieces returns the request's encoding with the data in a separate piece, or nil if the data is
// too small for this to pay. The outbox keeps the data for resends, so it does not change.
func (d departure) Pieces() mem.BufferSlice {
	f := d.GetFrame()
	if len(f.GetData()) < leastBuffer || len(d.ProtoReflect().GetUnknown())+len(f.ProtoReflect().GetUnknown()) > 0 {
		return nil
	}
	before, err := proto.Marshal(&exchangev1.Frame{Seq: f.Seq, Start: f.Start})
	if err != nil {
		return nil // the ordinary encoding returns the error
	}
	after, err := proto.Marshal(&exchangev1.Frame{End: f.End})
	if err != nil {
		return nil
	}
	before = protowire.AppendTag(before, dataField, protowire.BytesType)
	before = protowire.AppendVarint(before, uint64(len(f.Data)))
	head := protowire.AppendTag(nil, frameField, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(before)+len(f.Data)+len(after)))
	pieces := mem.BufferSlice{mem.SliceBuffer(append(head, before...)), mem.SliceBuffer(f.Data)}
	if len(after) > 0 {
		pieces = append(pieces, mem.SliceBuffer(after))
	}
	return pieces
}

// arrival is an incoming request. If buffer is set, it contains the data of the frame, and the last
// user of the frame may return it to the pool.
type arrival struct {
	*exchangev1.ExchangeRequest
	buffer []byte
}

// Alias decodes a request with a large frame in a buffer.
func (a *arrival) Alias(came mem.BufferSlice) bool {
	n := came.Len()
	if n < leastBuffer || n > largestFrame {
		return false
	}
	b := getBuffer(n)
	came.CopyTo(b)
	f := frameIn(b)
	if f == nil {
		putBuffer(b)
		return false
	}
	a.buffer = b
	a.Kind = &exchangev1.ExchangeRequest_Frame{Frame: f}
	return true
}

// frameIn decodes a request that contains only a frame with data; the frame's data aliases b. It
// returns nil for any other request: without data, with data twice, with further fields, with much
// besides the data, or malformed.
func frameIn(b []byte) *exchangev1.Frame {
	const mostRest = 4 << 10 // bytes; a name, a digest and a signature take a tenth
	num, typ, tag := protowire.ConsumeTag(b)
	if tag < 0 || num != frameField || typ != protowire.BytesType {
		return nil
	}
	in, n := protowire.ConsumeBytes(b[tag:])
	if n < 0 || tag+n != len(b) {
		return nil
	}
	var data, rest []byte
	for len(in) > 0 {
		num, typ, n := protowire.ConsumeField(in)
		if n < 0 {
			return nil
		}
		switch {
		case num != dataField || typ != protowire.BytesType:
			if rest = append(rest, in[:min(n, mostRest+1)]...); len(rest) > mostRest {
				return nil
			}
		case data != nil:
			return nil
		default:
			_, _, tag := protowire.ConsumeTag(in)
			v, _ := protowire.ConsumeBytes(in[tag:n])
			data = v[:len(v):len(v)]
		}
		in = in[n:]
	}
	f := new(exchangev1.Frame)
	if len(data) == 0 || proto.Unmarshal(rest, f) != nil {
		return nil
	}
	f.Data = data
	return f
}
