package stock

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
)

// This file decides which jobs policies make now, and why a policy makes none, as pure functions of
// values, without network, clock or disk.

// Ceilings bounds the jobs of policies. Jobs of clients count towards the ceilings but are never
// held back.
type Ceilings struct {
	Bytes  uint64 // of all tuples at a party, stored or being made
	Memory uint64 // of one job at a party, at its peak
	Jobs   int    // running or waiting jobs of policies
}

// place is a class in an epoch.
type place struct {
	class key
	epoch uint64
}

// cost holds the output and the resources of one job of a policy.
type cost struct {
	tuples uint64
	bytes  uint64 // of its tuples at a party
	memory uint64 // at a party, at its peak
}

// wish is the plan's view of a policy.
type wish struct {
	id        string
	policy    *stockv1.Policy
	place     place // with the epoch to which the policy applies now; 0: no epoch
	available uint64
	making    uint64 // tuples of the place in running or waiting jobs of any submitter
	filling   bool   // the stock fell below low and has not reached high since
	cost      cost
	problem   string    // why no job can be made: there is no epoch, or no party accepts such a job
	failures  int       // failed jobs since the last success
	failed    time.Time // time of the last failure
	why       string    // reason of the last failure
}

// verdict is the plan's decision for a wish.
type verdict struct {
	jobs    int    // number of jobs to submit now
	filling bool   // value for the next plan
	held    string // why no job, or fewer than needed, are made; otherwise empty
}

// After n consecutive failed jobs, a policy waits for backOff * 2^(n-1), at most maxBackOff.
const (
	backOff    = 5 * time.Second
	maxBackOff = 10 * time.Minute
)

func patience(failures int) time.Duration {
	if failures < 1 {
		return 0
	}
	return min(backOff<<min(failures-1, 16), maxBackOff)
}

// plan returns the decision for each wish. used is the number of bytes of tuples at a party,
// including those that jobs are making; running is the number of running or waiting jobs of
// policies.
//
// Higher priorities go first. Among equal priorities, the place with the smallest share of its low
// mark goes first. A policy that waits for disk space or for a job slot holds back lower
// priorities, because they would take the resource. A policy that cannot make jobs even with free
// resources holds back no other.
func plan(wishes []wish, c Ceilings, used uint64, running int, now time.Time) []verdict {
	out := make([]verdict, len(wishes))
	making := map[place]uint64{}
	own := map[place]bool{} // places with a policy for that specific epoch
	for _, w := range wishes {
		making[w.place] = max(making[w.place], w.making)
		own[w.place] = own[w.place] || w.policy.GetEpoch() != 0
	}
	var open []int
	for i, w := range wishes {
		v := &out[i]
		has := w.available + making[w.place]
		v.filling = has < w.policy.GetHigh() && (w.filling || has < w.policy.GetLow())
		if v.held = w.stands(c, now); v.held == "" && w.policy.GetEpoch() == 0 && own[w.place] {
			v.held = fmt.Sprintf("epoch %d has its own policy", w.place.epoch)
		}
		switch {
		case !v.filling:
			v.held = ""
		case v.held == "":
			open = append(open, i)
		}
	}
	waits := uint32(0) // 1 + the highest priority that waits for resources
	for len(open) > 0 {
		next := slices.MinFunc(open, func(a, b int) int { return before(wishes[a], wishes[b], making) })
		w, v := wishes[next], &out[next]
		done := true
		switch {
		case w.policy.GetPriority()+1 < waits:
			v.held = "jobs of a higher priority go first"
		case running >= c.Jobs:
			v.held = fmt.Sprintf("%d jobs of policies run or wait already, and there are at most %d", running, c.Jobs)
			waits = max(waits, w.policy.GetPriority()+1)
		case used+w.cost.bytes > c.Bytes:
			v.held = fmt.Sprintf("disk ceiling: a job makes %s, and %s of %s are taken", amount(w.cost.bytes), amount(used), amount(c.Bytes))
			waits = max(waits, w.policy.GetPriority()+1)
		default:
			v.jobs++
			running++
			used += w.cost.bytes
			making[w.place] += w.cost.tuples
			done = w.available+making[w.place] >= w.policy.GetHigh()
		}
		if done {
			open = slices.DeleteFunc(open, func(i int) bool { return i == next })
		}
	}
	return out
}

// stands returns why a policy cannot make jobs even with free resources; empty if it can.
func (w *wish) stands(c Ceilings, now time.Time) string {
	wait := w.failed.Add(patience(w.failures)).Sub(now)
	switch {
	case w.policy.GetPaused():
		return "paused"
	case w.problem != "":
		return w.problem
	case w.cost.tuples == 0:
		return "the cost of a job is not known yet"
	case w.cost.memory > c.Memory:
		return fmt.Sprintf("memory ceiling: a job takes %s at a party, and at most %s are allowed", amount(w.cost.memory), amount(c.Memory))
	case w.cost.bytes > c.Bytes:
		return fmt.Sprintf("disk ceiling: a job makes %s, and at most %s are allowed", amount(w.cost.bytes), amount(c.Bytes))
	case w.failures > 0 && wait > 0:
		jobs := "its last job"
		if w.failures > 1 {
			jobs = fmt.Sprintf("its last %d jobs", w.failures)
		}
		// If the clock was set back, the message does not show more than the full backoff.
		return fmt.Sprintf("%s failed: %s; the next begins in %s", jobs, w.why, min(wait, patience(w.failures)).Round(time.Second))
	}
	return ""
}

// before compares wishes: by priority, then by the share of its low mark that a place has.
func before(a, b wish, making map[place]uint64) int {
	share := func(w wish) float64 {
		return float64(w.available+making[w.place]) / float64(max(1, w.policy.GetLow()))
	}
	return cmp.Or(cmp.Compare(b.policy.GetPriority(), a.policy.GetPriority()), cmp.Compare(share(a), share(b)), cmp.Compare(a.id, b.id))
}

// amount formats bytes.
func amount(n uint64) string {
	for _, u := range []struct {
		size uint64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
