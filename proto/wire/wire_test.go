package wire

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/kind"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

// Every kind of jobs makes tuples of one kind, or is one of those that make none, and every kind of
// tuples has a kind of jobs.
func TestKinds(t *testing.T) {
	others := []string{"", "keys", "proof", "masks", "reshare"}
	var made []kind.Kind
	for n := range jobv1.Kind_name {
		k := jobv1.Kind(n)
		if made = append(made, Kind(k)); Kind(k).Known() == slices.Contains(others, Name(k)) {
			t.Errorf("%v is named %q and makes tuples of %v", k, Name(k), Kind(k))
		}
		if Of(Name(k)) != k {
			t.Errorf("%q is %v, not %v", Name(k), Of(Name(k)), k)
		}
	}
	for _, k := range kind.All() {
		if !slices.Contains(made, k) || Kind(Number(k)) != k {
			t.Errorf("job.proto has no KIND_ for %v", k)
		}
	}
	for _, name := range []string{"unspecified", "SCALAR", "Scalar", "KIND_SCALAR", "triple", "kind 0"} {
		if Of(name) != 0 {
			t.Errorf("%q is %v", name, Of(name))
		}
	}
	if Name(-1) != "" || Name(1<<20) != "" || Kind(1<<20) != 0 {
		t.Error("an unknown kind has a name")
	}
}

// A shape survives the way to the wire and back, in every field.
func TestShapes(t *testing.T) {
	number := uint32(0)
	fill := func(m proto.Message) {
		fields := m.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			if f := fields.Get(i); f.Message() == nil {
				number++
				value := (&jobv1.Shape{Rows: number}).ProtoReflect()
				m.ProtoReflect().Set(f, value.Get(value.Descriptor().Fields().ByName("rows")))
			}
		}
	}
	whole := &jobv1.Shape{Convolution: &jobv1.Convolution{}}
	fill(whole)
	fill(whole.Convolution)
	if number != 13 {
		t.Errorf("a shape has %d numbers: convert the new ones", number)
	}
	for _, s := range []*jobv1.Shape{whole, {Rows: 1}, {Convolution: whole.Convolution}, nil} {
		if got := ShapeOf(Shape(s)); !proto.Equal(got, s) {
			t.Errorf("%v became %v", s, got)
		}
	}
}
