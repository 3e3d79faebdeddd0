package cli

import (
	"encoding/json"
	"testing"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

func TestShapesInWordsAndJSON(t *testing.T) {
	matrix := &jobv1.Shape{Rows: 2, Inner: 3, Columns: 4}
	whole := &jobv1.Shape{Convolution: &jobv1.Convolution{
		Channels: 3, Height: 9, Width: 8, Outputs: 2, KernelHeight: 3, KernelWidth: 2, StrideHeight: 3, StrideWidth: 2, PaddingWidth: 1,
	}}
	plain := &jobv1.Shape{Convolution: &jobv1.Convolution{
		Channels: 3, Height: 32, Width: 32, Outputs: 16, KernelHeight: 3, KernelWidth: 3, StrideHeight: 1, StrideWidth: 1,
	}}
	for want, s := range map[string]*jobv1.Shape{
		"2x3x4": matrix, "3x9x8 by 2x3x2, stride 3x2, padding 0x1": whole, "3x32x32 by 16x3x3": plain,
	} {
		if got := ShapeText(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, s := range map[string]*jobv1.Shape{
		`{"kind":"convolution","params":"S","field":"p64","convolution":{"image":[3,9,8],"kernel":[2,3,2],"stride":[3,2],"padding":[0,1]},"tenant":"dev"}`: whole,
		`{"kind":"convolution","params":"S","field":"p64","shape":[2,3,4],"tenant":"dev"}`:                                                                 matrix,
		`{"kind":"convolution","params":"S","field":"p64","tenant":"dev"}`:                                                                                 nil,
	} {
		b, err := json.Marshal(ClassJSON(&tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_CONVOLUTION, Params: "S", Field: "p64", Shape: s}))
		if err != nil || string(b) != want {
			t.Errorf("%s, want %s; %v", b, want, err)
		}
	}
	if got := EnclosingBlock(whole); got != 32 { // 2 outputs, 18 entries of a kernel, 15 windows
		t.Errorf("blocks of %d", got)
	}
}
