package verify

import (
	"context"
	"errors"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
)

func convolutions(t testing.TB) *export {
	return newExport(t, tuplefile.ConvolutionKind, "S14-32", "p128", 2, 3, tuplefile.Dims{M: 1, K: 1, N: 1},
		tuplefile.Convolution{
			Channels: 2, Height: 4, Width: 5, Outputs: 3, KernelHeight: 3, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1,
			PaddingHeight: 1, PaddingWidth: 0,
		})
}

// convolve draws an image and kernels, and returns them and their convolution, computed by
// definition.
func convolve(s tuplefile.Convolution, random func() *big.Int, p *big.Int) (all []*big.Int) {
	x, w, _ := s.Sizes()
	for range x + w {
		all = append(all, random())
	}
	high, wide := s.OutHeight(), s.OutWidth()
	for o := range s.Outputs {
		for place := range high * wide {
			sum, row, col := new(big.Int), place/wide*s.StrideHeight-s.PaddingHeight, place%wide*s.StrideWidth-s.PaddingWidth
			for e := range w / s.Outputs {
				c, k, l := e/(s.KernelHeight*s.KernelWidth), e/s.KernelWidth%s.KernelHeight, e%s.KernelWidth
				if y, z := row+k, col+l; y >= 0 && y < s.Height && z >= 0 && z < s.Width {
					sum.Add(sum, new(big.Int).Mul(all[(c*s.Height+y)*s.Width+z], all[x+o*(w/s.Outputs)+e]))
				}
			}
			all = append(all, sum.Mod(sum, p))
		}
	}
	return all
}

// Manifests with different convolutions of the same size are inconsistent.
func TestConvolutionsOfOtherShapes(t *testing.T) {
	e := convolutions(t)
	other := *e.manifests[0].Convolution
	other.PaddingHeight, other.PaddingWidth, other.KernelHeight, other.KernelWidth = 0, 1, 2, 3
	e.manifests[1].Convolution = &other
	if _, err := Dirs(context.Background(), e.write(t), Options{}); !errors.Is(err, ErrInconsistent) {
		t.Errorf("%v", err)
	}
}
