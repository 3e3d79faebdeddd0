//go:build pages

package pages

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/e2e/outside"
)

var (
	many   = flag.Int("pages", 1000, "open pages")
	count  = flag.Int("count", 60000, "tuples of a batch")
	rounds = flag.Int("rounds", 10, "batches with pages, and batches without")
)

// onePage is the number of pages that use one session.
const onePage = 20

// charts is a request that a page makes every five seconds.
const charts = `/api/history?since=3600&series=process_resident_memory_bytes,process_start_time_seconds,lodge_peer_up{peer="p1"},lodge_peer_up{peer="p2"}`

// watch opens a page, which follows the status of a process and the history of a few series as the
// front end does, until its session's browser is closed. The first message has arrived when watch
// returns.
func watch(b *browser, ended *sync.WaitGroup, stop <-chan struct{}) error {
	body := append([]byte{0, 0, 0, 0, 2}, "{}"...)
	w, err := b.send(http.MethodPost, "/api/rpc/lodge.status.v1.StatusService/WatchStatus", "application/connect+json", body)
	if err != nil {
		return err
	}
	next := func() error {
		var head [5]byte
		if _, err := io.ReadFull(w.Body, head[:]); err != nil {
			return err
		}
		_, err := io.CopyN(io.Discard, w.Body, int64(binary.BigEndian.Uint32(head[1:])))
		return err
	}
	if w.StatusCode != http.StatusOK {
		w.Body.Close()
		return fmt.Errorf("a stream: %s", w.Status)
	}
	if err := next(); err != nil {
		return err
	}
	ended.Go(func() {
		for next() == nil {
		}
	})
	ended.Go(func() {
		defer w.Body.Close()
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			var past window
			if err := b.get(charts, &past); err != nil {
				b.t.Errorf("a page: %v", err)
				return
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
	return nil
}

// open opens pages at a process, and returns a function that closes them.
func open(t *testing.T, sessions []*browser) (shut func()) {
	t.Helper()
	var ended sync.WaitGroup
	stop := make(chan struct{})
	pause := 5 * time.Second / time.Duration(*many) // spreads their requests
	for i := range *many {
		if err := watch(sessions[i/onePage], &ended, stop); err != nil {
			t.Fatalf("page %d: %v", i, err)
		}
		time.Sleep(pause)
	}
	return func() { close(stop); ended.Wait() }
}

// cpu returns the processor time that a process has used.
func (c *cluster) cpu(process string) time.Duration {
	c.T.Helper()
	fields := c.stat(process)
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		outside.Must(c.T, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// resident returns the memory of a process in MiB.
func (c *cluster) resident(process string) uint64 {
	c.T.Helper()
	pages, err := strconv.ParseUint(c.stat(process)[21], 10, 64)
	outside.Must(c.T, err)
	return pages * 4096 >> 20
}

// sample is what one batch took.
type sample struct{ wall, cpu time.Duration }

// batch makes a batch.
func (c *cluster) batch() sample {
	c.T.Helper()
	begun, used := time.Now(), c.cpu("p0")
	c.Run("jobs", "submit", "--kind", "scalar", "--params", set, "--epoch", "1", "--count", strconv.Itoa(*count), "--wait")
	return sample{time.Since(begun), c.cpu("p0") - used}
}

// median returns the median of a part of some samples.
func median(list []sample, part func(sample) time.Duration) time.Duration {
	var all []time.Duration
	for _, s := range list {
		all = append(all, part(s))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// TestLoad measures how much longer a batch takes while many pages are open at one of the parties,
// in turn within one run. It prints the figures and asserts none: they depend on the machine, on
// which the browsers run as well. The processor time of the party excludes them.
func TestLoad(t *testing.T) {
	c := start(t, map[string]any{"max_streams": 2 * *many})
	var sessions []*browser
	for i := range (*many + onePage - 1) / onePage {
		sessions = append(sessions, c.browse("p0", []string{"client-p0", "app"}[i%2]))
		time.Sleep(100 * time.Millisecond) // the rate of sign-ins is limited
	}
	c.batch()
	before := c.resident("p0")
	var quiet, busy []sample
	with := func() {
		shut := open(t, sessions)
		busy = append(busy, c.batch())
		t.Logf("%d pages: %v, %d MiB", *many, busy[len(busy)-1], c.resident("p0"))
		shut()
	}
	without := func() {
		quiet = append(quiet, c.batch())
		t.Logf("no pages: %v, %d MiB", quiet[len(quiet)-1], c.resident("p0"))
	}
	for i := range *rounds {
		if order := []func(){without, with}; i%2 == 0 {
			order[0]()
			order[1]()
		} else {
			order[1]()
			order[0]()
		}
	}
	for what, part := range map[string]func(sample) time.Duration{
		"the time of a batch":             func(s sample) time.Duration { return s.wall },
		"the processor time of the party": func(s sample) time.Duration { return s.cpu },
	} {
		a, b := median(quiet, part), median(busy, part)
		t.Logf("%s: median %s without pages, %s with %d pages: %+.1f %%", what, a.Round(time.Millisecond), b.Round(time.Millisecond), *many, 100*(float64(b)/float64(a)-1))
	}
	// The processor time of open pages without a batch, as a share of one processor.
	shut := open(t, sessions)
	begun, used := time.Now(), c.cpu("p0")
	time.Sleep(30 * time.Second)
	t.Logf("%d pages alone take %.1f %% of one processor at the party", *many, 100*float64(c.cpu("p0")-used)/float64(time.Since(begun)))
	shut()
	t.Logf("the party had %d MiB before the first page, and %d MiB now", before, c.resident("p0"))
	if !strings.Contains(c.Run("status", "--json"), "ready") {
		t.Error("the cluster is not ready")
	}
}
