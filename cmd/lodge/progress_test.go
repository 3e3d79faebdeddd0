package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// Where nobody looks there is a line now and then, without a bar; on a terminal there is a bar; beside JSON nothing.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	move := newTransfer(p, 0, 1000)
	move.at(500)
	move.at(1000)
	if out.Len() > 0 {
		t.Errorf("soon, and not on a terminal: %q", out.String())
	}
	p.last = p.last.Add(-quietTime)
	move.at(600)
	move.at(700)
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "  600 B of 1 kB, ") || strings.Contains(text, "#") {
		t.Errorf("after %s: %q", quietTime, text)
	}
	p.say("important")
	p.say("important")
	p.note("important")
	p.note("important")
	if n := strings.Count(out.String(), "important\n"); n != 3 {
		t.Errorf("%d lines: %q", n, out.String())
	}

	out.Reset()
	p = &progress{w: &out, terminal: true, begun: time.Now()}
	move = newTransfer(p, 0, 1000)
	move.at(500)
	move.at(501) // too soon
	move.at(1000)
	p.done()
	if text := out.String(); strings.Count(text, "\r") != 2 || !strings.Contains(text, "[##########          ] 500 B of 1 kB") ||
		!strings.Contains(text, "[####################] 1 kB of 1 kB") || !strings.HasSuffix(text, "\n") {
		t.Errorf("on a terminal: %q", text)
	}

	out.Reset()
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	progressOf(cmd, true).say("x")
	if out.Len() > 0 {
		t.Errorf("beside JSON: %q", out.String())
	}
	if progressOf(cmd, false).say("x"); out.Len() == 0 {
		t.Error("nothing is said")
	}
}
