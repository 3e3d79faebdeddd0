//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

var best = min(last, func() Path {
	switch x := &cpu.X86; {
	case !x.HasAVX2:
		return Plain
	case !x.HasAVX512F || !x.HasAVX512DQ || !x.HasAVX512VL || !x.HasBMI2 || !x.HasADX:
		return AVX2
	case !x.HasAVX512IFMA:
		return AVX512
	default:
		return IFMA
	}
}())
