package field

import "github.com/lodge-mpc/lodge/engine/kernel"

// products computes many products of elements. Where the selected path of package kernel multiplies several at a time
// it does so, and otherwise as Mul. It is not safe for concurrent use; wipe ends it.
type products struct {
	f    *Field
	wide *kernel.WideBuffer // or nil
}

const (
	// wideLimbs is the number of limbs from which on kernels take several products.
	wideLimbs = 3
	// fewProducts are no faster together than one by one.
	fewProducts = 4
)

// products is for n products or more.
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
