//go:build !amd64 || purego

package kernel

const best = Plain
