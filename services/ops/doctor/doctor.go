// Package doctor looks for problems that prevent a cluster from working: in the files, keys and
// certificates of processes on this machine, and in the versions, pins, clocks, stores and network
// of running processes. It changes nothing, except that it writes and removes a file next to a
// vault to measure the speed of the disk.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Status is the status of a finding.
type Status string

// The statuses. Fail means that the cluster, or a part of it, cannot work.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Finding is the result of one check, on one line.
type Finding struct {
	Status  Status `json:"status"`
	Subject string `json:"subject"` // a process, "p0 to p1", or "cluster"
	Check   string `json:"check"`   // one word
	What    string `json:"what"`
	Next    string `json:"next,omitempty"` // the next step
}

// Process is a process whose files are on this machine: a party, the coordinator, or an evaluator.
type Process struct {
	File  string
	Name  string            // in the roster; for an evaluator, as its party names it
	Party *config.PartyFile // nil for other processes

	roster   *config.Roster // nil for an evaluator
	identity string         // that its certificate must have; only its party knows an evaluator's
	tls      config.TLS
	params   []config.ParamsPin
	memory   config.Bytes // its configured maximum; 0 for the coordinator
}

// Options selects what to examine.
type Options struct {
	// Files lists configuration files of processes on this machine.
	Files []string
	// Roster is the roster of the cluster. With Routes it contains only names, addresses and
	// identities, and has no digest.
	Roster *config.Roster
	Routes bool
	// Credentials and further options for connecting. If Credentials is nil, only files are
	// examined.
	Credentials *rpc.Credentials
	Dial        func(identity string) []rpc.DialOption
	// Self is the process to which the credentials belong, which need not run; empty for those of a
	// client.
	Self string
	// Version is the version of this build.
	Version string
	// ProbeBytes are sent between parties over each link; 0 measures only round trips.
	ProbeBytes uint64
	// Found is called with every finding as it is made.
	Found func(Finding)
}

// examination is one call of Examine.
type examination struct {
	Options
	now       time.Time
	processes []*Process
	asked     []*Answer
}

// Examine runs all checks and calls Options.Found with their findings.
func Examine(ctx context.Context, o Options) {
	e := &examination{Options: o, now: time.Now()}
	for _, file := range o.Files {
		if p := e.load(file); p != nil {
			e.processes = append(e.processes, p)
			e.local(ctx, p)
		}
	}
	e.rosters()
	e.memory()
	if o.Credentials == nil {
		return
	}
	defer func() {
		for _, a := range e.asked {
			a.Close()
		}
	}()
	e.network(ctx)
}

func (e *examination) found(s Status, subject, check, next, format string, args ...any) {
	if s == OK {
		next = ""
	}
	e.Found(Finding{s, subject, check, fmt.Sprintf(format, args...), next})
}

func (e *examination) ok(subject, check, format string, args ...any) {
	e.found(OK, subject, check, "", format, args...)
}

func (e *examination) warn(subject, check, next, format string, args ...any) {
	e.found(Warn, subject, check, next, format, args...)
}

func (e *examination) fail(subject, check, next, format string, args ...any) {
	e.found(Fail, subject, check, next, format, args...)
}

// grade reports a measurement: a failure if bad, a warning if only poor.
func (e *examination) grade(subject, check, next, text string, bad, poor bool) {
	s := OK
	switch {
	case bad:
		s = Fail
	case poor:
		s = Warn
	}
	e.found(s, subject, check, next, "%s", text)
}

// Connect returns the roster and the credentials with which this process calls the others. The
// credentials are nil if the process's files are not valid, which Examine reports, and for an
// evaluator, which calls no other process.
func (p *Process) Connect() (*config.Roster, *rpc.Credentials) {
	if p.roster == nil {
		return nil, nil
	}
	c, err := rpc.LoadCredentials(p.tls.Files())
	if err != nil {
		return p.roster, nil
	}
	return p.roster, c
}
