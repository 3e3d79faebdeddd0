package exchange

import (
	"sync"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

const (
	// Bytes. Capacities are multiples of the step, which wastes little and makes frames of one kind
	// share them.
	bufferStep   = 16 << 10
	leastBuffer  = 64 << 10                    // smaller messages are copied
	largestFrame = round.MaxFrame + bufferStep // encoded
)

// buffers keeps the memory of large frames for reuse, by capacity in steps: new memory for each
// frame costs page faults. The garbage collector frees buffers that are not reused soon.
var buffers [largestFrame/bufferStep + 1]sync.Pool

// poison overwrites released buffers, so that a test detects reads after release.
var poison = false

// getBuffer returns n bytes with arbitrary content; n is at most largestFrame.
func getBuffer(n int) []byte {
	steps := (n + bufferStep - 1) / bufferStep
	if b, ok := buffers[steps].Get().(*[]byte); ok {
		return (*b)[:n]
	}
	return make([]byte, n, steps*bufferStep)
}

// putBuffer returns a buffer of getBuffer to the pool. The caller must not use it afterwards.
func putBuffer(b []byte) {
	b = b[:cap(b)]
	if poison {
		for i := range b {
			b[i] = 0xdb
		}
	}
	buffers[cap(b)/bufferStep].Put(&b)
}
