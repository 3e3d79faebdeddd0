package triples

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The older session goes first, sessions of another class do not wait, and a session that gives up
// costs no turn.
func TestTurns(t *testing.T) {
	turns := newTurns(time.Hour)
	turns.atOnce = 1
	first, second, third, fourth := turns.join(), turns.join(), turns.join(), turns.join()
	leave, err := turns.take(t.Context(), "a", third)
	if err != nil {
		t.Fatal(err)
	}
	other, err := turns.take(t.Context(), "b", fourth)
	if err != nil {
		t.Fatal(err)
	}
	other()

	waits := func(n int) {
		t.Helper()
		for begun := time.Now(); ; time.Sleep(time.Millisecond) {
			turns.mu.Lock()
			got := len(turns.crowds["a"].waiting)
			turns.mu.Unlock()
			if got == n {
				return
			}
			if time.Since(begun) > time.Minute {
				t.Fatalf("%d wait and not %d", got, n)
			}
		}
	}
	order := make(chan uint64, 4)
	enter := func(ctx context.Context, age uint64) chan error {
		done := make(chan error, 1)
		go func() {
			leave, err := turns.take(ctx, "a", age)
			if err == nil {
				order <- age
				leave()
			}
			done <- err
		}()
		return done
	}
	fails, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	given := enter(fails, fourth)
	waits(1)
	late := enter(t.Context(), second)
	waits(2)
	early := enter(t.Context(), first)
	waits(3)
	cancel(gone)
	if err := <-given; !errors.Is(err, gone) {
		t.Errorf("gave up with %v", err)
	}
	waits(2)
	leave()
	if err := errors.Join(<-early, <-late); err != nil {
		t.Fatal(err)
	}
	if a, b := <-order, <-order; a != first || b != second {
		t.Errorf("turns were %d, %d", a, b)
	}
	if len(turns.crowds) != 0 {
		t.Errorf("%d classes are left", len(turns.crowds))
	}
}

// A session whose turn comes as it gives up passes it on.
func TestTurnsArePassedOn(t *testing.T) {
	turns := newTurns(time.Hour)
	turns.atOnce = 1
	for range 200 {
		leave, err := turns.take(t.Context(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if l, err := turns.take(ctx, "a", 2); err == nil {
				l()
			}
		}()
		go cancel()
		leave()
		<-done
	}
	if len(turns.crowds) != 0 {
		t.Error("a turn was lost")
	}
}

// A session that has waited long enough continues, without taking the turn of another.
func TestTurnsEnd(t *testing.T) {
	turns := newTurns(time.Millisecond)
	turns.atOnce = 1
	leave, err := turns.take(t.Context(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	second, err := turns.take(t.Context(), "a", 2)
	if err != nil {
		t.Fatal(err)
	}
	second()
	if c := turns.crowds["a"]; c == nil || c.running != 1 || len(c.waiting) != 0 {
		t.Errorf("%+v", c)
	}
	leave()
	if len(turns.crowds) != 0 {
		t.Error("a turn was lost")
	}
}
