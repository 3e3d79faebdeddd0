package cluster

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lodge-mpc/lodge/services/host/metrics"
)

// onCPU restricts a call to one CPU, a different one for each index, and restores the thread's CPUs
// afterwards.
func TestOnCPU(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	allowed := func() (s unix.CPUSet) {
		if err := unix.SchedGetaffinity(0, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	all := allowed()
	var seen unix.CPUSet
	for i := range all.Count() + 1 {
		err := onCPU(i, func() error {
			now := allowed()
			if now.Count() != 1 {
				t.Errorf("index %d: %d CPUs", i, now.Count())
			}
			for cpu := range len(now) * 64 {
				if now.IsSet(cpu) {
					seen.Set(cpu)
				}
			}
			return os.ErrClosed
		})
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("index %d: %v", i, err)
		}
	}
	if seen != all || allowed() != all {
		t.Errorf("CPUs used %v, left %v, of %v", seen, allowed(), all)
	}
	_ = onCPU(anyCPU, func() error {
		if allowed() != all {
			t.Error("anyCPU restricts the CPUs")
		}
		return nil
	})
}

func TestResetPeak(t *testing.T) {
	const size = 128 << 20
	block := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		block[i] = 1
	}
	_, high := metrics.ResidentBytes()
	runtime.KeepAlive(block)
	block = nil
	debug.FreeOSMemory()
	ResetPeak(os.Getpid())
	now, low := metrics.ResidentBytes()
	if high < size || low >= high || low < now {
		t.Errorf("the peak was %d and is %d, resident %d, in a process of %d or more", high, low, now, size)
	}
}
