package stock

import (
	"testing"

	"google.golang.org/protobuf/proto"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// The jobs of a policy make tuples of the policy's class, for every valid class.
func TestJobsOfAPolicyMakeItsClass(t *testing.T) {
	class := &tuplesv1.Class{
		Tenant: "t", Kind: jobv1.Kind_KIND_MATRIX, Params: "S", Field: "p128", Shape: &jobv1.Shape{Rows: 1, Inner: 2, Columns: 3},
		InputParty: 1, NoSacrifice: true, Quorum: []uint32{0, 2}, Form: jobv1.MaskForm_MASK_FORM_PAPER,
	}
	fields := class.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if !class.ProtoReflect().Has(fields.Get(i)) {
			t.Errorf("extend this test to %s", fields.Get(i).Name())
		}
	}
	convolutions := proto.CloneOf(class)
	convolutions.Kind, convolutions.Shape = jobv1.Kind_KIND_CONVOLUTION, &jobv1.Shape{Convolution: &jobv1.Convolution{Channels: 3, StrideWidth: 2}}
	for _, class := range []*tuplesv1.Class{class, convolutions} {
		if made := ClassOf(request(&stockv1.Policy{Class: class, Batch: 1}, 1)); !proto.Equal(made, class) {
			t.Errorf("jobs make %v, but the policy is for %v", made, class)
		}
		if q := request(&stockv1.Policy{Class: class, Batch: 1, Dim: 4}, 1); q.GetDim() != 4 {
			t.Errorf("jobs of kind %v are made in blocks of %d", class.GetKind(), q.GetDim())
		}
	}
	if keyOf(class) == keyOf(convolutions) {
		t.Error("two classes have the same key")
	}
}
