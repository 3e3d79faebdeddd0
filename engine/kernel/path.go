package kernel

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Path is an instruction set that the kernels may use. All paths return the same results. If a path
// has no kernel for an operation or a modulus, the path before it is used.
type Path uint32

// The paths. Each extends the one before.
const (
	Plain  Path = iota // Go
	AVX2               // AVX2
	AVX512             // AVX-512 F, DQ and VL, BMI2 and ADX
	IFMA               // AVX-512 IFMA: moduli of up to 50 bits; other moduli as AVX512
)

var pathNames = []string{"plain", "avx2", "avx512", "ifma"}

func (p Path) String() string {
	if int(p) < len(pathNames) {
		return pathNames[p]
	}
	return fmt.Sprintf("path(%d)", uint32(p))
}

// ParsePath returns the path with the given name: plain, avx2, avx512 or ifma.
func ParsePath(name string) (Path, error) {
	if i := slices.Index(pathNames, name); i >= 0 {
		return Path(i), nil
	}
	return Plain, fmt.Errorf("kernel: unknown path %q (supported: %q)", name, pathNames)
}

var selected atomic.Uint32

func init() { selected.Store(uint32(Best())) }

// Best returns the last path that this processor can run. It is selected when a program starts.
func Best() Path { return best }

// Selected returns the path that the kernels use.
func Selected() Path { return Path(selected.Load()) }

// Select sets the path that the kernels use. It is meant for tests and for the start of commands:
// operations that run concurrently may use either path.
func Select(p Path) error {
	if p > best {
		return fmt.Errorf("kernel: this processor cannot run path %v(best supported: %v)", p, best)
	}
	selected.Store(uint32(p))
	return nil
}
