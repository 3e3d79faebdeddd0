package exchange

import (
	"slices"
	"sync"
)

const (
	largeFrame = 64 << 10 // bytes of data from which a frame has a buffer of a pool, and is sent without a copy
	poolStep   = 16 << 10 // capacities are multiples of it, at most a quarter more than the frame needs
	poolBytes  = 64 << 20 // most that a pool keeps for later
)

// pool keeps buffers of large frames for the next ones: fresh memory for each frame costs page faults. A sync.Pool
// would not do, because the collector, which runs often here, empties it.
type pool struct {
	mu    sync.Mutex
	free  [][]byte // in the order in which they came back
	bytes int      // capacity of free
}

// poison makes what reads a buffer after it was put back see other bytes.
var poison = false

// get gives n bytes of any content.
func (p *pool) get(n int) []byte {
	size := (n + poolStep - 1) / poolStep * poolStep
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, b := range slices.Backward(p.free) { // the latest is likely to be in a cache
		if cap(b) == size {
			p.free = slices.Delete(p.free, i, i+1)
			p.bytes -= size
			return b[:n]
		}
	}
	return make([]byte, n, size)
}

// put takes back what get gave; nothing may use it any more.
func (p *pool) put(b []byte) {
	b = b[:cap(b)]
	if poison {
		for i := range b {
			b[i] = 0xdb
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, b)
	for p.bytes += cap(b); p.bytes > poolBytes; p.free = slices.Delete(p.free, 0, 1) {
		p.bytes -= cap(p.free[0])
	}
}

// empty gives the buffers up.
func (p *pool) empty() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free, p.bytes = nil, 0
}
