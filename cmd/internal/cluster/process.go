package cluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
)

// Process is a coordinator or a party that runs as a child of this process.
type Process struct {
	Name string
	Log  string // file to which the process writes

	role, config string // role: coordinator or party; config: its configuration file
	cpu          int    // the only CPU that it uses, or anyCPU

	from  int64 // offset in the log where this run begins
	begun time.Time
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process has ended
}

// anyCPU lets a process run on all CPUs.
const anyCPU = -1

// run starts this program again as the process that p describes. The output is appended to the log.
func (p Process) run() (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if p.from, err = log.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	p.begun, p.done = time.Now(), make(chan struct{})
	p.cmd = exec.Command(self, p.role, "--config", p.config)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttributes()
	if err := onCPU(p.cpu, p.cmd.Start); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // ending describes the result
	}()
	return &p, nil
}

// PID returns the process's identifier.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the process with SIGKILL and waits until it has ended.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.done
	return nil
}

// ResetPeak sets the process's peak resident size to its current one, if the system allows it.
// Linux allows it only to the superuser, because parties and coordinators deny other users access
// to their memory.
func (p *Process) ResetPeak() { ResetPeak(p.PID()) }

// ending describes how a process that is done has ended: the signal that killed it, or its last
// line.
func (p *Process) ending() string {
	state := p.cmd.ProcessState
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return fmt.Sprintf("%s was killed (signal %d)", p.Name, int(w.Signal()))
	}
	text := fmt.Sprintf("%s has ended (%s)", p.Name, state)
	if last := p.lastLine(); last != "" && !state.Success() {
		text += ": " + terminal.OneLine(last)
	}
	return text
}

// lastBytes is the size of the part of a log that lastLine searches.
const lastBytes = 64 << 10

// lastLine returns the last line that this run of the process wrote.
func (p *Process) lastLine() string {
	f, err := os.Open(p.Log)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	from := max(p.from, size-lastBytes)
	b, _ := io.ReadAll(io.NewSectionReader(f, from, size-from))
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
