//go:build !linux

package main

import "syscall"

// childAttributes keeps a terminal's interrupt from the children: this process stops them itself.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
