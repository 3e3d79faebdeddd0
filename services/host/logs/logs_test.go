package logs

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A temporary level ends automatically, unless it is changed again.
func TestLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := LevelOf(New(io.Discard, false))
		l.Configure(slog.LevelWarn)
		is := func(want slog.Level, left time.Duration) {
			t.Helper()
			level, until := l.Now()
			if level != want || (left == 0) != until.IsZero() || left > 0 && time.Until(until) != left {
				t.Errorf("%s until %v, want %s for %s", level, until, want, left)
			}
		}
		is(slog.LevelWarn, 0)
		l.Set(slog.LevelDebug, time.Minute)
		is(slog.LevelDebug, time.Minute)
		time.Sleep(time.Second)
		l.Set(slog.LevelInfo, time.Hour)
		time.Sleep(time.Minute)
		synctest.Wait()
		is(slog.LevelInfo, time.Hour-time.Minute)
		time.Sleep(time.Hour)
		synctest.Wait()
		is(slog.LevelWarn, 0)
		l.Set(slog.LevelError, 0)
		time.Sleep(time.Hour)
		is(slog.LevelError, 0)
		l.Set(slog.LevelDebug, time.Minute)
		l.Set(slog.LevelWarn, time.Minute) // the configured level needs no time limit
		is(slog.LevelWarn, 0)
	})
}

// Derived logs follow the level of their parent.
func TestLines(t *testing.T) {
	var b bytes.Buffer
	log := New(&b, true)
	of := log.With("job", "j1").WithGroup("g")
	of.Debug("unheard")
	LevelOf(of).Set(slog.LevelDebug, 0)
	of.Debug("heard", "x", 1)
	var line struct {
		Message string         `json:"msg"`
		Job     string         `json:"job"`
		G       map[string]any `json:"g"`
	}
	if err := json.Unmarshal(b.Bytes(), &line); err != nil || line.Message != "heard" || line.Job != "j1" || line.G["x"] != 1.0 {
		t.Errorf("%s: %v", b.Bytes(), err)
	}
}

func TestNames(t *testing.T) {
	for _, name := range Levels {
		l, err := ParseLevel(name)
		if err != nil || LevelName(l) != name {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	for _, bad := range []string{"", "DEBUG", "debug+1", "trace", "7"} {
		if l, err := ParseLevel(bad); err == nil {
			t.Errorf("%q: %v", bad, l)
		}
	}
	if l, _ := LevelOf(slog.New(slog.NewTextHandler(io.Discard, nil))).Now(); l != slog.LevelInfo {
		t.Errorf("a log not created by New: %v", l)
	}
}
