package evaluator

import (
	"sync"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
)

//lodge:tests served TestRequestsAreRefused|TestPut|TestBusy|TestTheCache

// place names a material: its digest, and what it is the encoding for.
type place struct {
	material evaluatorv1.Material
	params   string
	field    string // of a MAC key
	digest   round.Digest
}

// cache keeps materials up to a limit of memory. What was used longest ago, and is not in use, makes room.
type cache struct {
	limit int64

	mu      sync.Mutex
	used    int64 // by entries, and by what is on its way
	clock   uint64
	entries map[place]*entry
}

type entry struct {
	value any
	bytes int64
	users int
	last  uint64 // clock of its last use
}

func newCache(limit int64) *cache { return &cache{limit: limit, entries: map[place]*entry{}} }

// take gives a material to somebody who uses it until release.
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

// reserve makes room for a material of so many bytes. The caller calls keep with it, or with nil to give the room back.
func (c *cache) reserve(p place, bytes int64) (keep func(value any), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	//lodge:check evaluator/memory/keys [run=@served] [hangs] cached keys exceed their memory limit
	if bytes > c.limit {
		return nil, rpc.Errorf(rpc.TooLarge, "raise max_keys_memory of this evaluator", "keys of %d bytes, and room for %d", bytes, c.limit)
	}
	for c.used+bytes > c.limit {
		var oldest *place
		for q, e := range c.entries {
			if e.users == 0 && (oldest == nil || e.last < c.entries[*oldest].last) {
				oldest = &q
			}
		}
		if oldest == nil {
			return nil, rpc.Errorf(rpc.Busy, "try again when an evaluation has ended", "the keys in use leave no room for others")
		}
		c.used -= c.entries[*oldest].bytes
		delete(c.entries, *oldest)
	}
	c.used += bytes
	return func(value any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if value == nil || c.entries[p] != nil { // somebody else was faster
			c.used -= bytes
			return
		}
		c.clock++
		c.entries[p] = &entry{value: value, bytes: bytes, last: c.clock}
	}, nil
}

// bytes is what is kept.
func (c *cache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// budget bounds evaluations at the same time: how many, and what they take together.
type budget struct {
	limit int64
	most  int

	mu    sync.Mutex
	used  int64
	count int
}

// take takes a place for an evaluation of so many bytes.
func (b *budget) take(bytes int64) (release func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	//lodge:check evaluator/memory/never [run=@served] a request that can never fit waits instead of
	//  being rejected
	case bytes > b.limit:
		return nil, rpc.Errorf(rpc.TooLarge, "raise max_memory of this evaluator", "an evaluation of about %d bytes, and room for %d", bytes, b.limit)
	//lodge:check evaluator/memory/number [run=@served] more evaluations run at a time than allowed
	case b.count >= b.most:
		return nil, rpc.Errorf(rpc.Busy, "try again when one has ended", "%d evaluations run", b.count)
	//lodge:check evaluator/memory [run=@served] evaluations exceed the memory limit
	case b.used+bytes > b.limit:
		return nil, rpc.Errorf(rpc.Busy, "try again when one has ended", "an evaluation of about %d bytes, and %d left", bytes, b.limit-b.used)
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

// load is what runs.
func (b *budget) load() (count int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count, b.used
}
