package rpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Codec is gRPC's protobuf codec with the same wire format, but without a copy of large messages: a
// message with a method Pieces is sent as the buffers that Pieces returns, which must not change
// afterwards; a message with a method Alias may keep references to the received buffers, which it
// may read only during the call. If Pieces returns no buffers or Alias returns false, the message
// is encoded or decoded as usual. Servers use the codec; clients name it in the call.
var Codec encoding.CodecV2 = codec{encoding.GetCodecV2(proto.Name)}

type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(interface{ Pieces() mem.BufferSlice }); ok {
		if pieces := m.Pieces(); pieces != nil {
			return pieces, nil
		}
	}
	return c.CodecV2.Marshal(v)
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(interface{ Alias(mem.BufferSlice) bool }); ok && m.Alias(data) {
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
