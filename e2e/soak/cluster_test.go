//go:build soak

// Package soak runs a cluster for hours: policies maintain its stock, clients draw from it, and its
// processes are killed repeatedly. e2e/soak/run runs it.
package soak

import (
	"bufio"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/e2e/outside"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// process is one process of the cluster, which the test kills and restarts.
type process struct {
	name, role, file, metrics, log string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
}

// cluster is a coordinator and parties, each in a process on this machine.
type cluster struct {
	outside.Operator
	net   *devnet.Cluster
	procs []*process // the coordinator first
}

func newCluster(t *testing.T, parties int) *cluster {
	t.Helper()
	c := &cluster{Operator: outside.Operator{T: t, Binary: *binary, Dir: filepath.Join(t.TempDir(), "cluster")}}
	var err error
	c.net, err = devnet.Write(c.Dir, devnet.Options{Parties: parties, Params: []string{*set}, Insecure: true})
	outside.Must(t, err)
	add := func(name, role, file string) {
		p := &process{name: name, role: role, file: file, metrics: outside.FreeAddress(t), log: filepath.Join(c.Dir, name+".log")}
		c.procs = append(c.procs, p)
		outside.Must(t, p.start())
		t.Cleanup(func() { p.kill() })
	}
	add("coordinator", "coordinator", c.net.Coordinator)
	for i, file := range c.net.Parties {
		add(c.net.Roster.Parties[i].Name, "party", file)
	}
	c.Ready(parties + 1)
	return c
}

// start starts the process, which appends to its previous log.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{p.role, "--config", p.file, "--set", "metrics_listen=" + p.metrics}
	if p.role == "party" {
		args = append(args, "--set", "policy.jobs_per_hour=100000", "--set", "limits.idle=5s", "--set", "limits.compute=10s")
	} else {
		args = append(args, "--set", "party_timeout=10s")
	}
	p.cmd, p.done = exec.Command(*binary, args...), make(chan struct{})
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	cmd, done := p.cmd, p.done
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	return nil
}

// kill ends the process abruptly, like a power failure.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Kill()
	<-p.done
}

// alive reports whether the process is running.
func (p *process) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// sample has the resource usage of a process.
type sample struct {
	at                       time.Time
	goroutines, files, bytes float64 // bytes: resident memory
	disk                     float64 // of its directory, without the audit log and its own log
}

// scrape reads the metrics.
func (p *process) scrape() (values map[string]float64, err error) {
	r, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + p.metrics + "/metrics")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	values = map[string]float64{}
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = v
		}
	}
	return values, lines.Err()
}

// sample measures the resource usage from the metrics and the disk.
func (p *process) sample(dir string) (s sample, err error) {
	v, err := p.scrape()
	if err != nil {
		return s, err
	}
	s = sample{at: time.Now(), goroutines: v["go_goroutines"], files: v["process_open_fds"], bytes: v["process_resident_memory_bytes"]}
	err = filepath.WalkDir(filepath.Join(dir, p.name), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // the file has been removed meanwhile
		}
		if d.IsDir() && d.Name() == "audit" {
			return filepath.SkipDir
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			s.disk += float64(info.Size())
		}
		return nil
	})
	return s, err
}
