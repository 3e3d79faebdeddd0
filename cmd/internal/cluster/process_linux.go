package cluster

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes makes the kernel kill a child when this process ends. A terminal's interrupt does
// not reach children: this process stops them.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// onCPU calls f, which starts a process, so that the process runs on one CPU only. The index counts
// the CPUs that this process may use, modulo their number. With anyCPU, or if the system refuses,
// the process may use all CPUs.
func onCPU(index int, f func() error) error {
	runtime.LockOSThread() // affinity belongs to a thread, and a child inherits that of the thread that starts it
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if index == anyCPU || unix.SchedGetaffinity(0, &all) != nil {
		return f()
	}
	index %= all.Count()
	for cpu := 0; ; cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		if index--; index < 0 {
			one.Set(cpu)
			break
		}
	}
	if unix.SchedSetaffinity(0, &one) != nil {
		return f()
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }()
	return f()
}

// ResetPeak sets the peak resident size of a process to its current one, if the system allows it.
func ResetPeak(pid int) { _ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) }
