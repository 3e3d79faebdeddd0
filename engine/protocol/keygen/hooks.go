package keygen

import "github.com/lodge-mpc/lodge/engine/ring"

// Sharing is what the hook keygen/share of tests in other packages gets; see Start.
type Sharing = sharing

// Poly is the share.
func (x *sharing) Poly() ring.Poly { return x.share }

// Of says whose equation it is a share of, as errors are named, and of which digit; the public key has one.
func (x *sharing) Of() (label string, digit int) {
	label, _ = x.at.name()
	return label, x.at.digit
}
