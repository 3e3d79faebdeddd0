package round

import "github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"

// This file is the only one of the protocols that tests of cheating parties can reach. A protocol
// shows its own values to Expose before it commits to them or sends them, and asks Omits before it
// fails. Both do nothing unless a test has put hooks into the session: package byzantine is
// internal, and the import rules let no other production code use it.

// Expose shows a party's own value to the hook of this name, which may change it in place. T is a
// pointer, or another type through which a function can change a value. Expose reports whether
// there is such a hook.
func Expose[T any](s Session, name string, v T) bool { return byzantine.Apply(s.Hooks, name, v) }

// Omits reports whether this party ignores the result of the named check. Cheating parties do so to
// keep sending, and observers do so in tests that show the attack without the check.
func (s Session) Omits(check string) bool { return s.Hooks.Skips(check) }

// Failures is the name, for Omits, of the end of a session after a failure. A party that omits it
// still sends all its messages of the round.
const Failures = "failures"
