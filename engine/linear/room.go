package linear

import "sync"

// Pools of memory for coefficients, which every answer needs. The pools are package variables,
// because a pool inside an object retains that object for two garbage collections.
var words, integers sync.Pool

// take returns memory for n values with arbitrary content.
func take[T uint64 | int64](pool *sync.Pool, n int) []T {
	if p, ok := pool.Get().(*[]T); ok && cap(*p) >= n {
		return (*p)[:n]
	}
	return make([]T, n)
}

// giveBack clears the memory and returns it to its pool.
func giveBack[T uint64 | int64](pool *sync.Pool, v []T) {
	clear(v)
	pool.Put(&v)
}
