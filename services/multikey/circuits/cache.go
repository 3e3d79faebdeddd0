package circuits

import (
	"context"
	"sync"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// cache holds keys that are loaded for computation, up to a limit. It evicts the least recently
// used keys that are not in use.
type cache struct {
	e       *multikey.Evaluator
	source  Keys
	most    int // maximum number of keys
	workers int
	loading sync.Mutex // keys are loaded one at a time because loading takes memory

	mu      sync.Mutex
	clock   uint64
	entries map[multikey.KeyID]*entry
	changed chan struct{} // closed when keys are no longer in use
}

type entry struct {
	users int
	last  uint64 // clock value of the last use
}

func newCache(s *multikey.Scheme, source Keys, limit int64, workers int) *cache {
	return &cache{
		e: multikey.NewEvaluator(s), source: source, most: int(limit / int64(s.KeyMemory())), workers: workers,
		entries: map[multikey.KeyID]*entry{}, changed: make(chan struct{}),
	}
}

// take returns an evaluator that has the keys until release is called. It waits while keys of other
// jobs occupy the cache.
func (c *cache) take(ctx context.Context, ids []multikey.KeyID) (e *multikey.Evaluator, release func(), err error) {
	if len(ids) > c.most {
		return nil, nil, rpc.Errorf(rpc.TooLarge, "have the operator raise multikey.max_keys_memory", "the request needs the keys of %d parties, but there is memory for %d", len(ids), c.most)
	}
	for {
		changed, ok := c.claim(ids)
		if ok {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	release = sync.OnceFunc(func() { c.leave(ids) })
	for _, id := range ids {
		if err := c.load(ctx, id); err != nil {
			release()
			return nil, nil, err
		}
	}
	return c.e, release, nil
}

// claim reserves places for keys and marks them as in use. If the cache is full, it returns a
// channel that is closed when to try again.
func (c *cache) claim(ids []multikey.KeyID) (changed chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := map[multikey.KeyID]bool{}
	more := 0
	for _, id := range ids {
		wanted[id] = true
		if c.entries[id] == nil {
			more++
		}
	}
	for len(c.entries)+more > c.most {
		var oldest *multikey.KeyID
		for id, x := range c.entries {
			if x.users == 0 && !wanted[id] && (oldest == nil || x.last < c.entries[*oldest].last) {
				oldest = &id
			}
		}
		if oldest == nil {
			return c.changed, false
		}
		c.e.Remove(*oldest)
		delete(c.entries, *oldest)
	}
	c.clock++
	for _, id := range ids {
		if c.entries[id] == nil {
			c.entries[id] = new(entry)
		}
		c.entries[id].users++
		c.entries[id].last = c.clock
	}
	return nil, true
}

// leave marks keys as no longer in use. It removes keys that could not be loaded.
func (c *cache) leave(ids []multikey.KeyID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		x := c.entries[id]
		x.users--
		if x.users == 0 && !c.e.Has(id) {
			delete(c.entries, id)
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// load loads keys into the evaluator.
func (c *cache) load(ctx context.Context, id multikey.KeyID) error {
	c.loading.Lock()
	defer c.loading.Unlock()
	if c.e.Has(id) {
		return nil
	}
	k, err := c.source.Load(ctx, id)
	if err != nil {
		return err
	}
	_, err = c.e.Add(k, c.workers)
	return err
}
