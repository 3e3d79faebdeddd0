package stock

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
)

// The plan says which jobs policies make now, and why one makes none: functions of values, without network, clock or
// disk.

// Ceilings bound what policies make. Jobs of clients are beside them: they are counted, and never held back.
type Ceilings struct {
	Bytes  uint64 // of all tuples at a party, made and being made
	Memory uint64 // of one job at a party, at its peak
	Jobs   int    // of policies, that run or wait at the same time
}

// place is a class in an epoch.
type place struct {
	class key
	epoch uint64
}

// cost is what one job of a policy makes and takes.
type cost struct {
	tuples uint64
	bytes  uint64 // that its tuples take at a party
	memory uint64 // at a party, at its peak
}

// wish is a policy as the plan sees it.
type wish struct {
	id        string
	policy    *stockv1.Policy
	place     place // with the epoch that it is for at this moment; 0: none
	available uint64
	making    uint64 // tuples of the place, by jobs of anybody that run or wait
	filling   bool   // it was below low, and has not reached high since
	cost      cost
	problem   string    // why nothing can be made: no epoch, or no party takes such a job
	failures  int       // jobs of it that failed, since the last one that did not
	failed    time.Time // when the last of them did
	why       string    // how that ended
}

// verdict is what the plan says of a wish.
type verdict struct {
	jobs    int    // to submit now
	filling bool   // until the next plan
	held    string // why nothing, or less than is missing, is made; empty otherwise
}

// The time that a policy waits after its nth job in a row that failed is backOff * 2^(n-1), at most maxBackOff.
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

// plan says what becomes of each wish. used are the bytes that tuples take at a party, with those that jobs are making;
// running is how many jobs of policies run or wait.
//
// Higher priorities go first, and among equals the place that has least of its low mark. A policy that waits for room,
// on disk or among the jobs, holds back those of lower priority, or these would take the room; one that cannot make
// anything whatever room there is holds back nobody.
func plan(wishes []wish, c Ceilings, used uint64, running int, now time.Time) []verdict {
	out := make([]verdict, len(wishes))
	making := map[place]uint64{}
	own := map[place]bool{} // places with a policy for their very epoch
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
			v.held = fmt.Sprintf("epoch %d has a policy of its own", w.place.epoch)
		}
		switch {
		case !v.filling:
			v.held = ""
		case v.held == "":
			open = append(open, i)
		}
	}
	waits := uint32(0) // the highest priority that waits for room, and one more
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

// stands says why a policy makes nothing whatever room there is; empty when it may.
func (w *wish) stands(c Ceilings, now time.Time) string {
	wait := w.failed.Add(patience(w.failures)).Sub(now)
	switch {
	case w.policy.GetPaused():
		return "paused"
	case w.problem != "":
		return w.problem
	case w.cost.tuples == 0:
		return "what a job takes is not known yet"
	case w.cost.memory > c.Memory:
		return fmt.Sprintf("memory ceiling: a job takes %s at a party, and at most %s are allowed", amount(w.cost.memory), amount(c.Memory))
	case w.cost.bytes > c.Bytes:
		return fmt.Sprintf("disk ceiling: a job makes %s, and at most %s are allowed", amount(w.cost.bytes), amount(c.Bytes))
	case w.failures > 0 && wait > 0:
		jobs := "its last job"
		if w.failures > 1 {
			jobs = fmt.Sprintf("its last %d jobs", w.failures)
		}
		// A clock that went back does not make the wait longer than it is.
		return fmt.Sprintf("%s failed: %s; the next begins in %s", jobs, w.why, min(wait, patience(w.failures)).Round(time.Second))
	}
	return ""
}

// before orders wishes: by priority, then by the share of its low mark that a place has.
func before(a, b wish, making map[place]uint64) int {
	share := func(w wish) float64 {
		return float64(w.available+making[w.place]) / float64(max(1, w.policy.GetLow()))
	}
	return cmp.Or(cmp.Compare(b.policy.GetPriority(), a.policy.GetPriority()), cmp.Compare(share(a), share(b)), cmp.Compare(a.id, b.id))
}

// amount writes bytes for people.
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
