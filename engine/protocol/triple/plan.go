package triple

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

//lodge:tests basic TestScalarTriples|TestMatrixTriples|TestKinds|TestInputMasks|TestStartRefuses|TestPlans|TestTrusting

// Kind is what a batch consists of.
type Kind uint8

// The kinds of tuples, by what is released of them.
const (
	Scalar      Kind = iota + 1 // a, b and a b
	Matrix                      // the same of matrices
	Square                      // a and a^2
	Random                      // a
	Bit                         // a in {0, 1}
	Inverse                     // a and 1/a
	Input                       // a, whose value one party knows
	Convolution                 // an image, kernels, and the convolution of both
)

// Shape is the size of a matrix product: Rows x Inner times Inner x Cols.
type Shape struct{ Rows, Inner, Cols int }

// MaxBlocks is the number of blocks of D scalar triples in the largest batch.
const MaxBlocks = 16

// Plan says how a batch is computed. It is a function of public values: every party makes it for itself.
type Plan struct {
	Instance *params.Instance
	Kind     Kind
	Owner    round.Party // the party that knows the values of input masks; the caller sets it
	Shape    Shape       // of matrices
	// Convolution is the shape of convolutions; Shape is then that of the product.
	Convolution ConvolutionShape
	Dim         int // d, the size of blocks; 1 for scalars
	Blocks      int // of D scalar triples
	pairs       int // of vectors that are sacrificed for matrices: a slot of each for each inner index of each matrix
	// reserved is the number of slots that the MAC check consumes, and slots that of a ciphertext.
	reserved, slots int
	// Pair is the instance of the proof of vectors that all parties make for input masks, because their owner must not know
	// what the MAC check consumes; nil for other kinds.
	Pair  *params.Instance
	Count int // triples that the batch yields
	// Sacrifice says whether products are checked to be those of their factors, and not what malformed evaluation keys make
	// of them. Random values and input masks have no products.
	Sacrifice bool
}

// NewPlan plans a batch that yields count triples if one batch can, and otherwise as many as one can. For
// matrices a batch always yields as many as fit side by side. keyDim is the dimension of the rotation keys;
// dim is the size of blocks, or 0 to choose. The error is a *params.DoesNotFit or a *keyset.UnknownError, or
// says what is wrong with the request. Products are sacrificed; see Trusting.
func NewPlan(set *params.Set, fieldName string, parties int, kind Kind, shape Shape, dim, count, keyDim int) (*Plan, error) {
	spec, err := set.Field(fieldName)
	if err != nil {
		return nil, err
	}
	if count < 1 {
		return nil, errors.New("triple: a batch of no triples")
	}
	//lodge:check triple/sacrifice-on [swap=kind.Multiplies()=>false] [run=@basic|TestMalformed]
	//  products are not sacrificed although nobody turned the sacrifice off
	p := &Plan{Kind: kind, Sacrifice: kind.Multiplies(), slots: set.Slots(spec), reserved: kind.reserved()}
	slots := p.slots
	use := params.Use{Parties: parties, Dim: 1}
	switch kind {
	case Scalar, Inverse, Square, Bit, Random, Input:
		reserved := p.reserved
		if kind == Input {
			reserved = 0 // these slots are in vectors of their own
		}
		p.Dim, p.Blocks = 1, min(MaxBlocks, max(p.checkVectors(), (count+reserved+slots-1)/slots))
		p.Count = p.Blocks*slots - reserved
	case Matrix:
		if shape.Rows < 1 || shape.Inner < 1 || shape.Cols < 1 || max(shape.Rows, shape.Inner, shape.Cols) > maxSide {
			return nil, fmt.Errorf("triple: no product of %d x %d and %d x %d matrices", shape.Rows, shape.Inner, shape.Inner, shape.Cols)
		}
		if dim == 0 {
			return chooseDim(min(keyDim, slots), shape, func(dim int) (*Plan, error) {
				return NewPlan(set, fieldName, parties, kind, shape, dim, count, keyDim)
			})
		}
		p.Shape, p.Dim = shape, dim
		if p.Dim < 1 || p.Dim&(p.Dim-1) != 0 || p.Dim > keyDim || p.Dim > slots {
			return nil, fmt.Errorf("triple: blocks of %d: want a power of two up to %d, which the rotation keys serve, and the %d slots of %s in %s",
				p.Dim, keyDim, slots, fieldName, set.Name)
		}
		inner := p.blocks(shape.Inner)
		p.Count = slots / p.Dim
		use.Dim, use.Inner = p.Dim, inner*p.Dim
	case Convolution:
		return nil, errors.New("triple: convolutions are planned by NewConvolutionPlan")
	default:
		return nil, fmt.Errorf("triple: unknown kind %d", kind)
	}
	p.pairs = (p.Count*shape.Inner + slots - 1) / slots
	use.U = p.proved()
	if p.Instance, err = params.Resolve(set, fieldName, use); err != nil || kind != Input {
		return p, err
	}
	p.Pair, err = params.Resolve(set, fieldName, params.Use{Parties: parties, Dim: 1, U: p.extent().rho})
	return p, err
}

// proved is the number of ciphertexts that the proof of a batch is of.
func (p *Plan) proved() int {
	n := p.extent()
	if p.Kind == Input {
		return n.a // the proof of all parties has an instance of its own
	}
	return n.proved()
}

// checkTriples is the number of check triples that the MAC check of a batch consumes at most: one for each combination that
// it opens.
func (k Kind) checkTriples() int {
	if k.Multiplies() {
		return maccheck.Combinations
	}
	return 1
}

// reserved is the number of slots that the MAC check of a batch consumes: one that masks it, and for each check triple a
// scalar triple, or two squares.
func (k Kind) reserved() int {
	if k == Scalar || k == Inverse {
		return 1 + k.checkTriples()
	}
	return 1 + 2*k.checkTriples()
}

// checkVectors is the number of ciphertexts in which the reserved slots are.
func (p *Plan) checkVectors() int { return (p.reserved + p.slots - 1) / p.slots }

// Multiplies reports whether tuples of this kind hold products of encrypted values, which malformed evaluation keys make
// wrong with right MACs.
func (k Kind) Multiplies() bool { return k != Random && k != Input }

// matrices reports whether tuples of this kind are products of matrices.
func (k Kind) matrices() bool { return k == Matrix || k == Convolution }

// Trusting is the same plan without a sacrifice, for those who trust their keys.
func (p *Plan) Trusting() (*Plan, error) {
	if !p.Kind.Multiplies() {
		return nil, errors.New("triple: tuples without products have nothing to sacrifice")
	}
	t := *p
	t.Sacrifice = false
	use := p.Instance.Use
	use.U = t.proved()
	var err error
	t.Instance, err = params.Resolve(p.Instance.Set, p.Instance.Field.Name, use)
	return &t, err
}

// MACKeyInstance is the instance of the proof of a MAC key, which serves every batch of its field.
func MACKeyInstance(set *params.Set, fieldName string, parties int) (*params.Instance, error) {
	return params.Resolve(set, fieldName, params.Use{Parties: parties, Dim: 1, U: 1})
}

func (p *Plan) blocks(n int) int { return (n + p.Dim - 1) / p.Dim }

// vectors is the number of ciphertexts of rows x cols matrices.
func (p *Plan) vectors(rows, cols int) int { return p.blocks(rows) * p.blocks(cols) * p.Dim }

// Decryptions is the number of ciphertexts that a batch decrypts.
func (p *Plan) Decryptions() int { return p.extent().decrypted() }

// extent is how many ciphertexts of each kind there are.
func (p *Plan) extent() extent {
	n, spare := p.Blocks, 0
	if p.Sacrifice {
		spare = n
	}
	switch p.Kind {
	case Scalar, Inverse:
		return extent{a: n, b: n, c: n, f: spare, h: spare}
	case Square, Bit:
		return extent{a: n, c: n, f: spare, h: spare}
	case Random:
		return extent{a: n, squares: p.checkVectors()}
	case Input:
		return extent{a: n, rho: p.checkVectors(), squares: p.checkVectors()}
	}
	s, check := p.Shape, p.checkVectors()
	e := extent{
		a: p.vectors(s.Rows, s.Inner), b: p.vectors(s.Inner, s.Cols), c: p.vectors(s.Rows, s.Cols), rho: check, squares: check,
	}
	if p.Sacrifice {
		e.f, e.g, e.h = p.pairs, p.pairs, p.pairs
	}
	return e
}

// Elements is the number of field elements in a, b and c of one tuple.
func (p *Plan) Elements() (a, b, c int) {
	switch p.Kind {
	case Scalar:
		return 1, 1, 1
	case Inverse:
		return 1, 1, 0
	case Square:
		return 1, 0, 1
	case Bit, Random, Input:
		return 1, 0, 0
	case Convolution:
		return p.Convolution.image(), p.Shape.Rows * p.Shape.Inner, p.Shape.Rows * p.Shape.Cols
	}
	return p.Shape.Rows * p.Shape.Inner, p.Shape.Inner * p.Shape.Cols, p.Shape.Rows * p.Shape.Cols
}

// layouts are those of the matrices a, b and c.
func (p *Plan) layouts(s *gbfv.Scheme) (a, b, c gbfv.Layout, err error) {
	if a, err = s.Layout(gbfv.Diagonal, p.Shape.Rows, p.Shape.Inner, p.Dim); err != nil {
		return
	}
	if b, err = s.Layout(gbfv.Shifted, p.Shape.Inner, p.Shape.Cols, p.Dim); err != nil {
		return
	}
	c, err = s.Layout(gbfv.Diagonal, p.Shape.Rows, p.Shape.Cols, p.Dim)
	return
}

// scratch is about how many polynomials on Q products hold for each worker.
const scratch = 24

// MemoryBytes estimates the peak memory of a batch at a party with so many workers: of its proof, or of its evaluation,
// which holds the factors and their product, and for matrices what Evaluator.MatMul does; half as much again for shares,
// buffers, and what waits for the garbage collector.
func (p *Plan) MemoryBytes(workers int) int64 {
	set, n := p.Instance.Set, p.extent()
	poly := int64(set.N()) * int64(len(set.Q)) * 8
	polys := 2*int64(n.proved()+n.products()+n.squares) + scratch*int64(workers)
	if p.Kind.matrices() {
		polys += 7 * int64(p.Dim) // sums on Full, the left operand scaled, tiles of both, two terms to switch
	} else {
		polys += 2 * int64(p.Decryptions()*p.Instance.DDecPrimes/len(set.Q))
	}
	proof := popk.MemoryBytes(p.Instance, p.Instance.Use.Parties, false, workers)
	if p.Kind == Input { // a party proves, or verifies one proof, and all prove the pair at the same time
		proof = popk.MemoryBytes(p.Instance, 2, false, workers) + popk.MemoryBytes(p.Pair, p.Pair.Use.Parties, false, workers)
	}
	return max(proof, polys*poly) * 3 / 2
}
