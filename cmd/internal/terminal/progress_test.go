package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// If the output is not a terminal, lines are rare and have no bar. A terminal shows a bar.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out)
	move := NewTransfer(p, 0, 1000)
	move.At(500)
	move.At(1000)
	if out.Len() > 0 {
		t.Errorf("a line was written too soon: %q", out.String())
	}
	p.last = p.last.Add(-quietTime)
	move.At(600)
	move.At(700)
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "  600 B of 1 kB, ") || strings.Contains(text, "#") {
		t.Errorf("after %s: %q", quietTime, text)
	}
	p.Say("important")
	p.Say("important")
	p.Note("important")
	p.Note("important")
	if n := strings.Count(out.String(), "important\n"); n != 3 {
		t.Errorf("%d lines: %q", n, out.String())
	}

	out.Reset()
	p = &Progress{w: &out, terminal: true, begun: time.Now()}
	move = NewTransfer(p, 0, 1000)
	move.At(500)
	move.At(501) // too soon
	move.At(1000)
	p.Done()
	if text := out.String(); strings.Count(text, "\r") != 2 || !strings.Contains(text, "[##########          ] 500 B of 1 kB") ||
		!strings.Contains(text, "[####################] 1 kB of 1 kB") || !strings.HasSuffix(text, "\n") {
		t.Errorf("on a terminal: %q", text)
	}
}
