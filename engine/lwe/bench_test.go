package lwe_test

import (
	"testing"

	"github.com/lodge-mpc/lodge/engine/lwe"
)

func BenchmarkBootstrap(b *testing.B) {
	for _, name := range lwe.Names() {
		b.Run(name, func(b *testing.B) {
			s := newSubject(b, name)
			x, out := s.encrypt(b, 1, lwe.Boolean), s.NewLWE()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := s.e.Gate(out, lwe.Nand, x, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGroup is of as many bootstraps as pass over the keys together, on one goroutine; time
// per bootstrap is reported.
func BenchmarkGroup(b *testing.B) {
	for _, name := range lwe.Names() {
		b.Run(name, func(b *testing.B) {
			s := newSubject(b, name)
			var tasks []lwe.Task
			for i := range lwe.Group {
				x := s.encrypt(b, 1, lwe.Boolean, uint64(i))
				tasks = append(tasks, lwe.Task{Gate: lwe.Nand, Dst: s.NewLWE(), A: x, B: x})
			}
			b.ResetTimer()
			for range b.N {
				if err := s.e.Run(b.Context(), 1, tasks); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*lwe.Group), "ns/bootstrap")
		})
	}
}

func BenchmarkKeySwitch(b *testing.B) {
	for _, name := range lwe.Names() {
		b.Run(name, func(b *testing.B) {
			s := newSubject(b, name)
			run := s.e.KeySwitcher(s.encrypt(b, 1, lwe.Boolean), 1)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				run()
			}
		})
	}
}
