package field

import "github.com/lodge-mpc/lodge/engine/kernel"

// products computes many products of elements. If the selected path of package kernel multiplies
// several at a time, it uses that kernel, and otherwise Mul. It is not safe for concurrent use. The
// caller must call wipe.
type products struct {
	f    *Field
	wide *kernel.WideBuffer // or nil
}

const (
	// wideLimbs is the smallest number of limbs for which kernels compute several products at a
	// time.
	wideLimbs = 3
	// fewProducts is the largest number of products that are not faster together than one by one.
	fewProducts = 4
)

// products returns a products for at least n products.
func (f *Field) products(n int) products {
	if f.wide == nil || n < fewProducts {
		return products{f: f}
	}
	return products{f: f, wide: f.wide.Buffer()}
}

func (m *products) wipe() { m.wide.Wipe() }

// mul sets dst_i = a_i·b_i as Mul does. dst may be an operand.
func (m *products) mul(dst, a, b Vec) {
	if m.wide != nil {
		m.wide.Mul(dst.W, a.W, b.W)
		return
	}
	for i := range dst.Len() {
		m.f.Mul(dst.At(i), a.At(i), b.At(i))
	}
}

// scale sets dst_i = s·a_i as Mul does. dst may be a.
func (m *products) scale(dst, a Vec, s Element) {
	if m.wide != nil {
		m.wide.Scale(dst.W, a.W, s)
		return
	}
	for i := range dst.Len() {
		m.f.Mul(dst.At(i), a.At(i), s)
	}
}
