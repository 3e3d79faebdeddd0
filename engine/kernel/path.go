package kernel

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Path is a set of instructions that the kernels may use. All paths give the same results. Where a path has no
// kernel for an operation or a modulus, the one before it serves.
type Path uint32

// The paths, each an extension of the one before.
const (
	Plain  Path = iota // Go
	AVX2               // AVX2
	AVX512             // AVX-512 F, DQ and VL, BMI2 and ADX
	IFMA               // AVX-512 IFMA: moduli of up to 50 bits, the rest as AVX512
)

var pathNames = []string{"plain", "avx2", "avx512", "ifma"}

func (p Path) String() string {
	if int(p) < len(pathNames) {
		return pathNames[p]
	}
	return fmt.Sprintf("path(%d)", uint32(p))
}

// ParsePath gives the path of a name: plain, avx2, avx512 or ifma.
func ParsePath(name string) (Path, error) {
	if i := slices.Index(pathNames, name); i >= 0 {
		return Path(i), nil
	}
	return Plain, fmt.Errorf("kernel: no path %q; there are %q", name, pathNames)
}

var selected atomic.Uint32

func init() { selected.Store(uint32(Best())) }

// Best is the last path that this processor can run. It is selected when a program starts.
func Best() Path { return best }

// Selected is the path that the kernels take.
func Selected() Path { return Path(selected.Load()) }

// Select makes the kernels take a path. It is for tests and for commands as they start: operations that run at the
// same time may take either path.
func Select(p Path) error {
	if p > best {
		return fmt.Errorf("kernel: this processor cannot run path %v; the last that it can is %v", p, best)
	}
	selected.Store(uint32(p))
	return nil
}
