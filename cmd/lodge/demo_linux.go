package main

import "syscall"

// childAttributes makes the children end with this process, whatever ends it, and keeps a terminal's interrupt from
// them: this process stops them itself.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
