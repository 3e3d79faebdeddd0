package triple

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Convolution triples are a random image, random kernels, and the convolution of the two, as a layer of a neural network
// computes it: Y[o][i][j] = sum over c, k, l of W[o][c][k][l] X[c][i s + k - p][j s + l - p], with zeros around X.
//
// They are matrix triples: Y is the product of W, a row for each output, and of the columns that the windows of X are
// (im2col). Every party draws its share of X, writes the columns down, zeros where a window reaches beyond the image, and
// encrypts them as the second factor. Nothing in the proof says that it did: a party may encrypt columns that are those of no
// image. So the differences between entries of the columns that are the same of the image, and the entries beyond it, are
// among what must be zero, and the MAC check opens a random combination of them: it is not zero with probability 1/p at most
// where one of them is not, and who lies about its share of it has no MAC for that (package maccheck). What is released of
// the columns is the image, by the first entry of each of its own; with the differences the check covers them all.

// ConvolutionShape is the size of a convolution: an image of Channels x Height x Width, and Outputs kernels of Channels x
// KernelHeight x KernelWidth, which move by StrideHeight and StrideWidth over the image with that many rows of zeros above
// and below it, and columns at both sides. The result is Outputs x OutHeight x OutWidth.
type ConvolutionShape struct {
	Channels, Height, Width            int
	Outputs, KernelHeight, KernelWidth int
	StrideHeight, StrideWidth          int
	PaddingHeight, PaddingWidth        int
}

// maxSide is the largest side of a matrix, and of what there is in a convolution.
const maxSide = 1 << 14

// OutHeight and OutWidth are those of the result.
func (s ConvolutionShape) OutHeight() int {
	return positions(s.Height, s.KernelHeight, s.StrideHeight, s.PaddingHeight)
}

// OutWidth is that of the result.
func (s ConvolutionShape) OutWidth() int {
	return positions(s.Width, s.KernelWidth, s.StrideWidth, s.PaddingWidth)
}

// positions is how many windows there are on a side.
func positions(side, kernel, stride, padding int) int { return (side+2*padding-kernel)/stride + 1 }

// Product is the matrix product that the convolution is: kernels, a row for each output, times the windows of the image, a
// column for each. The error says what is wrong with the shape: every entry of the image is in some window, as one that is in none
// is in no ciphertext, and every window has some of the image.
func (s ConvolutionShape) Product() (Shape, error) {
	none := func(format string, args ...any) (Shape, error) {
		return Shape{}, fmt.Errorf("triple: no convolution: "+format, args...)
	}
	for _, n := range []int{
		s.Channels, s.Height, s.Width, s.Outputs, s.KernelHeight, s.KernelWidth, s.StrideHeight, s.StrideWidth,
	} {
		if n < 1 || n > maxSide {
			return none("%d is not a size from 1 to %d", n, maxSide)
		}
	}
	for _, side := range []struct {
		name                          string
		size, kernel, stride, padding int
	}{
		{"height", s.Height, s.KernelHeight, s.StrideHeight, s.PaddingHeight},
		{"width", s.Width, s.KernelWidth, s.StrideWidth, s.PaddingWidth},
	} {
		if side.padding < 0 || side.padding >= side.kernel {
			return none("a padding of %d with a kernel of %s %d: it is less than the kernel", side.padding, side.name, side.kernel)
		}
		if side.kernel > side.size+2*side.padding {
			return none("a kernel of %s %d does not fit into %d with a padding of %d", side.name, side.kernel, side.size, side.padding)
		}
		windows := positions(side.size, side.kernel, side.stride, side.padding)
		last := (windows-1)*side.stride + side.kernel - side.padding
		//lodge:check triple/windows-gaps [run=TestConvolution] entries between windows are in no
		//  ciphertext
		if windows > 1 && side.stride > side.kernel {
			return none("a stride of %d with a kernel of %s %d passes over entries of the image: leave these out of it", side.stride, side.name, side.kernel)
		}
		//lodge:check triple/windows-read [run=TestConvolution] some entries of an image are in no
		//  ciphertext
		if last < side.size {
			return none("no window reads beyond the first %d of a %s of %d: leave the rest out of the image", last, side.name, side.size)
		}
	}
	p := Shape{Rows: s.Outputs, Inner: s.Channels, Cols: s.OutHeight()}
	for _, x := range []struct {
		name string
		size *int
		by   []int
	}{
		{"entries of a kernel", &p.Inner, []int{s.KernelHeight, s.KernelWidth}}, {"windows", &p.Cols, []int{s.OutWidth()}},
	} {
		for _, n := range x.by {
			if *x.size *= n; *x.size > maxSide { // both are at most maxSide
				return none("more than %d %s", maxSide, x.name)
			}
		}
	}
	return p, nil
}

// image is the number of entries of X: no more than there are in the windows.
func (s ConvolutionShape) image() int { return s.Channels * s.Height * s.Width }

// at is the entry of the image, row-major, in place (row, col) of the columns, or -1 beyond the image. Columns are windows,
// row-major, and rows are the entries of a kernel.
func (s ConvolutionShape) at(row, col int) int {
	area := s.KernelHeight * s.KernelWidth
	c, k, l := row/area, row%area/s.KernelWidth, row%s.KernelWidth
	y := col/s.OutWidth()*s.StrideHeight + k - s.PaddingHeight
	x := col%s.OutWidth()*s.StrideWidth + l - s.PaddingWidth
	if y < 0 || y >= s.Height || x < 0 || x >= s.Width {
		return -1
	}
	return (c*s.Height+y)*s.Width + x
}

// NewConvolutionPlan plans a batch of convolution triples, as NewPlan does of matrices.
func NewConvolutionPlan(set *params.Set, fieldName string, parties int, s ConvolutionShape, dim, keyDim int) (*Plan, error) {
	product, err := s.Product()
	if err != nil {
		return nil, err
	}
	p, err := NewPlan(set, fieldName, parties, Matrix, product, dim, 1, keyDim)
	if err != nil {
		return nil, err
	}
	p.Kind, p.Convolution = Convolution, s
	return p, nil
}

// windowed gives the messages of the factors of convolutions: of the kernels as of other matrices, and the windows of random
// images, which are erased with the run.
func (r *batch) windowed(kernels messages) (messages, error) {
	_, l, _, err := r.Plan.layouts(r.Scheme)
	if err != nil {
		return nil, err
	}
	f, s, first := r.Scheme.Field, r.Plan.Convolution, r.extent.a
	images := f.NewVec(r.Plan.Count * s.image())
	r.Session.Secrets.Own(images)
	source := r.Source.Sub("images")
	defer source.Wipe()
	stream := source.Stream("image")
	defer stream.Wipe()
	fillRandom(f, images, stream)
	round.Expose(r.Session, "triple/images", images)
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
			if at := s.at(row, col); at >= 0 {
				copy(slots.At(slot), images.At(t*s.image()+at))
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

// images takes the images out of their windows, puts them first, as tuples have them, and adds what the windows differ from
// those of an image to what must be zero. The sacrifice is done with the windows.
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

// image gives the images that are in windows, and takes them off everywhere.
func (r *batch) image(windows field.Vec) field.Vec {
	f, s, p := r.Scheme.Field, r.Plan.Convolution, r.Plan.Shape
	out := f.NewVec(r.Plan.Count * s.image())
	parallel.For(r.Workers, r.Plan.Count, func(t int) {
		seen := make([]bool, s.image())
		for row := range p.Inner {
			for col := range p.Cols {
				at := s.at(row, col)
				//lodge:check triple/windows-beyond [as=if at < 0 {
				//  clear(windows.At((t*p.Inner+row)*p.Cols + col)); continue }]
				//  [run=TestWindows|TestEveryWindow] the border around an image need not be zero
				if at < 0 {
					continue
				}
				entry, window := out.At(t*s.image()+at), windows.At((t*p.Inner+row)*p.Cols+col)
				if !seen[at] {
					copy(entry, window)
					seen[at] = true
				}
				//lodge:check triple/windows-all [swap=f.Sub(window, window, entry)=>clear(window)]
				//  [run=TestWindows|TestEveryWindow] only the first entry of a window must match
				//  the image
				f.Sub(window, window, entry)
			}
		}
	})
	return out
}
