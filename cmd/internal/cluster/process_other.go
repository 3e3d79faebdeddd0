//go:build !linux

package cluster

import "syscall"

// childAttributes keeps a terminal's interrupt from the children: this process stops them.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// onCPU calls f. This system does not bind processes to CPUs.
func onCPU(_ int, f func() error) error { return f() }

// ResetPeak does nothing: this system reports the peak of a process's whole life.
func ResetPeak(int) {}
