package vault

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// A shape survives encoding on the wire and in records, and records of other tuples have no shape.
func TestConvolutionsOnTheWireAndInRecords(t *testing.T) {
	wire := &jobv1.Convolution{}
	fields := wire.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		value := (&jobv1.Convolution{Channels: uint32(i + 1)}).ProtoReflect().Get(fields.ByName("channels"))
		wire.ProtoReflect().Set(fields.Get(i), value)
	}
	c := stock.ConvolutionOf(wire)
	if !proto.Equal(c.Proto(), wire) {
		t.Errorf("%v became %v", wire, c.Proto())
	}
	b := stock.Batch{ID: "a", Kind: "convolution", Convolution: c}
	record, err := json.Marshal(&b)
	if err != nil {
		t.Fatal(err)
	}
	var again stock.Batch
	if err := json.Unmarshal(record, &again); err != nil || again.Class() != b.Class() || again.Convolution != c {
		t.Errorf("%+v, %v", again, err)
	}
	if stock.ConvolutionOf(nil) != (stock.Convolution{}) || (&stock.Batch{}).Class() == b.Class() {
		t.Error("no convolution is one")
	}
	if record, err = json.Marshal(&stock.Batch{ID: "a", Kind: "scalar"}); err != nil || len(record) == 0 || says(record, "convolution") {
		t.Errorf("%s, %v", record, err)
	}
}

func says(record []byte, key string) bool {
	var all map[string]any
	_ = json.Unmarshal(record, &all)
	_, ok := all[key]
	return ok
}
