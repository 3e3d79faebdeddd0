//go:build race

package exchange

// With the race detector, whatever keeps a frame for too long shows, in any package's tests.
func init() { poison = true }
