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

// AvailableMemory is how many bytes new processes can take before the system runs out of memory: what the kernel calls
// available, at most what the control group has left. It is 0 where the system does not say.
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

// number is the number that a file has, or 0.
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

// keyBytes is the size of the public, relinearisation and d-1 rotation keys as parties encode them: a seed for all uniform
// halves, and the other halves packed at the length of their primes.
func keyBytes(set *params.Set, d int) uint64 {
	const seed = 32
	poly := 0
	for _, q := range set.Q {
		poly += kernel.PackedSize(set.N(), bits.Len64(q))
	}
	return uint64(seed + (1+(d+1)*set.Digits())*poly)
}

// productMemory estimates what a homomorphic product of d x d matrices needs with joint keys of the parties, which are
// generated in the same process: each party's keys, twice for what waits for the garbage collector, the factors and two
// results, and the sums of gbfv.Evaluator.MatMul.
func productMemory(set *params.Set, d, parties int) uint64 {
	keys := uint64(parties+1) * 2 * uint64((d+1)*set.Digits())
	return (keys + 4*2*uint64(d) + 7*uint64(d)) * polyBytes(set) * 5 / 4
}

// gateMemory estimates what an evaluator of gates needs with the keys of the parties: the rotation keys in evaluation form
// and the switching keys, and a fifth for the garbage collector.
func gateMemory(set string, parties int) uint64 {
	s, err := multikey.Lookup(set)
	if err != nil {
		return 0
	}
	rotation := 8 * s.N() * (4*s.Uni.Digits + 4*s.Dim*s.Rotation.Digits)
	switching := 4 * (s.N() - s.Dim) * s.Switch.Digits * (s.Dim + 1)
	return uint64(parties) * uint64(rotation+switching) * 6 / 5
}

// ClusterMemory estimates what parties that are processes need together for so many batches of d x d blocks at a time.
func ClusterMemory(set *params.Set, d, parties, batches int) uint64 {
	const process = 150 << 20
	keys := 2 * uint64((d+1)*set.Digits())
	batch := uint64(batches) * (4*2 + 7) * uint64(d)
	return uint64(parties) * (process + (keys+batch)*polyBytes(set)*5/4)
}
