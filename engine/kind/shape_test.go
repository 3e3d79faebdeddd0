package kind

import (
	"strings"
	"testing"
)

// Product returns the matrix product of a convolution, and an error for an invalid shape.
func TestConvolutionShapes(t *testing.T) {
	for s, want := range map[ConvolutionShape]MatrixShape{
		{3, 32, 32, 16, 3, 3, 1, 1, 1, 1}:    {16, 27, 1024},
		{3, 224, 224, 64, 7, 7, 2, 2, 3, 3}:  {64, 147, 12544},
		{64, 8, 8, 32, 1, 1, 1, 1, 0, 0}:     {32, 64, 64},
		{1, 28, 28, 8, 5, 5, 1, 1, 0, 0}:     {8, 25, 576},
		{1, 1, 1 << 14, 1, 1, 1, 1, 1, 0, 0}: {1, 1, 1 << 14},
		{2, 3, 3, 1, 3, 3, 9, 9, 0, 0}:       {1, 18, 1},
	} {
		if got, err := s.Product(); err != nil || got != want {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	for s, want := range map[ConvolutionShape]string{
		{0, 4, 4, 1, 3, 3, 1, 1, 0, 0}:                         "0 is not a size",
		{1, 0, 4, 1, 3, 3, 1, 1, 0, 0}:                         "0 is not a size",
		{1, 4, -1, 1, 3, 3, 1, 1, 0, 0}:                        "-1 is not a size",
		{1, 4, 4, 0, 3, 3, 1, 1, 0, 0}:                         "0 is not a size",
		{1, 4, 4, 1, 0, 3, 1, 1, 0, 0}:                         "0 is not a size",
		{1, 4, 4, 1, 3, 0, 1, 1, 0, 0}:                         "0 is not a size",
		{1, 4, 4, 1, 3, 3, 0, 1, 0, 0}:                         "0 is not a size",
		{1, 4, 4, 1, 3, 3, 1, 0, 0, 0}:                         "0 is not a size",
		{1 << 62, 4, 4, 1, 3, 3, 1, 1, 0, 0}:                   "is not a size",
		{1, 4, 4, 1, 3, 3, 1, 1, -1, 0}:                        "a padding of -1",
		{1, 4, 4, 1, 3, 3, 1, 1, 0, 3}:                         "less than the kernel",
		{1, 4, 4, 1, 3, 3, 1, 1, 1 << 62, 0}:                   "less than the kernel",
		{1, 4, 4, 1, 5, 3, 1, 1, 0, 0}:                         "a kernel of height 5 does not fit",
		{1, 4, 4, 1, 3, 7, 1, 1, 0, 1}:                         "a kernel of width 7 does not fit",
		{1, 4, 4, 1, 1, 1, 2, 1, 0, 0}:                         "a stride of 2 with a kernel of height 1",
		{1, 6, 6, 1, 3, 3, 1, 2, 0, 0}:                         "beyond the first 5 of a width of 6",
		{1, 4, 4, 1, 3, 3, 9, 1, 0, 0}:                         "beyond the first 3 of a height of 4",
		{1 << 14, 2, 2, 1, 2, 2, 1, 1, 0, 0}:                   "entries of a kernel",
		{1 << 14, 1 << 14, 1 << 14, 1, 1, 1, 1, 1, 0, 0}:       "windows",
		{1 << 14, 1 << 14, 1 << 14, 1, 1 << 14, 1, 1, 1, 0, 0}: "entries of a kernel",
		{1, 224, 224, 1, 3, 3, 1, 1, 1, 1}:                     "more than 16384 windows",
	} {
		if _, err := s.Product(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", s, err, want)
		}
	}
}

// Every side of a product of matrices is bounded on both ends.
func TestMatrixShapes(t *testing.T) {
	for _, s := range []MatrixShape{{Inner: 1, Cols: 1}, {Rows: 1, Inner: -1, Cols: 1}, {Rows: 1, Inner: 1, Cols: MaxSide + 1}} {
		if s.Check() == nil {
			t.Errorf("%v passes", s)
		}
	}
	for _, s := range []MatrixShape{{Rows: 1, Inner: 1, Cols: 1}, {Rows: MaxSide, Inner: MaxSide, Cols: MaxSide}} {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}
