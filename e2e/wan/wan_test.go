//go:build wan

package wan

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/e2e/outside"
	sets "github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

var (
	lodge      = flag.String("lodge", "", "lodge to test")
	prefix     = flag.String("prefix", "lodge-wan", "begin of the namespaces' names")
	round      = flag.Duration("round-trip", 50*time.Millisecond, "between any two processes")
	rate       = flag.Float64("rate", 100e6, "bits a second of every process's link, each way")
	queue      = flag.Duration("queue", 100*time.Millisecond, "of every process's link, each way")
	congestion = flag.String("congestion", "bbr", "control of TCP in every process's namespace")
	params     = flag.String("params", "S14-32", "parameter set")
	dim        = flag.Int("dim", 16, "of the matrices")
	jobs       = flag.Int("jobs", 28, "batches of matrices to make, more than twice those in flight")
	flight     = flag.Int("flight", 8, "jobs in flight")
)

const parties = 3

// cluster is one process in each namespace, the coordinator first.
type cluster struct {
	outside.Operator
	net     *devnet.Cluster
	links   []*link
	procs   []*exec.Cmd
	metrics []string
}

func start(t *testing.T, runs bool) *cluster {
	t.Helper()
	set, err := sets.Lookup(*params)
	outside.Must(t, err)
	passive := set.KeygenSecurity() != sets.Proved
	if passive {
		t.Logf("the key generation of %s is not proved", *params)
	}
	c := &cluster{Operator: outside.Operator{T: t, Binary: *lodge, Dir: filepath.Join(t.TempDir(), "cluster")}}
	c.net, err = devnet.Write(c.Dir, devnet.Options{Parties: parties, Host: "0.0.0.0", Port: 7100, Params: []string{*params}, Metrics: true, MaxMemory: 7 << 30,
		Insecure: strings.HasPrefix(*params, "insecure")})
	outside.Must(t, err)
	for i, address := range c.net.Metrics[:len(c.net.Parties)] {
		_, port, err := net.SplitHostPort(address)
		outside.Must(t, err)
		c.metrics = append(c.metrics, fmt.Sprintf("http://10.77.%d.2:%s/metrics", i+1, port))
	}
	for i := range parties + 1 { // address of the process for the others
		from, to := fmt.Sprintf("0.0.0.0:%d", 7100+i), fmt.Sprintf("10.77.%d.2:%d", i, 7100+i)
		for _, file := range append([]string{filepath.Join(c.Dir, "roster.yaml")}, c.net.Clients...) {
			b, err := os.ReadFile(file)
			outside.Must(t, err)
			outside.Must(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(b), from, to)), 0o600))
		}
	}
	outside.Must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600))
	for i := range parties + 1 {
		name := *prefix + "-" + strconv.Itoa(i)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", name).Run() })
		l, err := newLink(name, i, conditions{delay: *round / 4, rate: *rate, queue: *queue, runs: runs})
		outside.Must(t, err)
		t.Cleanup(l.close)
		c.links = append(c.links, l)
		args := []string{"netns", "exec", name, *lodge}
		if i == 0 {
			args = append(args, "coordinator", "--config", c.net.Coordinator, "--set", "max_concurrent="+strconv.Itoa(*flight))
		} else {
			args = append(args, "party", "--config", c.net.Parties[i-1], "--set", "policy.max_concurrent="+strconv.Itoa(*flight),
				"--set", "allow_passive_keygen="+strconv.FormatBool(passive))
		}
		c.run(i, args)
	}
	c.Ready(parties + 1)
	return c
}

// run starts a process and shows its log if the test fails.
func (c *cluster) run(i int, args []string) {
	log, err := os.Create(filepath.Join(c.Dir, fmt.Sprintf("log-%d", i)))
	outside.Must(c.T, err)
	p := exec.Command("ip", args...)
	p.Stdout, p.Stderr = log, log
	outside.Must(c.T, p.Start())
	c.procs = append(c.procs, p)
	c.T.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		_ = p.Wait()
		if c.T.Failed() {
			b, _ := os.ReadFile(log.Name())
			c.T.Logf("process %d:\n%s", i, b)
		}
	})
}

// submit queues a job.
func (c *cluster) submit(args ...string) string {
	c.T.Helper()
	return c.Submit(append([]string{"--params", *params, "--timeout", "50m"}, args...)...)
}

// rounds returns the seconds that a party has spent in each round, and the part spent on
// computation.
func (c *cluster) rounds(party int) (wall, own map[string]float64) {
	c.T.Helper()
	r, err := http.Get(c.metrics[party])
	outside.Must(c.T, err)
	defer r.Body.Close()
	wall, own = map[string]float64{}, map[string]float64{}
	for s := bufio.NewScanner(r.Body); s.Scan(); {
		for name, into := range map[string]map[string]float64{"lodge_round_duration_seconds_sum{": wall, "lodge_round_compute_seconds_sum{": own} {
			if labels, ok := strings.CutPrefix(s.Text(), name); ok {
				labels, value, _ := strings.Cut(labels, "} ")
				v, err := strconv.ParseFloat(value, 64)
				outside.Must(c.T, err)
				into[labels] = v
			}
		}
	}
	return wall, own
}

// finished waits until at least n jobs have completed and returns their number.
func (c *cluster) finished(ids []string, n int) (done int) {
	c.T.Helper()
	for ; done < n; time.Sleep(time.Second) { // frequent polling takes CPU time from the parties
		for done < len(ids) { // jobs end nearly in order
			j := c.Show(ids[done])
			if !j.Over() {
				break
			}
			if j.State != "completed" {
				c.T.Fatalf("%s is %s: %s", j.ID, j.State, j.Reason)
			}
			done++
		}
	}
	return done
}

// TestThroughput makes matrix triples, and prints the utilisation of the links and the time per
// round.
func TestThroughput(t *testing.T) {
	if *jobs <= 2**flight {
		t.Fatalf("-jobs %d is too small: nothing remains to measure between the first %d jobs and the last", *jobs, *flight)
	}
	c := start(t, true)
	begun := time.Now()
	epoch := strconv.FormatUint(c.Complete(c.submit("--kind", "keys", "--dim", strconv.Itoa(*dim))).Epoch, 10)
	t.Logf("keys for %d x %d: %.1f s", *dim, *dim, time.Since(begun).Seconds())
	matrix := []string{"--kind", "matrix", "--shape", strconv.Itoa(*dim), "--dim", strconv.Itoa(*dim), "--epoch", epoch}
	begun = time.Now()
	c.Complete(c.submit(matrix...)) // with the MAC key
	t.Logf("first batch, with the MAC key: %.1f s", time.Since(begun).Seconds())

	var ids []string
	for range *jobs {
		ids = append(ids, c.submit(matrix...))
	}
	// Measure while the maximum number of jobs is in flight: after the first have completed and
	// before the last start.
	before := c.finished(ids, *flight)
	wall, own := c.rounds(0)
	var since []use
	for _, l := range c.links {
		since = append(since, l.up.use(), l.down.use())
	}
	begun = time.Now()
	batches := float64(c.finished(ids, *jobs-*flight) - before)
	took := time.Since(begun).Seconds()
	if batches == 0 {
		t.Fatal("all ended at once")
	}
	after, ownAfter := c.rounds(0)
	triples := batches * float64(c.Show(ids[0]).Made)
	t.Logf("%.0f batches of matrix triples of %d x %d with %s, %d in flight: %.1f s, %.2f triples a second", batches, *dim, *dim, *params, *flight, took, triples/took)
	for i, l := range c.links[1:] {
		up, down := since[2*i+2], since[2*i+3]
		t.Logf("p%d: sends %.1f%% of the time at %.0f Mbit/s, receives %.1f%%; %.2f MB sent per triple", i,
			100*l.up.busy(up), *rate/1e6, 100*l.down.busy(down), float64(l.up.sent.Load()-up.bytes)/triples/1e6)
	}
	var names []string
	for name := range after {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return -int((after[a]-wall[a])*1000) + int((after[b]-wall[b])*1000) })
	for _, name := range names[:min(len(names), 12)] {
		t.Logf("p0 %-60s %7.2f s per batch, including %6.2f s of computation", name, (after[name]-wall[name])/batches, (ownAfter[name]-own[name])/batches)
	}
}

// TestBadLinks checks that jobs survive links that lose packets, and half a minute without links.
func TestBadLinks(t *testing.T) {
	c := start(t, false)
	epoch := strconv.FormatUint(c.Complete(c.submit("--kind", "keys")).Epoch, 10)
	scalar := []string{"--kind", "scalar", "--epoch", epoch}
	c.Complete(c.submit(scalar...))
	for what, hit := range map[string]func(){
		"every link loses 1 % of its packets": func() {
			for _, l := range c.links {
				l.lose(0.01)
			}
		},
		"a party is cut off for 30 s": func() {
			c.links[2].cut(true)
			time.Sleep(30 * time.Second)
			c.links[2].cut(false)
		},
		"the coordinator is cut off for 30 s": func() {
			c.links[0].cut(true)
			time.Sleep(30 * time.Second)
			c.links[0].cut(false)
		},
	} {
		begun := time.Now()
		id := c.submit(scalar...)
		var j outside.Job
		c.Until("the job runs", func() bool {
			j = c.Show(id)
			return j.Reached(3) || j.Over()
		})
		if j.Over() {
			t.Errorf("%s: the fault came too late", what)
		}
		hit()
		c.Complete(id)
		for _, l := range c.links {
			l.lose(0)
		}
		t.Logf("%s: the job completes in %.1f s", what, time.Since(begun).Seconds())
	}
}
