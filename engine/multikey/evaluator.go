package multikey

import (
	"context"
	"fmt"
	"sync"

	"github.com/sp301415/tfhe-go/math/poly"
	"github.com/sp301415/tfhe-go/tfhe"

	"github.com/lodge-mpc/lodge/engine/parallel"
)

// Evaluator computes gates ([Evaluator.Gate], [Evaluator.Run]) with the keys added to it
// ([Evaluator.Add]). It is safe for concurrent use. Its time depends only on ciphertexts, which are
// public, and on their parties.
type Evaluator struct {
	s       *Scheme
	public  []poly.FourierPoly // b_0 = -a_j, of the common reference string
	lock    sync.RWMutex
	keys    map[KeyID]*expanded
	benches *sync.Pool // a pointer, as in maker
}

// NewEvaluator returns an evaluator without keys.
func NewEvaluator(s *Scheme) *Evaluator {
	e := &Evaluator{s: s, keys: map[KeyID]*expanded{}, benches: &sync.Pool{New: func() any { return s.newBench() }}}
	for _, a := range s.string {
		f := s.transform.ToFourierPoly(poly.Poly[uint64]{Coeffs: a})
		s.transform.NegFourierPolyAssign(f, f)
		e.public = append(e.public, f)
	}
	return e
}

// expanded holds the keys of a party, including masks, in the form used by evaluation.
type expanded struct {
	public   []poly.FourierPoly    // b_j
	relin    []poly.FourierPoly    // d_j
	relin2   [][2]poly.FourierPoly // f0_j, f_j
	rotation [][2]poly.FourierPoly // rows of coordinate i at 2 Rotation.Digits i
	switches []uint32              // for each coordinate and digit, the mask followed by the sample
}

// Add expands keys on the given number of goroutines and returns their name. It does not retain
// keys. The error wraps [ErrKeys], [ErrSet] or [ErrCRS].
func (e *Evaluator) Add(k *Keys, workers int) (KeyID, error) {
	s := e.s
	switch {
	//lodge:check multikey/no-keys [drop=k.s == nil] [run=KeysOfOthers] missing keys crash the
	//  evaluation
	case k == nil || k.s == nil:
		return KeyID{}, fmt.Errorf("%w: none", ErrKeys)
	//lodge:check multikey/added-set [run=KeysOfOthers] keys of another parameter set crash the
	//  evaluation
	case k.s.hash != s.hash:
		return KeyID{}, fmt.Errorf("%w: the keys are for %s, not for %s", ErrSet, k.s.Name, s.Name)
	//lodge:check multikey/added-string [run=KeysOfOthers] keys of another common reference string
	//  give wrong results
	case k.s.crs != s.crs:
		return KeyID{}, fmt.Errorf("%w: keys", ErrCRS)
	}
	id := k.ID()
	if e.Has(id) {
		return id, nil
	}
	x := e.expand(k, workers)
	e.lock.Lock()
	defer e.lock.Unlock()
	e.keys[id] = x
	return id, nil
}

// Has reports whether the keys with this name have been added.
func (e *Evaluator) Has(id KeyID) bool {
	e.lock.RLock()
	defer e.lock.RUnlock()
	return e.keys[id] != nil
}

// Remove drops keys. Running computations retain them until they are done.
func (e *Evaluator) Remove(id KeyID) {
	e.lock.Lock()
	defer e.lock.Unlock()
	delete(e.keys, id)
}

// KeyMemory returns the approximate number of bytes that an evaluator needs for the keys of one
// party.
func (s *Scheme) KeyMemory() int {
	_, each := s.rows()
	elements := 4*s.Uni.Digits + 2*s.Dim*each
	return 8*s.N()*elements + 4*(s.N()-s.Dim)*s.Switch.Digits*(s.Dim+1)
}

func (e *Evaluator) expand(k *Keys, workers int) *expanded {
	s := e.s
	first, each := s.rows()
	u, n, digits := s.Uni.Digits, s.N(), s.Switch.Digits
	x := &expanded{
		public: make([]poly.FourierPoly, u), relin: make([]poly.FourierPoly, u), relin2: make([][2]poly.FourierPoly, u),
		rotation: make([][2]poly.FourierPoly, s.Dim*each), switches: make([]uint32, (n-s.Dim)*digits*(s.Dim+1)),
	}
	forward := func(b *bench, src []uint64) poly.FourierPoly {
		return b.transform.ToFourierPoly(poly.Poly[uint64]{Coeffs: src})
	}
	parallel.For(workers, u, func(j int) {
		b := e.benches.Get().(*bench)
		defer e.benches.Put(b)
		load := func(row int) poly.FourierPoly {
			k.load(b.product.Coeffs, row)
			return forward(b, b.product.Coeffs)
		}
		x.public[j], x.relin[j], x.relin2[j][0] = load(j), load(u+j), load(2*u+j)
		s.relinMask(b.product.Coeffs, &k.Seed, j)
		x.relin2[j][1] = forward(b, b.product.Coeffs)
	})
	parallel.For(workers, s.Dim, func(i int) {
		b := e.benches.Get().(*bench)
		defer e.benches.Put(b)
		for row := range each {
			k.load(b.product.Coeffs, first+i*each+row)
			x.rotation[i*each+row][0] = forward(b, b.product.Coeffs)
			s.rotationMask(b.product.Coeffs, &k.Seed, i, row)
			x.rotation[i*each+row][1] = forward(b, b.product.Coeffs)
		}
	})
	parallel.For(workers, n-s.Dim, func(i int) {
		masks, buffer := make([]uint32, digits*s.Dim), make([]uint64, digits*s.Dim/2)
		s.switchMask(masks, buffer, &k.Seed, i)
		for d := range digits {
			at := (i*digits + d) * (s.Dim + 1)
			copy(x.switches[at:], masks[d*s.Dim:(d+1)*s.Dim])
			x.switches[at+s.Dim] = k.short[i*digits+d]
		}
	})
	return x
}

// bench holds the working memory of one goroutine.
type bench struct {
	transform  *poly.Evaluator[uint64]
	decomposer *tfhe.Decomposer[uint64]
	pieces     []poly.Poly[uint64]
	digits     [][2][]poly.FourierPoly // of the accumulators
	sums, rows [2]poly.FourierPoly
	totals     [][2]poly.FourierPoly
	monomial   poly.FourierPoly
	product    poly.Poly[uint64]
}

func (s *Scheme) newBench() *bench {
	b := &bench{transform: s.transform.ShallowCopy(), decomposer: tfhe.NewDecomposer[uint64](poly.MinDegree)}
	f := b.transform.NewFourierPoly
	b.product, b.monomial = b.transform.NewPoly(), f()
	for range max(s.Rotation.Digits, s.Lev.Digits, s.Uni.Digits) {
		b.pieces = append(b.pieces, b.transform.NewPoly())
	}
	for half := range 2 {
		b.sums[half], b.rows[half] = f(), f()
	}
	for range s.Lev.Digits {
		var d [2][]poly.FourierPoly
		for half := range 2 {
			for range s.Rotation.Digits {
				d[half] = append(d[half], f())
			}
		}
		b.digits, b.totals = append(b.digits, d), append(b.totals, [2]poly.FourierPoly{f(), f()})
	}
	return b
}

// Task describes a gate with its operands and its result.
type Task struct {
	Gate    Gate
	Dst     *Ciphertext // the result; may be an operand of this task, but not of another task in the same Run
	A, B, C *Ciphertext // C only for Mux
}

// Gate returns the ciphertext of a gate, computed on the given number of goroutines. c is used only
// for Mux. Errors are those of Run.
func (e *Evaluator) Gate(ctx context.Context, workers int, g Gate, a, b, c *Ciphertext) (*Ciphertext, error) {
	dst := new(Ciphertext)
	err := e.Run(ctx, workers, []Task{{Gate: g, Dst: dst, A: a, B: b, C: c}})
	return dst, err
}

// Run computes independent tasks on at most the given number of goroutines, which also share the
// parties of a task. It validates all tasks before it computes any, and reports the first error: it
// wraps [ErrGate], [ErrCiphertext], [ErrParties], or [ErrUnknownKey]. When ctx ends, no further
// part starts, and results are incomplete.
func (e *Evaluator) Run(ctx context.Context, workers int, tasks []Task) error {
	return e.RunWith(ctx, workers, tasks, nil)
}

// together is the number of rotations passed to a Rotate at a time.
const together = 64

// RunWith is Run with rotations computed by rotate, in order; nil computes them locally. It also
// returns rotate's errors.
func (e *Evaluator) RunWith(ctx context.Context, workers int, tasks []Task, rotate Rotate) error {
	jobs := make([]*job, len(tasks))
	for i := range tasks {
		var err error
		if jobs[i], err = e.plan(&tasks[i]); err != nil {
			return fmt.Errorf("task %d: %w", i, err)
		}
	}
	// A group has enough parts for all goroutines. Only the accumulators of one group are in memory
	// at a time.
	for len(jobs) > 0 {
		n := min(max(1, workers), len(jobs))
		if rotate != nil {
			n = first(jobs, together)
		}
		if err := e.compute(ctx, workers, jobs[:n], rotate); err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

// first returns how many of the jobs, at least one, have together at most the given number of
// rotations.
func first(jobs []*job, most int) int {
	for n, j := range jobs {
		for _, b := range j.bootstraps {
			most -= len(b.in.Parts)
		}
		if most < 0 {
			return max(1, n)
		}
	}
	return len(jobs)
}

// job is a task with its bootstraps: one, or the two of a multiplexer.
type job struct {
	dst        *Ciphertext
	bootstraps []*bootstrap
	result     *extracted // their sum
}

// bootstrap is the sum of a gate while it is processed.
type bootstrap struct {
	in     *Ciphertext
	keys   []*expanded // of its parts
	acc    [][][2]poly.FourierPoly
	merged *extracted
}

// plan checks a task, adds up its operands and looks up the keys.
func (e *Evaluator) plan(t *Task) (*job, error) {
	//lodge:check multikey/gate [swap=t.Gate < And || t.Gate >= gates=>t.Gate > gates]
	//  [run=TasksAreRefused] an unknown gate is accepted
	if t.Gate < And || t.Gate >= gates {
		return nil, fmt.Errorf("%w: %v", ErrGate, t.Gate)
	}
	for _, c := range []*Ciphertext{t.A, t.B, t.C}[:t.Gate.Operands()] {
		//lodge:check multikey/operands [run=TasksAreRefused] a malformed operand is evaluated
		if err := e.s.Check(c); err != nil {
			return nil, err
		}
	}
	//lodge:check multikey/destination [run=TasksAreRefused] a gate without a destination crashes
	if t.Dst == nil {
		return nil, fmt.Errorf("%w: the task has no destination", ErrCiphertext)
	}
	sums := []*Ciphertext{}
	union := 0
	if t.Gate == Mux {
		sums = append(sums, e.s.combine(And, t.A, t.B), e.s.combine(NotAnd, t.A, t.C))
		union = len(e.s.combine(And, sums[0], sums[1]).Parts)
	} else {
		sums = append(sums, e.s.combine(t.Gate, t.A, t.B))
		union = len(sums[0].Parts)
	}
	//lodge:check multikey/union [run=TasksAreRefused] the result of a gate has more parties than
	//  the noise allows
	if union > e.s.Parties {
		return nil, fmt.Errorf("%w: %d parties, but %s supports %d", ErrParties, union, e.s.Name, e.s.Parties)
	}
	j := &job{dst: t.Dst}
	e.lock.RLock()
	defer e.lock.RUnlock()
	for _, sum := range sums {
		b := &bootstrap{in: sum, acc: make([][][2]poly.FourierPoly, len(sum.Parts))}
		for _, p := range sum.Parts {
			x := e.keys[p.Key]
			//lodge:check multikey/unknown-key [run=TasksAreRefused|NotInvolved] a ciphertext of a
			//  party that has left crashes the evaluation
			if x == nil {
				return nil, fmt.Errorf("%w: %x", ErrUnknownKey, p.Key[:])
			}
			b.keys = append(b.keys, x)
		}
		j.bootstraps = append(j.bootstraps, b)
	}
	return j, nil
}

// try runs f for n items on the given number of goroutines, each with a bench.
func (e *Evaluator) try(ctx context.Context, workers, n int, f func(b *bench, i int)) error {
	return parallel.Try(ctx, workers, n, func(i int) error {
		b := e.benches.Get().(*bench)
		defer e.benches.Put(b)
		f(b, i)
		return nil
	})
}

// accumulate computes all rotations of the bootstraps, locally or with rotate.
func (e *Evaluator) accumulate(ctx context.Context, workers int, all []*bootstrap, rotate Rotate) error {
	type part struct {
		b *bootstrap
		i int
	}
	var parts []part
	for _, b := range all {
		for i := range b.in.Parts {
			parts = append(parts, part{b, i})
		}
	}
	exponents := func(i int) []uint16 { return e.s.exponents(parts[i].b.in.Parts[parts[i].i].A) }
	if rotate == nil {
		return e.try(ctx, workers, len(parts), func(b *bench, i int) {
			p := parts[i]
			p.b.acc[p.i] = b.transforms(e.s, b.rotate(e.s, p.b.keys[p.i].rotation, exponents(i)))
		})
	}
	list := make([]Rotation, len(parts))
	for i, p := range parts {
		list[i] = Rotation{Key: p.b.in.Parts[p.i].Key, Exponents: exponents(i)}
	}
	got, err := rotate(ctx, list)
	if err != nil {
		return err
	}
	//lodge:check multikey/rotated-number [run=@rotations] some rotations have no result
	if len(got) != len(list) {
		return fmt.Errorf("%w: rotate returned %d of %d rotations", ErrRotation, len(got), len(list))
	}
	for _, a := range got {
		//lodge:check multikey/rotated-size [run=@rotations] results of rotations of another set are
		//  used
		if len(a) != e.s.accumulatorWords() {
			return fmt.Errorf("%w: rotate returned an accumulator of %d words, want %d", ErrRotation, len(a), e.s.accumulatorWords())
		}
	}
	return e.try(ctx, workers, len(parts), func(b *bench, i int) {
		parts[i].b.acc[parts[i].i] = b.transforms(e.s, got[i])
		got[i] = nil
	})
}

// compute runs jobs through all stages of a gate.
func (e *Evaluator) compute(ctx context.Context, workers int, jobs []*job, rotate Rotate) error {
	var merges []*bootstrap
	for _, j := range jobs {
		merges = append(merges, j.bootstraps...)
	}
	try := func(n int, f func(b *bench, i int)) error { return e.try(ctx, workers, n, f) }
	if err := e.accumulate(ctx, workers, merges, rotate); err != nil {
		return err
	}
	if err := try(len(merges), func(b *bench, i int) {
		merges[i].merged = b.merge(e, merges[i])
		merges[i].acc = nil
	}); err != nil {
		return err
	}
	type switching struct {
		j *job
		i int
	}
	var switches []switching
	for _, j := range jobs {
		j.result = j.sum()
		for i := range j.result.ids {
			switches = append(switches, switching{j, i})
		}
	}
	if err := try(len(switches), func(_ *bench, i int) {
		w := switches[i]
		w.j.result.switchKey(e.s, w.i)
	}); err != nil {
		return err
	}
	for _, j := range jobs {
		*j.dst = j.result.ciphertext()
	}
	return nil
}
