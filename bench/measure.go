package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// turns is how often contenders take turns when the time allows.
const turns = 9

// operation is something to time, with Lattigo's routine for the same where there is one.
type operation struct {
	own     func() error
	lattigo func() error
	// per and lattigoPer are the units of work in one call; 0 means 1.
	per, lattigoPer float64
}

// units of time, in seconds.
var units = map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}

// timed is the row of one operation, which prepare makes ready when the row is run.
func (o *Options) timed(name, unit, what string, prepare func(ctx context.Context) (operation, error)) Row {
	return Row{Names: []string{name}, Run: func(ctx context.Context) ([]Result, error) {
		op, err := prepare(ctx)
		if err != nil {
			return nil, err
		}
		r, err := o.time(ctx, op)
		if err != nil {
			return nil, err
		}
		r.Name, r.Unit, r.What = name, unit, what
		r.Value /= units[unit]
		return []Result{r}, nil
	}}
}

// time measures the CPU time of an operation on one thread; the value is in seconds for a unit of
// work.
func (o *Options) time(ctx context.Context, op operation) (Result, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	best := kernel.Selected()
	defer func() { _ = kernel.Select(best) }() // it was selected before
	list := []contender{{by: best.String(), path: best, call: op.own, per: op.per}}
	if best != kernel.Plain {
		list = append(list, contender{by: kernel.Plain.String(), path: kernel.Plain, call: op.own, per: op.per})
	}
	if op.lattigo != nil {
		list = append(list, contender{by: "lattigo", path: best, call: op.lattigo, per: op.lattigoPer})
	}
	runs, err := compare(ctx, o.Duration, list)
	if err != nil {
		return Result{}, err
	}
	r := Result{Value: Median(runs[0].times), runs: runs}
	for _, other := range runs[1:] {
		x := medianRatio(other.times, runs[0].times)
		if other.by == "lattigo" {
			r.LattigoRatio = &x
		} else {
			r.PlainRatio = &x
		}
	}
	return r, nil
}

// contender is one way to do the work.
type contender struct {
	by   string
	path kernel.Path
	call func() error
	per  float64
}

// repeat calls the contender n times. It gives the CPU-seconds for a unit of work, and the seconds
// of a call.
func (c *contender) repeat(n int) (unit, call float64, err error) {
	if err := kernel.Select(c.path); err != nil {
		return 0, 0, err
	}
	runtime.GC() // the garbage of earlier measurements
	began, used := time.Now(), cpuSeconds()
	for range n {
		if err := c.call(); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", c.by, err)
		}
	}
	used, call = cpuSeconds()-used, time.Since(began).Seconds()/float64(n)
	unit = max(used, 1e-7) / float64(n) // the clock of CPU time has steps
	if c.per != 0 {
		unit /= c.per
	}
	return unit, max(call, 1e-9), nil
}

// patience is how many times longer than asked a measurement may take so that first calls, which
// make the heap grow and fill caches, need not count.
const patience = 10

// compare lets the contenders take turns for about the given time, in turns of equal lengths after
// a first call of each, which counts only where calls take much longer than that.
func compare(ctx context.Context, d time.Duration, list []contender) ([]run, error) {
	runs := make([]run, len(list))
	first := make([]float64, len(list)) // seconds of a call
	total := 0.0
	for i := range list {
		t, call, err := list[i].repeat(1)
		if err != nil {
			return nil, err
		}
		first[i] = call
		total += call
		runs[i] = run{by: list[i].by, times: []float64{t}}
	}
	if total > patience*d.Seconds() {
		return runs, nil
	}
	rounds := min(turns, max(1, int(d.Seconds()/total)))
	for i := range runs {
		runs[i].times = nil
	}
	slice := d.Seconds() / float64(rounds*len(list))
	for range rounds {
		for i := range list {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			t, _, err := list[i].repeat(max(1, int(slice/first[i])))
			if err != nil {
				return nil, err
			}
			runs[i].times = append(runs[i].times, t)
		}
	}
	return runs, nil
}

// cpuSeconds is the CPU time of this process, garbage collection included: what else runs on the
// machine counts for little in it.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are right
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// Median is the one in the middle, or between the two there.
func Median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// medianRatio returns the median of a/b over the turns.
func medianRatio(a, b []float64) float64 {
	q := make([]float64, min(len(a), len(b)))
	for i := range q {
		q[i] = a[i] / b[i]
	}
	return Median(q)
}
