package stock

import (
	"strings"
	"testing"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
)

// want returns a wish with low mark 100, high mark 300, and jobs of 60 tuples, 6000 bytes and 10
// bytes of memory.
func want(id string, change func(*wish)) wish {
	w := wish{
		id: id, policy: &stockv1.Policy{Low: 100, High: 300, Batch: 50, Priority: 10}, place: place{key(id), 1}, cost: cost{60, 6000, 10},
	}
	if change != nil {
		change(&w)
	}
	return w
}

func TestPlan(t *testing.T) {
	now := time.Unix(1e9, 0)
	has := func(available, making uint64, filling bool) func(*wish) {
		return func(w *wish) { w.available, w.making, w.filling = available, making, filling }
	}
	wide := Ceilings{Bytes: 1 << 40, Memory: 1 << 40, Jobs: 100}
	few := func(jobs int) Ceilings { return Ceilings{Bytes: 1 << 40, Memory: 1 << 40, Jobs: jobs} }
	disk := func(bytes uint64) Ceilings { return Ceilings{Bytes: bytes, Memory: 1 << 40, Jobs: 100} }
	and := func(fs ...func(*wish)) func(*wish) {
		return func(w *wish) {
			for _, f := range fs {
				f(w)
			}
		}
	}
	priority := func(p uint32) func(*wish) { return func(w *wish) { w.policy.Priority = p } }
	failed := func(n int, ago time.Duration) func(*wish) {
		return func(w *wish) { w.failures, w.failed, w.why = n, now.Add(-ago), "party 1 is away" }
	}
	type result struct {
		jobs    int
		filling bool
		held    string // a substring of held
	}
	for _, c := range []struct {
		name    string
		wishes  []wish
		c       Ceilings
		used    uint64
		running int
		want    []result
	}{
		{"empty: up to the high mark, the last job beyond it", []wish{want("a", nil)}, wide, 0, 0, []result{{5, true, ""}}},
		{"just below the low mark", []wish{want("a", has(99, 0, false))}, wide, 0, 0, []result{{4, true, ""}}},
		{"at low", []wish{want("a", has(100, 0, false))}, wide, 0, 0, []result{{0, false, ""}}},
		{"between the marks while filling", []wish{want("a", has(100, 0, true))}, wide, 0, 0, []result{{4, true, ""}}},
		{"between the marks while draining", []wish{want("a", has(299, 0, false))}, wide, 0, 0, []result{{0, false, ""}}},
		{"tuples being made count", []wish{want("a", has(50, 240, true))}, wide, 0, 4, []result{{1, true, ""}}},
		{"enough is being made", []wish{want("a", has(0, 300, true))}, wide, 0, 5, []result{{0, false, ""}}},
		{"at high", []wish{want("a", has(300, 0, true))}, wide, 0, 0, []result{{0, false, ""}}},
		{"paused", []wish{want("a", func(w *wish) { w.policy.Paused = true })}, wide, 0, 0, []result{{0, true, "paused"}}},
		{"paused and full: not held back", []wish{want("a", and(has(300, 0, false), func(w *wish) { w.policy.Paused = true }))}, wide, 0, 0, []result{{0, false, ""}}},
		{"no epoch", []wish{want("a", func(w *wish) { w.problem, w.place.epoch = "no epoch", 0 })}, wide, 0, 0, []result{{0, true, "no epoch"}}},
		{"no estimate", []wish{want("a", func(w *wish) { w.cost = cost{} })}, wide, 0, 0, []result{{0, true, "the cost of a job is not known yet"}}},
		{"memory", []wish{want("a", nil)}, Ceilings{1 << 40, 9, 100}, 0, 0, []result{{0, true, "memory ceiling"}}},
		{"disk for two jobs", []wish{want("a", nil)}, disk(13000), 500, 0, []result{{2, true, "disk ceiling: a job makes 5.9 KiB, and 12.2 KiB of 12.7 KiB are taken"}}},
		{"less disk than one job needs", []wish{want("a", nil)}, disk(5999), 0, 0, []result{{0, true, "disk ceiling: a job makes 5.9 KiB, and at most 5.9 KiB"}}},
		{"slots", []wish{want("a", nil)}, few(2), 0, 0, []result{{2, true, "2 jobs of policies"}}},
		{"slots taken by other jobs", []wish{want("a", nil)}, few(2), 0, 2, []result{{0, true, "at most 2"}}},
		{"priority", []wish{want("a", priority(1)), want("b", priority(50))}, few(3), 0, 0,
			[]result{{0, true, "higher priority"}, {3, true, "at most 3"}}},
		{"remaining slots go to the next policy", []wish{want("a", priority(1)), want("b", and(priority(50), has(240, 0, true)))}, few(3), 0, 0,
			[]result{{2, true, "at most 3"}, {1, true, ""}}},
		{"equal priorities alternate, the emptier place first", []wish{want("a", has(90, 0, false)), want("b", nil)}, few(3), 0, 0,
			[]result{{1, true, "at most 3"}, {2, true, "at most 3"}}},
		{"a policy that waits for disk holds back lower priorities, but not equal ones", []wish{
			want("a", priority(1)), want("b", and(priority(50), func(w *wish) { w.cost.bytes = 12000 })), want("c", and(priority(50), has(250, 0, true))),
		}, disk(13000), 2000, 0, []result{{0, true, "higher priority"}, {0, true, "disk ceiling"}, {1, true, ""}}},
		{"a policy that can never be served holds back no other", []wish{
			want("a", priority(1)), want("b", and(priority(50), func(w *wish) { w.policy.Paused = true })),
			want("c", and(priority(50), func(w *wish) { w.cost.memory = 1 << 41 })), want("d", and(priority(50), func(w *wish) { w.cost.bytes = 1 << 41 })),
			want("e", and(priority(50), failed(1, 0))), want("f", and(priority(50), func(w *wish) { w.problem = "no epoch" })),
		}, few(2), 0, 0, []result{{2, true, "at most 2"}, {0, true, "paused"}, {0, true, "memory"}, {0, true, "disk"}, {0, true, "failed"}, {0, true, "no epoch"}}},
		{"a job failed just now", []wish{want("a", failed(1, time.Second))}, wide, 0, 0,
			[]result{{0, true, "its last job failed: party 1 is away; the next begins in 4s"}}},
		{"a job failed some time ago", []wish{want("a", failed(1, 5*time.Second))}, wide, 0, 0, []result{{5, true, ""}}},
		{"four failed", []wish{want("a", failed(4, 10*time.Second))}, wide, 0, 0, []result{{0, true, "its last 4 jobs failed: party 1 is away; the next begins in 30s"}}},
		{"very many failed jobs: bounded", []wish{want("a", failed(1000, 0))}, wide, 0, 0, []result{{0, true, "in 10m0s"}}},
		{"very many failed jobs, long ago", []wish{want("a", failed(1000, maxBackOff))}, wide, 0, 0, []result{{5, true, ""}}},
		{"the clock was set back: bounded", []wish{want("a", failed(1, -time.Hour))}, wide, 0, 0, []result{{0, true, "in 5s"}}},
		{"an epoch with its own policy", []wish{
			want("a", nil), want("b", func(w *wish) { w.place, w.policy.Epoch, w.policy.High = place{"a", 1}, 1, 120 }),
		}, wide, 0, 0, []result{{0, true, "epoch 1 has its own policy"}, {2, true, ""}}},
	} {
		got := plan(c.wishes, c.c, c.used, c.running, now)
		for i, w := range c.want {
			g := got[i]
			if g.jobs != w.jobs || g.filling != w.filling || !strings.Contains(g.held, w.held) || (w.held == "") != (g.held == "") {
				t.Errorf("%s: %s: %+v, want %+v", c.name, c.wishes[i].id, g, w)
			}
		}
	}
}

// Under random changes, a plan that is repeated after its jobs completed requests no more jobs,
// respects the ceilings, and fills every place that it can.
func TestPlanSettles(t *testing.T) {
	c := Ceilings{Bytes: 100_000, Memory: 100, Jobs: 3}
	wishes := []wish{want("a", nil), want("b", func(w *wish) { w.policy.Priority = 20 }), want("c", func(w *wish) { w.available = 120 })}
	for round := range 100 {
		used := uint64(0)
		for _, w := range wishes {
			used += w.available * 100
		}
		got := plan(wishes, c, used, 0, time.Unix(1e9, 0))
		jobs := 0
		for i, v := range got {
			jobs += v.jobs
			wishes[i].filling = v.filling
			wishes[i].available += uint64(v.jobs) * wishes[i].cost.tuples
			used += uint64(v.jobs) * wishes[i].cost.bytes
			if v.jobs > 0 && !v.filling {
				t.Fatalf("round %d: %s has enough and makes more", round, wishes[i].id)
			}
		}
		if jobs > c.Jobs || used > c.Bytes {
			t.Fatalf("round %d: %d jobs, %d bytes", round, jobs, used)
		}
		if jobs == 0 {
			if wishes[0].available < 300 || wishes[1].available < 300 || wishes[2].available != 120 {
				t.Errorf("settled at %d, %d, %d", wishes[0].available, wishes[1].available, wishes[2].available)
			}
			return
		}
	}
	t.Error("it does not settle")
}

// The number of a job decides whether it counts. Changing the clock neither makes a policy forget
// its failures nor count older ones.
func TestHistoriesSinceThePolicyWasSet(t *testing.T) {
	var jobs []Job
	for n := range uint64(4) {
		at := time.Unix(1e9, 0).Add(-time.Duration(n) * time.Hour)
		jobs = append(jobs, Job{Key: jobKey("aa", n), State: jobv1.JobState_JOB_STATE_FAILED, Created: at, Ended: at})
	}
	s := testService(t)
	s.queue = recorded{jobs: jobs}
	s.policies["aa"] = &policy{id: "aa"}
	for since, want := range []int{4, 3, 2, 1, 0} {
		p := &policy{id: "aa", policyState: policyState{Since: uint64(since)}}
		past, _ := histories(jobs, []*policy{p})
		if h := past["aa"]; h.failures != want || h.next != 4 {
			t.Errorf("since %d: %+v, want %d failures", since, h, want)
		}
	}
	if n := s.nextJob("aa"); n != 4 {
		t.Errorf("set again, it counts from %d", n)
	}
	if n := s.nextJob("bb"); n != 0 {
		t.Errorf("a new policy counts from %d", n)
	}
	s.queue = recorded{}
	s.policies["aa"].Since = 4
	if n := s.nextJob("aa"); n != 4 {
		t.Errorf("set again without records, it counts from %d", n)
	}
}

// recorded is a queue with past jobs.
type recorded struct {
	idle
	jobs []Job
}

func (r recorded) Tuples() []Job { return r.jobs }

// histories derives a policy's state from its past jobs.
func TestHistories(t *testing.T) {
	set := time.Unix(1e9, 0)
	p := &policy{id: "aa", policyState: policyState{Since: 1}}
	n := uint64(0)
	job := func(state jobv1.JobState, change func(*Job)) Job {
		j := Job{Key: jobKey("aa", n), State: state, Created: set.Add(time.Second), Ended: set.Add(time.Duration(n) * time.Minute), Why: "because"}
		n++
		if change != nil {
			change(&j)
		}
		return j
	}
	const completed, failed = jobv1.JobState_JOB_STATE_COMPLETED, jobv1.JobState_JOB_STATE_FAILED
	if past, _ := histories(nil, []*policy{p}); past["aa"].next != 1 {
		t.Errorf("without records: %+v", past["aa"])
	}
	jobs := []Job{
		job(failed, nil), // before the policy was set
		job(failed, nil), job(completed, nil),
		job(failed, func(j *Job) { j.Created = set.Add(-time.Hour) }), // after the clock was set back
		job(jobv1.JobState_JOB_STATE_TIMED_OUT, nil), job(jobv1.JobState_JOB_STATE_CANCELLED, nil),
		job(failed, func(j *Job) { j.Interrupted = true }),
		job(failed, func(j *Job) { j.Key = jobKey("bb", 77) }),
		job(failed, func(j *Job) { j.Key = "client/" + jobKey("aa", 99) }),
		job(failed, func(j *Job) { j.Key = jobPrefix + "aa/x" }),
		job(jobv1.JobState_JOB_STATE_PENDING, nil),
		job(jobv1.JobState_JOB_STATE_ACTIVATING, func(j *Job) { j.Key = jobKey("bb", 78) }), // of a deleted policy
	}
	past, running := histories(jobs, []*policy{p})
	h := past["aa"]
	if running != 2 || len(past) != 1 || h.next != 11 || h.failures != 3 || !h.failed.Equal(set.Add(5*time.Minute)) || h.why != "because" {
		t.Errorf("%d running, %+v", running, h)
	}
}
