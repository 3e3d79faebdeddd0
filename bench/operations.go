package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
)

// proved is how many ciphertexts one proof is about: as many as in the largest batch of scalar
// triples.
var proved = params.DefaultU(1, 16)

// Operations lists the measurements of whole operations, by set.
func (o *Options) Operations() (rows []Row) {
	for _, set := range o.Sets {
		f := &fixture{options: o, set: set}
		all := append(f.ciphertexts(), f.proofs()...)
		all = append(all, f.decryptions()...)
		if set.Keys == params.KeysProved {
			all = append(all, f.keyProofs())
		}
		if d := o.Dim(set); d > 1 {
			all = append(all, f.matmul(d), f.evaluationKeys(d))
		}
		rows = append(rows, under("Operations with "+set.Name, all)...)
	}
	return rows
}

// row names a timed operation after its set.
func (f *fixture) row(name, unit, what string, prepare func(ctx context.Context) (operation, error)) Row {
	what = fmt.Sprintf("%s, %s", what, f.options.FieldOf(f.set))
	return f.options.timed(name+"_"+f.options.slug(f.set), unit, what, func(ctx context.Context) (operation, error) {
		if err := f.prepare(ctx, 1); err != nil {
			return operation{}, err
		}
		return prepare(ctx)
	})
}

func (f *fixture) ciphertexts() []Row {
	return []Row{
		f.row("encrypt", "ms", "encryption with its sampling (Lattigo: BGV, same degree and primes)", func(context.Context) (operation, error) {
			r, err := f.lattigo()
			if err != nil {
				return operation{}, err
			}
			v := f.random(0)
			return operation{own: func() error { f.encrypt(v, 0); return nil }, lattigo: r.encrypt}, nil
		}),
		f.row("mul", "ms", "product with relinearisation (Lattigo: scale-invariant BGV, same degree and primes)", func(context.Context) (operation, error) {
			r, err := f.lattigo()
			if err != nil {
				return operation{}, err
			}
			mul, err := f.mul()
			return operation{own: mul, lattigo: r.mul}, err
		}),
		f.row("rotate", "ms", "rotation with key switching (Lattigo: BGV, same degree and primes)", func(ctx context.Context) (operation, error) {
			if err := f.prepare(ctx, 2); err != nil {
				return operation{}, err
			}
			r, err := f.lattigo()
			if err != nil {
				return operation{}, err
			}
			x, e := f.encrypt(f.random(0), 0), gbfv.NewEvaluator(f.scheme, f.keys.public.Keys(f.scheme))
			return operation{own: func() error {
				rotated, err := e.Rotate(x, 1, 2)
				rotated.Free()
				return err
			}, lattigo: r.rotate}, nil
		}),
	}
}

// mul returns a call that multiplies two ciphertexts, after it has checked the product.
func (f *fixture) mul() (func() error, error) {
	v, w := f.random(0), f.random(1)
	x, y := f.encrypt(v, 0), f.encrypt(w, 1)
	e := gbfv.NewEvaluator(f.scheme, f.keys.public.Keys(f.scheme))
	want := f.scheme.Field.NewVec(v.Len())
	f.scheme.Field.MulVec(want, v, w)
	if !f.scheme.Field.EqualVec(f.decrypt(e.Mul(f.scheme.Left(x), f.scheme.Right(y))), want) {
		return nil, errors.New("the product of ciphertexts is wrong")
	}
	return func() error {
		left, right := f.scheme.Left(x), f.scheme.Right(y)
		e.Mul(left, right).Free()
		left.Free()
		right.Free()
		return nil
	}, nil
}

// client holds the inputs of a proof for a number of ciphertexts.
func (f *fixture) client(u int) (popk.ClientConfig, error) {
	i, err := popk.ClientInstance(f.set, f.options.FieldOf(f.set), f.options.PartyCount(), u)
	return popk.ClientConfig{
		Scheme: f.scheme, Instance: i, Key: f.keys.public.Public, KeyHash: f.keys.public.PublicHash(f.scheme), Prover: "bench", Workers: 1,
	}, err
}

// messages are random vectors of slots.
func (f *fixture) messages(u int) (list []field.Vec) {
	for i := range u {
		list = append(list, f.random(uint64(i)))
	}
	return list
}

func (f *fixture) proofs() []Row {
	of := fmt.Sprintf(" of %d ciphertexts, for one", proved)
	return []Row{
		f.row("popk_prove", "ms", "encryption and proof of plaintext knowledge"+of, func(ctx context.Context) (operation, error) {
			c, err := f.client(proved)
			if err != nil {
				return operation{}, err
			}
			list := f.messages(proved)
			return operation{own: func() error { _, _, err := popk.Prove(ctx, c, list, f.source); return err }, per: float64(proved)}, nil
		}),
		f.row("popk_verify", "ms", "check of a proof of plaintext knowledge"+of, func(ctx context.Context) (operation, error) {
			c, err := f.client(proved)
			if err != nil {
				return operation{}, err
			}
			ciphertexts, proof, err := popk.Prove(ctx, c, f.messages(proved), f.source)
			if err != nil {
				return operation{}, err
			}
			return operation{own: func() error { _, err := popk.Verify(ctx, c, ciphertexts, proof); return err }, per: float64(proved)}, nil
		}),
	}
}

func (f *fixture) decryptions() []Row {
	prepare := func() (c popk.ClientConfig, ct *gbfv.Ciphertext, messages [][]byte, err error) {
		if c, err = f.client(1); err != nil {
			return c, nil, nil, err
		}
		v := f.random(0)
		ct = f.encrypt(v, 0)
		for i, share := range f.keys.shares {
			messages = append(messages, ddec.ClientShare(f.scheme, c.Instance, ct, share, f.source.Sub("share", uint64(i))))
		}
		got, err := ddec.Combine(f.scheme, c.Instance, ct, messages)
		if err == nil && !f.scheme.Field.EqualVec(got, v) {
			err = errors.New("the joint decryption is wrong")
		}
		return c, ct, messages, err
	}
	return []Row{
		f.row("ddec_share", "ms", "one party's message of a distributed decryption", func(context.Context) (operation, error) {
			c, ct, _, err := prepare()
			return operation{own: func() error { ddec.ClientShare(f.scheme, c.Instance, ct, f.keys.shares[0], f.source); return nil }}, err
		}),
		f.row("ddec_combine", "ms", fmt.Sprintf("result of a distributed decryption by %d parties", f.options.PartyCount()), func(context.Context) (operation, error) {
			c, ct, messages, err := prepare()
			return operation{own: func() error { _, err := ddec.Combine(f.scheme, c.Instance, ct, messages); return err }}, err
		}),
	}
}

// matmul measures the homomorphic matrix product on one thread, on the plain path too, and on two
// threads.
func (f *fixture) matmul(d int) Row {
	name := fmt.Sprintf("matmul_d%d_%s", d, f.options.slug(f.set))
	names := []string{name, name + "_plain", name + "_speedup_2_cores"}
	return Row{Names: names, Memory: f.memory(d), Run: func(ctx context.Context) ([]Result, error) {
		if err := f.prepare(ctx, d); err != nil {
			return nil, err
		}
		p, err := f.product(d)
		if err != nil {
			return nil, err
		}
		workers := 1
		multiply, err := f.multiply(ctx, p)
		if err != nil {
			return nil, err
		}
		call := func() error { return multiply(workers) }
		r, err := f.options.time(ctx, operation{own: call})
		if err != nil {
			return nil, err
		}
		r.Name, r.Unit = name, "s"
		r.What = fmt.Sprintf("homomorphic product of %d pairs of %d x %d matrices, one thread, %s", p.batch, d, d, f.options.FieldOf(f.set))
		plain := Result{Name: name + "_plain", Unit: "s", Value: r.Value, What: "the same on the plain path"}
		if r.PlainRatio != nil {
			plain.Value = Median(r.runs[1].times)
		}
		speedup, err := f.speedup(ctx, &workers, call)
		speedup.Name = name + "_speedup_2_cores"
		speedup.What = "the same, wall time of one worker over that of two, with two threads of Go for either, on an idle machine"
		return []Result{r, plain, speedup}, err
	}}
}

// memory estimates the bytes for a product of d x d matrices.
func (f *fixture) memory(d int) uint64 { return productMemory(f.set, d, f.options.PartyCount()) }

// multiply returns a call that computes the homomorphic product of a batch into p.out. It computes
// the product once before it returns, so that the heap has its final size, and verifies the result.
func (f *fixture) multiply(ctx context.Context, p *product) (func(workers int) error, error) {
	e := gbfv.NewEvaluator(f.scheme, f.keys.public.Keys(f.scheme))
	call := func(workers int) (err error) {
		p.out.Free() // as a batch does once it has used a result
		p.out, err = e.MatMul(ctx, p.a, p.b, workers)
		return err
	}
	if err := call(1); err != nil {
		return nil, err
	}
	return call, p.check(f, p.out)
}

// speedup is the wall time of a call with one worker over that with two, the median of at least 3
// turns. Go has two threads for both, so that the garbage collector does not share the only one of
// the first; it runs before each call, so that none pays for what another left. The two change
// places every turn, as a machine may slow down while it is busy.
func (f *fixture) speedup(ctx context.Context, workers *int, call func() error) (Result, error) {
	const least = 3
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	defer func() { *workers = 1 }()
	var times [2][]float64
	began := time.Now()
	for turn := 0; turn < least || turn < turns && time.Since(began) < f.options.Duration; turn++ {
		for i := range times {
			if err := ctx.Err(); err != nil {
				return Result{}, err
			}
			n := (i + turn) % 2
			*workers = n + 1
			runtime.GC()
			start := time.Now()
			if err := call(); err != nil {
				return Result{}, err
			}
			times[n] = append(times[n], time.Since(start).Seconds())
		}
	}
	return Result{Unit: "x", Value: medianRatio(times[0], times[1])}, nil
}

// evaluationKeys counts the bytes of all joint keys as parties encode them, uniform halves as their
// seed. It comes last and releases the inputs of the set's other operations, which are large.
func (f *fixture) evaluationKeys(d int) Row {
	name := fmt.Sprintf("evk_wire_bytes_d%d%s", d, f.options.Suffix(f.set))
	return Row{Names: []string{name}, Memory: f.memory(d), Run: func(ctx context.Context) ([]Result, error) {
		if err := f.prepare(ctx, d); err != nil {
			return nil, err
		}
		defer func() { *f = fixture{options: f.options, set: f.set} }()
		total := 0
		for i := range keygen.EncodedFrames(f.scheme, f.keys.public.Dim) {
			total += len(f.keys.public.Frame(f.scheme, i))
		}
		what := fmt.Sprintf("public, relinearisation and %d rotation keys, encoded", f.keys.public.Dim-1)
		return []Result{{Name: name, Unit: "B", Value: float64(total), What: what}}, nil
	}}
}
