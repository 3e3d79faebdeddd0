package console

import (
	"net/http"
	"runtime"
	"testing"

	"golang.org/x/time/rate"
)

// memory returns the memory in use, after a collection.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// A thousand open pages of four identities cost a bounded amount of memory: streams beyond
// console.max_streams are refused. The figure includes the browsers, which run in the same process.
func TestThousandPages(t *testing.T) {
	w := newWorld(t)
	w.console.attempts.SetLimit(rate.Inf)
	before := memory()
	open, refused := 0, 0
	for _, name := range []string{"anna", "ben", "cleo", "alice"} {
		for range sessionsOne {
			b := w.in(name)
			for range 8 {
				s := b.stream(statusRPC + "WatchStatus")
				if s.StatusCode == http.StatusTooManyRequests {
					s.Body.Close()
					refused++
					continue
				}
				if _, end, err := s.next(); err != nil || end {
					t.Fatalf("%d pages are open: %v", open, err)
				}
				open++
			}
		}
	}
	grown := int64(memory()) - int64(before)
	if open+refused != 1024 || open != 512 {
		t.Errorf("%d pages are open, %d refused", open, refused)
	}
	t.Logf("%d open pages of %d sessions, with their browsers: %d KiB", open, len(w.console.sessions.all()), grown>>10)
	if grown > 128<<20 {
		t.Errorf("%d open pages take %d MiB", open, grown>>20)
	}
}
