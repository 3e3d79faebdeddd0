package linear

import "sync"

// Room for coefficients that is used again: what is computed for an answer takes some of it each time. Pools are of the
// package: one that is a part of something keeps that for two collections of garbage.
var words, integers sync.Pool

// take returns room for n values, which may be anything.
func take[T uint64 | int64](pool *sync.Pool, n int) []T {
	if p, ok := pool.Get().(*[]T); ok && cap(*p) >= n {
		return (*p)[:n]
	}
	return make([]T, n)
}

// giveBack clears room and gives it back.
func giveBack[T uint64 | int64](pool *sync.Pool, v []T) {
	clear(v)
	pool.Put(&v)
}
