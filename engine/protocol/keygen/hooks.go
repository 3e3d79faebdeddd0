package keygen

import "github.com/lodge-mpc/lodge/engine/ring"

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
