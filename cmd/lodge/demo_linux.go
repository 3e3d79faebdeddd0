package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes makes the children end with this process, whatever ends it, and keeps a terminal's interrupt from
// them: this process stops them itself.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// onCPU calls f, which starts a process, so that the process runs on one CPU only: the one with this index among those
// that this process may use, modulo their number. anyCPU, and a system that does not let us, leave it free.
func onCPU(index int, f func() error) error {
	runtime.LockOSThread() // affinity belongs to a thread, and a child has that of the thread that starts it
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
	defer func() { _ = unix.SchedSetaffinity(0, &all) }() // it was so before
	return f()
}

// resetPeak makes a process's largest resident size what it has now, where the system lets us: of a party or a coordinator
// only to the superuser, as they deny others their memory.
func resetPeak(pid int) { _ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) }
