package gbfv_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/params"
)

func BenchmarkMul(b *testing.B) {
	s := newScheme(b, "S14-64", "p128")
	k := gbfvtest.New(s, 2, 1, seed)
	e := gbfv.NewEvaluator(s, k.Eval)
	x, y := k.Encrypt(k.Random(0), 0), k.Encrypt(k.Random(1), 1)
	left, right := s.Left(x), s.Right(y)
	b.Run("Left", func(b *testing.B) {
		for b.Loop() {
			s.Left(x).Free()
		}
	})
	b.Run("Right", func(b *testing.B) {
		for b.Loop() {
			s.Right(y).Free()
		}
	})
	b.Run("Mul", func(b *testing.B) {
		for b.Loop() {
			e.Mul(left, right).Free()
		}
	})
}

// BenchmarkMatMul128 multiplies a batch of 128 x 128 matrices, 32 at p128, and reports the growth
// of the heap.
func BenchmarkMatMul128(b *testing.B) {
	s := newScheme(b, params.Default, "p128")
	k := gbfvtest.New(s, 2, 128, seed)
	e := gbfv.NewEvaluator(s, k.Eval)
	p := newProduct(b, s, k, shape{128, 128, 128, 128})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var got gbfv.Grid
	for b.Loop() {
		got.Free() // as a batch does after switching the modulus
		var err error
		if got, err = e.MatMul(context.Background(), p.ga, p.gb, runtime.GOMAXPROCS(0)); err != nil {
			b.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapSys-after.HeapReleased-before.HeapAlloc)/1e6, "MB-heap-growth")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6/float64(b.N), "MB-allocated/op")
	k.Decrypt(got.C[5]) // the whole product is checked at small sizes
}
