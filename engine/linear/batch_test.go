package linear

import (
	"slices"
	"testing"
)

// batch computes sums over shared matrices, encodes and decodes every message, and returns the sums
// of the shares, output by output.
func (w *world) batch(t testing.TB, p *BatchPlan, mine, yours, vectors []uint64) []uint64 {
	t.Helper()
	w.renew()
	in, err := p.Encrypt(w.secret, mine, 2, w.source())
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Evaluator(w.public, w.received(t, in))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]uint64, p.Outputs*p.Rows)
	down := 0
	for g := range p.Answers {
		answer, shares, err := e.Answer(g, vectors, yours, w.source())
		if err != nil {
			t.Fatal(err)
		}
		down += len(answer)
		opened, err := p.Open(w.secret, g, answer)
		if err != nil {
			t.Fatal(err)
		}
		part, sum := p.PartOf(g), w.sum(opened, shares)
		for o := part.Output; o < part.OutputEnd; o++ {
			n := copy(out[o*p.Rows+part.Row:o*p.Rows+part.RowEnd], sum)
			sum = sum[n:]
		}
	}
	if up := w.InputsSize(in.Len()); up != p.UpBytes() || down != p.DownBytes() {
		t.Errorf("%d bytes and %d back, but the plan says %d and %d", up, down, p.UpBytes(), p.DownBytes())
	}
	return out
}

// sums returns sum_k M_k v_ok modulo T.
func (p *BatchPlan) sums(matrices, vectors []uint64) []uint64 {
	var out []uint64
	size := p.Rows * p.Cols
	for o := range p.Outputs {
		total := make([]uint64, p.Rows)
		for k := range p.Count {
			v := vectors[(o*p.Count+k)*p.Cols:][:p.Cols]
			total = p.scheme.sum(total, p.scheme.product(matrices[k*size:(k+1)*size], v))
		}
		out = append(out, total...)
	}
	return out
}

// Tests random and extreme shapes and values.
func TestBatches(t *testing.T) {
	for _, set := range []string{"insecure-V6-32", "insecure-V6-32-proved"} {
		t.Run(set, func(t *testing.T) { batches(t, newWorld(t, set)) })
	}
}

func batches(t *testing.T, w *world) {
	shapes := [][4]int{{1, 1, 1, 1}, {64, 1, 1, 1}, {65, 2, 3, 1},
		{33, 4, 2, 3}, {200, 3, 4, 2}, {1, 5, 30, 70}, {9, 4, 5, 30}}
	for range 12 {
		shapes = append(shapes, [4]int{1 + w.below(150), 1 + w.below(6), 1 + w.below(6), 1 + w.below(9)})
	}
	for _, x := range shapes {
		p, err := w.PlanBatch(x[0], x[1], x[2], x[3])
		if err != nil {
			t.Fatal(err)
		}
		n, k := x[0]*x[1]*x[2], x[1]*x[2]*x[3]
		mine, yours := w.residues(n), w.residues(n)
		for name, in := range map[string][3][]uint64{
			"random":  {mine, yours, w.residues(k)},
			"alone":   {mine, nil, w.residues(k)},
			"largest": {constant(n, w.T-1), constant(n, w.T-1), constant(k, w.T-1)},
			"middle":  {constant(n, w.T/2), constant(n, w.T/2+1), constant(k, w.T/2)},
			"zeros":   {mine, yours, make([]uint64, k)},
		} {
			m := in[0]
			if in[1] != nil {
				m = w.sum(m, in[1])
			}
			if got, want := w.batch(t, p, in[0], in[1], in[2]), p.sums(m, in[2]); !slices.Equal(got, want) {
				t.Errorf("%v, %s, %d columns and %d outputs packed: got %d, want %d", x, name, p.PerInput, p.PerAnswer, got, want)
			}
		}
	}
}

// Tests a shipped set, with columns in two blocks and with several columns in a ciphertext.
func TestBatchesAtFullDegree(t *testing.T) {
	w := newWorld(t, Unproved)
	for _, x := range [][4]int{{9000, 2, 2, 1}, {300, 4, 3, 5}} {
		p, err := w.PlanBatch(x[0], x[1], x[2], x[3])
		if err != nil {
			t.Fatal(err)
		}
		n := x[0] * x[1] * x[2]
		mine, yours, vectors := w.residues(n), w.residues(n), w.residues(x[1]*x[2]*x[3])
		if got := w.batch(t, p, mine, yours, vectors); !slices.Equal(got, p.sums(w.sum(mine, yours), vectors)) {
			t.Errorf("%v: the sums are wrong", x)
		}
	}
}
