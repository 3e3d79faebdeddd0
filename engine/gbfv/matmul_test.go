package gbfv_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// matrices returns random row-major matrices, one for each place of the batch.
func matrices(t testing.TB, f *field.Field, l gbfv.Layout, label string) []field.Vec {
	all := make([]field.Vec, l.Batch())
	stream := sample.NewSource(seed).Stream(label)
	for i := range all {
		all[i] = f.NewVec(l.Rows * l.Cols)
		if err := f.Random(all[i], stream); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func multiply(f *field.Field, a, b field.Vec, m, k, n int) field.Vec {
	c, column := f.NewVec(m*n), f.NewVec(k)
	for j := range n {
		for r := range k {
			copy(column.At(r), b.At(r*n+j))
		}
		for i := range m {
			f.Inner(c.At(i*n+j), a.Slice(i*k, (i+1)*k), column)
		}
	}
	return c
}

func encryptGrid(k *gbfvtest.Key, f *field.Field, l gbfv.Layout, all []field.Vec, index uint64) gbfv.Grid {
	vectors := l.NewVectors(f)
	for t, m := range all {
		l.Encode(vectors, t, m)
	}
	g := gbfv.Grid{Rows: l.BlockRows(), Cols: l.BlockCols(), Dim: l.Dim}
	for i, v := range vectors {
		g.C = append(g.C, k.Encrypt(v, index+uint64(i)))
	}
	return g
}

type shape struct{ m, k, n, d int }

type product struct {
	a, b, c gbfv.Layout
	as, bs  []field.Vec
	ga, gb  gbfv.Grid
}

func newProduct(t testing.TB, s *gbfv.Scheme, k *gbfvtest.Key, sh shape) product {
	var p product
	layout := func(o gbfv.Order, rows, cols int) gbfv.Layout {
		l, err := s.Layout(o, rows, cols, sh.d)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	p.a, p.b, p.c = layout(gbfv.Diagonal, sh.m, sh.k), layout(gbfv.Shifted, sh.k, sh.n), layout(gbfv.Diagonal, sh.m, sh.n)
	p.as, p.bs = matrices(t, s.Field, p.a, "a"), matrices(t, s.Field, p.b, "b")
	p.ga, p.gb = encryptGrid(k, s.Field, p.a, p.as, 0), encryptGrid(k, s.Field, p.b, p.bs, 1000)
	return p
}

func (p product) check(t testing.TB, s *gbfv.Scheme, k *gbfvtest.Key, got gbfv.Grid) {
	t.Helper()
	vectors := make([]field.Vec, len(got.C))
	for i, ct := range got.C {
		vectors[i] = k.Decrypt(ct)
	}
	if len(vectors) != p.c.Vectors() {
		t.Fatalf("%d ciphertexts, want %d", len(vectors), p.c.Vectors())
	}
	c := s.Field.NewVec(p.c.Rows * p.c.Cols)
	for i := range p.as {
		p.c.Decode(c, i, vectors)
		if !s.Field.EqualVec(c, multiply(s.Field, p.as[i], p.bs[i], p.a.Rows, p.a.Cols, p.b.Cols)) {
			t.Fatalf("matrix %d of %d is wrong", i, len(p.as))
		}
	}
}

func TestMatMul(t *testing.T) {
	for _, tc := range []struct {
		set, field string
		shape
	}{
		{"insecure-6", "p64", shape{32, 32, 32, 32}}, // one matrix in all slots
		{"insecure-6", "p128", shape{4, 4, 4, 4}},    // four side by side
		{"insecure-6", "p512", shape{1, 1, 1, 1}},    // slotwise product
		{"insecure-6", "p512", shape{2, 2, 2, 2}},    //
		{"insecure-6", "p128", shape{9, 5, 3, 4}},    // blocks, padded
		{"insecure-6", "p64", shape{4, 16, 8, 4}},    // four inner blocks
		{"insecure-6", "p64", shape{8, 16, 8, 8}},    // two inner blocks, with one column per word of a vector
		{"insecure-8-64", "p256", shape{8, 8, 8, 8}}, // digits of three primes
		{"insecure-8-16", "p128", shape{4, 4, 4, 4}}, // digits of one prime
		{"insecure-8", "p1024", shape{8, 8, 8, 8}},   // M = D/... larger M
	} {
		t.Run(fmt.Sprintf("%s/%s/%v", tc.set, tc.field, tc.shape), func(t *testing.T) {
			s := newScheme(t, tc.set, tc.field)
			k := gbfvtest.New(s, 2, tc.d, seed)
			e := gbfv.NewEvaluator(s, k.Eval)
			p := newProduct(t, s, k, tc.shape)
			got, err := e.MatMul(context.Background(), p.ga, p.gb, 2)
			if err != nil {
				t.Fatal(err)
			}
			p.check(t, s, k, got)
		})
	}
}

// TestMatMulIsDeterministic compares hashes across all paths of the kernels, several numbers of
// workers and values of GOMAXPROCS.
func TestMatMulIsDeterministic(t *testing.T) {
	s := newScheme(t, "insecure-6", "p128")
	k := gbfvtest.New(s, 2, 8, seed)
	e := gbfv.NewEvaluator(s, k.Eval)
	p := newProduct(t, s, k, shape{8, 16, 8, 8})
	var want [32]byte
	for i, procs := range []int{1, 8, 3} {
		old := runtime.GOMAXPROCS(procs)
		for _, workers := range []int{1, 2, 7} {
			got, err := e.MatMul(context.Background(), p.ga, p.gb, workers)
			if err != nil {
				t.Fatal(err)
			}
			if h := gbfv.Hash(got.C); i == 0 && workers == 1 {
				want = h
			} else if h != want {
				t.Errorf("%d workers, GOMAXPROCS %d: the ciphertexts differ", workers, procs)
			}
		}
		runtime.GOMAXPROCS(old)
	}
	before := kernel.Selected()
	defer func() {
		if err := kernel.Select(before); err != nil {
			t.Fatal(err)
		}
	}()
	for path := range kernel.Best() + 1 {
		if err := kernel.Select(path); err != nil {
			t.Fatal(err)
		}
		got, err := e.MatMul(context.Background(), p.ga, p.gb, 2)
		if err != nil {
			t.Fatal(err)
		}
		if gbfv.Hash(got.C) != want {
			t.Errorf("path %v: the ciphertexts differ", path)
		}
	}
}

func TestMatMulRefusals(t *testing.T) {
	s := newScheme(t, "insecure-6", "p128")
	k := gbfvtest.New(s, 2, 2, seed)
	e := gbfv.NewEvaluator(s, k.Eval)
	good := newProduct(t, s, k, shape{4, 4, 4, 4})
	if _, err := e.MatMul(context.Background(), good.ga, good.gb, 1); !errors.Is(err, gbfv.ErrNoKey) {
		t.Errorf("without keys: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.MatMul(ctx, good.ga, good.gb, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, bad := range []gbfv.Grid{{}, {Rows: 1, Cols: 1, Dim: 2, C: good.gb.C[:2]}, {Rows: 2, Cols: 1, Dim: 4, C: good.gb.C}, {Rows: 1, Cols: 1, Dim: 4, C: good.gb.C[:3]}} {
		if _, err := e.MatMul(context.Background(), good.ga, bad, 1); err == nil {
			t.Error("MatMul accepted grids whose shapes do not match")
		}
	}
}

// TestLayout checks that Place and Entry are inverse bijections onto all slots, and checks iota and
// iota-tilde against their definitions.
func TestLayout(t *testing.T) {
	s := newScheme(t, "insecure-6", "p128") // 16 slots
	for _, order := range []gbfv.Order{gbfv.Diagonal, gbfv.Shifted} {
		for _, sh := range [][3]int{{4, 4, 4}, {7, 9, 4}, {1, 16, 16}, {3, 3, 1}, {5, 2, 8}} {
			l, err := s.Layout(order, sh[0], sh[1], sh[2])
			if err != nil {
				t.Fatal(err)
			}
			seen := map[[2]int]bool{}
			for m := range l.Batch() {
				for r := range l.BlockRows() * l.Dim {
					for c := range l.BlockCols() * l.Dim {
						v, slot := l.Place(m, r, c)
						seen[[2]int{v, slot}] = true
						if m2, r2, c2 := l.Entry(v, slot); m2 != m || r2 != r || c2 != c {
							t.Fatalf("entry (%d, %d, %d) is mapped to a place and back to (%d, %d, %d)", m, r, c, m2, r2, c2)
						}
					}
				}
			}
			if len(seen) != l.Vectors()*l.Slots {
				t.Errorf("%d places used of %d", len(seen), l.Vectors()*l.Slots)
			}
			var vectors []field.Vec
			for i := range l.Vectors() {
				vectors = append(vectors, s.Field.NewVec(l.Slots))
				if err := s.Field.Random(vectors[i], sample.NewSource(seed).Stream("layout", uint64(i))); err != nil {
					t.Fatal(err)
				}
			}
			for count := range l.Batch() + 1 { // decoding all at once equals decoding one by one
				size := l.Rows * l.Cols
				all, one := s.Field.NewVec(count*size), s.Field.NewVec(size)
				l.DecodeAll(all, vectors)
				for m := range count {
					l.Decode(one, m, vectors)
					wantSlots(t, s.Field, "matrix", all.Slice(m*size, (m+1)*size), one)
				}
			}
		}
		if _, err := s.Layout(order, 4, 4, 3); err == nil {
			t.Error("Layout accepted blocks of 3")
		}
	}
	iota4, _ := s.Layout(gbfv.Diagonal, 4, 4, 4)
	if v, slot := iota4.Place(2, 1, 3); v != 2 || slot != 1*4+2 { // a_{1,1+2}
		t.Errorf("iota places a_{1,3} at %d, %d", v, slot)
	}
	shifted, _ := s.Layout(gbfv.Shifted, 4, 4, 4)
	if v, slot := shifted.Place(2, 1, 3); v != 2 || slot != 3*4+2 { // b_{3-2,3}
		t.Errorf("iota-tilde places b_{1,3} at %d, %d", v, slot)
	}
}
