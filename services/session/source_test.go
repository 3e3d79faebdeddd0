package session

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// If the generators of two copies of a machine return the same bytes, masks still differ between
// sessions and between parties.
func TestSessionsOfOneSeedDiffer(t *testing.T) {
	seed := make([]byte, 1<<10)
	rand.Read(seed)
	first := func(id byte, self round.Party, parties int) string {
		t.Helper()
		s, err := sourceOf(bytes.NewReader(seed), round.Session{ID: round.Digest{id}, Self: self, Parties: parties})
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 32)
		io.ReadFull(s.Stream("mask"), b)
		return string(b)
	}
	seen := map[string]bool{}
	for _, got := range []string{first(1, 0, 2), first(2, 0, 2), first(1, 1, 2), first(1, 0, 3), first(2, 1, 2)} {
		if seen[got] {
			t.Error("two sessions have the same masks")
		}
		seen[got] = true
	}
	if again := first(1, 0, 2); !seen[again] {
		t.Error("two sources of one session with one seed differ: the differences above may not come from the binding")
	}
}

func TestBrokenGeneratorsAreRefused(t *testing.T) {
	rs := round.Session{ID: round.Digest{1}, Parties: 2}
	if _, err := sourceOf(bytes.NewReader(make([]byte, 1<<10)), rs); !errors.Is(err, sample.ErrWeakSeed) {
		t.Errorf("zeros: %v", err)
	}
	if _, err := sourceOf(bytes.NewReader(nil), rs); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := Source("test"); err != nil {
		t.Errorf("the system's generator: %v", err)
	}
}
