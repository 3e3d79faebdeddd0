//go:build race

package exchange

// With the race detector, the tests of all packages detect code that keeps a frame for too long.
func init() { poison = true }
