package bench

import (
	"context"
	"fmt"
	"math/big"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
)

// Processes runs the measurements that need one process per party. The command implements it.
type Processes interface {
	// SentBytes returns the bytes that a party sends for the first MAC key and for a matrix triple.
	SentBytes(ctx context.Context, set *params.Set, field string, dim int) (macKey, triple float64, err error)
	// Decryptions returns the wall time in seconds of a threshold decryption among 2t+1 parties,
	// and of making its mask.
	Decryptions(ctx context.Context, set *lwe.Set, threshold int) (decrypt, mask float64, err error)
}

// PaperRow is a row of a published table, ready to be measured.
type PaperRow struct {
	Table, Label string
	Missing      string        // why there are no figures of ours, or ""
	Memory       uint64        // estimate, in bytes, of all processes
	Time         time.Duration // rough estimate

	table *table
	row   *tableRow
	with  string // the parameters of the measurement
	set   string // the short form of with: the set
	run   func(ctx context.Context) ([]float64, error)
	ready func() // frees what earlier rows left and this row does not use
}

// papers prepares measurements. It keeps keys that several rows share until a row needs others.
type papers struct {
	options   *Options
	processes Processes
	tiny      bool

	keys  *fixture
	gates *gateBench
	gate  string // the set of gates
}

// PaperTables lists the names of the published tables that there are.
func PaperTables() (names []string) {
	for _, t := range tables() {
		names = append(names, t.Name)
	}
	return names
}

// Papers prepares the rows whose name (TABLE/LABEL) matches the filter. With tiny
// the sets are those for tests and the shapes small: the figures then mean nothing.
func (o *Options) Papers(filter *regexp.Regexp, p Processes, tiny bool) (rows []PaperRow) {
	prepare := &papers{options: o, processes: p, tiny: tiny}
	all := tables()
	for i := range all {
		t := &all[i]
		for j := range t.Rows {
			if r := &t.Rows[j]; filter.MatchString(t.Name + "/" + r.Label) {
				rows = append(rows, o.withFlags(prepare, t, r)...)
			}
		}
	}
	return rows
}

// withFlags prepares a row. A field or dimension that was asked for takes the place of the row's
// where the measurement is of matrices or slots; the published figure stands for the row's own
// only.
func (o *Options) withFlags(p *papers, t *table, r *tableRow) []PaperRow {
	changed := *r
	if r.Missing == "" && o.Field != "" && r.Of.Field != "" && r.Of.Field != o.Field {
		return nil // the table has a row for each field
	}
	if r.Missing == "" && o.Dimension > 0 && r.Of.Dim > 0 && r.Of.Set != "" && r.Of.Dim != o.Dimension {
		if t.Measure == "triple" || t.Measure == "keys" {
			return nil // the table has a row for each dimension
		}
		changed.Of.Dim, changed.Figures = o.Dimension, make([]float64, len(r.Figures))
		changed.Label += fmt.Sprintf(", d = %d", o.Dimension)
	}
	return []PaperRow{p.row(t, &changed)}
}

func (p *papers) row(t *table, r *tableRow) PaperRow {
	row := PaperRow{Table: t.Name, Label: r.Label, Missing: r.Missing, table: t, row: r}
	if r.Missing != "" {
		return row
	}
	s := r.Of
	if p.tiny {
		s = s.tiny()
	}
	m, err := p.measurement(t.Measure, s)
	if err != nil {
		row.Missing = strings.TrimPrefix(err.Error(), "params: ")
		return row
	}
	row.with, row.set, row.run, row.Memory = m.with, s.Set, m.run, m.memory
	row.ready = func() { p.release(s) }
	if row.set == "" || s.Processes {
		row.set = m.with
	}
	row.Time = time.Duration(m.seconds*float64(time.Second)).Round(time.Second) + time.Second
	return row
}

// tiny is a subject of the same kind that takes no time.
func (s subject) tiny() subject {
	if small, ok := map[string]string{
		"S14-64": "insecure-8-64", "S13-16": "insecure-8-16", "L11-53": "insecure-L8-50", linear.DefaultVector: "insecure-V6-32",
		"P13-17": "insecure-P6-17", linear.DefaultProduct: "insecure-P6-40",
	}[s.Set]; ok {
		s.Set = small
		if s.Dim > 0 {
			s.Dim /= 32
		}
	}
	if strings.HasPrefix(s.Set, "insecure-M11") {
		s.Set, s.Parties = "insecure-M8-32", min(s.Parties, 4)
	}
	if s.Processes {
		s.Set, s.Threshold = "insecure-L8-50", 1
	}
	s.Rows, s.Cols = (s.Rows+99)/100+1, (s.Cols+99)/100
	return s
}

// release drops shared keys that a subject does not use, and returns free memory to the system, so
// that the memory that is available to the next row is known.
func (p *papers) release(s subject) {
	if p.keys != nil && (p.keys.set.Name != s.Set || p.keys.keys.public.Dim < s.Dim) {
		p.keys = nil
	}
	if p.gate != s.Set {
		p.gates, p.gate = nil, ""
	}
	debug.FreeOSMemory()
}

// measured is how a row is measured.
type measured struct {
	run     func(ctx context.Context) ([]float64, error) // a value for each column, in its unit
	with    string
	memory  uint64
	seconds float64 // rough estimate of all that it takes
}

// measurement finds the measurement of a subject by the name that its table gives. An error says
// why there is none.
func (p *papers) measurement(name string, s subject) (*measured, error) {
	switch name {
	case "parameters", "keys", "mul", "matmul", "triple", "bytes":
		return p.matriGear(name, s)
	case "decrypt":
		return p.decryption(s)
	case "gate", "gate keys":
		return p.multikey(name, s)
	case "vector", "batch", "packed":
		return p.linear(name, s)
	case "slots":
		return &measured{with: "computed", run: func(context.Context) (list []float64, err error) {
			for _, t := range s.Plain {
				list = append(list, float64(slotsModulo(t, s.Dim)))
			}
			return list, nil
		}}, nil
	}
	return nil, fmt.Errorf("bench: no measurement %q", name)
}

// matriGear prepares the measurements of the MatriGear tables.
func (p *papers) matriGear(name string, s subject) (*measured, error) {
	set, err := params.Lookup(s.Set)
	if err != nil {
		return nil, err
	}
	m := &measured{with: set.Name}
	if name == "keys" {
		m.run = func(context.Context) ([]float64, error) { return []float64{float64(keyBytes(set, s.Dim))}, nil }
		return m, nil
	}
	spec, err := set.Field(s.Field)
	if err != nil {
		return nil, err
	}
	m.with += ", " + spec.Name
	parties := p.options.PartyCount()
	if s.Dim > 0 {
		m.with += fmt.Sprintf(", d = %d", s.Dim)
		if slots := set.Slots(spec); slots < s.Dim {
			return nil, fmt.Errorf("%d slots of %s in a ciphertext, fewer than the %d rows of a matrix", slots, spec.Name, s.Dim)
		}
		if _, err := params.Resolve(set, spec.Name, params.Use{Parties: parties, Dim: s.Dim}); err != nil {
			return nil, err
		}
	}
	growth := float64(s.Dim) / defaultDim * polyGrowth(set)
	switch name {
	case "parameters":
		m.run = func(context.Context) ([]float64, error) {
			short := new(big.Int).Lsh(big.NewInt(1), uint(set.LogB))
			x, _ := new(big.Float).SetInt(short.Sub(short, spec.B)).Float64()
			return []float64{set.LogQ(), float64(set.LogN), float64(len(set.Q)), log2(set.Slots(spec)), x}, nil
		}
	case "bytes":
		m.memory = ClusterMemory(set, s.Dim, parties, 1)
		m.seconds = 60 * growth
		m.with += fmt.Sprintf(", %d parties", parties)
		m.run = func(ctx context.Context) ([]float64, error) {
			key, triple, err := p.processes.SentBytes(ctx, set, spec.Name, s.Dim)
			return []float64{key, triple}, err
		}
	case "mul":
		m.seconds = 2 + 2*p.options.Duration.Seconds()
		m.run = func(ctx context.Context) ([]float64, error) { return p.mul(ctx, set, spec) }
	default:
		m.memory = productMemory(set, s.Dim, parties)
		m.seconds = 6*growth + max(10*growth*growth, p.options.Duration.Seconds())
		m.run = func(ctx context.Context) ([]float64, error) {
			return p.product(ctx, set, spec, s.Dim, name == "triple")
		}
	}
	return m, nil
}

// polyGrowth is the size of a polynomial over that of the headline set.
func polyGrowth(set *params.Set) float64 { return float64(set.N()*len(set.Q)) / (9 << 14) }

func log2(n int) float64 { return float64(new(big.Int).SetInt64(int64(n)).BitLen() - 1) }

// fixture is one of a set and a field. Fields of a set share its keys, of which those for the
// largest dimension are kept.
func (p *papers) fixture(ctx context.Context, set *params.Set, spec params.FieldSpec, dim int) (*fixture, error) {
	o := *p.options
	o.Field = spec.Name
	f := &fixture{options: &o, set: set}
	if p.keys != nil && p.keys.set.Name == set.Name && p.keys.keys.public.Dim >= dim {
		f.keys = p.keys.keys
	} else {
		p.keys = nil // before others are made
	}
	if err := f.prepare(ctx, dim); err != nil {
		return nil, err
	}
	p.keys = &fixture{set: set, keys: f.keys}
	return f, nil
}

func (p *papers) mul(ctx context.Context, set *params.Set, spec params.FieldSpec) ([]float64, error) {
	f, err := p.fixture(ctx, set, spec, 1)
	if err != nil {
		return nil, err
	}
	call, err := f.mul()
	if err != nil {
		return nil, err
	}
	runs, err := p.options.on(ctx, 1, call)
	if err != nil {
		return nil, err
	}
	t := Median(runs[0].times)
	return []float64{t, t / float64(set.Slots(spec))}, nil
}

// product measures a homomorphic product of matrices and returns its time and the amortised time.
// With authenticate it also multiplies the factors and the result with the MAC key, whose
// ciphertext is extended once, and returns the amortised time.
func (p *papers) product(ctx context.Context, set *params.Set, spec params.FieldSpec, dim int, authenticate bool) ([]float64, error) {
	f, err := p.fixture(ctx, set, spec, dim)
	if err != nil {
		return nil, err
	}
	x, err := f.product(dim)
	if err != nil {
		return nil, err
	}
	multiply, err := f.multiply(ctx, x)
	if err != nil {
		return nil, err
	}
	e := gbfv.NewEvaluator(f.scheme, f.keys.public.Keys(f.scheme))
	key := f.scheme.Right(f.encrypt(f.random(2<<20), 2<<20))
	call := func() error {
		if err := multiply(1); err != nil || !authenticate {
			return err
		}
		for _, g := range []gbfv.Grid{x.a, x.b, x.out} {
			for _, c := range g.C {
				left := f.scheme.Left(c)
				e.Mul(left, key).Free()
				left.Free()
			}
		}
		return nil
	}
	runs, err := p.options.on(ctx, 1, call)
	if err != nil {
		return nil, err
	}
	t := Median(runs[0].times)
	if authenticate {
		return []float64{t / float64(x.batch)}, nil
	}
	return []float64{t, t / float64(x.batch)}, nil
}

// decryption prepares the measurement of threshold decryption: of the protocol without services, or
// with party processes.
func (p *papers) decryption(s subject) (*measured, error) {
	const paperBatch, holderBytes = 20000, 450 << 20
	name := s.Set
	if name == "" {
		name = lwe.Default
	}
	set, err := lwe.Lookup(name)
	if err != nil {
		return nil, err
	}
	t := s.Threshold
	if s.Processes {
		holders := 2*t + 1
		return &measured{
			with: fmt.Sprintf("%s, %d processes", set.Name, holders), memory: uint64(holders)*holderBytes + uint64(holders*t)*(12<<20),
			seconds: 20 + 0.6*float64(holders*holders),
			run: func(ctx context.Context) ([]float64, error) {
				decrypt, mask, err := p.processes.Decryptions(ctx, set, t)
				return []float64{decrypt, decrypt + mask}, err
			},
		}, nil
	}
	count := paperBatch
	if p.tiny {
		count = 64
	}
	return &measured{
		with: set.Name, memory: uint64(t+1) * uint64(t) * uint64(count) * 2560, seconds: 1e-5 * float64(count*(t+1)*t),
		run: func(ctx context.Context) ([]float64, error) {
			mask, decrypt, err := quorumSeconds(ctx, set, t, "paper", count, 1)
			return []float64{decrypt, decrypt + mask}, err
		},
	}, nil
}

// multikey measures gates and keys of the sets of the paper.
func (p *papers) multikey(name string, s subject) (*measured, error) {
	set, err := multikey.Lookup(s.Set)
	if err != nil {
		return nil, err
	}
	if name == "gate keys" {
		return &measured{with: set.Name, run: func(context.Context) ([]float64, error) {
			scheme, err := multikey.New(set, multikey.StandardSeed())
			if err != nil {
				return nil, err
			}
			switching := 4 * (set.N() - set.Dim) * set.Switch.Digits
			return []float64{float64(scheme.KeySize() - switching), float64(switching)}, nil
		}}, nil
	}
	return &measured{
		with: set.Name, memory: gateMemory(s.Set, s.Parties), seconds: 2*p.options.Duration.Seconds() + 2*float64(s.Parties),
		run: func(ctx context.Context) ([]float64, error) { return p.nand(ctx, s.Set, s.Parties) },
	}, nil
}

func (p *papers) nand(ctx context.Context, set string, parties int) (list []float64, err error) {
	if p.gate != set {
		p.gates, p.gate = nil, "" // before others are made
		if p.gates, err = newGateBench(ctx, set, 0); err != nil {
			return nil, err
		}
		p.gate = set
	}
	if err := p.gates.register(ctx, parties); err != nil {
		return nil, err
	}
	gate, err := p.gates.nand(ctx, parties)
	if err != nil {
		return nil, err
	}
	runs, err := p.options.on(ctx, 1, func() error { return gate(1) })
	if err != nil {
		return nil, err
	}
	var walls []float64
	for begun := time.Now(); len(walls) < 3 || time.Since(begun) < p.options.Duration/2; {
		from := time.Now()
		if err := gate(runtime.GOMAXPROCS(0)); err != nil {
			return nil, err
		}
		walls = append(walls, time.Since(from).Seconds())
	}
	return []float64{Median(runs[0].times), Median(walls)}, nil
}

// packings are those that the paper compares.
var packings = map[string]linear.Packing{"double": linear.Double, "forward": linear.Forward}

// linear measures two-party products.
func (p *papers) linear(name string, s subject) (*measured, error) {
	set, err := linear.Lookup(s.Set)
	if err != nil {
		return nil, err
	}
	m := &measured{with: set.Name, seconds: 1 + 2*p.options.Duration.Seconds(), memory: 64*uint64(s.Rows*s.Cols*max(1, s.Many)) + 256<<20}
	m.run = func(ctx context.Context) ([]float64, error) {
		var w *linearWork
		var err error
		switch name {
		case "vector":
			w, err = newLinearVector(LinearVector{Set: s.Set, Rows: s.Rows, Cols: s.Cols}, packings[s.Packing])
		case "batch":
			w, err = newLinearBatch(LinearBatch{Set: s.Set, Rows: s.Rows, Cols: s.Cols, Count: s.Many})
		default:
			shape := linear.ProductShape{Rows: s.Rows, Inner: s.Rows, Cols: s.Rows, MaxLeft: s.Most, MaxRight: s.Most, Method: s.Method}
			w, err = newLinearProduct(LinearProduct{Set: s.Set, Shape: shape})
		}
		if err != nil {
			return nil, err
		}
		encrypt, evaluate, open, err := p.options.steps(ctx, w)
		if name == "packed" {
			return []float64{encrypt, evaluate, open, encrypt + evaluate + open}, err
		}
		return []float64{encrypt + evaluate + open, float64(w.up + w.down)}, err
	}
	return m, nil
}

// slotsModulo is the number of slots that a plaintext modulus t gives in degree m with the double
// packing, in which X^m+1 is a product of l binomials: m over the order of t modulo 2m, or 0 if 2l
// does not divide t-1 or t is not a prime.
func slotsModulo(t uint64, m int) int {
	if !new(big.Int).SetUint64(t).ProbablyPrime(20) || t < 3 {
		return 0
	}
	degree, power := 1, t%uint64(2*m)
	for power != 1 {
		power = power * t % uint64(2*m)
		degree++
	}
	l := m / degree
	if (t-1)%uint64(2*l) != 0 {
		return 0
	}
	return l
}
