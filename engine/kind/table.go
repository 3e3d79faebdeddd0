package kind

//go:generate go run ../../clients/python/tools/kinds ../../clients/python/lodge_mpc/kinds.py

// The kinds of tuples. A new kind takes the next number.
const (
	Scalar Kind = iota + 1
	Matrix
	Square
	Random
	Bit
	Inverse
	Input
	Convolution
)

var table = [...]Descriptor{
	Scalar: {
		Name: "scalar", Title: "scalar triples", Help: "random a and b, and their product",
		Parts:    []Part{{Name: "a", Domain: Uniform, Vector: A}, {Name: "b", Domain: Uniform, Vector: B}, {Name: "c", Vector: C}},
		Relation: ProductOfFactors, Products: Pairs,
		MPSPDZ: "Triples",
	},
	Matrix: {
		Name: "matrix", Title: "matrix triples", Help: "random matrices of --shape and their product; the epoch must have keys for the block --block", Form: Matrices,
		Parts: []Part{
			{Name: "a", Domain: Uniform, Vector: A, Sides: []Side{Rows, Inner}},
			{Name: "b", Domain: Uniform, Vector: B, Sides: []Side{Inner, Columns}},
			{Name: "c", Vector: C, Sides: []Side{Rows, Columns}},
		},
		Relation: MatrixProduct, Products: MatrixProducts,
		MPSPDZ: "Matrix",
	},
	Square: {
		Name: "square", Title: "squares", Help: "random values and their squares",
		Parts:    []Part{{Name: "a", Domain: Uniform, Vector: A}, {Name: "a2", Vector: C}},
		Relation: SquareOfFactor, Products: Squares,
		MPSPDZ: "Squares",
	},
	Random: {
		Name: "random", Title: "random values", Help: "random values",
		Parts:     []Part{{Name: "a", Domain: Uniform, Vector: A}},
		NotMPSPDZ: "MP-SPDZ makes random values from input masks, one of each party",
	},
	Bit: {
		Name: "bit", Title: "bits", Help: "random bits: 0 or 1",
		Parts:    []Part{{Name: "a", Domain: Bits, Vector: A}},
		Relation: ZeroOrOne, Products: Squares, Opening: Roots,
		MPSPDZ: "Bits",
	},
	Inverse: {
		Name: "inverse", Title: "inverses", Help: "random values and their inverses",
		Parts:    []Part{{Name: "a", Domain: Uniform, Vector: A}, {Name: "a_inv", Vector: B}},
		Relation: InverseOfFactor, Products: Pairs, Opening: Inverses,
		MPSPDZ: "Inverses",
	},
	Input: {
		Name: "input", Title: "input masks", Help: "random values that --input-party knows",
		Parts:  []Part{{Name: "a", Domain: Uniform, Vector: A}},
		Owned:  true,
		MPSPDZ: "Inputs",
	},
	Convolution: {
		Name: "convolution", Title: "convolution triples", Form: Convolutions,
		Help: "random images of --shape, kernels of --kernel, and their convolutions, such as --shape 3x32x32 --kernel 16x3x3 --padding 1",
		Parts: []Part{
			{Name: "x", Domain: Uniform, Vector: A, Sides: []Side{Channels, Height, Width}},
			{Name: "w", Domain: Uniform, Vector: B, Sides: []Side{Outputs, Channels, KernelHeight, KernelWidth}},
			{Name: "y", Vector: C, Sides: []Side{Outputs, OutHeight, OutWidth}},
		},
		Relation: ConvolutionOfFactors, Products: MatrixProducts,
		NotMPSPDZ: "use matrix triples of the equivalent product",
	},
}
