// Package cheattest is the table of deviations from the protocols. Every cheat has a name, a
// description, the session in which it happens and the smallest number of parties for it, the check
// that must end the session, the parties that the honest parties must name, and whether the session
// counts as a failed check of their MAC key. The tests of this package run every cheat in one
// process; a party for tests runs one over a real network. docs/security/byzantine.md shows the
// table.
package cheattest

import (
	"slices"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
)

// Kind is a kind of session in which a cheat takes place.
type Kind string

// The kinds.
const (
	Keys     Kind = "keys"     // proved key generation
	First    Kind = "first"    // scalar triples before a MAC key exists
	Scalars  Kind = "scalars"  // scalar triples under a MAC key that all parties hold
	Matrices Kind = "matrices" // matrix triples under such a key
	Bits     Kind = "bits"     // random bits, which open products
	Inputs   Kind = "inputs"   // input masks of the cheating party

	Convolutions Kind = "convolutions" // convolution triples
)

// Sessions lists the kinds.
var Sessions = []Kind{Keys, First, Scalars, Matrices, Bits, Inputs, Convolutions}

// Named says which parties the honest parties name at the end of a session.
type Named int

// The values of Named.
const (
	Nobody   Named = iota
	Suspects       // the cheating party is one of several suspects
	Certain        // the cheating party
)

func (n Named) String() string { return [...]string{"nobody", "suspects", "certain"}[n] }

// CheckLate stands for no check: the session ends because a message of the cheating party does not
// arrive, or for another reason.
const CheckLate = "late"

// Ends describes how a session with a cheat ends at the honest parties.
type Ends struct {
	Check string // the check that ends it, or CheckLate; empty if the session passes, because the cheat gains nothing
	Named Named
	// Counts reports whether the session counts as a failed check of the MAC key: the parties had
	// opened their combinations.
	Counts bool
}

// Cheat is a row of the table.
type Cheat struct {
	Name    string
	Does    string // the deviation of the cheating party, in words
	Threats []int  // numbers in the list of docs/security/byzantine.md
	In      Kind
	From    int // the smallest number of parties for which the cheat is possible
	Ends    Ends
	// Wire is the end over a network, where parties check signatures and wait for late messages, if
	// it differs.
	Wire *Ends
	// Early reports whether an honest party may refuse the message over a network before it has
	// come to the message's round. Then it depends on the time of arrival whether the session
	// counts as a failed check: the party may not have opened its combinations yet, or may not have
	// found yet that they pass.
	Early bool
	// Fault is the fault on the links; nil if the party cheats inside its protocol code.
	Fault *Fault
	// Replays reports whether the cheat repeats messages of the same party from an earlier session.
	Replays bool

	set func(h byzantine.Hooks, e *Env)
}

// OnWire returns how the cheat ends over a network.
func (c *Cheat) OnWire() Ends {
	if c.Wire != nil {
		return *c.Wire
	}
	return c.Ends
}

// WireOnly reports whether the cheat needs signatures, streams or connections.
func (c *Cheat) WireOnly() bool { return c.Fault != nil && c.Fault.Kind.wire() }

// Env holds the data that a cheat may use in addition to the values at its hook.
type Env struct {
	Scheme  *gbfv.Scheme
	Parties int
	Self    round.Party
	// Peer returns the frames of the message that a peer sends in the current round, and waits for
	// it if necessary: the cheating party speaks last.
	Peer func(from round.Party, name string) [][]byte
	// Earlier returns the frames of the message of this name that this party sent to a peer in an
	// earlier session.
	Earlier func(to round.Party, name string) [][]byte
}

// checks lists the checks that the cheating party omits, so that it continues to send whatever it
// receives.
var checks = []string{
	round.CheckCommitment, keygen.CheckAgree, keygen.CheckBound, keygen.CheckShare, keygen.CheckEquation,
	popk.CheckBound, popk.CheckEquation,
	triple.CheckEvaluated, maccheck.CheckMAC, maccheck.CheckZero, maccheck.CheckSacrifice,
	verdict.Check, round.Failures,
}

// Put makes a session of the cheating party cheat. The returned function lists the hooks that have
// not run yet, so that a test can detect a cheat that did not happen.
func (c *Cheat) Put(s *round.Session, e Env) (unfired func() []string) {
	h := byzantine.New()
	for _, check := range checks {
		h.Skip(check)
	}
	if c.set != nil {
		e.Self, e.Parties = s.Self, s.Parties
		c.set(h, &e)
	}
	s.Hooks = h
	return h.Unfired
}

// Observe makes a session of an honest party report the messages that it sends.
func Observe(s *round.Session, take func(to round.Party, name string, frames [][]byte)) {
	On(s, "messages", func(send *[]round.Message) {
		for i := range *send {
			m := &(*send)[i]
			frames := framesOf(m.Body) // a body may return its frames only once
			m.Body = bodyOf(frames)
			take(m.To, m.Name, frames)
		}
	})
}

// On installs a hook into a session, in addition to its other hooks; see round.Expose. The party
// sends all its messages even if the session fails.
func On[T any](s *round.Session, name string, see func(v T)) {
	if s.Hooks == (byzantine.Hooks{}) {
		s.Hooks = byzantine.New().Skip(round.Failures)
	}
	byzantine.On(s.Hooks, name, see)
}

// Table lists all cheats.
func Table() []*Cheat {
	return slices.Concat(ofMessages(), ofLinks(), ofKeys(), ofProofs(), ofBatches())
}

// Find returns the cheat of this name, or nil.
func Find(name string) *Cheat {
	for _, c := range Table() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func framesOf(body round.Body) [][]byte {
	frames := make([][]byte, body.Frames())
	for i := range frames {
		f, err := body.Frame(i)
		if err != nil {
			panic(err)
		}
		frames[i] = slices.Clone(f)
	}
	return frames
}

func bodyOf(frames [][]byte) round.Body {
	return round.Frames(len(frames), func(i int) ([]byte, error) { return frames[i], nil })
}
