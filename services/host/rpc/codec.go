package rpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Codec is gRPC's own for protobuf, and the same on the wire. Large messages spare a copy with it: one with a method
// Pieces is sent as the buffers that this gives, which must not change afterwards, and one with a method Alias may keep
// what is in the buffers that came, which it may read during the call only. Where Pieces gives none or Alias gives
// false, the message is encoded or decoded like every other. Servers have the codec, callers name it in the call.
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
