package process

import (
	"testing"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

func TestClassName(t *testing.T) {
	shape := &jobv1.Shape{Convolution: &jobv1.Convolution{
		Channels: 3, Height: 32, Width: 32, Outputs: 16, KernelHeight: 3, KernelWidth: 3, StrideHeight: 1, StrideWidth: 1,
	}}
	c := stock.Class{Kind: "convolution"}.Shaped(wire.Shape(shape))
	if got := className(c); got != "convolution 3x32x32 by 16x3x3" {
		t.Errorf("%s", got)
	}
}
