package triple

import (
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Convolution triples are a random image, random kernels, and the convolution of the two, as a
// layer of a neural network computes it: Y[o][i][j] = sum over c, k, l of W[o][c][k][l] X[c][i s +
// k - p][j s + l - p], with zeros around X.
//
// They are matrix triples: Y is the product of W, one row for each output, and of the windows of X,
// one column for each window (im2col). Every party draws its share of X, writes down its windows,
// with zeros beyond the image, and encrypts them as the second factor. The proof does not show
// this: a party may encrypt columns that are not the windows of any image. So these values must be
// zero: the differences between all copies of one entry of the image, and the entries beyond the
// image. The MAC check opens a random combination of them. If one of them is not zero, the
// combination is zero with probability at most 1/p, and a party that lies about its share of the
// combination has no MAC for it (package maccheck). The released image consists of the first copy
// of each entry; together with the differences, the check covers all copies.

// entry returns the index in the image, row-major, of the entry at (row, col) of the windows of a
// convolution, or -1 for an entry beyond the image. Columns are windows, row-major, and rows are
// the entries of a kernel.
func entry(s kind.ConvolutionShape, row, col int) int {
	area := s.KernelHeight * s.KernelWidth
	c, k, l := row/area, row%area/s.KernelWidth, row%s.KernelWidth
	y := col/s.OutWidth()*s.StrideHeight + k - s.PaddingHeight
	x := col%s.OutWidth()*s.StrideWidth + l - s.PaddingWidth
	if y < 0 || y >= s.Height || x < 0 || x >= s.Width {
		return -1
	}
	return (c*s.Height+y)*s.Width + x
}

// windowed returns the messages of the factors of convolutions: the kernels, as for other matrices,
// and the windows of random images. The images are erased with the run.
func (r *batch) windowed(kernels messages) (messages, error) {
	_, l, _, err := r.Plan.layouts(r.Scheme)
	if err != nil {
		return nil, err
	}
	f, s, first := r.Scheme.Field, r.Plan.Shape.Convolution, r.extent.a
	size, _, _ := s.Sizes()
	images := f.NewVec(r.Plan.Count * size)
	source := r.Source.Sub("images")
	defer source.Wipe()
	stream := source.Stream("image")
	defer stream.Wipe()
	fillRandom(f, images, stream)
	round.Own(r.Session, "triple/images", images)
	// The windows exist only in the prover's encoding, from which no hook can tell their entries.
	tamper := func(int, field.Vec) {}
	round.Expose(r.Session, "triple/window", &tamper)
	return func(i int, slots, coeffs field.Vec, stream *sample.Stream) {
		if i < first || i >= first+l.Vectors() {
			if kernels != nil {
				kernels(i, slots, coeffs, stream)
				return
			}
			fillRandom(f, coeffs, stream)
			r.Scheme.Pack.Unpack(slots, coeffs)
			return
		}
		fillRandom(f, slots, stream)
		for slot := range slots.Len() {
			t, row, col := l.Entry(i-first, slot)
			if row >= l.Rows || col >= l.Cols { // no product reads it
				continue
			}
			if at := entry(s, row, col); at >= 0 {
				copy(slots.At(slot), images.At(t*size+at))
			} else {
				clear(slots.At(slot))
			}
		}
		tamper(i-first, slots)
		r.Scheme.Pack.Pack(coeffs, slots)
	}, nil
}

// messages fills in a message of the proof.
type messages func(i int, slots, coeffs field.Vec, stream *sample.Stream)

// images extracts the images from their windows and makes them the first part of the tuples. It
// adds the differences of the windows from those of an image to the values that must be zero. The
// sacrifice has used the windows.
func (r *batch) images() {
	x := r.result
	kernels := maccheck.Pair{Value: x.A, MAC: x.MACA}
	windows := maccheck.Pair{Value: x.B, MAC: x.MACB}
	r.own(windows)
	x.A, x.MACA = r.image(windows.Value), r.image(windows.MAC)
	x.B, x.MACB = kernels.Value, kernels.MAC
	//lodge:check triple/windows [run=TestWindows|TestEveryWindow] the multiplied windows need not
	//  be those of the image
	r.zeros = append(r.zeros, windows)
}

// image returns the images that the windows contain, and subtracts them from every window.
func (r *batch) image(windows field.Vec) field.Vec {
	f, s, p := r.Scheme.Field, r.Plan.Shape.Convolution, r.Plan.Product
	size, _, _ := s.Sizes()
	out := f.NewVec(r.Plan.Count * size)
	parallel.For(r.Workers, r.Plan.Count, func(t int) {
		seen := make([]bool, size)
		for row := range p.Inner {
			for col := range p.Cols {
				at := entry(s, row, col)
				//lodge:check triple/windows-beyond [as=if at < 0 {
				//  clear(windows.At((t*p.Inner+row)*p.Cols + col)); continue }]
				//  [run=TestWindows|TestEveryWindow] the border around an image need not be zero
				if at < 0 {
					continue
				}
				first, window := out.At(t*size+at), windows.At((t*p.Inner+row)*p.Cols+col)
				if !seen[at] {
					copy(first, window)
					seen[at] = true
				}
				//lodge:check triple/windows-all [swap=f.Sub(window, window, first)=>clear(window)]
				//  [run=TestWindows|TestEveryWindow] only the first entry of a window must match
				//  the image
				f.Sub(window, window, first)
			}
		}
	})
	return out
}
