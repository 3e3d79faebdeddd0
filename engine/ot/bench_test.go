package ot

import "testing"

func BenchmarkBase(b *testing.B) {
	for b.Loop() {
		pair(b, "bench")
	}
}

func BenchmarkTranspose(b *testing.B) {
	columns := random(Kappa*length(ChunkSize)/64, 1)
	dst := make([]block, ChunkSize)
	for b.Loop() {
		rows(dst, columns, length(ChunkSize))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ChunkSize, "ns/transfer")
}

// BenchmarkTransfers times the two parties separately.
func BenchmarkTransfers(b *testing.B) {
	x := random(ChunkSize/64, 1)
	d, u, v := random(ChunkSize, 2), make([]uint64, ChunkSize), make([]uint64, ChunkSize)
	c := make([]uint64, ChunkSize)
	for _, who := range []string{"receiver", "sender"} {
		b.Run(who, func(b *testing.B) {
			s, r := pair(b, "bench")
			for b.Loop() {
				if who == "sender" {
					b.StopTimer()
				}
				frame := r.Extend(x, ChunkSize)
				stop(b, who == "receiver")
				if err := s.Extend(frame, ChunkSize); err != nil {
					b.Fatal(err)
				}
				if err := s.Batch().Words(u, c, d, 50); err != nil {
					b.Fatal(err)
				}
				stop(b, who == "sender")
				if err := r.Batch().Words(v, c, 50); err != nil {
					b.Fatal(err)
				}
				if who == "sender" {
					b.StartTimer()
				}
				s.batch = SenderBatch{s: s.batch.s, hash: s.batch.hash}
				r.batch = ReceiverBatch{hash: r.batch.hash}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ChunkSize, "ns/transfer")
		})
	}
}

// stop stops the timer if off, and otherwise starts it.
func stop(b *testing.B, off bool) {
	if off {
		b.StopTimer()
	} else {
		b.StartTimer()
	}
}
