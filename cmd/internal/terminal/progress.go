// Package terminal writes progress and amounts for the people who run a command.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// quietTime is the shortest time between two unimportant lines if the output is not a terminal.
const quietTime = 10 * time.Second

// Progress shows one changing line on a terminal, and occasional lines elsewhere. Several
// goroutines may use it at once.
type Progress struct {
	Prefix string // precedes the state of a job, to tell several jobs apart; set it before use

	w        io.Writer
	terminal bool
	begun    time.Time

	mu    sync.Mutex // protects the fields below
	last  time.Time  // of the last line written
	line  string
	width int // of the line on the terminal
}

// NewProgress returns a Progress that writes to w. Its lines start with the time since this call.
func NewProgress(w io.Writer) *Progress {
	now := time.Now()
	return &Progress{w: w, begun: now, last: now, terminal: Is(w)}
}

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	if x, ok := w.(interface{ Unwrap() io.Writer }); ok {
		return Is(x.Unwrap())
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Width returns the width of the terminal that w is, or 0 if w is not a terminal.
func Width(w io.Writer) int {
	if x, ok := w.(interface{ Unwrap() io.Writer }); ok {
		return Width(x.Unwrap())
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Say shows an important line until the next one.
func (p *Progress) Say(format string, args ...any) { p.Show(fmt.Sprintf(format, args...), true) }

// Note writes a line that stays on the terminal, even if it repeats the last one.
func (p *Progress) Note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.write(fmt.Sprintf(format, args...))
	p.end()
}

// Show shows a line unless it repeats the last one. It drops an unimportant line that follows
// another one too soon.
func (p *Progress) Show(line string, important bool) {
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

func (p *Progress) write(line string) {
	p.line, p.last = line, time.Now()
	line = fmt.Sprintf("%6.1f s  %s", time.Since(p.begun).Seconds(), line)
	if !p.terminal {
		fmt.Fprintln(p.w, line)
		return
	}
	if width := Width(p.w); width > 1 { // a line that wraps could not be overwritten
		line = text.Snip(line, width-1, "…")
	}
	fmt.Fprintf(p.w, "\r%s", text.Pad(line, p.width, ' '))
	p.width = text.StringWidthWithoutEscSequences(line)
}

// Done ends the line on a terminal.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

func (p *Progress) end() {
	if p.terminal && p.width > 0 {
		fmt.Fprintln(p.w)
		p.width = 0
	}
}

// Job shows the state of a job: the round of the slowest party, the bytes sent, and the remaining
// time of the round.
func (p *Progress) Job(j *coordinatorv1.Job) {
	state := strings.ToLower(strings.TrimPrefix(j.GetState().String(), "JOB_STATE_"))
	line := p.Prefix + fmt.Sprintf("%s: %s", job.KindName(j.GetRequest().GetKind()), state)
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
		line += fmt.Sprintf(", party %d in round %d %s, %s sent", party, behind.GetRoundIndex(), behind.GetRound(), Amount(float64(sent)))
		if got, limit := behind.GetRoundReceivedBytes(), behind.GetRoundLimitBytes(); got > 0 && got < limit {
			spent := time.Since(behind.GetSince().AsTime()).Seconds()
			line += fmt.Sprintf(", %d %% of the round, %.0f s left", 100*got/limit, spent*float64(limit-got)/float64(got))
		}
	}
	p.Show(line, job.Final(j.GetState()))
}

// Transfer shows how many bytes were transferred and the rate, with a bar on a terminal.
type Transfer struct {
	*Progress
	begun             time.Time
	done0, now, total int64
}

// NewTransfer returns a Transfer of total bytes, of which have were transferred earlier.
func NewTransfer(p *Progress, have, total int64) *Transfer {
	return &Transfer{p, time.Now(), have, have, total}
}

// Write counts the bytes of b. It never fails.
func (t *Transfer) Write(b []byte) (int, error) {
	t.At(t.now + int64(len(b)))
	return len(b), nil
}

// At shows a transfer of now bytes of the total.
func (t *Transfer) At(now int64) {
	t.now = now
	rate := float64(t.now-t.done0) / max(time.Since(t.begun).Seconds(), 1e-3)
	text := fmt.Sprintf("%s of %s, %s/s", Amount(float64(t.now)), Amount(float64(t.total)), Amount(rate))
	if left := time.Duration(float64(t.total-t.now) / max(rate, 1) * float64(time.Second)); left > time.Second {
		text += ", " + left.Round(time.Second).String() + " left"
	}
	if t.terminal {
		text = bar(t.now, t.total) + " " + text
	}
	t.Show(text, t.terminal && t.now == t.total)
}

// bar draws the completed share of a total.
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

// Amount formats a number of bytes with three digits and a decimal unit.
func Amount(bytes float64) string {
	for _, unit := range []string{"B", "kB", "MB"} {
		if bytes < 1000 {
			return fmt.Sprintf("%.3g %s", bytes, unit)
		}
		bytes /= 1000
	}
	return fmt.Sprintf("%.3g GB", bytes)
}

// OneLine replaces characters that are not printable, so that text of another process fits on one
// line of a terminal.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}
