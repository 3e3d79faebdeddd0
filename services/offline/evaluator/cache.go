package evaluator

import (
	"sync"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

//lodge:tests served TestRequestsAreRefused|TestPut|TestBusy|TestTheCache

// place identifies a material by its digest and by the parameter set and field that it is encoded
// for.
type place struct {
	material evaluatorv1.Material
	params   string
	field    string // for a MAC key
	digest   round.Digest
}

// cache keeps materials up to a memory limit. It evicts the least recently used material that is
// not in use.
type cache struct {
	limit int64

	mu      sync.Mutex
	used    int64 // by entries and reservations, in bytes
	clock   uint64
	entries map[place]*entry
}

type entry struct {
	value any
	bytes int64
	users int
	last  uint64 // clock value of the last use
}

func newCache(limit int64) *cache { return &cache{limit: limit, entries: map[place]*entry{}} }

// take returns a cached material. The material is in use until the caller calls release.
func (c *cache) take(p place) (value any, release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[p]
	if e == nil {
		return nil, nil, false
	}
	c.clock++
	e.users, e.last = e.users+1, c.clock
	return e.value, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		e.users--
	}, true
}

// reserve frees memory for a material of the given size. The caller must call keep with the
// material, or with nil to return the memory.
func (c *cache) reserve(p place, bytes int64) (keep func(value any), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	//lodge:check evaluator/memory/keys [run=@served] [hangs] cached keys exceed their memory limit
	if bytes > c.limit {
		return nil, rpc.Errorf(rpc.TooLarge, "raise max_keys_memory of this evaluator", "the keys need %d bytes, but the limit is %d bytes", bytes, c.limit)
	}
	for c.used+bytes > c.limit {
		var oldest *place
		for q, e := range c.entries {
			if e.users == 0 && (oldest == nil || e.last < c.entries[*oldest].last) {
				oldest = &q
			}
		}
		if oldest == nil {
			return nil, rpc.Errorf(rpc.Busy, "try again when an evaluation has ended", "the keys in use leave no memory for other keys")
		}
		c.used -= c.entries[*oldest].bytes
		delete(c.entries, *oldest)
	}
	c.used += bytes
	return func(value any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if value == nil || c.entries[p] != nil { // another request was faster
			c.used -= bytes
			return
		}
		c.clock++
		c.entries[p] = &entry{value: value, bytes: bytes, last: c.clock}
	}, nil
}

// bytes returns the size of the cached and reserved materials.
func (c *cache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// budget limits the number of concurrent evaluations and their total memory.
type budget struct {
	limit int64
	most  int

	mu    sync.Mutex
	used  int64
	count int
}

// take admits an evaluation that needs the given number of bytes.
func (b *budget) take(bytes int64) (release func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	//lodge:check evaluator/memory/never [run=@served] a request that can never fit waits instead of
	//  being rejected
	case bytes > b.limit:
		return nil, rpc.Errorf(rpc.TooLarge, "raise max_memory of this evaluator", "the evaluation needs about %d bytes, but the limit is %d bytes", bytes, b.limit)
	//lodge:check evaluator/memory/number [run=@served] more evaluations run at a time than allowed
	case b.count >= b.most:
		return nil, rpc.Errorf(rpc.Busy, "try again when an evaluation has ended", "%d evaluations run already", b.count)
	//lodge:check evaluator/memory [run=@served] evaluations exceed the memory limit
	case b.used+bytes > b.limit:
		return nil, rpc.Errorf(rpc.Busy, "try again when an evaluation has ended", "the evaluation needs about %d bytes, but only %d bytes are free", bytes, b.limit-b.used)
	}
	b.used += bytes
	b.count++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.used -= bytes
		b.count--
	}, nil
}

// load returns the number of running evaluations and their memory in bytes.
func (b *budget) load() (count int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count, b.used
}
