//go:build soak

package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	binary = flag.String("lodge", "", "lodge to test")
	set    = flag.String("params", "insecure-11", "parameter set")
	span   = flag.Duration("for", 5*time.Minute, "how long")
	kills  = flag.Duration("kill-every", 0, "time between kills (default a sixtieth of the whole, at least 20 s)")
	pause  = flag.Duration("pause", 0, "of the clients between two reservations")
	scale  = flag.Float64("alerts", 0, "factor for the times for which alerts wait (default such that the whole stands for two hours)")
	seed   = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of what is killed when")
)

// drawnAtOnce is the number of tuples per reservation.
const drawnAtOnce = 200

// spared is the party that is never killed. Its resource usage must not grow.
const spared = "p2"

// TestSoak keeps a cluster under load, kills its processes, and then checks its state.
func TestSoak(t *testing.T) {
	if *kills == 0 {
		*kills = max(*span/60, 20*time.Second)
	}
	if *scale == 0 {
		*scale = min(1, span.Hours()/2)
	}
	t.Logf("%s, a kill every %s, clients pause for %s, alert delays scaled by %.3f, seed %d", *span, *kills, *pause, *scale, *seed)
	c := newCluster(t, 3)
	epoch := strconv.FormatUint(c.Complete(c.Submit("--params", *set, "--kind", "keys")).Epoch, 10)
	c.Complete(c.Submit("--params", *set, "--kind", "scalar", "--epoch", epoch, "--count", "2000"))
	c.Run("stock", "policies", "set", "--params", *set, "--kind", "scalar", "--low", "5000", "--high", "10000", "--batch", "2000")
	prom := startPrometheus(t, c)

	end := time.Now().Add(*span)
	ctx, stop := context.WithDeadline(t.Context(), end)
	defer stop()
	d := newDrawing(c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.run(ctx, drawnAtOnce)
	}()
	go d.report(ctx)
	held := c.watch(ctx)
	hits := c.strike(ctx, rand.New(rand.NewPCG(*seed, 0)), end)
	<-done
	series := <-held

	// The cluster recovers: all processes are ready, and the stock is replenished.
	c.Ready(len(c.procs))
	c.Until("tuples are drawn again", func() bool { return d.once(t.Context(), drawnAtOnce) == nil })
	t.Logf("%d tuples drawn and checked, %d reservations failed, %d kills: %v", d.drawn, d.refused, len(hits), count(hits))
	for _, p := range d.problems {
		t.Error(p)
	}
	if d.drawn < drawnAtOnce {
		t.Error("next to nothing was drawn")
	}
	report(t, series)
	prom.judge(t, expected, tolerated)
}

// strike kills processes until ctx is done. After half of the time, one process stays down long
// enough for an alert.
func (c *cluster) strike(ctx context.Context, random *rand.Rand, end time.Time) (hits []string) {
	var victims []*process
	for _, p := range c.procs {
		if p.name != spared {
			victims = append(victims, p)
		}
	}
	half := time.Now().Add(time.Until(end) / 2)
	for long := false; ; {
		select {
		case <-ctx.Done():
			return hits
		case <-time.After(*kills/2 + rand.N(*kills)):
		}
		for wait := time.Now().Add(*kills); !c.generating() && time.Now().Before(wait) && ctx.Err() == nil; {
			time.Sleep(50 * time.Millisecond) // for a job to hit
		}
		p := victims[random.IntN(len(victims))]
		away := time.Duration(random.IntN(3)) * time.Second
		if !long && time.Now().After(half) {
			long = true
			p = c.procs[1]
			away = time.Duration(float64(5*time.Minute)*(*scale)) + 20*time.Second
		}
		p.kill()
		hits = append(hits, p.name)
		select {
		case <-time.After(away):
		case <-ctx.Done():
		}
		if err := p.start(); err != nil {
			c.T.Error(err)
		}
	}
}

// generating reports whether a job is running.
func (c *cluster) generating() bool {
	values, _ := c.procs[0].scrape() // empty if it is down
	for name, n := range values {
		if strings.HasPrefix(name, "lodge_jobs{") && strings.Contains(name, `state="generating"`) && n > 0 {
			return true
		}
	}
	return false
}

func count(names []string) map[string]int {
	n := map[string]int{}
	for _, name := range names {
		n[name]++
	}
	return n
}

// watch samples the processes until ctx is done.
func (c *cluster) watch(ctx context.Context) <-chan map[string][]sample {
	out := make(chan map[string][]sample, 1)
	go func() {
		all := map[string][]sample{}
		for every := time.NewTicker(max(time.Second, *span/400)); ; {
			select {
			case <-ctx.Done():
				out <- all
				return
			case <-every.C:
			}
			for _, p := range c.procs {
				if s, err := p.sample(c.Dir); err == nil {
					all[p.name] = append(all[p.name], s)
				}
			}
		}
	}()
	return out
}

// growth returns the median resource usage of a process in the second and in the last quarter of
// the time.
func growth(list []sample, of func(sample) float64) (before, after float64) {
	median := func(part []sample) float64 {
		var v []float64
		for _, s := range part {
			v = append(v, of(s))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	n := len(list)
	return median(list[n/4 : n/2]), median(list[3*n/4:])
}

// report prints the resource usage of the processes, and fails if the usage of the spared party
// grows.
func report(t *testing.T, series map[string][]sample) {
	for _, name := range slices.Sorted(keys(series)) {
		list := series[name]
		if len(list) < 8 {
			t.Errorf("%s was sampled %d times", name, len(list))
			continue
		}
		for _, what := range []struct {
			name  string
			unit  float64
			slack float64 // allowed in addition to a quarter: the usage depends on the current work
			of    func(sample) float64
		}{
			{"goroutines", 1, 100, func(s sample) float64 { return s.goroutines }},
			{"open files", 1, 20, func(s sample) float64 { return s.files }},
			{"resident MB", 1e6, 150e6, func(s sample) float64 { return s.bytes }},
			{"disk MB", 1e6, 20e6, func(s sample) float64 { return s.disk }},
		} {
			before, after := growth(list, what.of)
			line := fmt.Sprintf("%s: %s %.1f, then %.1f", name, what.name, before/what.unit, after/what.unit)
			t.Log(line)
			if name == spared && after > 1.25*before+what.slack {
				t.Errorf("it grows: %s", line)
			}
		}
	}
}
