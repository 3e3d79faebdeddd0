package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process is a child of this one: a coordinator or a party.
type process struct {
	name, role, file string // role: coordinator or party; file: its configuration
	cpu              int    // that it runs on, or anyCPU
	log              string // file that takes what it writes

	from  int64 // offset in the log where this run of it begins
	begun time.Time
	cmd   *exec.Cmd
	done  chan struct{} // closed when it has ended
}

// run starts this program as such a process. What it writes goes to the end of its log.
func (p process) run() (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if p.from, err = log.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	p.begun, p.done = time.Now(), make(chan struct{})
	p.cmd = exec.Command(self, p.role, "--config", p.file)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttributes()
	if err := onCPU(p.cpu, p.cmd.Start); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // ending says how
	}()
	return &p, nil
}

// ending says how a process that is done has ended: by which signal, or else with which last words.
func (p *process) ending() string {
	state := p.cmd.ProcessState
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return fmt.Sprintf("%s was killed (signal %d)", p.name, int(w.Signal()))
	}
	text := fmt.Sprintf("%s has ended (%s)", p.name, state)
	if last := p.lastLine(); last != "" && !state.Success() {
		text += ": " + oneLine(last)
	}
	return text
}

// lastWords is how much of the end of a log is looked at for its last line, in bytes.
const lastWords = 64 << 10

// lastLine is what this run of the process wrote last.
func (p *process) lastLine() string {
	f, err := os.Open(p.log)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	from := max(p.from, size-lastWords)
	b, _ := io.ReadAll(io.NewSectionReader(f, from, size-from))
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
