package bench

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"runtime/debug"

	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// LinearShapes lists the measured shapes of two-party linear algebra with their targets.
type LinearShapes struct {
	Vectors  []LinearVector
	Proved   []LinearVector // whose owners prove their inputs; in the cheapest packing
	Batches  []LinearBatch
	Products []LinearProduct
}

// LinearVector is a matrix times a shared vector, in both packings of the paper. Seconds and Bytes
// are wanted of each.
type LinearVector struct {
	Set        string
	Rows, Cols int
	Seconds    map[linear.Packing]float64
	Bytes      map[linear.Packing]float64
}

// LinearBatch is a sum over shared matrices times vectors.
type LinearBatch struct {
	Set               string
	Rows, Cols, Count int
	Seconds           float64
}

// LinearProduct is a product of two encrypted matrices.
type LinearProduct struct {
	Name, Set string
	Shape     linear.ProductShape
	Seconds   float64
}

// AllLinear are the shapes whose figures the papers have.
func AllLinear() LinearShapes {
	square := func(n int, most uint64, method linear.Method) linear.ProductShape {
		return linear.ProductShape{Rows: n, Inner: n, Cols: n, MaxLeft: most, MaxRight: most, Method: method}
	}
	return LinearShapes{
		Vectors: []LinearVector{{
			Set: linear.Unproved, Rows: 4000, Cols: 2000,
			Seconds: map[linear.Packing]float64{linear.Double: 0.6, linear.Forward: 3},
			Bytes:   map[linear.Packing]float64{linear.Double: 7e6, linear.Forward: 120e6},
		}},
		Proved:  []LinearVector{{Set: linear.DefaultVector, Rows: 4000, Cols: 2000}},
		Batches: []LinearBatch{{Set: linear.Unproved, Rows: 124 * 124, Cols: 4, Count: 12, Seconds: 0.08}},
		Products: []LinearProduct{
			{"binary_32_first", "P13-17", square(32, 1, linear.First), 0.05},
			{"binary_32_second", "P13-17", square(32, 1, linear.Second), 0.05},
			{"10bit_16_first", linear.DefaultProduct, square(16, 1023, linear.First), 0.02},
			{"10bit_16_second", linear.DefaultProduct, square(16, 1023, linear.Second), 0.02},
			{"16bit_128", linear.DefaultProduct, square(128, 65535, linear.FewestBytes), 2},
		},
	}
}

const linearSection = "Two-party linear algebra"

// errLinear reports a product that differs from the one in plaintext.
var errLinear = errors.New("a product is wrong")

// LinearAlgebra lists the measurements of two-party linear algebra. It first compares each product
// with the one in plaintext.
func (o *Options) LinearAlgebra() (rows []Row) {
	add := func(names []string, run func(ctx context.Context) ([]Result, error)) {
		rows = append(rows, Row{Section: linearSection, Names: names, Run: run})
	}
	for _, v := range o.Linear.Vectors {
		names := append(linearNames(v.name(linear.Double)), linearNames(v.name(linear.Forward))...)
		add(append(names, v.name(linear.Forward)+"_time_over_double", v.name(linear.Forward)+"_bytes_over_double"),
			func(ctx context.Context) ([]Result, error) { return o.linearVectors(ctx, v) })
	}
	measure := func(name string, seconds float64, prepare func() (*linearWork, error)) {
		add(linearNames(name), func(ctx context.Context) ([]Result, error) {
			w, err := prepare()
			if err != nil {
				return nil, err
			}
			return o.linear(ctx, name, seconds, 0, w)
		})
	}
	for _, v := range o.Linear.Proved {
		measure(v.name(linear.Cheapest)+"_proved", 0, func() (*linearWork, error) { return newLinearVector(v, linear.Cheapest) })
	}
	for _, b := range o.Linear.Batches {
		name := fmt.Sprintf("linear_batch_%dx%dx%d", b.Count, b.Rows, b.Cols)
		measure(name, b.Seconds, func() (*linearWork, error) { return newLinearBatch(b) })
	}
	for _, p := range o.Linear.Products {
		measure("linear_product_"+p.Name, p.Seconds, func() (*linearWork, error) { return newLinearProduct(p) })
	}
	return rows
}

func linearNames(name string) []string {
	return []string{name, name + "_owner", name + "_evaluator", name + "_bytes", name + "_up", name + "_down", name + "_memory"}
}

// linearWork is a product in three steps, which are called in this order and each any number of
// times: the owner of the key encrypts its inputs, the evaluator computes on them, the owner opens
// the answers.
type linearWork struct {
	what                    string
	encrypt, evaluate, open func() error
	up, down                int
}

// once calls the three steps.
func (w *linearWork) once() error {
	for _, step := range []func() error{w.encrypt, w.evaluate, w.open} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// steps measures the three steps on one thread; the values are seconds.
func (o *Options) steps(ctx context.Context, w *linearWork) (encrypt, evaluate, open float64, err error) {
	runs, err := o.on(ctx, 1, w.encrypt, w.evaluate, w.open)
	if err != nil {
		return 0, 0, 0, err
	}
	return Median(runs[0].times), Median(runs[1].times), Median(runs[2].times), nil
}

// linear measures a product, on one thread.
func (o *Options) linear(ctx context.Context, name string, seconds, bytes float64, w *linearWork) ([]Result, error) {
	debug.FreeOSMemory()
	before := o.Resident()
	encrypt, evaluator, open, err := o.steps(ctx, w)
	if err != nil {
		return nil, err
	}
	memory := max(1, float64(o.Resident())-float64(before))
	owner := encrypt + open
	ms := func(name, what string, seconds float64) Result {
		return Result{Name: name, Unit: "ms", Value: 1e3 * seconds, What: what}
	}
	size := func(name, what string, n float64) Result { return Result{Name: name, Unit: "B", Value: n, What: what} }
	return []Result{
		ms(name, w.what+": both parties", owner+evaluator).Wanted(1e3 * seconds),
		ms(name+"_owner", "owner of the key: encryption and decryption", owner),
		ms(name+"_evaluator", "evaluator", evaluator),
		size(name+"_bytes", "bytes both ways, without keys", float64(w.up+w.down)).Wanted(bytes),
		size(name+"_up", "bytes of fresh ciphertexts", float64(w.up)),
		size(name+"_down", "bytes of answers", float64(w.down)),
		size(name+"_memory", "resident memory of both parties in one process", memory),
	}, nil
}

// linearKeys are a scheme and keys, and randomness that is drawn by name.
type linearKeys struct {
	*linear.Scheme
	secret *linear.SecretKey
	public *linear.PublicKey
	random *sample.Source
	drawn  uint64
}

func newLinearKeys(set string, products bool) (*linearKeys, error) {
	x, err := linear.Lookup(set)
	if err != nil {
		return nil, err
	}
	s, err := linear.New(x)
	if err != nil {
		return nil, err
	}
	k := &linearKeys{Scheme: s, random: sample.NewSource(seed).Sub("linear " + set)}
	k.secret, k.public = s.Generate(products, k.source())
	return k, nil
}

// source is for one call.
func (k *linearKeys) source() *sample.Source {
	k.drawn++
	return k.random.Sub("call", k.drawn)
}

// residues are uniform modulo T.
func (k *linearKeys) residues(n int) []uint64 {
	v := make([]uint64, n)
	sample.Uniform(v, k.T, k.source().Stream("residues"))
	return v
}

// inner is a times b modulo T.
func (k *linearKeys) inner(a, b []uint64) (sum uint64) {
	for i := range a {
		hi, lo := bits.Mul64(a[i], b[i])
		sum = (sum + bits.Rem64(hi, lo, k.T)) % k.T
	}
	return sum
}

func (v LinearVector) name(p linear.Packing) string {
	return fmt.Sprintf("linear_vector_%dx%d_%v", v.Rows, v.Cols, p)
}

// linearVectors measures both packings.
func (o *Options) linearVectors(ctx context.Context, v LinearVector) (list []Result, err error) {
	k, err := newLinearKeys(v.Set, false)
	if err != nil {
		return nil, err
	}
	at := map[linear.Packing]int{}
	for _, packing := range []linear.Packing{linear.Double, linear.Forward} {
		w, err := k.vector(v, packing)
		if err != nil {
			return nil, err
		}
		some, err := o.linear(ctx, v.name(packing), v.Seconds[packing], v.Bytes[packing], w)
		if err != nil {
			return nil, err
		}
		at[packing] = len(list)
		list = append(list, some...)
	}
	over := func(name string, i int, what string) Result {
		return Result{
			Name: v.name(linear.Forward) + name, Unit: "x", What: what,
			Value: list[at[linear.Forward]+i].Value / list[at[linear.Double]+i].Value,
		}
	}
	return append(list,
		over("_time_over_double", 0, "forward-backward packing over double packing, time"),
		over("_bytes_over_double", 3, "the same, bytes")), nil
}

// renew replaces the keys if they have proved inputs: a key proves one input.
func (k *linearKeys) renew(proved *linear.Inputs) {
	if k.HasProof() && proved != nil {
		k.secret, k.public = k.Generate(false, k.source())
	}
}

// received are inputs as the evaluator has them: checked, if there is a proof.
func (k *linearKeys) received(in *linear.Inputs) (*linear.Inputs, error) {
	if !k.HasProof() {
		return in, nil
	}
	out, err := k.public.ReceiveInputs(in.Header(), in.Len())
	if err != nil {
		return nil, err
	}
	for i := range in.Len() {
		if err := out.Put(i, in.AppendCiphertext(nil, i)); err != nil {
			return nil, err
		}
	}
	for i := range in.ProofFrames() {
		if err := out.PutProof(i, in.ProofFrame(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sharedProduct is a product whose answers the two parties share.
type sharedProduct struct {
	what              string
	up, down, answers int
	encrypt           func() (*linear.Inputs, error)
	// evaluator returns a function that computes an answer and the evaluator's shares of it.
	evaluator func(*linear.Inputs) (func(g int) ([]byte, []uint64, error), error)
	open      func(k *linear.SecretKey, g int, answer []byte) ([]uint64, error)
	want      func(g, i int) uint64 // entry i of answer g
}

// work compares the product with the one in plaintext and returns its steps.
func (k *linearKeys) work(p sharedProduct) (*linearWork, error) {
	var in *linear.Inputs
	answers, shares, opened := make([][]byte, p.answers), make([][]uint64, p.answers), make([][]uint64, p.answers)
	w := &linearWork{what: p.what, up: p.up, down: p.down}
	w.encrypt = func() (err error) {
		k.renew(in)
		in, err = p.encrypt()
		return err
	}
	opens := k.secret // the key that answers are under
	w.evaluate = func() error {
		received, err := k.received(in)
		if err != nil {
			return err
		}
		opens = k.secret
		answer, err := p.evaluator(received)
		for g := 0; err == nil && g < len(answers); g++ {
			answers[g], shares[g], err = answer(g)
		}
		return err
	}
	w.open = func() (err error) {
		for g := range answers {
			if opened[g], err = p.open(opens, g, answers[g]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.once(); err != nil {
		return nil, err
	}
	for g, list := range opened {
		for i, x := range list {
			if (x+shares[g][i])%k.T != p.want(g, i)%k.T {
				return nil, errLinear
			}
		}
	}
	return w, nil
}

// newLinearVector is a matrix times a vector that is shared.
func newLinearVector(v LinearVector, packing linear.Packing) (*linearWork, error) {
	k, err := newLinearKeys(v.Set, false)
	if err != nil {
		return nil, err
	}
	return k.vector(v, packing)
}

func (k *linearKeys) vector(v LinearVector, packing linear.Packing) (*linearWork, error) {
	p, err := k.PlanVector(v.Rows, v.Cols, packing, 0)
	if err != nil {
		return nil, err
	}
	m, mine, yours := k.residues(v.Rows*v.Cols), k.residues(v.Cols), k.residues(v.Cols)
	whole := make([]uint64, v.Cols)
	for i := range whole {
		whole[i] = (mine[i] + yours[i]) % k.T
	}
	return k.work(sharedProduct{
		what: fmt.Sprintf("a matrix of %d x %d times a shared vector, residues modulo T, %s, %v packing, %d rows an answer",
			v.Rows, v.Cols, v.Set, packing, p.PerAnswer),
		up: p.UpBytes(), down: p.DownBytes(), answers: p.Answers,
		encrypt: func() (*linear.Inputs, error) { return p.Encrypt(k.secret, mine, 1, k.source()) },
		evaluator: func(in *linear.Inputs) (func(g int) ([]byte, []uint64, error), error) {
			e, err := p.Evaluator(k.public, in)
			return func(g int) ([]byte, []uint64, error) {
				from, to := p.RowsOf(g)
				return e.Answer(g, m[from*v.Cols:to*v.Cols], yours, k.source())
			}, err
		},
		open: p.Open,
		want: func(g, i int) uint64 {
			from, _ := p.RowsOf(g)
			return k.inner(m[(from+i)*v.Cols:(from+i+1)*v.Cols], whole)
		},
	})
}

// newLinearBatch is a sum over matrices times vectors; the evaluator has no share of the matrices.
func newLinearBatch(x LinearBatch) (*linearWork, error) {
	k, err := newLinearKeys(x.Set, false)
	if err != nil {
		return nil, err
	}
	p, err := k.PlanBatch(x.Rows, x.Cols, x.Count, 1)
	if err != nil {
		return nil, err
	}
	mine, vectors := k.residues(x.Rows*x.Cols*x.Count), k.residues(x.Cols*x.Count)
	return k.work(sharedProduct{
		what: fmt.Sprintf("the sum over %d matrices of %d x %d, which one has, times vectors of the other, residues modulo T, %s",
			x.Count, x.Rows, x.Cols, x.Set),
		up: p.UpBytes(), down: p.DownBytes(), answers: p.Answers,
		encrypt: func() (*linear.Inputs, error) { return p.Encrypt(k.secret, mine, 1, k.source()) },
		evaluator: func(in *linear.Inputs) (func(g int) ([]byte, []uint64, error), error) {
			e, err := p.Evaluator(k.public, in)
			return func(g int) ([]byte, []uint64, error) { return e.Answer(g, vectors, nil, k.source()) }, err
		},
		open: p.Open,
		want: func(g, i int) (sum uint64) {
			for m := range x.Count {
				at := (m*x.Rows + p.PartOf(g).Row + i) * x.Cols
				sum += k.inner(mine[at:at+x.Cols], vectors[m*x.Cols:(m+1)*x.Cols])
			}
			return sum
		},
	})
}

// newLinearProduct is a product of two encrypted matrices.
func newLinearProduct(x LinearProduct) (*linearWork, error) {
	k, err := newLinearKeys(x.Set, true)
	if err != nil {
		return nil, err
	}
	p, err := k.PlanProduct(x.Shape)
	if err != nil {
		return nil, err
	}
	entries := func(n int, most uint64) []int64 {
		v, stream := make([]uint64, n), k.source().Stream("entries")
		sample.Uniform(v, most+1, stream)
		out := make([]int64, n)
		for i := range v {
			out[i] = int64(v[i])
		}
		return out
	}
	left, right := entries(p.Rows*p.Inner, p.MaxLeft), entries(p.Inner*p.Cols, p.MaxRight)
	var l, r *linear.Inputs
	var answers [][]byte
	out := make([]int64, p.Rows*p.Cols)
	w := &linearWork{up: p.UpBytes(), down: p.DownBytes()}
	w.encrypt = func() (err error) {
		if l, err = p.EncryptLeft(k.secret, left, 1, k.source()); err == nil {
			r, err = p.EncryptRight(k.secret, right, 1, k.source())
		}
		return err
	}
	w.evaluate = func() error {
		e, err := p.Evaluator(k.public, l, r)
		if err == nil {
			answers = e.Multiply(1, k.source())
		}
		return err
	}
	w.open = func() error {
		for g, answer := range answers {
			if err := p.Open(k.secret, g, answer, out); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.once(); err != nil {
		return nil, err
	}
	for i := range out {
		want := int64(0)
		for u := range p.Inner {
			want += left[i/p.Cols*p.Inner+u] * right[u*p.Cols+i%p.Cols]
		}
		if out[i] != want {
			return nil, errLinear
		}
	}
	w.what = fmt.Sprintf("encrypted %d x %d times %d x %d, entries up to %d, %s, tiles of %d x %d x %d",
		p.Rows, p.Inner, p.Inner, p.Cols, p.MaxLeft, x.Set, p.TileRows, p.TileInner, p.TileCols)
	return w, nil
}
