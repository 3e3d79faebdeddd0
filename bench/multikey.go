package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/sp301415/tfhe-go/mktfhe"
	"github.com/sp301415/tfhe-go/tfhe"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// GateSets pairs a set for a number of parties with the paper's set that it is compared with.
type GateSets struct {
	Parties    int
	Set, Paper string
	// Among is the number of parties with keys when a gate of two of them is measured, with the
	// paper's set. 0 measures none.
	Among int
	// Memory measures the memory of an evaluator.
	Memory bool
}

// AllGates lists the sets of 128 bits and one for tests.
func AllGates() []GateSets {
	const test = "insecure-M8-32"
	return []GateSets{
		{Parties: 2, Set: "M11-2-128", Paper: "insecure-M11-I", Among: 64},
		{Parties: 4, Set: "M11-4-128", Paper: "insecure-M11-II"},
		{Parties: 8, Set: "M11-8-128", Paper: "insecure-M11-III"},
		{Parties: 16, Set: "M11-16-128", Paper: "insecure-M11-IV", Memory: true},
		{Parties: 32, Set: "M11-32-128", Paper: "insecure-M11-V"},
		{Parties: 4, Set: test, Paper: test, Among: 5, Memory: true},
	}
}

// Targets of gates: the largest ratio of the time with a set of 128 bits to the time with the
// paper's set, the largest ratio for a gate of two parties when more parties have keys, and the
// bytes of an evaluator of 16 parties.
const (
	wantOfPaper    = 1.6
	wantAmongMany  = 1.1
	wantGateMemory = 4.5e9
)

const (
	gatesSection = "Multi-key gates"
	speedupFrom  = 4  // parties: with fewer, two goroutines have too few parts to share
	togetherTo   = 16 // parties: the keys of more parties, with two sets, exceed the memory
	keyThreads   = 2  // for key generation, which is not measured
	// Keys of 32 parties and twice as much garbage exceed the memory of our machines.
	gateGCPercent = 20
)

// Multikey lists the measurements of gates, and of tfhe-go's routine with the same parameters. Its
// keys are one party's, once for each party, which does not affect the cost.
func (o *Options) Multikey() (rows []Row) {
	for _, c := range o.Gates {
		name := fmt.Sprintf("multikey_nand_k%d", c.Parties)
		names := []string{name + "_paper_tfhe_go", name + "_paper", name, name + "_of_paper"}
		if c.Parties >= speedupFrom {
			names = append(names, name+"_speedup_2_cores")
		}
		memory := gateMemory(c.Paper, c.Parties)
		if own := gateMemory(c.Set, c.Parties); c.Parties <= togetherTo {
			memory += own
		} else {
			memory = max(memory, own)
		}
		rows = append(rows, Row{Section: gatesSection, Names: names, Memory: memory, Run: func(ctx context.Context) ([]Result, error) {
			return o.gates(ctx, name, c)
		}})
		if c.Among > 0 {
			rows = append(rows, o.amongMany(c))
		}
		if c.Memory {
			rows = append(rows, o.gateMemory(c))
		}
	}
	return rows
}

// gateBench has an evaluator with the keys of all parties, and two bits under the keys of some of
// them.
type gateBench struct {
	scheme  *multikey.Scheme
	e       *multikey.Evaluator
	secrets []*multikey.Secret
	source  *sample.Source
}

func newGateBench(ctx context.Context, name string, parties int) (*gateBench, error) {
	set, err := multikey.Lookup(name)
	if err != nil {
		return nil, err
	}
	s, err := multikey.New(set, multikey.StandardSeed())
	if err != nil {
		return nil, err
	}
	b := &gateBench{scheme: s, e: multikey.NewEvaluator(s), source: sample.NewSource(make([]byte, 32)).Sub(name)}
	return b, b.register(ctx, parties)
}

// register gives the first parties keys.
func (b *gateBench) register(ctx context.Context, parties int) error {
	for i := len(b.secrets); i < parties; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		secret, keys := b.scheme.Generate(uint32(i), b.source.Sub("party", uint64(i)), keyThreads)
		if _, err := b.e.Add(keys, keyThreads); err != nil {
			return err
		}
		b.secrets = append(b.secrets, secret)
	}
	return nil
}

// bit is an encryption under the keys of the first parties: the conjunction of the bit with others
// that are true.
func (b *gateBench) bit(ctx context.Context, value bool, parties int) (*multikey.Ciphertext, error) {
	c := b.secrets[0].Encrypt([]bool{value}, b.source.Sub("bit")).Ciphertext(0)
	for i, s := range b.secrets[1:parties] {
		var err error
		if c, err = b.e.Gate(ctx, 2, multikey.And, c, s.Encrypt([]bool{true}, b.source.Sub("true", uint64(i))).Ciphertext(0), nil); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// nand computes a gate of bits under the keys of several parties on several goroutines, and checks
// the result.
func (b *gateBench) nand(ctx context.Context, parties int) (func(workers int) error, error) {
	x, err := b.bit(ctx, true, parties)
	if err != nil {
		return nil, err
	}
	run := func(workers int) error {
		_, err := b.e.Gate(ctx, workers, multikey.Nand, x, x, nil)
		return err
	}
	c, err := b.e.Gate(ctx, 2, multikey.Nand, x, x, nil)
	if err != nil {
		return nil, err
	}
	if bit, err := multikey.Decrypt(c, b.secrets...); err != nil || bit || len(c.Parts) != parties {
		return nil, errors.Join(err, errors.New("a gate gives the wrong bit"))
	}
	return run, nil
}

// on measures calls on one thread, or on all.
func (o *Options) on(ctx context.Context, threads int, calls ...func() error) ([]run, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	list := make([]contender, len(calls))
	for i, call := range calls {
		list[i] = contender{by: kernel.Selected().String(), path: kernel.Selected(), call: call}
	}
	return compare(ctx, o.Duration, list)
}

// gates measures gates for a number of parties: tfhe-go's and Lodge's with the paper's set, and
// Lodge's with the set of 128 bits. They run in turn if the memory suffices.
func (o *Options) gates(ctx context.Context, name string, c GateSets) ([]Result, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(gateGCPercent))
	var own func(workers int) error
	times, err := o.gatesOfPaper(ctx, c, &own)
	if err != nil {
		return nil, err
	}
	if own == nil {
		if own, err = newGate(ctx, c.Set, c.Parties); err != nil {
			return nil, err
		}
		runs, err := o.on(ctx, 1, func() error { return own(1) })
		if err != nil {
			return nil, err
		}
		times = append(times, Median(runs[0].times))
	}
	theirs, papers, ours := times[0], times[1], times[2]
	ms := func(name string, seconds float64, what string) Result {
		return Result{Name: name, Unit: "ms", Value: 1e3 * seconds, What: fmt.Sprintf(what, c.Parties)}
	}
	list := []Result{
		ms(name+"_paper_tfhe_go", theirs, "NAND of bits under the keys of %d parties, "+c.Paper+", by tfhe-go"),
		ms(name+"_paper", papers, "the same by Lodge, %d parties, "+c.Paper).Wanted(1e3 * theirs),
		ms(name, ours, "NAND of %d parties, "+c.Set),
		Result{Name: name + "_of_paper", Unit: "x", Value: ours / papers, What: "that over the time of the paper's set"}.Wanted(wantOfPaper),
	}
	if c.Parties < speedupFrom {
		return list, nil
	}
	gain, err := speedup(ctx, o.Duration, own)
	faster := Result{Name: name + "_speedup_2_cores", Unit: "x", Value: gain, What: "how much faster two goroutines are, by the clock"}
	return append(list, faster), err
}

// gatesOfPaper measures tfhe-go's gate and ours with the paper's set, and, where memory has room
// for more keys, ours with the set of 128 bits, which is then own. Otherwise its keys are let go
// before others are made: those of 32 parties are gigabytes.
func (o *Options) gatesOfPaper(ctx context.Context, c GateSets, own *func(workers int) error) (times []float64, err error) {
	defer debug.FreeOSMemory()
	set, err := multikey.Lookup(c.Paper)
	if err != nil {
		return nil, err
	}
	papers, err := newGate(ctx, c.Paper, c.Parties)
	if err != nil {
		return nil, err
	}
	calls := []func() error{libraryGate(set, c.Parties), func() error { return papers(1) }}
	if c.Parties <= togetherTo {
		gate, err := newGate(ctx, c.Set, c.Parties)
		if err != nil {
			return nil, err
		}
		*own, calls = gate, append(calls, func() error { return gate(1) })
	}
	runs, err := o.on(ctx, 1, calls...)
	for _, r := range runs {
		times = append(times, Median(r.times))
	}
	return times, err
}

// newGate returns a gate of bits under the keys of several parties.
func newGate(ctx context.Context, set string, parties int) (func(workers int) error, error) {
	b, err := newGateBench(ctx, set, parties)
	if err != nil {
		return nil, err
	}
	return b.nand(ctx, parties)
}

// speedup is how many times faster two goroutines are than one, by the clock, in turns.
func speedup(ctx context.Context, d time.Duration, call func(workers int) error) (float64, error) {
	var one, two []float64
	for begun := time.Now(); len(one) < 3 || time.Since(begun) < d; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		for i, times := range []*[]float64{&one, &two} {
			from := time.Now()
			if err := call(i + 1); err != nil {
				return 0, err
			}
			*times = append(*times, time.Since(from).Seconds())
		}
	}
	return medianRatio(one, two), nil
}

// libraryGate returns tfhe-go's gate for a number of parties with the parameters of a set.
func libraryGate(set *multikey.Set, parties int) func() error {
	gadget := func(g multikey.Gadget) tfhe.GadgetParametersLiteral[uint64] {
		return tfhe.GadgetParametersLiteral[uint64]{Base: 1 << g.LogBase, Level: g.Digits}
	}
	p := mktfhe.ParametersLiteral[uint64]{
		SingleKeyParametersLiteral: tfhe.ParametersLiteral[uint64]{
			LWEDimension: set.Dim, GLWERank: 1, PolyDegree: set.N(), LWEStdDev: set.LWE, GLWEStdDev: set.Ring, BlockSize: set.Block,
			MessageModulus: 2, BlindRotateParameters: gadget(set.Rotation), KeySwitchParameters: gadget(set.Switch),
			BootstrapOrder: tfhe.OrderBlindRotateKeySwitch,
		},
		PartyCount: parties, AccumulatorParameters: gadget(set.Lev), RelinKeyParameters: gadget(set.Uni),
	}.Compile()
	seed := multikey.StandardSeed()
	encryptor := mktfhe.NewBinaryEncryptor(p, 0, seed[:])
	key, keys := encryptor.GenEvaluationKeyParallel(), map[int]mktfhe.EvaluationKey[uint64]{}
	for i := range parties {
		keys[i] = key
	}
	e := mktfhe.NewBinaryEvaluator(p, keys)
	x, y := encryptor.EncryptLWEBool(true), encryptor.EncryptLWEBool(false)
	return func() error {
		e.NAND(x, y)
		return nil
	}
}

// amongMany measures a gate of two parties among few that have keys, and among many.
func (o *Options) amongMany(g GateSets) Row {
	name := fmt.Sprintf("multikey_nand_k2_among_%d", g.Among)
	return Row{Section: gatesSection, Names: []string{name}, Memory: gateMemory(g.Paper, g.Among), Run: func(ctx context.Context) ([]Result, error) {
		var calls []func() error
		for _, parties := range []int{2, g.Among} {
			b, err := newGateBench(ctx, g.Paper, parties)
			if err != nil {
				return nil, err
			}
			gate, err := b.nand(ctx, 2)
			if err != nil {
				return nil, err
			}
			calls = append(calls, func() error { return gate(1) })
		}
		runs, err := o.on(ctx, 1, calls...)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("a gate of two parties where %d have keys, over one where two have, %s", g.Among, g.Paper)
		return []Result{Result{Name: name, Unit: "x", Value: medianRatio(runs[1].times, runs[0].times), What: what}.Wanted(wantAmongMany)}, nil
	}}
}

// gateMemory measures the resident memory of an evaluator that has computed a gate.
func (o *Options) gateMemory(g GateSets) Row {
	name := fmt.Sprintf("multikey_memory_k%d", g.Parties)
	return Row{Section: gatesSection, Names: []string{name}, Memory: gateMemory(g.Set, g.Parties), Run: func(ctx context.Context) ([]Result, error) {
		debug.FreeOSMemory()
		before := o.Resident()
		b, err := newGateBench(ctx, g.Set, g.Parties)
		if err != nil {
			return nil, err
		}
		gate, err := b.nand(ctx, g.Parties)
		if err == nil {
			err = gate(2)
		}
		if err != nil {
			return nil, err
		}
		debug.FreeOSMemory()
		after := o.Resident()
		runtime.KeepAlive(b)
		what := fmt.Sprintf("resident memory that an evaluator with the keys of %d parties adds, %s, after a gate and a collection", g.Parties, g.Set)
		return []Result{Result{Name: name, Unit: "B", Value: max(1, float64(after)-float64(before)), What: what}.Wanted(wantGateMemory)}, nil
	}}
}
