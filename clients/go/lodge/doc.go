// Package lodge is the client of Lodge for Go programs: it reserves tuples at the coordinator, and draws the shares of one
// party as a stream of values.
//
// Every party's program has a Client of its own, made from the file that `lodge init` writes for it. One of them reserves
// and tells the others the reservation's id; all of them fetch with it, and have shares of the same tuples in the same
// order. Calls are retried while the other side cannot be reached or is busy (see Error.Retry), with one idempotency key
// for all attempts to reserve, and a stream of shares goes on where it broke.
//
// The package imports nothing of Lodge's services, so that any program may use it.
package lodge
