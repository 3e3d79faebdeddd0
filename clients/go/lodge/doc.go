// Package lodge is the Go client of Lodge. It reserves tuples at the coordinator, and draws the
// shares of one party as a stream of values.
//
// Every party's program has its own [Client], created by [Load] and [Dial] from the file that
// `lodge init` writes for it. One program reserves ([Client.Reserve]) and sends the reservation's
// id to the others. All of them fetch with it ([Client.Fetch]), and get [Shares] of the same tuples
// in the same order. Calls are retried while the server is unreachable or busy (see [Error.Retry]),
// with one idempotency key for all attempts to reserve, and a broken stream of shares is resumed.
//
// The package does not import Lodge's services, so that any program may use it.
package lodge
