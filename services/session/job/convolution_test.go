package job

import (
	"errors"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func convolution(s *jobv1.SessionSpec) {
	s.Kind, s.Dim, s.Shape = jobv1.Kind_KIND_CONVOLUTION, 16, &jobv1.Shape{Convolution: &jobv1.Convolution{
		Channels: 3, Height: 8, Width: 8, Outputs: 4, KernelHeight: 3, KernelWidth: 3, StrideHeight: 1, StrideWidth: 1,
		PaddingHeight: 1, PaddingWidth: 1,
	}}
}

// A requested convolution must have a valid shape within the party's policy.
func TestCheckOfConvolutions(t *testing.T) {
	allowed := func() Terms {
		tm := terms()
		tm.Policy.Kinds = append(tm.Policy.Kinds, "convolution")
		tm.Policy.MaxDim = 64
		return tm
	}
	check := func(change func(s *jobv1.SessionSpec, c *jobv1.Convolution)) error {
		s := spec()
		convolution(s)
		if change != nil {
			change(s, s.Shape.Convolution)
		}
		return NewGate(allowed()).Check(s)
	}
	if err := check(nil); err != nil {
		t.Fatal(err)
	}
	s := spec()
	convolution(s)
	if err := NewGate(terms()).Check(s); !errors.Is(err, &rpc.Error{Code: rpc.PolicyRefused}) {
		t.Errorf("a kind that the policy does not name: %v", err)
	}
	for name, c := range map[string]struct {
		change func(s *jobv1.SessionSpec, c *jobv1.Convolution)
		code   rpc.Code
		says   string
	}{
		"no shape":               {func(s *jobv1.SessionSpec, _ *jobv1.Convolution) { s.Shape = nil }, rpc.Invalid, "its own shape"},
		"the shape of a matrix":  {func(s *jobv1.SessionSpec, _ *jobv1.Convolution) { matrix(s); convolution(s); s.Shape.Rows = 1 }, rpc.Invalid, "no rows"},
		"a matrix that is one":   {func(s *jobv1.SessionSpec, c *jobv1.Convolution) { matrix(s); s.Shape.Convolution = c }, rpc.Invalid, "matrices have rows"},
		"a scalar that is one":   {func(s *jobv1.SessionSpec, _ *jobv1.Convolution) { s.Kind, s.Dim = jobv1.Kind_KIND_SCALAR, 1 }, rpc.Invalid, "only matrices"},
		"blocks of 3":            {func(s *jobv1.SessionSpec, _ *jobv1.Convolution) { s.Dim = 3 }, rpc.Invalid, "a power of two"},
		"no channels":            {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.Channels = 0 }, rpc.Invalid, "0 is not a size"},
		"no height":              {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.Height = 0 }, rpc.Invalid, "0 is not a size"},
		"no width":               {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.Width = 0 }, rpc.Invalid, "0 is not a size"},
		"no outputs":             {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.Outputs = 0 }, rpc.Invalid, "0 is not a size"},
		"no kernel height":       {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.KernelHeight = 0 }, rpc.Invalid, "0 is not a size"},
		"no kernel width":        {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.KernelWidth = 0 }, rpc.Invalid, "0 is not a size"},
		"no stride":              {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.StrideWidth = 0 }, rpc.Invalid, "0 is not a size"},
		"too much":               {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.Channels = math.MaxUint32 }, rpc.Invalid, "is not a size"},
		"too much padding":       {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.PaddingHeight = 3 }, rpc.Invalid, "less than the kernel"},
		"padding beyond numbers": {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.PaddingWidth = math.MaxUint32 }, rpc.Invalid, "less than the kernel"},
		"too large a kernel":     {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.KernelHeight = 11 }, rpc.Invalid, "does not fit"},
		"a gap":                  {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.StrideHeight = 4 }, rpc.Invalid, "a stride of 4 with a kernel of height 3"},
		"a rest":                 {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.PaddingWidth, c.StrideWidth = 0, 2 }, rpc.Invalid, "beyond the first 7"},
		"a side of the product": {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) {
			c.Channels, c.Height, c.Width = 1<<14, 4, 4
		}, rpc.Invalid, "entries of a kernel"},
		"windows above the policy": {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.Width = 9 }, rpc.PolicyRefused, "27 x 72 matrices"},
		"kernels above the policy": {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.Channels = 8 }, rpc.PolicyRefused, "4 x 72 and 72 x"},
		"outputs above the policy": {func(_ *jobv1.SessionSpec, c *jobv1.Convolution) { c.Outputs = 65 }, rpc.PolicyRefused, "65 x 27"},
		"blocks above the policy":  {func(s *jobv1.SessionSpec, _ *jobv1.Convolution) { s.Dim = 128 }, rpc.PolicyRefused, "blocks of 128"},
	} {
		if err := check(c.change); !errors.Is(err, &rpc.Error{Code: c.code}) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s %s", name, err, c.code, c.says)
		}
	}
}

// Every field of a convolution's shape changes the digest of its spec.
func TestDigestBindsConvolutions(t *testing.T) {
	full := spec()
	convolution(full)
	seen := map[[32]byte]bool{Digest(full): true}
	none := proto.CloneOf(full)
	none.Shape.Convolution = nil
	if seen[Digest(none)] {
		t.Error("the digest does not say whether there is a convolution")
	}
	fields := full.Shape.Convolution.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		s := proto.CloneOf(full)
		m := s.Shape.Convolution.ProtoReflect()
		one := (&jobv1.Convolution{Channels: 77}).ProtoReflect().Get(fields.ByName("channels"))
		m.Set(fields.Get(i), one)
		if d := Digest(s); seen[d] {
			t.Errorf("%s does not change the digest", fields.Get(i).Name())
		} else {
			seen[d] = true
		}
	}
	if n := (&jobv1.Shape{}).ProtoReflect().Descriptor().Fields().Len(); n != 4 {
		t.Errorf("a shape has %d fields: bind the new ones", n)
	}
}
