package bench

import (
	"math/bits"
	"os"
	"strconv"
	"strings"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
)

// AvailableMemory returns the bytes that new processes can allocate: MemAvailable of the kernel, or
// less if the control group has a lower limit. It returns 0 if the system does not report it.
func AvailableMemory() uint64 {
	var kB uint64
	if text, ok := strings.CutSuffix(property("/proc/meminfo", "MemAvailable"), " kB"); ok {
		kB, _ = strconv.ParseUint(text, 10, 64)
	}
	available := kB << 10
	if limit := number("/sys/fs/cgroup/memory.max"); limit > 0 {
		left := limit - min(limit, number("/sys/fs/cgroup/memory.current"))
		available = min(available, max(left, 1))
	}
	return available
}

// number reads a file with one decimal number. It returns 0 for any other file.
func number(file string) uint64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// polyBytes is the size of a polynomial modulo q in memory.
func polyBytes(set *params.Set) uint64 { return uint64(set.N()*len(set.Q)) * 8 }

// keyBytes is the size of the public, relinearisation and d-1 rotation keys as parties encode them:
// a seed for all uniform halves, and the other halves packed at the length of their primes.
func keyBytes(set *params.Set, d int) uint64 {
	const seed = 32
	poly := 0
	for _, q := range set.Q {
		poly += kernel.PackedSize(set.N(), bits.Len64(q))
	}
	return uint64(seed + (1+(d+1)*set.Digits())*poly)
}

// productMemory estimates the bytes for a homomorphic product of d x d matrices, including the
// joint keys, which are generated in the same process: the keys of each party and their sum, four
// grids of ciphertexts, and the sums of gbfv.Evaluator.MatMul. With S14-64 and two parties 2.7 GB
// were measured for d = 128 and 6.2 GB for d = 256.
func productMemory(set *params.Set, d, parties int) uint64 {
	keys := uint64(parties+1) * uint64((d+1)*set.Digits())
	return (keys + 4*2*uint64(d) + 7*uint64(d)) * polyBytes(set)
}

// gateMemory estimates the bytes for an evaluator of gates with the keys of the parties: the
// rotation keys in evaluation form and the switching keys, and a fifth more for garbage.
func gateMemory(set string, parties int) uint64 {
	s, err := multikey.Lookup(set)
	if err != nil {
		return 0
	}
	rotation := 8 * s.N() * (4*s.Uni.Digits + 4*s.Dim*s.Rotation.Digits)
	switching := 4 * (s.N() - s.Dim) * s.Switch.Digits * (s.Dim + 1)
	return uint64(parties) * uint64(rotation+switching) * 6 / 5
}

// ClusterMemory estimates the bytes that all party processes need to make a number of batches of d
// x d blocks concurrently.
func ClusterMemory(set *params.Set, d, parties, batches int) uint64 {
	const process = 150 << 20
	keys := 2 * uint64((d+1)*set.Digits())
	batch := uint64(batches) * (4*2 + 7) * uint64(d)
	return uint64(parties) * (process + (keys+batch)*polyBytes(set))
}
