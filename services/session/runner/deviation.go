package runner

import (
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// Deviation is how a party that is made for tests deviates from the protocol. No configuration and no flag sets it.
type Deviation struct {
	// Session gets each session before it says anything, and may put hooks into it.
	Session func(s *round.Session)
	// Signing sees what this party signs of each message; without the digest where that is not known yet.
	Signing func(e exchange.Envelope)
}

// begin hands over a session.
func (d *Deviation) begin(s *round.Session) {
	if d != nil {
		d.Session(s)
	}
}

// signing hands over what is signed.
func (d *Deviation) signing(posts []post) {
	if d == nil {
		return
	}
	for _, p := range posts {
		d.Signing(p.envelope)
	}
}
