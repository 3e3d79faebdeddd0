//go:build !linux

package main

import "syscall"

// childAttributes keeps a terminal's interrupt from the children: this process stops them itself.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// onCPU calls f: processes are not bound to CPUs on this system.
func onCPU(_ int, f func() error) error { return f() }

// resetPeak does nothing: on this system a process's largest resident size is that of its whole life.
func resetPeak(int) {}
