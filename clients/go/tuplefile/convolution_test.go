package tuplefile

import (
	"errors"
	"testing"
)

func TestConvolutions(t *testing.T) {
	good := Convolution{Channels: 3, Height: 8, Width: 7, Outputs: 4, KernelHeight: 3, KernelWidth: 2, StrideHeight: 2, StrideWidth: 1, PaddingHeight: 1}
	x, w, y := good.Sizes()
	if good.Check() != nil || good.OutHeight() != 4 || good.OutWidth() != 6 || x != 168 || w != 72 || y != 96 {
		t.Errorf("%v: %v, %d x %d, sizes %d, %d, %d", good, good.Check(), good.OutHeight(), good.OutWidth(), x, w, y)
	}
	m := example()
	m.Kind, m.Dims, m.Convolution = ConvolutionKind, Dims{1, 1, 1}, &good
	if err := m.check(false); err != nil || m.Values() != 336 || m.RecordBytes(8) != 2*336*8 {
		t.Errorf("%v: %d values, %v", m, m.Values(), err)
	}
	if want := "party 1 of 3: 2 convolution tuples 3x8x7 by 4x3x2, stride 2x1, padding 1x0 over p64 (S14-32), epoch 2, batch b"; m.String() != want {
		t.Errorf("%s", m)
	}
	for name, change := range map[string]func(c *Convolution){
		"no channels":      func(c *Convolution) { c.Channels = 0 },
		"negative height":  func(c *Convolution) { c.Height = -1 },
		"no width":         func(c *Convolution) { c.Width = 0 },
		"no outputs":       func(c *Convolution) { c.Outputs = 0 },
		"no kernel":        func(c *Convolution) { c.KernelHeight = 0 },
		"a thin kernel":    func(c *Convolution) { c.KernelWidth = 0 },
		"no stride":        func(c *Convolution) { c.StrideHeight = 0 },
		"no other stride":  func(c *Convolution) { c.StrideWidth = 0 },
		"negative padding": func(c *Convolution) { c.PaddingHeight = -1 },
		"much padding":     func(c *Convolution) { c.PaddingWidth = 2 },
		"a large kernel":   func(c *Convolution) { c.KernelWidth = 8 },
		"a huge stride":    func(c *Convolution) { c.StrideWidth = 1 << 17 },
		"a huge image":     func(c *Convolution) { c.Channels, c.Height, c.Width = 1<<16, 1<<16, 1<<16 },
		"huge kernels":     func(c *Convolution) { c.Outputs, c.Channels = 1<<16, 1<<16 },
		"all of it huge": func(c *Convolution) {
			*c = Convolution{Channels: 1 << 16, Height: 1 << 16, Width: 1 << 16, Outputs: 1 << 16, KernelHeight: 1 << 16, KernelWidth: 1 << 16, StrideHeight: 1, StrideWidth: 1, PaddingHeight: 1<<16 - 1, PaddingWidth: 1<<16 - 1}
		},
	} {
		bad := good
		change(&bad)
		if m.Convolution = &bad; !errors.Is(m.check(false), ErrManifest) {
			t.Errorf("%s: %v", name, m.check(false))
		}
	}
}
