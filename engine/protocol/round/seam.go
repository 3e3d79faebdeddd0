package round

import (
	"context"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// This file is the only one of the protocols that tests of cheating parties can reach. The machine
// shows every message that a party is about to send to the hook of the message's name, and the
// result of a sub-protocol to the hook of its type; the other values that tests change pass through
// Own, Draw, Bind or Session.Challenge. A few values pass through Expose itself; each call says
// why. A protocol asks Omits before it fails. All of this does nothing unless a test has put hooks
// into the session: package byzantine is internal, and the import rules let no other production
// code use it.

// Expose shows a party's own value to the hook of this name, which may change it in place. T is a
// pointer, or another type through which a function can change a value. Expose reports whether
// there is such a hook.
func Expose[T any](s Session, name string, v T) bool { return byzantine.Apply(s.Hooks, name, v) }

// Own registers a secret of the session for erasure at the end of the run, and shows it to the hook
// of this name.
func Own[T secret.Wiper](s Session, name string, v T) {
	s.Secrets.Own(v)
	Expose(s, name, v)
}

// Draw samples dst from a stream, and shows it to the hook of this name. The caller erases dst.
func Draw[S any](s Session, name string, from func(dst []int64, stream S), dst []int64, stream S) {
	from(dst, stream)
	Expose(s, name, dst)
}

// Bind returns the digest by which this party commits to v, or agrees on v with the others. The
// hook of this name receives v before.
func Bind[T any](s Session, name string, v T, digest func(T) Digest) Digest {
	Expose(s, name, v)
	return digest(v)
}

// hooked is the context key of the hooks of the party whose machine steps.
type hooked struct{}

// withHooks passes the session's hooks to exposeResult.
func withHooks(ctx context.Context, s Session) context.Context {
	if s.Hooks == (byzantine.Hooks{}) {
		return ctx
	}
	return context.WithValue(ctx, hooked{}, s.Hooks)
}

// exposeResult shows the result of a chain, before the next chain takes it, to the hook of its
// type's name: as a pointer, or as the value if it refers to what a test changes.
func exposeResult[T any](ctx context.Context, v T) T {
	if h, ok := ctx.Value(hooked{}).(byzantine.Hooks); ok {
		name := fmt.Sprintf("%T", v)
		if !byzantine.Try(h, name, &v) {
			byzantine.Apply(h, name, v)
		}
	}
	return v
}

// Omits reports whether this party ignores the result of the named check. Cheating parties do so to
// keep sending, and observers do so in tests that show the attack without the check.
func (s Session) Omits(check string) bool { return s.Hooks.Skips(check) }

// Failures is the name, for Omits, of the end of a session after a failure. A party that omits it
// still sends all its messages of the round.
const Failures = "failures"

// exposed is a body that was made of a value, which a test may change before the body is encoded.
type exposed interface {
	// expose shows the value; again says that it has shown a message of this name before.
	expose(s Session, name string, again bool)
}

// expose shows each message to the hook of its name: as a *Body, as its bytes (*[]byte, or []byte
// to change in place), or as the value that an encoded body was made of. Encoded messages of one
// name to several recipients are made of one value, which the hook receives once; those of FramesOf
// are made of one value each. A commit-then-open step has shown its content before the commitment.
func (s Session) expose(send []Message) {
	if s.Hooks == (byzantine.Hooks{}) {
		return
	}
	seen := map[string]bool{}
	for i := range send {
		m := &send[i]
		if m.shown || byzantine.Try(s.Hooks, m.Name, &m.Body) {
			continue
		}
		switch b := m.Body.(type) {
		case whole:
			content := []byte(b)
			if byzantine.Try(s.Hooks, m.Name, &content) {
				m.Body = Bytes(content)
			} else {
				Expose(s, m.Name, content)
			}
		case exposed:
			b.expose(s, m.Name, seen[m.Name])
		}
		seen[m.Name] = true
	}
}
