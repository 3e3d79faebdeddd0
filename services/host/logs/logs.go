// Package logs creates the structured log of a process. Its level can be changed while the process
// runs, temporarily or until the process ends.
//
// Log lines use common keys: job and ordinal for the coordinator's number of a session, session for
// the session's id in hexadecimal once its parties have one, protocol, round, and peer for the name
// of another party.
package logs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Levels lists the names of the levels, the most verbose first.
var Levels = []string{"debug", "info", "warn", "error"}

// ParseLevel parses the name of a level.
func ParseLevel(name string) (slog.Level, error) {
	var l slog.Level
	for _, known := range Levels {
		if name == known {
			return l, l.UnmarshalText([]byte(name))
		}
	}
	return l, fmt.Errorf("%q is not one of %s", name, strings.Join(Levels, ", "))
}

// LevelName returns the name of a level, in the form that ParseLevel accepts.
func LevelName(l slog.Level) string { return strings.ToLower(l.String()) }

// New returns a log that writes text or JSON at the level info.
func New(w io.Writer, asJSON bool) *slog.Logger {
	level := &Level{}
	o := &slog.HandlerOptions{Level: &level.now}
	if asJSON {
		return slog.New(handler{slog.NewJSONHandler(w, o), level})
	}
	return slog.New(handler{slog.NewTextHandler(w, o), level})
}

// handler is a slog.Handler with access to its level.
type handler struct {
	slog.Handler
	level *Level
}

func (h handler) WithAttrs(list []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(list), h.level}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.level}
}

// LevelOf returns the level of a log created by New. For any other log it returns a level without
// effect.
func LevelOf(log *slog.Logger) *Level {
	if h, ok := log.Handler().(handler); ok {
		return h.level
	}
	l := &Level{}
	for _, at := range []slog.Level{slog.LevelError, slog.LevelWarn, slog.LevelInfo, slog.LevelDebug} {
		if log.Enabled(context.Background(), at) {
			l.Configure(at)
		}
	}
	return l
}

// Level is the level of a log. Its methods are safe for concurrent use.
type Level struct {
	now slog.LevelVar

	mu         sync.Mutex
	configured slog.Level
	until      time.Time // when the configured level returns; zero: the level is not temporary
	timer      *time.Timer
}

// Configure sets the configured level, to which the log returns after a temporary change.
func (l *Level) Configure(to slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.configured = to
	l.set(to)
}

// Set changes the level for a span of time, or until the next change if the span is 0.
func (l *Level) Set(to slog.Level, span time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(to)
	if span <= 0 || to == l.configured {
		return
	}
	l.until = time.Now().Add(span)
	var timer *time.Timer
	timer = time.AfterFunc(span, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.timer == timer { // not changed meanwhile
			l.set(l.configured)
		}
	})
	l.timer = timer
}

// set changes the level without a time limit. The caller must hold the lock.
func (l *Level) set(to slog.Level) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer, l.until = nil, time.Time{}
	l.now.Set(to)
}

// Now returns the level and, if it is temporary, the time when it ends.
func (l *Level) Now() (level slog.Level, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.Level(), l.until
}
