// Package logs makes the log of a process: structured lines at a level that can be changed while the process runs, for
// a while or until it ends.
//
// Lines about the same thing name it by the same keys: job and ordinal for a session as the coordinator numbers it, session
// for its id in hexadecimal once its parties have one, protocol, round, and peer for another party by its name.
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

// Levels by name, the most talkative first.
var Levels = []string{"debug", "info", "warn", "error"}

// ParseLevel reads the name of a level.
func ParseLevel(name string) (slog.Level, error) {
	var l slog.Level
	for _, known := range Levels {
		if name == known {
			return l, l.UnmarshalText([]byte(name))
		}
	}
	return l, fmt.Errorf("%q is not one of %s", name, strings.Join(Levels, ", "))
}

// LevelName is the name that ParseLevel reads.
func LevelName(l slog.Level) string { return strings.ToLower(l.String()) }

// New is a log that writes text, or JSON, at the level info.
func New(w io.Writer, asJSON bool) *slog.Logger {
	level := &Level{}
	o := &slog.HandlerOptions{Level: &level.now}
	if asJSON {
		return slog.New(handler{slog.NewJSONHandler(w, o), level})
	}
	return slog.New(handler{slog.NewTextHandler(w, o), level})
}

// handler knows its level.
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

// LevelOf is the level of a log that New made. A log of another make has one that changes nothing.
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

// Level of a log. Its methods are safe for concurrent use.
type Level struct {
	now slog.LevelVar

	mu         sync.Mutex
	configured slog.Level
	until      time.Time // when the configured one is back; zero: it is not left, or for good
	timer      *time.Timer
}

// Configure sets the level to which the log comes back.
func (l *Level) Configure(to slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.configured = to
	l.set(to)
}

// Set changes the level for a while, or with 0 until it is changed again.
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

// set changes the level for good. The caller holds the lock.
func (l *Level) set(to slog.Level) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer, l.until = nil, time.Time{}
	l.now.Set(to)
}

// Now is the level, and until when if it was changed for a while.
func (l *Level) Now() (level slog.Level, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.Level(), l.until
}
