package linear

import (
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Packing determines the positions of a matrix's rows in a polynomial.
type Packing uint8

// Packings. Rows are cut into blocks of d entries, and l rows share a polynomial.
const (
	// Cheapest selects the packing with the fewest bytes.
	Cheapest Packing = iota
	// Forward uses the fewest blocks, the smallest d with N >= d, and as many rows next to each
	// other as fit.
	Forward
	// Double places rows in l = N/d slots modulo T, for a power of two d.
	Double
	// Tiled is Forward with more blocks: rows of any d next to each other.
	Tiled
)

// String returns the packing's name.
func (p Packing) String() string {
	if names := [...]string{"cheapest", "forward", "double", "tiled"}; int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("Packing(%d)", uint8(p))
}

// MaxEntries is the maximal number of rows and of columns of a matrix.
const MaxEntries = 1 << 24

// VectorPlan describes how a matrix is multiplied with a shared vector. It is public and immutable,
// and both parties compute the same plan.
type VectorPlan struct {
	scheme     *Scheme
	Rows, Cols int
	Packing    Packing // not Cheapest
	Width      int     // d
	PerAnswer  int     // l, rows per answer
	Blocks     int     // per row, which is the number of ciphertexts of the vector
	Answers    int     // ceil(Rows/l)

	slots   *slots
	targets []int
	*flooding
}

// PlanVector plans the product of a matrix of the given size. slots is the number of rows per
// answer, a power of two for Double; 0 selects the number with the fewest bytes. The error wraps
// [ErrShape], or [ErrNoise].
func (s *Scheme) PlanVector(rows, cols int, packing Packing, slots int) (*VectorPlan, error) {
	n := s.N()
	switch {
	//lodge:check linear/matrix [drop=rows > MaxEntries] [drop=cols > MaxEntries] the size of a
	//  matrix overflows
	case rows < 1 || cols < 1 || rows > MaxEntries || cols > MaxEntries:
		return nil, fmt.Errorf("%w: a matrix of %d x %d", ErrShape, rows, cols)
	//lodge:check linear/packing [swap=Tiled=>100] [redundant=no plan exists for an unknown packing,
	//  so planning fails] an unknown packing is accepted
	case packing > Tiled:
		return nil, fmt.Errorf("%w: packing %v is unknown", ErrShape, packing)
	//lodge:check linear/slots [drop=slots > 0 && (packing == Cheapest || packing == Double &&
	//  n%slots != 0)] a plan asks for more rows in an answer than its packing allows
	case slots < 0 || slots > n || slots > 0 && (packing == Cheapest || packing == Double && n%slots != 0):
		return nil, fmt.Errorf("%w: %d rows per answer are not possible in degree %d with packing %v", ErrShape, slots, n, packing)
	}
	var best *VectorPlan
	consider := func(packing Packing, d, l int) {
		if slots > 0 && slots != l {
			return
		}
		if slots == 0 && packing != Double { // as many answers, of fewer rows each
			answers := (rows + l - 1) / l
			l = (rows + answers - 1) / answers
		}
		p := &VectorPlan{scheme: s, Rows: rows, Cols: cols, Packing: packing, Width: d, PerAnswer: l}
		p.Blocks, p.Answers = (cols+d-1)/d, (rows+l-1)/l
		if best == nil || p.bytes() < best.bytes() {
			best = p
		}
	}
	least := (cols + n - 1) / n
	if packing == Forward || packing == Cheapest {
		d := (cols + least - 1) / least
		l := n / d
		if slots > 0 {
			l = min(l, slots)
		}
		consider(Forward, d, l)
	}
	if packing == Tiled || packing == Cheapest {
		if slots > 0 {
			consider(Tiled, n/slots, slots)
		} else {
			for d := (cols + least - 1) / least; d > 0; d-- {
				consider(Tiled, d, n/d)
			}
		}
	}
	if packing == Double || packing == Cheapest {
		for l := 1; l <= n; l *= 2 {
			consider(Double, n/l, l)
		}
	}
	//lodge:check linear/rows-fit fewer rows than requested share an answer
	if best == nil {
		return nil, fmt.Errorf("%w: %d rows of %d entries do not fit in an answer of degree %d with packing %v", ErrShape, slots, cols, n, packing)
	}
	return best, best.prepare()
}

func (p *VectorPlan) prepare() (err error) {
	if p.Packing == Double {
		p.slots = p.scheme.newSlots(p.PerAnswer)
	}
	for i := range p.PerAnswer {
		p.targets = append(p.targets, (i+1)*p.Width-1)
	}
	p.flooding, err = p.scheme.flood(p.scheme.ProductNoise(p.Blocks, min(p.Width, p.Cols)), p.Answers)
	return err
}

// Distance returns log2 of the statistical distance between all answers together and a distribution
// that depends on the matrix only through the result.
func (p *VectorPlan) Distance() float64 { return p.distance }

// UpBytes returns the number of bytes that the owner of the key sends.
func (p *VectorPlan) UpBytes() int { return p.scheme.InputsSize(p.Blocks) }

// DownBytes returns the size of all answers.
func (p *VectorPlan) DownBytes() int { return p.Answers * p.AnswerSize() }

// AnswerSize returns the size of an encoded answer.
func (p *VectorPlan) AnswerSize() int { return p.scheme.answerSize(p.PerAnswer) }

func (p *VectorPlan) bytes() int { return p.UpBytes() + p.DownBytes() }

// RowsOf returns the rows of answer g: [from, to).
func (p *VectorPlan) RowsOf(g int) (from, to int) {
	return g * p.PerAnswer, min((g+1)*p.PerAnswer, p.Rows)
}

// checkResidues returns an error unless v holds the given number of residues modulo T.
func (s *Set) checkResidues(v []uint64, count int, what string) error {
	//lodge:check linear/residues-count vectors and matrices need not have the shape of the plan
	if len(v) != count {
		return fmt.Errorf("%w: %d entries of %s, want %d", ErrShape, len(v), what, count)
	}
	below := true
	for _, x := range v {
		below = below && x < s.T
	}
	//lodge:check linear/residues entries outside the residues pass
	if !below {
		i := slices.IndexFunc(v, func(x uint64) bool { return x >= s.T })
		return &RangeError{Index: i, High: float64(s.T - 1), What: "entry", Of: " of " + what}
	}
	return nil
}

// Encrypt encrypts the owner's share of the vector, residues modulo T. The source must be used for
// this call only. The error wraps [ErrShape], [ErrRange] or [ErrForeign].
func (p *VectorPlan) Encrypt(k *SecretKey, share []uint64, workers int, source *sample.Source) (*Inputs, error) {
	if err := k.check(p.scheme); err != nil {
		return nil, err
	}
	if err := p.scheme.checkResidues(share, p.Cols, "the vector"); err != nil {
		return nil, err
	}
	return k.encrypt(p.Blocks, workers, func(b int, m []uint64) { // backward, and the same in all slots
		for j, x := range share[b*p.Width : min((b+1)*p.Width, p.Cols)] {
			m[p.Width-1-j] = x
		}
	}, source)
}

// VectorEvaluator evaluates a [VectorPlan] for the owner of the matrix, with the inputs received
// from the owner of the key. It may be shared.
type VectorEvaluator struct {
	plan *VectorPlan
	key  *PublicKey
	b, a []ring.NTT
}

// Evaluator returns an evaluator for the inputs. The error wraps [ErrCiphertext], or [ErrForeign].
func (p *VectorPlan) Evaluator(key *PublicKey, in *Inputs) (*VectorEvaluator, error) {
	b, a, err := in.all(key, p.Blocks)
	if err != nil {
		return nil, err
	}
	return &VectorEvaluator{plan: p, key: key, b: b, a: a}, nil
}

// Answer multiplies the rows of answer g, consecutive in one slice, with the vector. The argument
// vector is this party's share of the vector, or nil for 0. It returns the encoded answer and this
// party's shares of the products; the answer decrypts to the other shares. The source must be used
// for this answer only. The error wraps [ErrShape] or [ErrRange].
func (e *VectorEvaluator) Answer(
	g int, rows, vector []uint64, source *sample.Source,
) (answer []byte, shares []uint64, err error) {
	p, s := e.plan, e.plan.scheme
	if err := checkNumber(g, p.Answers); err != nil {
		return nil, nil, err
	}
	from, to := p.RowsOf(g)
	if err := s.checkResidues(rows, (to-from)*p.Cols, "the matrix"); err != nil {
		return nil, nil, err
	}
	if vector != nil {
		if err := s.checkResidues(vector, p.Cols, "the vector"); err != nil {
			return nil, nil, err
		}
	}
	mask, shares := p.mask(to-from, source)
	if vector != nil {
		for i, m := 0, s.plaintext(); i < to-from; i++ {
			sum, _ := m.Inner(rows[i*p.Cols:(i+1)*p.Cols], vector)
			shares[i] = m.Add(shares[i], sum)
		}
	}
	c0, c1 := e.multiply(rows)
	b, a := e.key.finish(c0, c1, mask, p.bound, source)
	giveBack(&words, mask)
	return s.encodeAnswer(e.key.answer(b, a, p.targets)), shares, nil
}

// mask draws a uniform polynomial modulo T, and returns the negated values that it adds to the
// results.
func (p *VectorPlan) mask(rows int, source *sample.Source) (mask, shares []uint64) {
	s := p.scheme
	mask = s.mask(source)
	shares = make([]uint64, p.PerAnswer)
	for i, at := range p.targets {
		shares[i] = mask[at]
	}
	p.results(shares)
	for i, v := range shares {
		shares[i] = (s.T - v) % s.T
	}
	return mask, shares[:rows]
}

// results returns the entries of the product from the messages at the targets, in place.
func (p *VectorPlan) results(v []uint64) {
	if p.slots != nil {
		p.slots.unpack(v, 1)
	}
}

// multiply returns the sum over blocks of the packed rows times the inputs.
func (e *VectorEvaluator) multiply(rows []uint64) (c0, c1 ring.NTT) {
	p, s := e.plan, e.plan.scheme
	c0, c1 = s.basis.BorrowNTT(), s.basis.BorrowNTT()
	packed, factor := make([]uint64, s.N()), s.basis.BorrowNTT()
	for b := range p.Blocks {
		p.pack(packed, rows, b)
		s.multiplier(factor, packed)
		add := s.basis.MulAddNTT
		if b == 0 {
			add = s.basis.MulNTT
		}
		add(c0, factor, e.b[b])
		add(c1, factor, e.a[b])
	}
	clear(packed)
	wipe(ring.Poly(factor))
	return c0, c1
}

// pack sets packed to block b of rows.
func (p *VectorPlan) pack(packed, rows []uint64, b int) {
	clear(packed)
	from, to := b*p.Width, min((b+1)*p.Width, p.Cols)
	for i := range len(rows) / p.Cols {
		copy(packed[i*p.Width:(i+1)*p.Width], rows[i*p.Cols+from:i*p.Cols+to])
	}
	if p.slots != nil {
		p.slots.pack(packed, p.Width)
	}
}

// Open returns the owner's shares of the products of answer g. The error wraps [ErrShape],
// [ErrAnswer] or [ErrForeign].
func (p *VectorPlan) Open(k *SecretKey, g int, answer []byte) ([]uint64, error) {
	v, err := k.openAnswer(p.scheme, g, p.Answers, answer, p.targets)
	if err != nil {
		return nil, err
	}
	p.results(v)
	from, to := p.RowsOf(g)
	return v[:to-from], nil
}
