package byzantine

import (
	"crypto/ed25519"
	"slices"
	"sync"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// fieldName is that of the sessions in which this party cheats.
const fieldName = "p128"

// cheater holds the party's cheats.
type cheater struct {
	scheme *gbfv.Scheme
	signer ed25519.PrivateKey
	heard  *hearing

	mu        sync.Mutex
	cheat     *cheattest.Cheat // nil while it is honest
	recording cheattest.Kind
	said      map[place][][]byte            // in honest sessions that were recorded
	signed    map[place][]*exchangev1.Frame // the same, as it went out
	envelopes map[envelopeKey]exchange.Envelope
	unfired   func() []string // hooks of the present cheat that have not run
	faults    int             // how often the present fault has been
	links     map[linkKey]*link
}

// place is where something was said.
type place struct {
	in   cheattest.Kind
	to   round.Party // or round.All
	name string
}

type envelopeKey struct {
	round uint32
	name  string
	to    round.Party
}

func newCheater(f *config.PartyFile) (*cheater, error) {
	set, err := params.Lookup(f.Policy.Params[0].Name)
	if err != nil {
		return nil, err
	}
	spec, err := set.Field(fieldName)
	if err != nil {
		return nil, err
	}
	c := &cheater{heard: newHearing(), said: map[place][][]byte{}, signed: map[place][]*exchangev1.Frame{},
		links: map[linkKey]*link{}}
	if c.scheme, err = gbfv.New(set, spec); err != nil {
		return nil, err
	}
	c.signer, err = f.Signer()
	return c, err
}

// begin installs the present cheat in a session, or records the session's messages.
func (c *cheater) begin(s *round.Session) {
	c.change(s)
	cheattest.On(s, "envelope", c.signing)
}

func (c *cheater) change(s *round.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.envelopes = map[envelopeKey]exchange.Envelope{}
	if c.cheat == nil {
		if in := c.recording; in != "" {
			cheattest.Observe(s, func(to round.Party, name string, frames [][]byte) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.said[place{in, to, name}] = frames
			})
		}
		return
	}
	in := c.cheat.In
	c.unfired = c.cheat.Put(s, cheattest.Env{
		Scheme: c.scheme, Peer: c.heard.wait,
		Earlier: func(to round.Party, name string) [][]byte {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.said[place{in, to, name}]
		},
	})
}

// signing records the signed envelope of a message, to sign a second version of the message.
func (c *cheater) signing(e *exchange.Envelope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.envelopes[envelopeKey{e.Round, e.Name, e.To}] = *e
}

// missed lists what of the present cheat has not taken place.
func (c *cheater) missed() (list []string) {
	c.mu.Lock()
	unfired, cheat, faults := c.unfired, c.cheat, c.faults
	c.mu.Unlock()
	if cheat == nil {
		return nil
	}
	if unfired == nil {
		return []string{"session"}
	}
	list = slices.Clone(unfired())
	if cheat.Fault != nil && faults == 0 {
		list = append(list, "fault")
	}
	return list
}

// sign signs a digest as that of a message of this place.
func (c *cheater) sign(start *exchangev1.Start, to round.Party, digest round.Digest) []byte {
	if start.GetBroadcast() {
		to = round.All
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.envelopes[envelopeKey{start.GetRound(), start.GetName(), to}]
	if !ok {
		panic("byzantine: no envelope of " + start.GetName())
	}
	e.Digest = digest
	return e.Sign(c.signer)
}
