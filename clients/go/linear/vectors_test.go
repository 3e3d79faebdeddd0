package linear

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

var update = flag.Bool("update", false, "update the vectors in the Python client's testdata")

var vectorsPath = filepath.Join("..", "..", "python", "tests", "testdata", "linear.json")

// vectors are the results that other clients must reproduce. The tests of the Python client read
// them.
type vectors struct {
	Sets     []setVectors     `json:"sets"`
	Vectors  []vectorVectors  `json:"vectors"`
	Batches  []batchVectors   `json:"batches"`
	Products []productVectors `json:"products"`
	Runs     []runVectors     `json:"runs"`
}

type setVectors struct {
	Name       string `json:"name"`
	Hash       string `json:"hash"`
	Key        int    `json:"key"` // sizes in bytes, without and with samples for products
	ProductKey int    `json:"product_key"`
	Ciphertext int    `json:"ciphertext"`
	// Transform and Expanded are SHA-256 of packed residues modulo all primes: of the transform of
	// -1 + X + 2 X^2 + ..., and of the expansion of a zero seed.
	Transform string `json:"transform"`
	Expanded  string `json:"expanded"`
}

// planSizes holds the sizes of any plan; if the product is not possible, only the reason.
type planSizes struct {
	Set        string  `json:"set"`
	Answers    int     `json:"answers"`
	Up         int     `json:"up"`
	AnswerSize int     `json:"answer_size"`
	Distance   float64 `json:"distance"`
	Refused    string  `json:"refused"`
}

type vectorVectors struct {
	planSizes
	Rows      int    `json:"rows"`
	Cols      int    `json:"cols"`
	Wanted    string `json:"wanted"` // packing
	Slots     int    `json:"slots"`
	Packing   string `json:"packing"`
	Width     int    `json:"width"`
	PerAnswer int    `json:"per_answer"`
}

type batchVectors struct {
	planSizes
	Shape     [4]int `json:"shape"`
	Height    int    `json:"height"`
	Blocks    int    `json:"blocks"`
	PerInput  int    `json:"per_input"`
	PerAnswer int    `json:"per_answer"`
}

type productVectors struct {
	planSizes
	Shape  [3]int        `json:"shape"`
	Most   [2]uint64     `json:"most"`
	Method linear.Method `json:"method"`
	Tile   [3]int        `json:"tile"`
}

// runVectors holds a product with the randomness of the owner of the key, as signed bytes, and the
// evaluator's answers.
type runVectors struct {
	Kind      string    `json:"kind"`
	Plan      int       `json:"plan"` // index among the plans of its kind
	Secret    string    `json:"secret"`
	KeySeed   string    `json:"key_seed"`
	KeyErrors []string  `json:"key_errors"`
	Key       string    `json:"key"`    // SHA-256
	Inputs    []inputs  `json:"inputs"` // for a product, left and right
	Values    [][]int64 `json:"values"`
	Answers   []string  `json:"answers"`
	Own       []int64   `json:"own"` // the evaluator's shares, answer by answer
	Result    []int64   `json:"result"`
}

type inputs struct {
	Seed   string   `json:"seed"`
	Errors []string `json:"errors"`
	Sum    string   `json:"sum"` // SHA-256 of header and ciphertexts
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// signed draws small numbers as the engine does.
func signed(n int, sampler func([]int64, *sample.Stream), stream *sample.Stream) string {
	v := make([]int64, n)
	sampler(v, stream)
	b := make([]byte, n)
	for i, x := range v {
		b[i] = byte(int8(x))
	}
	return hex.EncodeToString(b)
}

func ofSet(set *linear.Set) setVectors {
	s, hash := must(linear.New(set)), set.Hash()
	v := setVectors{Name: set.Name, Hash: hex.EncodeToString(hash[:]), Key: s.PublicKeySize(false), ProductKey: s.PublicKeySize(true), Ciphertext: s.CiphertextSize()}
	basis := must(ring.NewBasis(set.LogN, set.Q))
	ramp := basis.NewPoly()
	for i, q := range set.Q {
		for k := range ramp.C[i] {
			ramp.C[i][k] = uint64(k)
		}
		ramp.C[i][0] = q - 1
	}
	basis.Forward(ring.NTT(ramp), ramp)
	v.Transform = sum(codec.AppendPoly(nil, ramp.C, set.Q))
	sample.Expand(ramp.C, set.Q, make([]byte, linear.SeedSize), "linear input", 3)
	v.Expanded = sum(codec.AppendPoly(nil, ramp.C, set.Q))
	return v
}

// planned returns the sizes of a plan, or the reason why there is none.
func planned(s *linear.Scheme, err error, answers, up, size func() int, distance func() float64) planSizes {
	p := planSizes{Set: s.Name}
	if err != nil {
		what, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "linear: "), ":")
		p.Refused = what
		return p
	}
	p.Answers, p.Up, p.AnswerSize, p.Distance = answers(), up(), size(), math.Round(distance()*1e6)/1e6
	return p
}

func vectorOf(set string, rows, cols int, packing linear.Packing, slots int) (vectorVectors, *linear.VectorPlan) {
	s := must(linear.Find(set))
	p, err := s.PlanVector(rows, cols, packing, slots)
	v := vectorVectors{Rows: rows, Cols: cols, Wanted: packing.String(), Slots: slots}
	v.planSizes = planned(s, err, func() int { return p.Answers }, func() int { return p.UpBytes() }, func() int { return p.AnswerSize() }, func() float64 { return p.Distance() })
	if err == nil {
		v.Packing, v.Width, v.PerAnswer = p.Packing.String(), p.Width, p.PerAnswer
	}
	return v, p
}

func batchOf(set string, shape [4]int) (batchVectors, *linear.BatchPlan) {
	s := must(linear.Find(set))
	p, err := s.PlanBatch(shape[0], shape[1], shape[2], shape[3])
	v := batchVectors{Shape: shape}
	v.planSizes = planned(s, err, func() int { return p.Answers }, func() int { return p.UpBytes() }, func() int { return p.AnswerSize() }, func() float64 { return p.Distance() })
	if err == nil {
		v.Height, v.Blocks, v.PerInput, v.PerAnswer = p.Height, p.Blocks, p.PerInput, p.PerAnswer
	}
	return v, p
}

func productOf(set string, shape [3]int, left, right uint64, method linear.Method) (productVectors, *linear.ProductPlan) {
	s := must(linear.Find(set))
	p, err := s.PlanProduct(linear.ProductShape{Rows: shape[0], Inner: shape[1], Cols: shape[2], MaxLeft: left, MaxRight: right, Method: method})
	v := productVectors{Shape: shape, Most: [2]uint64{left, right}, Method: method}
	v.planSizes = planned(s, err, func() int { return p.Answers() }, func() int { return p.UpBytes() }, func() int { return p.AnswerSize() }, func() float64 { return p.Distance() })
	if err == nil {
		v.Tile = [3]int{p.TileRows, p.TileInner, p.TileCols}
	}
	return v, p
}

// owner generates keys and returns the randomness used.
func owner(set string, products bool) (*linear.Scheme, *linear.SecretKey, *linear.PublicKey, runVectors) {
	s := must(linear.Find(set))
	source := sample.NewSource(make([]byte, 32))
	secret, public := s.Generate(products, source)
	gauss := must(sample.NewGaussian(s.ErrorWidth))
	v := runVectors{Secret: signed(s.N(), sample.Ternary, source.Stream("linear secret"))}
	encoded := public.Encode()
	v.KeySeed, v.Key = hex.EncodeToString(encoded[32:64]), sum(encoded)
	samples := 1
	if products {
		samples += len(s.Q)
	}
	for i := range samples {
		v.KeyErrors = append(v.KeyErrors, signed(s.N(), gauss.Sample, source.Stream("linear key error", uint64(i))))
	}
	return s, secret, public, v
}

// sent returns the randomness used to encrypt inputs from a source.
func sent(s *linear.Scheme, in *linear.Inputs, source *sample.Source) inputs {
	header := in.Header()
	v, all := inputs{Seed: hex.EncodeToString(header[64:])}, header
	gauss := must(sample.NewGaussian(s.ErrorWidth))
	for i := range in.Len() {
		all = in.AppendCiphertext(all, i)
		v.Errors = append(v.Errors, signed(s.N(), gauss.Sample, source.Stream("linear input error", uint64(i))))
	}
	v.Sum = sum(all)
	return v
}

// residues returns residues of all sizes, including the extremes.
func residues(n int, t uint64) (v []uint64) {
	for i := range uint64(n) {
		switch i % 4 {
		case 0:
			v = append(v, t-1-i%3)
		case 1:
			v = append(v, (i*i*0x9e3779b97f4a7c15)%t)
		case 2:
			v = append(v, t/2+i%2)
		default:
			v = append(v, i)
		}
	}
	return v
}

func integers(v []uint64) (out []int64) {
	for _, x := range v {
		out = append(out, int64(x))
	}
	return out
}

// kept holds the runs of the file, whose answers are opened again, because the evaluator's
// randomness may change.
type kept []runVectors

// next returns the next run, if there is one.
func (k *kept) next() *runVectors {
	if len(*k) == 0 {
		return nil
	}
	v := (*k)[0]
	*k = (*k)[1:]
	return &v
}

// answers returns the answers of the file, or else new ones.
func (v *runVectors) answers(file *runVectors, count int, answer func(g int) (encoded []byte, own []uint64, err error)) {
	if file != nil && len(file.Answers) == count {
		v.Answers, v.Own = file.Answers, file.Own
		return
	}
	for g := range count {
		encoded, own, err := answer(g)
		must(encoded, err)
		v.Answers, v.Own = append(v.Answers, hex.EncodeToString(encoded)), append(v.Own, integers(own)...)
	}
}

func vectorRun(at int, p *linear.VectorPlan, set string, file *runVectors) runVectors {
	s, secret, public, v := owner(set, false)
	source := sample.NewSource(bytes.Repeat([]byte{1}, 32))
	share, rows := residues(p.Cols, s.T), residues(p.Rows*p.Cols, s.T)
	in := must(p.Encrypt(secret, share, 1, source))
	e := must(p.Evaluator(public, in))
	v.Kind, v.Plan, v.Inputs, v.Values = "vector", at, []inputs{sent(s, in, source)}, [][]int64{integers(share), integers(rows)}
	v.answers(file, p.Answers, func(g int) ([]byte, []uint64, error) {
		from, to := p.RowsOf(g)
		return e.Answer(g, rows[from*p.Cols:to*p.Cols], nil, source.Sub("answer", uint64(g)))
	})
	for g, answer := range v.Answers {
		v.Result = append(v.Result, integers(must(p.Open(secret, g, must(hex.DecodeString(answer)))))...)
	}
	return v
}

func batchRun(at int, p *linear.BatchPlan, set string, file *runVectors) runVectors {
	s, secret, public, v := owner(set, false)
	source := sample.NewSource(bytes.Repeat([]byte{1}, 32))
	share, vectors := residues(p.Count*p.Rows*p.Cols, s.T), residues(p.Outputs*p.Count*p.Cols, s.T)
	in := must(p.Encrypt(secret, share, 1, source))
	e := must(p.Evaluator(public, in))
	v.Kind, v.Plan, v.Inputs, v.Values = "batch", at, []inputs{sent(s, in, source)}, [][]int64{integers(share), integers(vectors)}
	v.answers(file, p.Answers, func(g int) ([]byte, []uint64, error) {
		return e.Answer(g, vectors, nil, source.Sub("answer", uint64(g)))
	})
	for g, answer := range v.Answers {
		v.Result = append(v.Result, integers(must(p.Open(secret, g, must(hex.DecodeString(answer)))))...)
	}
	return v
}

func productRun(at int, p *linear.ProductPlan, set string, file *runVectors) runVectors {
	s, secret, public, v := owner(set, true)
	entries := func(n int, most uint64) (out []int64) {
		for i := range n {
			out = append(out, (int64(i*i)%int64(most+1))*(1-2*int64(i%2)))
		}
		out[0], out[n-1] = int64(most), -int64(most)
		return out
	}
	left, right := entries(p.Rows*p.Inner, p.MaxLeft), entries(p.Inner*p.Cols, p.MaxRight)
	sources := []*sample.Source{sample.NewSource(bytes.Repeat([]byte{1}, 32)), sample.NewSource(bytes.Repeat([]byte{2}, 32))}
	l, r := must(p.EncryptLeft(secret, left, 1, sources[0])), must(p.EncryptRight(secret, right, 1, sources[1]))
	e := must(p.Evaluator(public, l, r))
	v.Kind, v.Plan, v.Values = "product", at, [][]int64{left, right}
	v.Inputs = []inputs{sent(s, l, sources[0]), sent(s, r, sources[1])}
	v.Result = make([]int64, p.Rows*p.Cols)
	v.answers(file, p.Answers(), func(g int) ([]byte, []uint64, error) {
		answer, err := e.Answer(g, sources[0].Sub("answer", uint64(g)))
		return answer, nil, err
	})
	for g, answer := range v.Answers {
		if err := p.Open(secret, g, must(hex.DecodeString(answer)), v.Result); err != nil {
			panic(err)
		}
	}
	return v
}

// TestVectors compares the vectors of the Python client's tests with this client's results.
func TestVectors(t *testing.T) {
	var v, file vectors
	if !*update {
		if err := json.Unmarshal(must(os.ReadFile(vectorsPath)), &file); err != nil {
			t.Fatal(err)
		}
	}
	runs := kept(file.Runs)
	for _, set := range linear.Sets() {
		v.Sets = append(v.Sets, ofSet(set))
	}
	const small, proved = "insecure-V6-32", "insecure-V6-32-proved"
	for _, x := range []struct {
		set        string
		rows, cols int
		packing    linear.Packing
		slots      int
		run        bool
	}{
		{"V13-32", 4000, 2000, linear.Cheapest, 0, false}, {"V13-32", 4096, 100352, linear.Cheapest, 0, false},
		{"V13-32", 4096, 100352, linear.Double, 8, false}, {"V13-32", 1, 1, linear.Cheapest, 0, false},
		{"V13-32", 10, 8192, linear.Forward, 0, false}, {"V13-32", 7, 9000, linear.Tiled, 69, false},
		{"V13-32", 1 << 24, 1 << 24, linear.Cheapest, 0, false}, {"V13-32", 1, 1 << 25, linear.Cheapest, 0, false},
		{"V13-32", 3, 3, linear.Double, 3, false}, {"V13-32", 3, 3, linear.Cheapest, 1, false},
		{linear.DefaultVector, 4000, 2000, linear.Cheapest, 0, false}, {linear.DefaultVector, 100, 70, linear.Double, 0, false},
		{proved, 100, 70, linear.Cheapest, 0, false}, {proved, 20, 7, linear.Tiled, 0, false},
		{small, 13, 9, linear.Cheapest, 0, true}, {small, 11, 70, linear.Double, 4, true}, {small, 5, 64, linear.Double, 1, true},
		{small, 6, 100, linear.Forward, 0, true}, {small, 30, 21, linear.Tiled, 0, true}, {small, 3, 1, linear.Double, 64, true},
		{"insecure-P6-17", 5, 12, linear.Double, 8, true}, {"insecure-P6-40", 5, 12, linear.Double, 0, true},
	} {
		one, plan := vectorOf(x.set, x.rows, x.cols, x.packing, x.slots)
		if x.run {
			v.Runs = append(v.Runs, vectorRun(len(v.Vectors), plan, x.set, runs.next()))
		}
		v.Vectors = append(v.Vectors, one)
	}
	for _, x := range []struct {
		set   string
		shape [4]int
		run   bool
	}{
		{"V13-32", [4]int{15376, 4, 12, 1}, false}, {"V13-32", [4]int{100, 9, 1, 30}, false}, {"V13-32", [4]int{1, 1, 1, 0}, false},
		{linear.DefaultVector, [4]int{100, 9, 2, 30}, false},
		{small, [4]int{10, 3, 2, 4}, true}, {small, [4]int{100, 3, 2, 3}, true}, {small, [4]int{2, 5, 3, 1}, true}, {small, [4]int{64, 2, 1, 2}, true},
	} {
		one, plan := batchOf(x.set, x.shape)
		if x.run {
			v.Runs = append(v.Runs, batchRun(len(v.Batches), plan, x.set, runs.next()))
		}
		v.Batches = append(v.Batches, one)
	}
	for _, x := range []struct {
		set         string
		shape       [3]int
		left, right uint64
		method      linear.Method
		run         bool
	}{
		{"P13-40", [3]int{128, 128, 128}, 1<<16 - 1, 1<<16 - 1, linear.FewestBytes, false},
		{"P13-17", [3]int{32, 32, 32}, 1, 1, linear.First, false}, {"P13-17", [3]int{32, 32, 32}, 1, 1, linear.Second, false},
		{"P13-40", [3]int{16, 16, 16}, 1023, 1023, linear.FewestBytes, false}, {"P13-40", [3]int{1, 1 << 24, 1}, 1, 1, linear.FewestBytes, false},
		{"P13-40", [3]int{9, 300, 7}, 1 << 20, 1 << 20, linear.FewestBytes, false}, {"P13-40", [3]int{1, 0, 1}, 1, 1, linear.FewestBytes, false},
		{linear.DefaultVector, [3]int{4, 4, 4}, 1, 1, linear.FewestBytes, false},
		{"insecure-P6-40", [3]int{9, 7, 5}, 1<<16 - 1, 1<<16 - 1, linear.FewestBytes, true}, {"insecure-P6-17", [3]int{3, 8, 6}, 31, 127, linear.First, true},
		{"insecure-P6-40", [3]int{5, 1, 4}, 1 << 38, 1, linear.Second, true},
	} {
		one, plan := productOf(x.set, x.shape, x.left, x.right, x.method)
		if x.run {
			v.Runs = append(v.Runs, productRun(len(v.Products), plan, x.set, runs.next()))
		}
		v.Products = append(v.Products, one)
	}
	want := append(must(json.MarshalIndent(v, "", " ")), '\n')
	if *update {
		if err := os.WriteFile(vectorsPath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := must(os.ReadFile(vectorsPath)); !bytes.Equal(got, want) {
		t.Fatalf("%s has changed; if this is intended, run this test with -update, and the Python client's tests", vectorsPath)
	}
}
