package triple

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

//lodge:tests basic TestScalarTriples|TestMatrixTriples|TestKinds|TestInputMasks|TestStartRefuses|TestPlans|TestTrusting

// MaxBlocks is the number of blocks of D scalar triples in the largest batch.
const MaxBlocks = 16

// Plan says how a batch is computed. It is a function of public values, so every party makes the
// same plan.
type Plan struct {
	Instance *params.Instance
	Kind     kind.Kind
	Owner    round.Party // the party that knows the values of owned tuples; the caller sets it
	// Shape is the shape of the tuples, and Product that of the matrix product that computes them.
	Shape   kind.Shape
	Product kind.MatrixShape
	Dim     int // the size d of blocks; 1 for single elements
	Blocks  int // number of blocks of D tuples of single elements
	pairs   int // number of pairs of vectors that are sacrificed for matrices: each matrix takes one slot for each inner index
	// reserved is the number of slots that the MAC check consumes, and slots the number of slots of
	// a ciphertext.
	reserved, slots int
	// Pair is the instance of the proof of vectors that all parties make for owned tuples, because
	// the owner must not know the material of the MAC check; nil for other kinds.
	Pair  *params.Instance
	Count int // tuples that the batch yields
	// Sacrifice is set if the products are verified against their factors, in case that malformed
	// evaluation keys make them wrong.
	Sacrifice bool
}

// NewPlan plans a batch that yields count tuples, or as many as the largest batch yields if that is
// less. For kinds with a shape, a batch always yields all tuples that fit side by side. keyDim is
// the dimension of the rotation keys; dim is the size of blocks, or 0 to choose the cheapest. The
// error is a *params.DoesNotFit or a *keyset.UnknownError, or describes an invalid request.
// Products are sacrificed; see Trusting.
func NewPlan(set *params.Set, fieldName string, parties int, k kind.Kind, shape kind.Shape, dim, count, keyDim int) (*Plan, error) {
	spec, err := set.Field(fieldName)
	if err != nil {
		return nil, err
	}
	if count < 1 {
		return nil, fmt.Errorf("triple: a batch of %d tuples: want at least 1", count)
	}
	if !k.Known() {
		return nil, fmt.Errorf("triple: unknown kind %d", uint8(k))
	}
	if err := k.CheckShape(shape); err != nil {
		return nil, fmt.Errorf("triple: %w", err)
	}
	//lodge:check triple/sacrifice-on [swap=k.Multiplies()=>false] [run=@basic|TestMalformed]
	//  products are not sacrificed although nobody turned the sacrifice off
	p := &Plan{Kind: k, Shape: shape, Sacrifice: k.Multiplies(), slots: set.Slots(spec), reserved: reserved(k)}
	use := params.Use{Parties: parties, Dim: 1}
	if k.Shaped() {
		if p.Product, err = k.Product(shape); err != nil {
			return nil, fmt.Errorf("triple: %w", err)
		}
		if dim == 0 {
			return chooseDim(min(keyDim, p.slots), p.Product, func(dim int) (*Plan, error) {
				return NewPlan(set, fieldName, parties, k, shape, dim, count, keyDim)
			})
		}
		if dim < 1 || dim&(dim-1) != 0 || dim > keyDim || dim > p.slots {
			return nil, fmt.Errorf("triple: blocks of %d: want a power of two up to %d, which the rotation keys serve, and the %d slots of %s in %s",
				dim, keyDim, p.slots, fieldName, set.Name)
		}
		p.Dim, p.Count = dim, p.slots/dim
		use.Dim, use.Inner = dim, p.blocks(p.Product.Inner)*dim
	} else {
		reserved := p.reserved
		if k.Owned() {
			reserved = 0 // these slots are in separate vectors
		}
		p.Dim, p.Blocks = 1, min(MaxBlocks, max(p.checkVectors(), (count+reserved+p.slots-1)/p.slots))
		p.Count = p.Blocks*p.slots - reserved
	}
	p.pairs = (p.Count*p.Product.Inner + p.slots - 1) / p.slots
	use.U = p.proved()
	if p.Instance, err = params.Resolve(set, fieldName, use); err != nil || !k.Owned() {
		return p, err
	}
	p.Pair, err = params.Resolve(set, fieldName, params.Use{Parties: parties, Dim: 1, U: p.extent().rho})
	return p, err
}

// proved returns the number of ciphertexts that the proof of a batch covers.
func (p *Plan) proved() int {
	n := p.extent()
	if p.Kind.Owned() {
		return n.a // the proof of all parties has a separate instance
	}
	return n.proved()
}

// checkTriples returns the maximal number of check triples that the MAC check of a batch consumes:
// one for each combination that it opens.
func checkTriples(k kind.Kind) int {
	if k.Multiplies() {
		return maccheck.Combinations
	}
	return 1
}

// reserved returns the number of slots that the MAC check of a batch consumes: one that masks the
// check, and for each check triple a scalar triple, or two squares.
func reserved(k kind.Kind) int {
	if products(k) == kind.Pairs {
		return 1 + checkTriples(k)
	}
	return 1 + 2*checkTriples(k)
}

func products(k kind.Kind) kind.Products { return k.Describe().Products }

// matrices reports whether the products are products of matrices.
func (p *Plan) matrices() bool { return products(p.Kind) == kind.MatrixProducts }

// windowed reports whether the second factors are the windows of images.
func (p *Plan) windowed() bool { return p.Kind.Describe().Form == kind.Convolutions }

// checkVectors returns the number of ciphertexts that hold the reserved slots.
func (p *Plan) checkVectors() int { return (p.reserved + p.slots - 1) / p.slots }

// Trusting returns the same plan without a sacrifice, for parties that trust their keys.
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

// MACKeyInstance returns the instance of the proof of a MAC key. The key serves every batch of its
// field.
func MACKeyInstance(set *params.Set, fieldName string, parties int) (*params.Instance, error) {
	return params.Resolve(set, fieldName, params.Use{Parties: parties, Dim: 1, U: 1})
}

func (p *Plan) blocks(n int) int { return (n + p.Dim - 1) / p.Dim }

// vectors returns the number of ciphertexts of rows x cols matrices.
func (p *Plan) vectors(rows, cols int) int { return p.blocks(rows) * p.blocks(cols) * p.Dim }

// Decryptions returns the number of ciphertexts that a batch decrypts.
func (p *Plan) Decryptions() int { return p.extent().decrypted() }

// extent counts the ciphertexts of the batch by their use.
func (p *Plan) extent() extent {
	e, check := extent{a: p.Blocks}, p.checkVectors()
	for _, part := range p.Kind.Describe().Parts {
		if part.Vector == kind.B {
			e.b = p.Blocks
		}
	}
	switch products(p.Kind) {
	case kind.NoProducts:
		if e.squares = check; p.Kind.Owned() {
			e.rho = check
		}
		return e
	case kind.MatrixProducts:
		s := p.Product
		e = extent{
			a: p.vectors(s.Rows, s.Inner), b: p.vectors(s.Inner, s.Cols), c: p.vectors(s.Rows, s.Cols), rho: check, squares: check,
		}
		if p.Sacrifice {
			e.f, e.g, e.h = p.pairs, p.pairs, p.pairs
		}
		return e
	}
	if e.c = p.Blocks; p.Sacrifice {
		e.f, e.h = p.Blocks, p.Blocks
	}
	return e
}

// Elements returns the number of field elements of one tuple in a, b and c.
func (p *Plan) Elements() (a, b, c int) { return p.Kind.Elements(p.Shape) }

// layouts returns the layouts of the matrices a, b and c.
func (p *Plan) layouts(s *gbfv.Scheme) (a, b, c gbfv.Layout, err error) {
	if a, err = s.Layout(gbfv.Diagonal, p.Product.Rows, p.Product.Inner, p.Dim); err != nil {
		return
	}
	if b, err = s.Layout(gbfv.Shifted, p.Product.Inner, p.Product.Cols, p.Dim); err != nil {
		return
	}
	c, err = s.Layout(gbfv.Diagonal, p.Product.Rows, p.Product.Cols, p.Dim)
	return
}

// scratch is the approximate number of polynomials modulo Q that products hold for each worker.
const scratch = 24

// MemoryBytes estimates the peak memory of a batch at a party with the given number of workers: the
// proof or the evaluation, whichever is larger. The evaluation holds the factors, their products,
// and for matrices the buffers of Evaluator.MatMul. Half as much again covers shares, buffers and
// uncollected garbage.
func (p *Plan) MemoryBytes(workers int) int64 {
	set, n := p.Instance.Set, p.extent()
	poly := int64(set.N()) * int64(len(set.Q)) * 8
	polys := 2*int64(n.proved()+n.products()+n.squares) + scratch*int64(workers)
	if p.matrices() {
		polys += 7 * int64(p.Dim) // sums modulo Full, the scaled left operand, tiles of both, two terms of the key switch
	} else {
		polys += 2 * int64(p.Decryptions()*p.Instance.DDecPrimes/len(set.Q))
	}
	proof := popk.MemoryBytes(p.Instance, p.Instance.Use.Parties, false, workers)
	if p.Kind.Owned() { // a party makes or verifies one proof, while all parties prove the pair
		proof = popk.MemoryBytes(p.Instance, 2, false, workers) + popk.MemoryBytes(p.Pair, p.Pair.Use.Parties, false, workers)
	}
	return max(proof, polys*poly) * 3 / 2
}
