package verify

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/engine/kind"
)

// soundnessBits: a wrong matrix product passes with probability at most 2^-soundnessBits.
const soundnessBits = 100

// checker holds the data common to all triples of a batch.
type checker struct {
	manifest tuplefile.Manifest
	kind     kind.Kind
	shape    kind.Shape
	p, alpha *big.Int
	size     int // bytes per element
	values   int // per triple, without MACs
	vectors  int // of Freivalds' method
	seen     map[[16]byte]struct{}
	share    []byte // the first party's share of the first value of the last tuple read
	bits     bool   // whether a part is a bit
	ones     int64  // bits that are not 0
}

// manyBits is a number of honest bits that are practically never all equal.
const manyBits = 128

func newChecker(m tuplefile.Manifest, p, alpha *big.Int) *checker {
	c := &checker{
		manifest: m, kind: kind.Of(m.Kind), shape: m.Shape(), p: p, alpha: alpha, size: (p.BitLen() + 7) / 8, values: m.Values(),
		seen: make(map[[16]byte]struct{}),
	}
	c.bits = slices.ContainsFunc(c.kind.Describe().Parts, func(p kind.Part) bool { return p.Domain == kind.Bits })
	if c.kind.Shaped() {
		each := p.BitLen() - 1 // p >= 2^each
		c.vectors = (soundnessBits + each - 1) / each
	}
	return c
}

func (c *checker) newReport() *Report {
	m := c.manifest
	return &Report{
		Kind: m.Kind, Params: m.Params, Field: m.Field, ModulusBits: c.p.BitLen(), Parties: m.Parties, Epoch: m.Epoch,
		Batch: m.Batch, Dims: m.Dims, Convolution: m.Convolution, InputParty: m.InputParty, KeygenSecurity: m.KeygenSecurity, NoSacrifice: m.NoSacrifice, Tuples: m.Tuples,
		Failed: make(map[string]int64), Failures: []Failure{}, FreivaldsVectors: c.vectors,
	}
}

// chunk is a run of triples, each summed over the parties: values, then MACs, all in [0,p).
type chunk struct {
	first    int64 // index of the first triple
	tuples   int
	sums     []big.Int
	failures []Failure
	done     chan struct{}
}

func newChunk(elements int) *chunk {
	return &chunk{sums: make([]big.Int, elements), done: make(chan struct{}, 1)}
}

func (ch *chunk) fail(i int, check string, wrong int) {
	ch.failures = append(ch.failures, Failure{Tuple: ch.first + int64(i), Check: check, Wrong: wrong})
}

// readAll reads every triple and, after the last, checks the files' digests.
func (c *checker) readAll(ctx context.Context, readers []*tuplefile.Reader, perChunk int,
	free <-chan *chunk, work, ordered chan<- *chunk,
) error {
	total := c.manifest.Tuples
	for first := int64(0); first < total; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var ch *chunk
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ch = <-free:
		}
		ch.first, ch.tuples, ch.failures = first, int(min(int64(perChunk), total-first)), ch.failures[:0]
		for i := range ch.tuples {
			sums := ch.sums[2*i*c.values:][:2*c.values]
			if err := c.read(readers, first+int64(i), sums); err != nil {
				return err
			}
			if err := c.readClear(readers, ch, i, sums); err != nil {
				return err
			}
			c.compare(ch, i)
		}
		if last := first+int64(ch.tuples) == total; last && c.bits && total >= manyBits && (c.ones == 0 || c.ones == total) {
			ch.fail(ch.tuples-1, CheckDegenerate, 1)
		}
		first += int64(ch.tuples)
		ordered <- ch
		work <- ch
	}
	for _, r := range readers {
		if err := r.Finish(); err != nil {
			return fmt.Errorf("party %d: %w", r.Manifest.Party, err)
		}
	}
	return nil
}

// read adds up one triple's shares.
func (c *checker) read(readers []*tuplefile.Reader, tuple int64, sums []big.Int) error {
	buf := make([]byte, c.size)
	var x big.Int
	for e := range sums {
		sum := &sums[e]
		for i, r := range readers {
			if _, err := r.Read(buf); err != nil {
				return fmt.Errorf("party %d, tuple %d: %w", r.Manifest.Party, tuple, err)
			}
			if e == 0 && i == 0 {
				c.share = append(c.share[:0], buf...)
			}
			slices.Reverse(buf) // to big-endian
			x.SetBytes(buf)
			if x.Cmp(c.p) >= 0 {
				return &ElementError{Party: r.Manifest.Party, Tuple: tuple, Element: e}
			}
			if i == 0 {
				sum.Set(&x)
			} else if sum.Add(sum, &x).Cmp(c.p) >= 0 {
				sum.Sub(sum, c.p)
			}
		}
	}
	return nil
}

// readClear reads a party's plaintext values and compares them with the sums.
func (c *checker) readClear(readers []*tuplefile.Reader, ch *chunk, i int, sums []big.Int) error {
	buf := make([]byte, c.size)
	var x big.Int
	for _, r := range readers {
		for e := range r.Manifest.Clear() {
			tuple := ch.first + int64(i)
			if _, err := r.Read(buf); err != nil {
				return fmt.Errorf("party %d, tuple %d: %w", r.Manifest.Party, tuple, err)
			}
			slices.Reverse(buf) // to big-endian
			if x.SetBytes(buf).Cmp(c.p) >= 0 {
				return &ElementError{Party: r.Manifest.Party, Tuple: tuple, Element: len(sums) + e}
			}
			if x.Cmp(&sums[e]) != 0 {
				ch.fail(i, CheckClear, 1)
			}
		}
	}
	return nil
}

// compare searches for random values that are zero or repeated: a mask used twice reveals what it
// hides. Bits repeat, but a party's shares of them do not.
func (c *checker) compare(ch *chunk, i int) {
	parts := c.split(ch.sums[2*i*c.values:][:c.values])
	for at, part := range c.kind.Describe().Parts {
		switch part.Domain {
		case kind.Bits:
			if parts[at][0].Sign() != 0 {
				c.ones++
			}
			c.once(ch, i, 1, c.share)
		case kind.Uniform:
			c.uniform(ch, i, parts[at])
		}
	}
}

// uniform fails a tuple if a random value is zero or occurred before.
func (c *checker) uniform(ch *chunk, i int, value []big.Int) {
	if !slices.ContainsFunc(value, func(x big.Int) bool { return x.Sign() != 0 }) {
		ch.fail(i, CheckDegenerate, len(value))
		return
	}
	all := make([]byte, len(value)*c.size)
	for e := range value {
		value[e].FillBytes(all[e*c.size : (e+1)*c.size])
	}
	c.once(ch, i, len(value), all)
}

// once fails a tuple if the same bytes occurred before.
func (c *checker) once(ch *chunk, i, values int, b []byte) {
	if ch.first+int64(i) >= maxCompared {
		return
	}
	h := sha256.Sum256(b)
	key := [16]byte(h[:16])
	if _, ok := c.seen[key]; ok {
		ch.fail(i, CheckRepeated, values)
	}
	c.seen[key] = struct{}{}
}

// split splits one tuple's values into its parts.
func (c *checker) split(values []big.Int) (parts [][]big.Int) {
	for _, part := range c.kind.Describe().Parts {
		n := part.Elements(c.shape)
		parts = append(parts, values[:n])
		values = values[n:]
	}
	return parts
}

// check checks products and MACs of a chunk.
func (c *checker) check(ch *chunk) {
	for i := range ch.tuples {
		record := ch.sums[2*i*c.values:][:2*c.values]
		values, macs := record[:c.values], record[c.values:]
		if wrong := c.wrongRows(values); wrong > 0 {
			ch.fail(i, CheckProduct, wrong)
		}
		parts := c.split(macs)
		for k, part := range c.split(values) {
			if wrong := c.wrongMACs(part, parts[k]); wrong > 0 {
				ch.fail(i, [...]string{CheckMACA, CheckMACB, CheckMACC}[k], wrong)
			}
		}
	}
}

func (c *checker) wrongMACs(values, macs []big.Int) (wrong int) {
	var product, want, quotient big.Int
	for i := range values {
		product.Mul(c.alpha, &values[i])
		quotient.QuoRem(&product, c.p, &want)
		if want.Cmp(&macs[i]) != 0 {
			wrong++
		}
	}
	return wrong
}

// wrongRows returns 0 if the values satisfy the relation of their kind. For products of matrices it
// counts the rows in which C differs from A*B, using random vectors; for convolutions it counts
// outputs.
func (c *checker) wrongRows(values []big.Int) int {
	one := []big.Int{*big.NewInt(1)}
	a := values[:1]
	switch c.kind.Describe().Relation {
	case kind.Unrelated:
		return 0
	case kind.ProductOfFactors:
		return c.differ(c.times(a, values[1:2], 1, 1), values[2:])
	case kind.SquareOfFactor:
		return c.differ(c.times(a, a, 1, 1), values[1:])
	case kind.InverseOfFactor:
		return c.differ(c.times(a, values[1:], 1, 1), one)
	case kind.ZeroOrOne:
		return c.differ(c.times(a, a, 1, 1), a)
	case kind.MatrixProduct:
		d, parts := c.manifest.Dims, c.split(values)
		return c.wrongProducts(d.M, d.K, d.N, parts[0], parts[1], parts[2])
	case kind.ConvolutionOfFactors:
		s, parts := c.manifest.Convolution, c.split(values)
		inner := s.Channels * s.KernelHeight * s.KernelWidth
		return c.wrongProducts(s.Outputs, inner, s.OutHeight()*s.OutWidth(), parts[1], c.windows(parts[0]), parts[2])
	}
	return len(values) // this checker does not know the relation, so no tuple passes
}

// wrongProducts counts the rows in which the rows x cols matrix c differs from a*b, by Freivalds'
// method.
func (c *checker) wrongProducts(rows, inner, cols int, a, b, product []big.Int) int {
	for range c.vectors {
		r := c.randomVector(cols)
		if wrong := c.differ(c.times(a, c.times(b, r, inner, cols), rows, inner), c.times(product, r, rows, cols)); wrong > 0 {
			return wrong
		}
	}
	return 0
}

func (c *checker) differ(x, y []big.Int) (n int) {
	for i := range x {
		if x[i].Cmp(&y[i]) != 0 {
			n++
		}
	}
	return n
}

// times returns the rows x cols matrix times the vector, mod p.
func (c *checker) times(matrix, vector []big.Int, rows, cols int) []big.Int {
	out := make([]big.Int, rows)
	var product, sum, quotient big.Int
	for i := range rows {
		sum.SetInt64(0)
		for j := range cols {
			sum.Add(&sum, product.Mul(&matrix[i*cols+j], &vector[j]))
		}
		quotient.QuoRem(&sum, c.p, &out[i])
	}
	return out
}

// randomVector draws a uniform vector from Z_p^n by rejection.
func (c *checker) randomVector(n int) []big.Int {
	v := make([]big.Int, n)
	bits := c.p.BitLen()
	buf := make([]byte, c.size)
	for i := range v {
		for {
			rand.Read(buf) // never fails
			buf[0] &= 0xff >> (8*c.size - bits)
			if v[i].SetBytes(buf).Cmp(c.p) < 0 {
				break
			}
		}
	}
	return v
}
