package triples

import (
	"sync"

	"github.com/lodge-mpc/lodge/engine/gbfv"
)

// operand keeps the ciphertext of the MAC key that was used last, made ready for products.
type operand struct {
	mu   sync.Mutex
	id   string // of the MAC key, which no other ever has
	left *gbfv.Left
}

// of gives the operand of a MAC key, whose ciphertext is public.
func (o *operand) of(id string, s *gbfv.Scheme, ct *gbfv.Ciphertext) *gbfv.Left {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left == nil || o.id != id {
		o.id, o.left = id, s.Left(ct) // sessions may still use the other
	}
	return o.left
}
