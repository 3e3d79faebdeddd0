package linear

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Method is the number of columns of the right factor per ciphertext.
type Method uint8

// Methods. Tiles of r x k and k x c with r k c <= N are multiplied with one multiplication. The
// second method encrypts tiles like this. With the first, each column of the right factor is a
// ciphertext, and the service places c of them next to each other before it multiplies.
const (
	FewestBytes Method = iota // tiles of the second method whose ciphertexts have the fewest bytes
	First
	Second
)

// ProductShape describes the factors of a product. Entries are integers of at most the given
// magnitudes.
type ProductShape struct {
	Rows, Inner, Cols int // Rows x Inner times Inner x Cols
	MaxLeft, MaxRight uint64
	Method            Method
	// Base is 0, or the digit base of the paper's variant for entries that are too large for T. It
	// packs digits: it needs 2d times the coefficients for d digits, and reveals the sums of
	// products of digits instead of only their values. It exists for comparison.
	Base uint64
}

// ProductPlan describes how two encrypted matrices are multiplied. It is public and immutable, and
// the owner of the key and the service compute the same plan. Entry a_iu of a tile of the left
// factor is at u + i k, and b_uj of the right at j k r - u, where X^-x is -X^(N-x). The entries of
// the product are at i k + j k r, and all other terms are elsewhere. A column that is encrypted by
// itself has j = 0. With digits, all positions are multiplied by 2d, and the digits of an entry are
// consecutive.
type ProductPlan struct {
	ProductShape
	scheme                  *Scheme
	TileRows, TileInner     int // r, k
	TileCols                int // c
	downs, inners, acrosses int // tiles
	digits, stride          int
	targets                 []int
	*flooding
}

// PlanProduct plans a product. The error wraps [ErrShape]; [ErrRange], if the product may exceed
// the range of T; or [ErrNoise].
func (s *Scheme) PlanProduct(shape ProductShape) (*ProductPlan, error) {
	for _, x := range []int{shape.Rows, shape.Inner, shape.Cols} {
		//lodge:check linear/product [swap=1=>0] an empty product is planned
		if x < 1 || x > MaxEntries {
			return nil, fmt.Errorf("%w: a product of %d x %d by %d", ErrShape, shape.Rows, shape.Inner, shape.Cols)
		}
	}
	//lodge:check linear/product-proved products of ciphertexts are computed with a set whose proofs
	//  do not cover them
	if s.HasProof() {
		return nil, fmt.Errorf("%w: set %s has proofs and supports only products on shares, not products of encrypted matrices", ErrShape, s.Name)
	}
	//lodge:check linear/method [drop=shape.Method > Second] an unknown method is accepted
	if shape.Method > Second || shape.Base == 1 {
		return nil, fmt.Errorf("%w: method %d with base %d", ErrShape, shape.Method, shape.Base)
	}
	digits, stride, err := shape.fits(s.T)
	if err != nil {
		return nil, err
	}
	//lodge:check linear/stride [swap=s.N()=>1 << 20] an entry has no room for its digits
	if stride > s.N() {
		return nil, fmt.Errorf("%w: %d digits in degree %d", ErrShape, digits, s.N())
	}
	var best *ProductPlan
	for _, r := range tiles(shape.Rows, s.N()/stride) {
		for _, k := range tiles(shape.Inner, s.N()/(stride*r)) {
			p := &ProductPlan{ProductShape: shape, scheme: s, digits: digits, stride: stride}
			p.TileRows, p.TileInner, p.TileCols = r, k, min(shape.Cols, s.N()/(stride*r*k))
			p.downs, p.inners = (shape.Rows+r-1)/r, (shape.Inner+k-1)/k
			p.acrosses = (shape.Cols + p.TileCols - 1) / p.TileCols
			if best == nil || p.UpBytes()+p.DownBytes() < best.UpBytes()+best.DownBytes() {
				best = p
			}
		}
	}
	for i := range best.TileRows * best.TileCols {
		for w := range best.perEntry() {
			best.targets = append(best.targets, stride*i*best.TileInner+w)
		}
	}
	best.flooding, err = s.flood(s.SquareNoise(best.inners, best.moved()), best.Answers())
	return best, err
}

// tiles lists the sizes, at most most, into which n can be cut evenly, one for each number of
// pieces.
func tiles(n, most int) (sizes []int) {
	for x := min(n, most); x > 0; {
		sizes = append(sizes, x)
		pieces := (n+x-1)/x + 1
		next := (n + pieces - 1) / pieces
		x = min(x-1, next)
	}
	return sizes
}

// fits returns the number of digits and the number of coefficients per entry. The error wraps
// [ErrRange] if results do not fit in T or in 63 bits.
func (x ProductShape) fits(t uint64) (digits, stride int, err error) {
	over := func(terms, a, b, limit uint64) bool {
		hi, ab := bits.Mul64(a, b)
		hi2, all := bits.Mul64(ab, terms)
		return hi != 0 || hi2 != 0 || all > limit
	}
	digits, stride = 1, 1
	left, right, terms := x.MaxLeft, x.MaxRight, uint64(x.Inner)
	if x.Base > 0 {
		for m := max(left, right) / x.Base; m > 0; m /= x.Base {
			digits++
		}
		stride = 2 * digits
		left, right = min(left, x.Base-1), min(right, x.Base-1)
		terms *= uint64(digits)
	}
	//lodge:check linear/overflow [drop=over(terms, left, right, (t-1)/2)] entries of the product
	//  wrap around T
	//lodge:check linear/overflow-words [drop=over(uint64(x.Inner), x.MaxLeft, x.MaxRight,
	//  math.MaxInt64)] entries of the product overflow a word
	if over(terms, left, right, (t-1)/2) || over(uint64(x.Inner), x.MaxLeft, x.MaxRight, math.MaxInt64) {
		return 0, 0, fmt.Errorf("%w: sums of %d products of %d and %dexceed %[6]d, the largest that T = %[5]d allows", ErrRange,
			terms, left, right, t, (t-1)/2)
	}
	return digits, stride, nil
}

// perEntry returns the number of coefficients from which an entry of the product is read.
func (p *ProductPlan) perEntry() int { return 2*p.digits - 1 }

// Lefts returns the number of ciphertexts of the left factor.
func (p *ProductPlan) Lefts() int { return p.downs * p.inners }

// Rights returns the number of ciphertexts of the right factor.
func (p *ProductPlan) Rights() int {
	if p.Method == First {
		return p.inners * p.Cols
	}
	return p.inners * p.acrosses
}

// moved returns the number of ciphertexts of the right factor that the service adds up.
func (p *ProductPlan) moved() int {
	if p.Method == First {
		return p.TileCols
	}
	return 1
}

// Answers returns the number of answers.
func (p *ProductPlan) Answers() int { return p.downs * p.acrosses }

// Distance returns log2 of the statistical distance between all answers together and a distribution
// that depends on the factors only through the product.
func (p *ProductPlan) Distance() float64 { return p.distance }

// UpBytes returns the number of bytes that the owner of the key sends, without keys.
func (p *ProductPlan) UpBytes() int {
	return 2*InputsHeaderSize + (p.Lefts()+p.Rights())*p.scheme.CiphertextSize()
}

// DownBytes returns the size of all answers.
func (p *ProductPlan) DownBytes() int { return p.Answers() * p.AnswerSize() }

// AnswerSize returns the size of an encoded answer.
func (p *ProductPlan) AnswerSize() int {
	return p.scheme.answerSize(p.TileRows * p.TileCols * p.perEntry())
}

// checkEntries returns an error unless v holds the given number of integers of at most the given
// magnitude.
func checkEntries(v []int64, count int, most uint64, what string) error {
	//lodge:check linear/entries-count [swap=len(v) != count=>len(v) < 1] factors need not have the
	//  shape of the plan
	if len(v) != count {
		return fmt.Errorf("%w: %d entries of the %s factor, want %d", ErrShape, len(v), what, count)
	}
	for _, x := range v {
		//lodge:check linear/entries [swap=magnitude(x) > most=>x > int64(most)] entries larger than
		//  planned make the product wrap around T
		if magnitude(x) > most {
			return fmt.Errorf("%w: an entry of the %s factor exceeds %d", ErrRange, what, most)
		}
	}
	return nil
}

func magnitude(x int64) uint64 {
	sign := x >> 63
	return uint64((x ^ sign) - sign)
}

// put writes the digits of an entry to m from position at on. A wrap-around changes the sign,
// because X^N = -1.
func (p *ProductPlan) put(m []uint64, at int, x int64) {
	if at < 0 {
		at, x = at+p.scheme.N(), -x
	}
	rest, t := magnitude(x), p.scheme.T
	for w := range p.digits {
		digit := rest
		if p.Base > 0 {
			digit, rest = rest%p.Base, rest/p.Base
		}
		if x < 0 {
			digit = (t - digit) % t
		}
		m[at+w] = digit
	}
}

// EncryptLeft encrypts the left factor, row by row. The source must be used for this call only. The
// error wraps [ErrShape], [ErrRange] or [ErrForeign].
func (p *ProductPlan) EncryptLeft(k *SecretKey, entries []int64, workers int, source *sample.Source) (*Inputs, error) {
	if err := k.check(p.scheme); err != nil {
		return nil, err
	}
	if err := checkEntries(entries, p.Rows*p.Inner, p.MaxLeft, "left"); err != nil {
		return nil, err
	}
	return k.encrypt(p.Lefts(), workers, func(number int, m []uint64) {
		row, inner := number/p.inners*p.TileRows, number%p.inners*p.TileInner
		for i := range min(p.TileRows, p.Rows-row) {
			for u := range min(p.TileInner, p.Inner-inner) {
				p.put(m, p.stride*(u+i*p.TileInner), entries[(row+i)*p.Inner+inner+u])
			}
		}
	}, source)
}

// EncryptRight encrypts the right factor, row by row. The source must be used for this call only.
// The error wraps [ErrShape], [ErrRange] or [ErrForeign].
func (p *ProductPlan) EncryptRight(k *SecretKey, entries []int64, workers int, source *sample.Source) (*Inputs, error) {
	if err := k.check(p.scheme); err != nil {
		return nil, err
	}
	if err := checkEntries(entries, p.Inner*p.Cols, p.MaxRight, "right"); err != nil {
		return nil, err
	}
	across, each := p.acrosses, p.TileCols
	if p.Method == First {
		across, each = p.Cols, 1
	}
	return k.encrypt(p.Rights(), workers, func(number int, m []uint64) {
		inner, col := number/across*p.TileInner, number%across*each
		for u := range min(p.TileInner, p.Inner-inner) {
			for j := range min(each, p.Cols-col) {
				p.put(m, p.stride*(j*p.TileInner*p.TileRows-u), entries[(inner+u)*p.Cols+col+j])
			}
		}
	}, source)
}

// ProductEvaluator is the service's side of a [ProductPlan]. It may be shared.
type ProductEvaluator struct {
	plan           *ProductPlan
	key            *PublicKey
	leftB, leftA   []ring.NTT
	rightB, rightA []ring.NTT // times T
}

// Evaluator returns an evaluator for the factors. The error wraps [ErrKeys] if the key cannot
// relinearise, [ErrCiphertext] or [ErrForeign].
func (p *ProductPlan) Evaluator(key *PublicKey, left, right *Inputs) (*ProductEvaluator, error) {
	//lodge:check linear/relinearises a key without relinearisation is used for products
	if !key.Products() {
		return nil, fmt.Errorf("%w: the key has no samples for products", ErrKeys)
	}
	e := &ProductEvaluator{plan: p, key: key}
	var err error
	if e.leftB, e.leftA, err = left.all(key, p.Lefts()); err != nil {
		return nil, err
	}
	b, a, err := right.all(key, p.Rights())
	if err != nil {
		return nil, err
	}
	e.rightB, e.rightA = p.beside(b), p.beside(a)
	for _, x := range a {
		ring.Poly(x).Free()
	}
	return e, nil
}

// beside returns the right factor, times T, in the form that the multiplication uses: columns are
// adjacent.
func (p *ProductPlan) beside(columns []ring.NTT) (tiles []ring.NTT) {
	basis, each := p.scheme.basis, p.moved()
	next := basis.BorrowNTT() // X^(k r), by which a column moves to the next place
	defer func() { ring.Poly(next).Free() }()
	if each > 1 {
		power := ring.Poly(next)
		power.Zero()
		for i := range power.C {
			power.C[i][p.stride*p.TileInner*p.TileRows] = 1
		}
		basis.Forward(next, power)
	}
	for row := range slices.Chunk(columns, len(columns)/p.inners) {
		for tile := range slices.Chunk(row, each) {
			sum := basis.BorrowNTT()
			last := len(tile) - 1
			sum.Copy(tile[last])
			for _, x := range slices.Backward(tile[:last]) {
				basis.MulNTT(sum, sum, next)
				basis.AddNTT(sum, sum, x)
			}
			basis.MulScalar(ring.Poly(sum), ring.Poly(sum), p.scheme.times)
			tiles = append(tiles, sum)
		}
	}
	return tiles
}

// Answer computes answer g, encoded. It masks coefficients that are not part of the product. The
// source must be used for this answer only. The error wraps [ErrShape].
func (e *ProductEvaluator) Answer(g int, source *sample.Source) ([]byte, error) {
	p, s := e.plan, e.plan.scheme
	if err := checkNumber(g, p.Answers()); err != nil {
		return nil, err
	}
	c0, c1, c2 := e.multiply(g)
	e.key.relinearise(c0, c1, c2)
	mask := p.mask(source)
	b, a := e.key.finish(c0, c1, mask, p.bound, source)
	giveBack(&words, mask)
	return s.encodeAnswer(e.key.answer(b, a, p.targets)), nil
}

// mask returns a polynomial that is uniform except at the entries of the product.
func (p *ProductPlan) mask(source *sample.Source) []uint64 {
	//lodge:check linear/product-mask [swap=p.scheme.mask(source)=>make([]uint64, p.scheme.N())] an
	//  answer reveals other entries of the product
	mask := p.scheme.mask(source)
	for _, at := range p.targets {
		mask[at] = 0
	}
	return mask
}

// multiply returns the ciphertext of degree two of an answer.
func (e *ProductEvaluator) multiply(g int) (c0, c1, c2 ring.NTT) {
	p, basis := e.plan, e.plan.scheme.basis
	c0, c1, c2 = basis.BorrowNTT(), basis.BorrowNTT(), basis.BorrowNTT()
	for u := range p.inners {
		l, r := g/p.acrosses*p.inners+u, u*p.acrosses+g%p.acrosses
		add := basis.MulAddNTT
		if u == 0 {
			add = basis.MulNTT
		}
		add(c0, e.leftB[l], e.rightB[r])
		add(c1, e.leftB[l], e.rightA[r])
		basis.MulAddNTT(c1, e.leftA[l], e.rightB[r])
		add(c2, e.leftA[l], e.rightA[r])
	}
	return c0, c1, c2
}

// relinearise adds c2 s^2, up to noise, to (c0, c1), and wipes c2.
func (p *PublicKey) relinearise(c0, c1, c2 ring.NTT) {
	s := p.scheme
	whole, digit := ring.Poly(c2), s.basis.Borrow()
	s.basis.Inverse(whole, c2)
	for i := range s.Q {
		s.digits[i].Extend(digit, ring.Poly{C: whole.C[i : i+1]})
		s.basis.Forward(ring.NTT(digit), digit)
		s.basis.MulAddNTT(c0, p.b[i+1], ring.NTT(digit))
		s.basis.MulAddNTT(c1, p.a[i+1], ring.NTT(digit))
	}
	wipe(digit)
	wipe(whole)
}

// Open writes the entries of the product in answer g to out, of Rows x Cols, row by row. The error
// wraps [ErrShape], [ErrAnswer] or [ErrForeign].
func (p *ProductPlan) Open(k *SecretKey, g int, answer []byte, out []int64) error {
	//lodge:check linear/room the result is written beyond its buffer
	if len(out) != p.Rows*p.Cols {
		return fmt.Errorf("%w: the result has %d entries, want %d", ErrShape, len(out), p.Rows*p.Cols)
	}
	v, err := k.openAnswer(p.scheme, g, p.Answers(), answer, p.targets)
	if err != nil {
		return err
	}
	row, col, per := g/p.acrosses*p.TileRows, g%p.acrosses*p.TileCols, p.perEntry()
	for i := range min(p.TileRows, p.Rows-row) {
		for j := range min(p.TileCols, p.Cols-col) {
			entry := v[(i+j*p.TileRows)*per:][:per]
			var x int64
			for w := per - 1; w >= 0; w-- {
				x = x*int64(p.Base) + p.scheme.signed(entry[w])
			}
			out[(row+i)*p.Cols+col+j] = x
		}
	}
	return nil
}

// signed returns the integer in (-T/2, T/2) of a residue.
func (s *Set) signed(v uint64) int64 {
	if v > s.T/2 {
		return int64(v) - int64(s.T)
	}
	return int64(v)
}

// Multiply is Answer for all answers.
func (e *ProductEvaluator) Multiply(workers int, source *sample.Source) [][]byte {
	answers := make([][]byte, e.plan.Answers())
	parallel.For(workers, len(answers), func(g int) {
		answer, err := e.Answer(g, source.Sub("linear answer", uint64(g)))
		if err != nil {
			panic(err) // the number is valid
		}
		answers[g] = answer
	})
	return answers
}
