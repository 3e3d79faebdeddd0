// Package outside is for tests that drive a cluster as its operator does: by commands, from outside of its processes.
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

// patience is for what must come to pass, however busy the machine is.
const patience = 10 * time.Minute

// Operator runs commands on a cluster.
type Operator struct {
	T      *testing.T
	Binary string // lodge
	Dir    string // of the cluster
}

// Try runs one and gives what it writes.
func (o *Operator) Try(args ...string) (string, error) {
	out, err := exec.Command(o.Binary, append(args, "--cluster", o.Dir)...).Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		err = fmt.Errorf("lodge %s: %w: %s", strings.Join(args, " "), err, ended.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// Run is Try that must succeed.
func (o *Operator) Run(args ...string) string {
	o.T.Helper()
	out, err := o.Try(args...)
	Must(o.T, err)
	return out
}

// Until waits for something to hold.
func (o *Operator) Until(what string, holds func() bool) {
	o.T.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			o.T.Fatalf("not in %s: %s", patience, what)
		}
	}
}

// Ready waits until so many processes are.
func (o *Operator) Ready(processes int) {
	o.T.Helper()
	o.Until(fmt.Sprintf("%d processes are ready", processes), func() bool {
		out, err := o.Try("status", "--json")
		return err == nil && strings.Count(out, `"state": "ready"`) == processes
	})
}

// Job is what tests read of one.
type Job struct {
	ID, State, Reason string
	Epoch             uint64
	Made              uint64 // tuples
	Parties           []struct {
		RoundIndex int `json:"round_index"`
	}
}

// Over reports whether it has ended.
func (j Job) Over() bool {
	return slices.Contains([]string{"completed", "failed", "cancelled", "timed_out"}, j.State)
}

// Reached reports whether a party has come as far as this round.
func (j Job) Reached(round int) bool {
	for _, p := range j.Parties {
		if p.RoundIndex >= round {
			return true
		}
	}
	return false
}

// Submit queues a job and gives its id.
func (o *Operator) Submit(args ...string) string {
	o.T.Helper()
	return strings.Fields(o.Run(append([]string{"jobs", "submit"}, args...)...))[0]
}

// Show asks for a job; it is empty while the coordinator does not answer.
func (o *Operator) Show(id string) (j Job) {
	o.T.Helper()
	out, err := o.Try("jobs", "show", id, "--json")
	if err == nil {
		Must(o.T, json.Unmarshal([]byte(out), &j))
	}
	return j
}

// Complete waits for jobs, which must complete, and gives the last.
func (o *Operator) Complete(ids ...string) (last Job) {
	o.T.Helper()
	for _, id := range ids {
		for last = o.Show(id); !last.Over(); last = o.Show(id) {
			time.Sleep(time.Second) // to ask takes a processor from the parties
		}
		if last.State != "completed" {
			o.T.Fatalf("%s is %s: %s", id, last.State, last.Reason)
		}
	}
	return last
}

// FreeAddress is one where nobody listens now.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// Must ends the test when there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
