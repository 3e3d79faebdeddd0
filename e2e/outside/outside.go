// Package outside helps tests that drive a cluster like an operator: with commands, from outside of
// its processes.
package outside

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is the timeout for expected events. It allows for a busy machine.
const patience = 10 * time.Minute

// Operator runs commands on a cluster.
type Operator struct {
	T      *testing.T
	Binary string // lodge
	Dir    string // directory of the cluster
}

// Try runs a command and returns its output.
func (o *Operator) Try(args ...string) (string, error) {
	out, err := exec.Command(o.Binary, append(args, "--cluster", o.Dir)...).Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		err = fmt.Errorf("lodge %s: %w: %s", strings.Join(args, " "), err, ended.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// Run is like Try and ends the test if the command fails.
func (o *Operator) Run(args ...string) string {
	o.T.Helper()
	out, err := o.Try(args...)
	Must(o.T, err)
	return out
}

// Until waits until a condition holds.
func (o *Operator) Until(what string, holds func() bool) {
	o.T.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			o.T.Fatalf("timeout after %s: %s", patience, what)
		}
	}
}

// Ready waits until the given number of processes is ready.
func (o *Operator) Ready(processes int) {
	o.T.Helper()
	o.Until(fmt.Sprintf("%d processes are ready", processes), func() bool {
		out, err := o.Try("status", "--json")
		return err == nil && strings.Count(out, `"state": "ready"`) == processes
	})
}

// Job has the fields of a job that tests use.
type Job struct {
	ID, State, Reason string
	Epoch             uint64
	Made              uint64 // tuples
	Parties           []struct {
		RoundIndex int `json:"round_index"`
	}
}

// Over reports whether the job has ended.
func (j Job) Over() bool {
	return slices.Contains([]string{"completed", "failed", "cancelled", "timed_out"}, j.State)
}

// Reached reports whether a party has reached this round.
func (j Job) Reached(round int) bool {
	for _, p := range j.Parties {
		if p.RoundIndex >= round {
			return true
		}
	}
	return false
}

// Submit queues a job and returns its id.
func (o *Operator) Submit(args ...string) string {
	o.T.Helper()
	return strings.Fields(o.Run(append([]string{"jobs", "submit"}, args...)...))[0]
}

// Show returns a job, or an empty job while the coordinator does not respond.
func (o *Operator) Show(id string) (j Job) {
	o.T.Helper()
	out, err := o.Try("jobs", "show", id, "--json")
	if err == nil {
		Must(o.T, json.Unmarshal([]byte(out), &j))
	}
	return j
}

// Complete waits for jobs and returns the last; it ends the test if a job does not complete.
func (o *Operator) Complete(ids ...string) (last Job) {
	o.T.Helper()
	for _, id := range ids {
		for last = o.Show(id); !last.Over(); last = o.Show(id) {
			time.Sleep(time.Second) // frequent polling takes CPU time from the parties
		}
		if last.State != "completed" {
			o.T.Fatalf("%s is %s: %s", id, last.State, last.Reason)
		}
	}
	return last
}

// FreeAddress returns an address that is currently unused.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// Must ends the test if err is not nil.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
