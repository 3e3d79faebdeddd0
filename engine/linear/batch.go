package linear

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// BatchPlan describes how to compute the sums sum_k M_k v_ok over a batch of shared matrices M_k
// times vectors v_ok of the other party, for outputs o. It is public and immutable, and both
// parties compute the same plan.
//
// Columns of all matrices are numbered k Cols + j, and cut into blocks of Height rows. A ciphertext
// holds PerInput = e columns of one block next to each other, at i h. A polynomial holds the
// vectors of PerAnswer = m outputs, at (o e + e-1-i) h, so that their sums are at (o e + e-1) h.
// With e = 1 this means scaling columns, and merging outputs by rotation.
type BatchPlan struct {
	scheme                     *Scheme
	Rows, Cols, Count, Outputs int
	Height                     int // h
	Blocks                     int // per column
	PerInput                   int // e, columns per ciphertext
	PerAnswer                  int // m, outputs per answer
	Inputs                     int // ciphertexts
	Answers                    int

	targets []int
	*flooding
}

// PlanBatch returns the plan with the fewest bytes for sums over count matrices of the given number
// of rows and columns, for the given number of outputs. The error wraps [ErrShape], or [ErrNoise].
func (s *Scheme) PlanBatch(rows, cols, count, outputs int) (*BatchPlan, error) {
	for _, x := range []int{rows, cols, count, outputs} {
		//lodge:check linear/batch [swap=1=>0] an empty batch is planned
		if x < 1 || x > MaxEntries {
			return nil, fmt.Errorf("%w: %d matrices of %d x %d for %d outputs", ErrShape, count, rows, cols, outputs)
		}
	}
	//lodge:check linear/batch-columns the columns of a batch overflow
	if cols > MaxEntries/count {
		return nil, fmt.Errorf("%w: %d matrices of %d columns", ErrShape, count, cols)
	}
	n := s.N()
	blocks := (rows + n - 1) / n
	height := (rows + blocks - 1) / blocks
	var best *BatchPlan
	for e := 1; e <= n/height; e++ {
		p := &BatchPlan{scheme: s, Rows: rows, Cols: cols, Count: count, Outputs: outputs}
		p.Height, p.Blocks, p.PerInput = height, blocks, e
		p.PerAnswer = n / (e * height)
		p.Inputs = blocks * ((count*cols + e - 1) / e)
		p.Answers = blocks * ((outputs + p.PerAnswer - 1) / p.PerAnswer)
		if best == nil || p.UpBytes()+p.DownBytes() < best.UpBytes()+best.DownBytes() {
			best = p
		}
	}
	best.PerAnswer = min(best.PerAnswer, outputs)
	for o := range best.PerAnswer {
		at := (o*best.PerInput + best.PerInput - 1) * height
		for i := range height {
			best.targets = append(best.targets, at+i)
		}
	}
	noise, terms := 0.0, best.Inputs/blocks
	if best.scalars() {
		noise = s.ScalarNoise(terms)
	} else {
		noise = s.ProductNoise(terms, best.PerInput*height)
	}
	var err error
	best.flooding, err = s.flood(noise, best.Answers)
	return best, err
}

// scalars reports whether polynomials of vectors are numbers.
func (p *BatchPlan) scalars() bool { return p.PerInput*p.PerAnswer == 1 }

// Distance returns log2 of the statistical distance between all answers together and a distribution
// that depends on the vectors only through the result.
func (p *BatchPlan) Distance() float64 { return p.distance }

// UpBytes returns the number of bytes that the owner of the key sends.
func (p *BatchPlan) UpBytes() int { return p.scheme.InputsSize(p.Inputs) }

// DownBytes returns the size of all answers.
func (p *BatchPlan) DownBytes() int { return p.Answers * p.AnswerSize() }

// AnswerSize returns the size of an encoded answer.
func (p *BatchPlan) AnswerSize() int { return p.scheme.answerSize(p.PerAnswer * p.Height) }

// Part describes the content of an answer: outputs [Output, OutputEnd) and, for each, the rows
// [Row, RowEnd).
type Part struct{ Output, OutputEnd, Row, RowEnd int }

// Len returns the number of results.
func (x Part) Len() int { return (x.OutputEnd - x.Output) * (x.RowEnd - x.Row) }

// PartOf returns the content of answer g.
func (p *BatchPlan) PartOf(g int) Part {
	group, block := g/p.Blocks, g%p.Blocks
	return Part{
		group * p.PerAnswer, min((group+1)*p.PerAnswer, p.Outputs), block * p.Height, min((block+1)*p.Height, p.Rows),
	}
}

// Encrypt encrypts the owner's shares of the matrices, each row by row, consecutively. The source
// must be used for this call only. The error wraps [ErrShape], [ErrRange] or [ErrForeign].
func (p *BatchPlan) Encrypt(k *SecretKey, matrices []uint64, workers int, source *sample.Source) (*Inputs, error) {
	if err := k.check(p.scheme); err != nil {
		return nil, err
	}
	if err := p.scheme.checkResidues(matrices, p.Count*p.Rows*p.Cols, "the matrices"); err != nil {
		return nil, err
	}
	return k.encrypt(p.Inputs, workers, func(number int, m []uint64) {
		from := number % p.Blocks * p.Height
		for i := range p.PerInput {
			column := number/p.Blocks*p.PerInput + i
			if column == p.Count*p.Cols {
				break
			}
			matrix := matrices[column/p.Cols*p.Rows*p.Cols:]
			for row := from; row < min(from+p.Height, p.Rows); row++ {
				m[i*p.Height+row-from] = matrix[row*p.Cols+column%p.Cols]
			}
		}
	}, source)
}

// BatchEvaluator evaluates a [BatchPlan] for the owner of the vectors, with the inputs received
// from the owner of the key. It may be shared.
type BatchEvaluator struct {
	plan *BatchPlan
	key  *PublicKey
	b, a []ring.NTT
}

// Evaluator returns an evaluator for the inputs. The error wraps [ErrCiphertext], or [ErrForeign].
func (p *BatchPlan) Evaluator(key *PublicKey, in *Inputs) (*BatchEvaluator, error) {
	b, a, err := in.all(key, p.Inputs)
	if err != nil {
		return nil, err
	}
	return &BatchEvaluator{plan: p, key: key, b: b, a: a}, nil
}

// Answer computes answer g from all vectors, Count of Cols entries for each output, and this
// party's shares of the matrices, or nil for 0. It returns the encoded answer and this party's
// shares of the results, output by output. The source must be used for this answer only. The error
// wraps [ErrShape] or [ErrRange].
func (e *BatchEvaluator) Answer(
	g int, vectors, matrices []uint64, source *sample.Source,
) (answer []byte, shares []uint64, err error) {
	p, s := e.plan, e.plan.scheme
	if err := checkNumber(g, p.Answers); err != nil {
		return nil, nil, err
	}
	if err := s.checkResidues(vectors, p.Outputs*p.Count*p.Cols, "the vectors"); err != nil {
		return nil, nil, err
	}
	if matrices != nil {
		if err := s.checkResidues(matrices, p.Count*p.Rows*p.Cols, "the matrices"); err != nil {
			return nil, nil, err
		}
	}
	mask := s.mask(source)
	part, mod := p.PartOf(g), s.plaintext()
	for i, v := range p.results(mask, part) {
		shares = append(shares, mod.Neg(v))
		if matrices != nil {
			shares[i] = mod.Add(shares[i], p.own(matrices, vectors, part, i))
		}
	}
	c0, c1 := e.multiply(vectors, part, g%p.Blocks)
	b, a := e.key.finish(c0, c1, mask, p.bound, source)
	giveBack(&words, mask)
	return s.encodeAnswer(e.key.answer(b, a, p.targets)), shares, nil
}

// results returns the coefficients of v, of N, that hold results.
func (p *BatchPlan) results(v []uint64, part Part) (out []uint64) {
	for o := range part.OutputEnd - part.Output {
		at := (o*p.PerInput + p.PerInput - 1) * p.Height
		out = append(out, v[at:at+part.RowEnd-part.Row]...)
	}
	return out
}

// own returns result i of a part for this party's matrices.
func (p *BatchPlan) own(matrices, vectors []uint64, part Part, i int) (sum uint64) {
	mod, rows := p.scheme.plaintext(), part.RowEnd-part.Row
	output, row := part.Output+i/rows, part.Row+i%rows
	for k := range p.Count {
		v := vectors[(output*p.Count+k)*p.Cols:][:p.Cols]
		x, _ := mod.Inner(matrices[(k*p.Rows+row)*p.Cols:][:p.Cols], v)
		sum = mod.Add(sum, x)
	}
	return sum
}

// multiply returns the sum over the inputs of a block times their vectors.
func (e *BatchEvaluator) multiply(vectors []uint64, part Part, block int) (c0, c1 ring.NTT) {
	p, s := e.plan, e.plan.scheme
	c0, c1 = s.basis.NewNTT(), s.basis.NewNTT()
	packed, factor := make([]uint64, s.N()), s.basis.BorrowNTT()
	columns := p.Count * p.Cols
	for number := block; number < p.Inputs; number += p.Blocks {
		first := number / p.Blocks * p.PerInput
		if p.scalars() {
			c := s.scalar(vectors[part.Output*columns+first])
			for _, x := range [][2]ring.NTT{{c0, e.b[number]}, {c1, e.a[number]}} {
				s.basis.MulScalar(ring.Poly(factor), ring.Poly(x[1]), c)
				s.basis.AddNTT(x[0], x[0], factor)
			}
			clear(c)
			continue
		}
		clear(packed)
		for o := part.Output; o < part.OutputEnd; o++ {
			for i := range min(p.PerInput, columns-first) {
				packed[((o-part.Output)*p.PerInput+p.PerInput-1-i)*p.Height] = vectors[o*columns+first+i]
			}
		}
		s.multiplier(factor, packed)
		s.basis.MulAddNTT(c0, factor, e.b[number])
		s.basis.MulAddNTT(c1, factor, e.a[number])
	}
	clear(packed)
	wipe(ring.Poly(factor))
	return c0, c1
}

// Open returns the owner's shares of the results of answer g, output by output. The error wraps
// [ErrShape], [ErrAnswer] or [ErrForeign].
func (p *BatchPlan) Open(k *SecretKey, g int, answer []byte) ([]uint64, error) {
	v, err := k.openAnswer(p.scheme, g, p.Answers, answer, p.targets)
	if err != nil {
		return nil, err
	}
	part, out := p.PartOf(g), make([]uint64, 0, len(v))
	for o := range part.OutputEnd - part.Output {
		out = append(out, v[o*p.Height:o*p.Height+part.RowEnd-part.Row]...)
	}
	return out, nil
}
