package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// quietTime is how long nothing is said of what goes on, where nobody looks at a terminal.
const quietTime = 10 * time.Second

// progress shows one line that changes on a terminal, and a line now and then elsewhere. It may be used by several
// goroutines at once.
type progress struct {
	w        io.Writer
	terminal bool
	begun    time.Time
	before   string // begins what is said of a job: which of several it is

	mu    sync.Mutex // of what follows
	last  time.Time  // when a line was written
	line  string
	width int // of the line on the terminal
}

func newProgress(w io.Writer) *progress {
	now := time.Now()
	return &progress{w: w, begun: now, last: now, terminal: isTerminal(w)}
}

// progressOf is the progress of a command, which writes none beside JSON.
func progressOf(cmd *cobra.Command, asJSON bool) *progress {
	if asJSON {
		return newProgress(io.Discard)
	}
	return newProgress(cmd.ErrOrStderr())
}

// isTerminal reports whether somebody looks at what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// say shows what nobody should miss, until the next line.
func (p *progress) say(format string, args ...any) { p.show(fmt.Sprintf(format, args...), true) }

// note writes a line that stays, also when it is the same again.
func (p *progress) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.write(fmt.Sprintf(format, args...))
	p.end()
}

// show shows a line unless it is there already; one that is not important only when the last one is old enough.
func (p *progress) show(line string, important bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := quietTime
	if p.terminal {
		pause = 50 * time.Millisecond
	}
	if line != p.line && (important || time.Since(p.last) >= pause) {
		p.write(line)
	}
}

func (p *progress) write(line string) {
	p.line, p.last = line, time.Now()
	line = fmt.Sprintf("%6.1f s  %s", time.Since(p.begun).Seconds(), line)
	if !p.terminal {
		fmt.Fprintln(p.w, line)
		return
	}
	fmt.Fprintf(p.w, "\r%-*s", p.width, line)
	p.width = len(line)
}

// done ends the line on a terminal.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

func (p *progress) end() {
	if p.terminal && p.width > 0 {
		fmt.Fprintln(p.w)
		p.width = 0
	}
}

// job shows a job: its state, the round of the party that is furthest behind, bytes and the time that is left of the round.
func (p *progress) job(j *coordinatorv1.Job) {
	state := strings.ToLower(strings.TrimPrefix(j.GetState().String(), "JOB_STATE_"))
	line := p.before + fmt.Sprintf("%s: %s", job.KindName(j.GetRequest().GetKind()), state)
	var behind *jobv1.Progress
	party := 0
	var sent uint64
	for i, x := range j.GetParties() {
		g := x.GetStatus().GetProgress()
		sent += g.GetSentBytes()
		if g != nil && (behind == nil || g.GetRoundIndex() < behind.GetRoundIndex()) {
			behind, party = g, i
		}
	}
	if behind != nil && !job.Final(j.GetState()) {
		line += fmt.Sprintf(", party %d in round %d %s, %s sent", party, behind.GetRoundIndex(), behind.GetRound(), amount(float64(sent)))
		if got, limit := behind.GetRoundReceivedBytes(), behind.GetRoundLimitBytes(); got > 0 && got < limit {
			spent := time.Since(behind.GetSince().AsTime()).Seconds()
			line += fmt.Sprintf(", %d %% of the round, %.0f s left", 100*got/limit, spent*float64(limit-got)/float64(got))
		}
	}
	p.show(line, job.Final(j.GetState()))
}

// transfer shows how far bytes are, and how fast they come: with a bar on a terminal.
type transfer struct {
	*progress
	begun             time.Time
	done0, now, total int64
}

func newTransfer(p *progress, have, total int64) *transfer {
	return &transfer{p, time.Now(), have, have, total}
}

// Write counts.
func (t *transfer) Write(b []byte) (int, error) {
	t.at(t.now + int64(len(b)))
	return len(b), nil
}

// at shows that so many of the bytes are there.
func (t *transfer) at(now int64) {
	t.now = now
	rate := float64(t.now-t.done0) / max(time.Since(t.begun).Seconds(), 1e-3)
	text := fmt.Sprintf("%s of %s, %s/s", amount(float64(t.now)), amount(float64(t.total)), amount(rate))
	if left := time.Duration(float64(t.total-t.now) / max(rate, 1) * float64(time.Second)); left > time.Second {
		text += ", " + left.Round(time.Second).String() + " left"
	}
	if t.terminal {
		text = bar(t.now, t.total) + " " + text
	}
	t.show(text, t.terminal && t.now == t.total)
}

// bar draws how much of a total is done.
func bar(done, total int64) string {
	const width = 20
	b := []byte("[                    ]")
	for i := range int64(width) {
		if total == 0 || done*width >= (i+1)*total {
			b[i+1] = '#'
		}
	}
	return string(b)
}
