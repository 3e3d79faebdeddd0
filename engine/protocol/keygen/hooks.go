package keygen

import (
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// sharing is the argument of the hook keygen/share.
type sharing struct {
	at    slot
	share ring.Poly
}

// shown returns a share of a proved key after the hook keygen/share. A share is computed equation
// by equation, hashed in one round and sent in another, or committed and kept, so that no one
// message shows it before all of its uses.
func (p *party) shown(at slot, x ring.Poly) ring.Poly {
	round.Expose(p.Session, "keygen/share", &sharing{at, x})
	return x
}

// Sharing is the argument of the hook keygen/share in tests of other packages; see Start.
type Sharing = sharing

// Poly returns the share.
func (x *sharing) Poly() ring.Poly { return x.share }

// Of returns the name of the share's equation, as in the names of errors, and its digit. The public
// key has one digit.
func (x *sharing) Of() (label string, digit int) {
	label, _ = x.at.name()
	return label, x.at.digit
}
