// Package terminaltest helps to test output to a terminal.
package terminaltest

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Screen collects the output of a command. It is safe for concurrent use.
type Screen struct {
	T    *testing.T
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *Screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// String returns the output so far.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Shows waits until all of the texts have been written.
func (s *Screen) Shows(want ...string) {
	s.T.Helper()
	until := time.Now().Add(20 * time.Second)
	for _, w := range want {
		for !strings.Contains(s.String(), w) {
			if time.Now().After(until) {
				s.T.Fatalf("no %q in 20 s:\n%s", w, s)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}
