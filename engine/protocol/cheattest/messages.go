package cheattest

import (
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
)

// Message is one message of a session.
type Message struct {
	Name      string
	In        Kind
	Broadcast bool
	Streamed  bool // more than one frame; taken as it arrives
	// altered is the end of a session in which the sender sends all parties the same message with
	// one wrong bit, and continues with the right one.
	altered Ends
	// The ends if the sender repeats its message of an earlier session, or the message of a peer in
	// this round; nil if the session ends as with altered.
	replayed, reflected *Ends
	// public values are the same at every party and in every session, so that a replay or
	// reflection changes nothing.
	public bool
}

// blamed is an end in which the cheating party is named.
func blamed(check string) Ends { return Ends{Check: check, Named: Certain} }

// counted is the same end, which counts as a failed check of the MAC key.
func (e Ends) counted() Ends {
	e.Counts = true
	return e
}

var (
	committed = blamed(round.CheckCommitment)
	unopened  = committed.counted()
	failsMAC  = Ends{Check: maccheck.CheckMAC, Counts: true}
	failsZero = Ends{Check: maccheck.CheckZero, Counts: true}
	malformed = blamed(round.CheckShape)
	passes    = Ends{}
)

// Messages lists the messages of a party in the sessions of the table, in this order, without the
// echo checks.
func Messages() []Message {
	return []Message{
		{Name: "keygen/seed/commit", In: Keys, Broadcast: true, altered: committed},
		{Name: "keygen/seed/open", In: Keys, Broadcast: true, altered: committed},
		{Name: "keygen/relin/commit", In: Keys, Broadcast: true, altered: committed},
		{Name: "keygen/relin/open", In: Keys, Broadcast: true, Streamed: true, altered: committed},
		{Name: "keygen/statement/commit", In: Keys, Broadcast: true, altered: committed},
		{Name: "keygen/statement/open", In: Keys, Broadcast: true, altered: committed},
		{Name: "keygen/proofs", In: Keys, Broadcast: true, Streamed: true, altered: blamed(keygen.CheckEquation),
			replayed: &Ends{Check: keygen.CheckShare, Named: Certain}, reflected: &Ends{Check: keygen.CheckShare,
				Named: Certain}},
		{Name: "keygen/agree", In: Keys, Broadcast: true, altered: Ends{Check: keygen.CheckAgree, Named: Suspects},
			reflected: &passes},
		{Name: "prelude/nonce", In: First, Broadcast: true, altered: committed},
		{Name: "triple/mackey", In: First, Broadcast: true, altered: passes, public: true},
		{Name: "mackey/statement/commit", In: First, Broadcast: true, altered: committed},
		{Name: "mackey/statement/open", In: First, Broadcast: true, altered: committed},
		{Name: "mackey/ciphertexts", In: First, Broadcast: true, Streamed: true, altered: committed},
		{Name: "mackey/response", In: First, Broadcast: true, Streamed: true, altered: blamed(popk.CheckEquation)},
		{Name: "triple/statement/commit", In: Scalars, Broadcast: true, altered: committed},
		{Name: "triple/statement/open", In: Scalars, Broadcast: true, altered: committed},
		{Name: "triple/ciphertexts", In: Scalars, Broadcast: true, Streamed: true, altered: committed},
		{Name: "triple/response", In: Scalars, Broadcast: true, Streamed: true, altered: blamed(popk.CheckEquation)},
		{Name: "checkpair/statement/commit", In: Inputs, Broadcast: true, altered: committed},
		{Name: "checkpair/statement/open", In: Inputs, Broadcast: true, altered: committed},
		{Name: "checkpair/ciphertexts", In: Inputs, Broadcast: true, Streamed: true, altered: committed},
		{Name: "checkpair/response", In: Inputs, Broadcast: true, Streamed: true, altered: blamed(popk.CheckEquation)},
		{Name: "triple/evaluated", In: Scalars, Broadcast: true, altered: Ends{Check: triple.CheckEvaluated,
			Named: Suspects}, reflected: &passes},
		{Name: "triple/seed", In: Inputs, altered: failsMAC},
		{Name: "triple/share", In: Scalars, Streamed: true, altered: failsMAC},
		{Name: "triple/sacrifice/coin/commit", In: Scalars, Broadcast: true, altered: committed},
		{Name: "triple/sacrifice/coin/open", In: Scalars, Broadcast: true, altered: committed},
		{Name: "triple/sacrifice", In: Scalars, Broadcast: true, altered: failsZero},
		{Name: "triple/products", In: Bits, Broadcast: true, altered: failsZero},
		{Name: "triple/mac/coin/commit", In: Scalars, Broadcast: true, altered: committed},
		{Name: "triple/mac/coin/open", In: Scalars, Broadcast: true, altered: committed},
		{Name: "triple/mac/open", In: Scalars, Broadcast: true, altered: failsMAC, replayed: &failsZero,
			reflected: &failsZero},
		{Name: "triple/mac/z/commit", In: Scalars, Broadcast: true, altered: unopened},
		{Name: "triple/mac/z/open", In: Scalars, Broadcast: true, altered: unopened},
		{Name: verdict.Name, In: Scalars, Broadcast: true, altered: blamed(verdict.Check), reflected: &passes},
	}
}

// opens reports whether the message opens a commitment.
func (m Message) opens() bool {
	return strings.HasSuffix(m.Name, "/open") && m.Name != "triple/mac/open"
}

// compared reports whether the message is a digest that all parties compute.
func (m Message) compared() bool { return m.altered.Named == Suspects || m.Name == verdict.Name }

// counts reports whether the parties have opened products, or combinations in the MAC check, when
// this message is due.
func (m Message) counts() bool {
	return m.Name == "triple/products" || strings.HasPrefix(m.Name, "triple/mac/") && !strings.HasPrefix(m.Name, "triple/mac/coin/")
}

// late returns the end if the message does not arrive. Messages that follow it in the same round
// arrive too early.
func (m Message) late() Ends {
	if strings.HasSuffix(m.Name, "/ciphertexts") {
		return malformed
	}
	return Ends{Check: CheckLate, Named: Suspects, Counts: m.counts()}
}

// ofMessages applies the same faults to every message: the cheating party sends the wrong message
// to all parties, and confirms it in its echo.
func ofMessages() (list []*Cheat) {
	for _, m := range Messages() {
		or := func(e *Ends) Ends {
			if e == nil {
				return m.altered
			}
			return *e
		}
		add := func(fault, does string, ends Ends, threats []int, edit func(e *Env, to round.Party,
			frames [][]byte) [][]byte) *Cheat {
			c := &Cheat{
				Name: fault + ":" + m.Name, Does: does, Threats: threats, In: m.In, From: 2, Ends: ends,
				set: func(h byzantine.Hooks, e *Env) { rewrite(h, e, m.Name, edit) },
			}
			list = append(list, c)
			return c
		}
		c := add("alter", "changes one bit of its "+m.Name, m.altered, altering(m), flip)
		if m.Name == "prelude/nonce" { // the messages that follow are signed in another session
			c.Wire = &Ends{Check: CheckSignature, Named: Certain}
		}
		if !m.public {
			c = add("replay", "sends its "+m.Name+" of an earlier session", or(m.replayed), []int{9},
				func(e *Env, to round.Party, _ [][]byte) [][]byte { return e.Earlier(to, m.Name) })
			c.Replays = true
			if m.Name == "prelude/nonce" {
				c.Wire = &Ends{Check: CheckSignature, Named: Certain}
			}
		}
		if !m.public && m.Broadcast && m.Name != "prelude/nonce" {
			add("reflect", "waits for the "+m.Name+" of party 0 and sends it as its own", or(m.reflected), []int{1},
				func(e *Env, _ round.Party, _ [][]byte) [][]byte { return e.Peer(0, m.Name) })
		}
		short := malformed
		switch {
		case m.opens() && !m.Streamed:
			short = committed
		case m.compared(): // an invalid digest differs
			short = m.altered
		}
		short.Counts = m.counts()
		add("cut", "leaves out the last byte of its "+m.Name, short, []int{10},
			func(_ *Env, _ round.Party, frames [][]byte) [][]byte {
				last := &frames[len(frames)-1]
				*last = (*last)[:len(*last)-1]
				return frames
			})
		large := blamed(round.CheckSize)
		large.Counts = m.counts()
		c = add("extend", "adds a byte to its "+m.Name, large, []int{10},
			func(_ *Env, _ round.Party, frames [][]byte) [][]byte {
				last := &frames[len(frames)-1]
				*last = append(*last, 0)
				return frames
			})
		c.Early = m.Name == "triple/products" || m.Name == verdict.Name
		add("withhold", "never sends its "+m.Name, m.late(), nil,
			func(*Env, round.Party, [][]byte) [][]byte { return nil })
	}
	return list
}

// altering returns the numbers of the threats that one changed bit of a message represents.
func altering(m Message) []int {
	switch m.Name {
	case "triple/ciphertexts", "triple/response", "mackey/ciphertexts", "mackey/response", "triple/statement/open":
		return []int{2}
	case "triple/mac/z/open":
		return []int{15}
	}
	return nil
}

// flip changes the first bit.
func flip(_ *Env, _ round.Party, frames [][]byte) [][]byte {
	frames[0][0] ^= 1
	return frames
}

// rewrite changes every message of this name before it is hashed and signed; nil leaves it out.
func rewrite(h byzantine.Hooks, e *Env, name string, edit func(e *Env, to round.Party, frames [][]byte) [][]byte) {
	rewriteAll(h, e, map[string]func(e *Env, to round.Party, frames [][]byte) [][]byte{name: edit})
}

// rewriteAll is rewrite for several names.
func rewriteAll(h byzantine.Hooks, e *Env, edits map[string]func(e *Env, to round.Party, frames [][]byte) [][]byte) {
	byzantine.On(h, "messages", func(send *[]round.Message) {
		out := slices.Clone((*send)[:0:0])
		for _, m := range *send {
			if edit, ok := edits[m.Name]; ok {
				frames := edit(e, m.To, framesOf(m.Body))
				if frames == nil {
					continue
				}
				m.Body = bodyOf(frames)
			}
			out = append(out, m)
		}
		*send = out
	})
}
