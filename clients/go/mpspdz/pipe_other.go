//go:build !unix

package mpspdz

import "errors"

func mkfifo(string) error { return errors.New("mpspdz: this system has no named pipes") }
