//go:build compose

package compose

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
)

// stock has the reservations and batches that exist before the faults.
type stock struct {
	scalar string // reservations
	matrix string
	// struck is the epoch of the jobs during which processes are hit. A party that dies during a
	// MAC check burns the key and its tuples.
	struck uint64
}

// stock makes keys, scalars and a matrix triple, and reserves tuples.
func (c cluster) stock() stock {
	keys := c.job("--kind", "keys", "--dim", "4")
	epoch := strconv.FormatUint(keys.Epoch, 10)
	c.job("--kind", "scalar", "--epoch", epoch, "--count", "100")
	c.job("--kind", "matrix", "--epoch", epoch, "--shape", "4x4x4")
	return stock{
		struck: c.job("--kind", "keys", "--dim", "4").Epoch,
		scalar: c.lodge("reserve", "--kind", "scalar", "--count", "100", "--epoch", epoch, "--lease", "2h", "--wait"),
		matrix: c.lodge("reserve", "--kind", "matrix", "--shape", "4x4x4", "--count", "1", "--epoch", epoch, "--lease", "2h", "--wait"),
	}
}

// strike hits a process in the middle of a job. Whether or not that job completes, the service must
// recover without intervention, and the next job must complete.
func (c cluster) strike(service, fault string, epoch uint64) {
	e := strconv.FormatUint(epoch, 10)
	id := strings.Fields(c.lodge("jobs", "submit", "--kind", "scalar", "--epoch", e, "--count", "100"))[0]
	show := func() (j jobRecord) { return ask[jobRecord](c, "jobs", "show", id) }
	c.until("a round of the job", func() bool {
		j := show()
		for _, p := range j.Parties {
			if p.RoundIndex >= 2 {
				return true
			}
		}
		return j.final()
	})
	container := c.container(service)
	restarts := c.inspect(service, "{{.RestartCount}}")
	switch fault {
	case "killed":
		pid, err := strconv.Atoi(c.inspect(service, "{{.State.Pid}}"))
		if err != nil || pid <= 1 {
			c.t.Fatal(pid, err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			c.t.Fatal(err)
		}
		c.until(service+" is started again", func() bool { return c.inspect(service, "{{.RestartCount}} {{.State.Running}}") != restarts+" true" })
	case "cut off":
		network := c.inspect(service, "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}")
		c.docker("network", "disconnect", network, container)
		c.gone(service)
		c.docker("network", "connect", "--alias", service, network, container)
	case "paused":
		c.docker("pause", container)
		c.gone(service)
		c.docker("unpause", container)
	}
	c.healthy(service)
	c.until("the job ends", func() bool {
		text, err := c.output(*lodgeFlag, "jobs", "show", id, "--json", "--cluster", "lodge-cluster")
		var j jobRecord
		return err == nil && json.Unmarshal([]byte(text), &j) == nil && j.final()
	})
	c.t.Logf("the interrupted job: %s", show().State)
	c.job("--kind", "scalar", "--epoch", e, "--count", "100")
}

// gone waits until a process no longer responds to clients.
func (c cluster) gone(service string) {
	c.t.Helper()
	c.until(service+" does not answer", func() bool {
		r := ask[struct {
			Processes []struct{ Name, State string }
		}](c, "status")
		for _, p := range r.Processes {
			if p.Name == service {
				return p.State == "away"
			}
		}
		c.t.Fatalf("no %s: %+v", service, r)
		return false
	})
}

// again stops and restarts all services, and checks the stock and the reservations.
func (c cluster) again(s stock) {
	before := c.batches()
	roster, err := os.ReadFile(filepath.Join(*treeFlag, "lodge-cluster", "roster.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.compose("down", "--timeout", "30")
	c.compose("up", "--detach", "--wait")
	if after, err := os.ReadFile(filepath.Join(*treeFlag, "lodge-cluster", "roster.yaml")); err != nil || string(after) != string(roster) {
		c.t.Errorf("another roster (%v)", err)
	}
	if after := c.batches(); !slices.Equal(after, before) || len(after) == 0 {
		c.t.Errorf("before: %+v\nafter: %+v", before, after)
	}
	root, dirs := c.t.TempDir(), map[string]string{"scalar": s.scalar, "matrix": s.matrix}
	for kind, id := range dirs {
		for _, p := range parties {
			c.lodge("fetch", id, "--party", p, "--out", filepath.Join(root, kind, p))
		}
	}
	// Both are under one MAC key, which the parties reveal only once: revealing it ends its epoch.
	key := ask[struct {
		MACKey string `json:"mac_key"`
	}](c, "reservations", "show", s.scalar).MACKey
	for _, p := range parties {
		c.lodge("mac-keys", "draw", key, "--party", p, "--pool", "--into", filepath.Join(root, "scalar", p), "--yes")
		m, err := tuplefile.ReadManifest(filepath.Join(root, "scalar", p))
		if err != nil {
			c.t.Fatal(err)
		}
		if err := tuplefile.AddPooledKey(filepath.Join(root, "matrix", p), m.MACKeyShare); err != nil {
			c.t.Fatal(err)
		}
	}
	for kind := range dirs {
		c.t.Log(c.run(*lodgeFlag, "verify", filepath.Join(root, kind)))
	}
}

// batch is a party's view of a batch.
type batch struct {
	ID, State, Digest string
	Count             uint64
}

func (c cluster) batches() []batch {
	c.t.Helper()
	return ask[struct{ Batches []batch }](c, "batches", "list", "--party", "p1").Batches
}

// away removes the cluster and checks that no part of it remains.
func (c cluster) away() {
	c.compose("--profile", "*", "down", "--volumes", "--timeout", "30")
	if left := c.docker("ps", "--all", "--quiet") + c.docker("volume", "ls", "--quiet"); left != "" {
		c.t.Errorf("left: %s", left)
	}
}
