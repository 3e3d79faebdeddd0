package evidence_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/evidence"
)

// BenchmarkKeepBatch keeps the ciphertexts that one peer proves for a batch of 128 x 128 matrices,
// as a session does until it has judged them. cpu-ms/batch is the processor time, including the
// kernel's.
func BenchmarkKeepBatch(b *testing.B) {
	s, err := params.Lookup("S14-32")
	if err != nil {
		b.Fatal(err)
	}
	frame, frames := make([]byte, codec.PolySize(s.N(), s.Q)), 2*259
	b.SetBytes(int64(frames * len(frame)))
	r := evidence.NewRecorder(b.TempDir(), func(err error) { b.Error(err) })
	defer r.Close()
	before := processorTime(b)
	for i := 0; b.Loop(); i++ {
		w := round.Want{From: 1, Name: "triple/ciphertexts", Broadcast: true, Stream: true, Keep: round.KeepRound}
		for k := range frames {
			r.Frame(uint32(i), w, k, frame)
		}
		r.Stepped(uint32(i + 1))
	}
	b.ReportMetric(float64((processorTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/batch")
	b.ReportMetric(float64(frames*len(frame))/1e6, "MB/batch")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
