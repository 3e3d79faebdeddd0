package runner

import (
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// Deviation is how a party that is made for tests deviates from the protocol. No configuration and no flag sets it.
type Deviation struct {
	// Session gets each session before it says anything, and may put hooks into it.
	Session func(s *round.Session)
	// Signing observes the envelopes that this party signs; the digest is missing if it is not known yet.
	Signing func(e exchange.Envelope)
}

// begin hands over a session.
func (d *Deviation) begin(s *round.Session) {
	if d != nil {
		d.Session(s)
	}
}

// signing passes on the signed envelopes.
func (d *Deviation) signing(posts []post) {
	if d == nil {
		return
	}
	for _, p := range posts {
		d.Signing(p.envelope)
	}
}
