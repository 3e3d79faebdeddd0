// Package doctor looks for what keeps a cluster from working: files, keys and certificates of processes on this machine,
// and versions, pins, clocks, stores and the network of those that run. It changes nothing, beyond a file that it writes
// beside a vault to see how fast the disk is, and removes.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// Status of a finding.
type Status string

// The statuses: Fail keeps the cluster, or a part of it, from working.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Finding is what one check found, on one line.
type Finding struct {
	Status  Status `json:"status"`
	Subject string `json:"subject"` // a process, "p0 to p1", or "cluster"
	Check   string `json:"check"`   // one word
	What    string `json:"what"`
	Next    string `json:"next,omitempty"` // what to do
}

// Process is one whose files are on this machine: a party, the coordinator, or an evaluator.
type Process struct {
	File  string
	Name  string            // in the roster; of an evaluator, as its party names it
	Party *config.PartyFile // nil unless it is one

	roster   *config.Roster // nil of an evaluator
	identity string         // that its certificate must have; an evaluator's is known to its party only
	tls      config.TLS
	params   []config.ParamsPin
	memory   config.Bytes // that it may take; 0 of the coordinator
}

// Options say what to look at.
type Options struct {
	// Files of processes on this machine.
	Files []string
	// Roster of the cluster. With Routes it has no more than names, addresses and identities, and no digest.
	Roster *config.Roster
	Routes bool
	// Credentials, and whatever else it takes to connect. Nil: only files are looked at.
	Credentials *rpc.Credentials
	Dial        func(identity string) []rpc.DialOption
	// Self is the process whose credentials these are, which need not run; empty for those of a client.
	Self string
	// Version of this build.
	Version string
	// ProbeBytes are sent between parties, over each link; 0 measures round trips only.
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

// Examine looks at everything. What it finds goes to Options.Found.
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

// Connect gives what it takes to ask the others as this process; nil credentials when its files are not good for that,
// which Examine says, and of an evaluator, which calls nobody.
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
