package popk

import (
	"context"
	"fmt"
	"sync"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// ciphertexts are this party's ciphertexts. They are the body of a message, packed frame by frame
// as it is sent, and are added to the sums. A polynomial is released when both have used it, so
// that a batch never holds a packed copy of all ciphertexts.
type ciphertexts struct {
	scheme *gbfv.Scheme
	list   []*gbfv.Ciphertext
	sum    round.Digest // of the message that carries the ciphertexts

	mu    sync.Mutex
	sent  []bool // by frame
	added bool   // to the sums
}

func newCiphertexts(s *gbfv.Scheme, list []*gbfv.Ciphertext) *ciphertexts {
	return &ciphertexts{scheme: s, list: list, sent: make([]bool, 2*len(list))}
}

// digest returns the digest of the message with this name.
func (c *ciphertexts) digest(name string) round.Digest {
	h := round.NewHasher(name)
	var buffer []byte
	for i := range c.Frames() {
		buffer = codec.AppendPoly(buffer[:0], part(c.list, i), c.scheme.Q.Primes())
		h.Frame(buffer)
	}
	return h.Sum()
}

// Frames implements round.Body.
func (c *ciphertexts) Frames() int { return len(c.sent) }

// Frame implements round.Body.
func (c *ciphertexts) Frame(i int) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent[i] && c.added {
		return nil, fmt.Errorf("popk: polynomial %d has already been sent", i)
	}
	primes := c.scheme.Q.Primes()
	frame := codec.AppendPoly(make([]byte, 0, codec.PolySize(c.scheme.N(), primes)), part(c.list, i), primes)
	if c.sent[i] = true; c.added {
		ring.Poly{C: part(c.list, i)}.Free()
	}
	return frame, nil
}

// addTo adds the ciphertexts to the sums. The caller calls it once.
func (c *ciphertexts) addTo(ctx context.Context, sums []*gbfv.Ciphertext, workers int) error {
	err := parallel.Try(ctx, workers, len(sums), func(i int) error {
		c.scheme.Add(sums[i], sums[i], c.list[i])
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.added = true
	for i, sent := range c.sent {
		if sent {
			ring.Poly{C: part(c.list, i)}.Free()
		}
	}
	return err
}
