package cheattest

import "github.com/lodge-mpc/lodge/engine/protocol/round"

// CheckSignature is the check of what every message is signed with, which only a network has.
const CheckSignature = "signature"

// FaultKind is what happens to a message on its links: the culprit itself goes on as if it had been sent as it should be.
type FaultKind string

// Faults that need no more than messages.
const (
	TwoVersions FaultKind = "two versions" // party 0 gets another one, which is signed too
	NotForOne   FaultKind = "not for one"  // party 0 does not get it
	Twice       FaultKind = "twice"
	Renamed     FaultKind = "renamed"
	RoundBefore FaultKind = "round before" // it says that it belongs to the round before
	RoundAfter  FaultKind = "round after"
	Reversed    FaultKind = "reversed" // its frames come in reverse order
	NoEnd       FaultKind = "no end"   // its last frame does not say that it is the last
)

// Faults that need signatures, streams or connections.
const (
	Unsigned       FaultKind = "unsigned"        // one bit of the signature is wrong
	OtherDigest    FaultKind = "other digest"    // it is signed with the digest of something else
	SignedEarlier  FaultKind = "signed earlier"  // it is what was said and signed in an earlier session, frames and all
	NotBroadcast   FaultKind = "not broadcast"   // a broadcast that says that it is none
	FalselyOpen    FaultKind = "broadcast"       // a message for one that says that it is a broadcast
	ManyFrames     FaultKind = "many frames"     // it announces 2^20 frames, and has one
	TooManyFrames  FaultKind = "too many frames" // it announces 2^32-1
	NoFrames       FaultKind = "no frames"       // it announces none
	LargeFrame     FaultKind = "large frame"     // a frame of 4 MiB and a byte
	LongName       FaultKind = "long name"       // a name of 65 bytes
	NoName         FaultKind = "no name"
	Skipped        FaultKind = "skipped"         // a number of the stream is left out
	Repeated       FaultKind = "repeated"        // a number of the stream comes twice
	Inside         FaultKind = "inside"          // a message begins inside another
	ShortSignature FaultKind = "short signature" // a signature of 63 bytes
	Silence        FaultKind = "silence"         // neither it nor anything after it is sent
	EmptyFrames    FaultKind = "empty frames"    // a million empty frames before it
)

func (k FaultKind) wire() bool {
	switch k {
	case TwoVersions, NotForOne, Twice, Renamed, RoundBefore, RoundAfter, Reversed, NoEnd:
		return false
	}
	return true
}

// Fault is one on the links of one message.
type Fault struct {
	Kind    FaultKind
	Message Message
}

// echo is the name of the message of an echo check.
const echo = "echo"

// ofLinks has two versions and a version for all but one of every broadcast, and other faults of links with one message of
// each kind: small, streamed, and for one recipient.
func ofLinks() (list []*Cheat) {
	add := func(name, does string, m Message, kind FaultKind, from int, ends Ends, wire *Ends, threats ...int) {
		list = append(list, &Cheat{
			Name: name + ":" + m.Name, Does: does, Threats: threats, In: m.In, From: from, Ends: ends, Wire: wire,
			Fault: &Fault{kind, m}, Replays: kind == SignedEarlier,
		})
	}
	seen := Ends{Check: round.CheckEcho, Named: Suspects}
	for _, m := range Messages() {
		counts := m.counts()
		if m.Broadcast {
			ends := seen
			ends.Counts = counts
			proved := ends // by the signatures that echoes have
			if proved.Named = Certain; m.Name == "prelude/nonce" {
				proved.Named = Suspects // before the session has a name of its own that may be a party which was restarted
			}
			add("versions", "sends party 0 another "+m.Name+" than the others, both signed", m, TwoVersions, 3, ends,
				&proved, 8)
		}
		add("selective", "sends its "+m.Name+" to everybody but party 0", m, NotForOne, 3, m.late(), nil)
	}
	add("versions", "reports to party 0 another message of party 0 than that sent", Message{Name: echo, In: Scalars},
		TwoVersions, 3, blamed(round.CheckEcho), nil, 8)

	for _, m := range Messages() {
		switch m.Name {
		case "keygen/statement/open", "triple/statement/open", "triple/share", "triple/mac/z/open":
			ends := Ends{Check: CheckLate, Named: Suspects, Counts: m.counts()}
			add("silent", "stops sending, starting with its "+m.Name, m, Silence, 2, ends, nil)
		}
	}
	shape, duplicate, size := malformed, blamed(round.CheckDuplicate), blamed(round.CheckSize)
	signature := blamed(CheckSignature)
	for _, m := range Messages() {
		switch m.Name {
		case "keygen/relin/open", "keygen/proofs", "triple/statement/commit", "triple/ciphertexts", "triple/share":
		default:
			continue
		}
		add("twice", "sends its "+m.Name+" twice", m, Twice, 2, duplicate, nil)
		add("renamed", "sends its "+m.Name+" under another name", m, Renamed, 2, shape, nil)
		add("before", "sends its "+m.Name+" as one of a round that is over", m, RoundBefore, 2, duplicate, nil)
		add("after", "sends its "+m.Name+" as one of a round to come", m, RoundAfter, 2, m.late(), &shape)
		add("no-end", "does not say that its "+m.Name+" has ended", m, NoEnd, 2, shape, nil)
		if m.Streamed {
			add("reversed", "sends the frames of its "+m.Name+" in reverse order", m, Reversed, 2, shape, nil)
			add("inside", "begins another message inside its "+m.Name, m, Inside, 2, shape, nil)
		}
		add("unsigned", "signs its "+m.Name+" wrongly", m, Unsigned, 2, signature, nil, 7)
		add("other-digest", "signs something else than its "+m.Name, m, OtherDigest, 2, signature, nil, 7)
		add("signed-earlier", "sends its "+m.Name+" of an earlier session as it was signed then", m, SignedEarlier, 2,
			signature, nil, 9)
		if m.Broadcast {
			add("not-broadcast", "sends its "+m.Name+" as if it were for one peer", m, NotBroadcast, 2, shape, nil)
		} else {
			add("broadcast", "sends its "+m.Name+" as if it were a broadcast", m, FalselyOpen, 2, signature, nil)
		}
		add("many-frames", "announces 2^20 frames of its "+m.Name, m, ManyFrames, 2, shape, nil, 10)
		add("too-many-frames", "announces 2^32-1 frames of its "+m.Name, m, TooManyFrames, 2, shape, nil, 10)
		add("no-frames", "announces no frames of its "+m.Name, m, NoFrames, 2, shape, nil, 10)
		add("large-frame", "sends its "+m.Name+" in a frame of a byte more than 4 MiB", m, LargeFrame, 2, size, nil, 10)
		add("long-name", "gives its "+m.Name+" a name of 65 bytes", m, LongName, 2, shape, nil, 10)
		add("no-name", "sends its "+m.Name+" without a name", m, NoName, 2, shape, nil)
		add("skipped", "leaves out a number of its stream before its "+m.Name, m, Skipped, 2, shape, nil)
		add("repeated", "repeats a number of its stream after its "+m.Name, m, Repeated, 2, shape, nil)
		add("short-signature", "signs its "+m.Name+" with 63 bytes", m, ShortSignature, 2, shape, nil, 10)
		add("empty-frames", "sends 10,000 empty frames before its "+m.Name, m, EmptyFrames, 2, shape, nil, 10)
	}
	return list
}
