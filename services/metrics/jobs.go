package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// JobLabels say how far a job is and what it waits for.
type JobLabels struct{ State, Reason string }

// JobLevels are the jobs that a coordinator knows.
type JobLevels struct {
	Open map[JobLabels]int    // jobs that are not over
	Last map[string]time.Time // when the last one of a kind completed
	Idle time.Duration        // since the job that runs and has moved least recently has moved
}

// jobs collects what there is when it is asked.
type jobs struct {
	open, last, idle *prometheus.Desc
	levels           atomic.Pointer[func() JobLevels]
}

func newJobs(r *register) *jobs {
	j := &jobs{
		open: r.desc(Coordinator, "lodge_jobs", "Jobs that are not over, by state and what they wait for.", "state", "reason"),
		last: r.desc(Coordinator, "lodge_job_last_completed_timestamp_seconds", "When a job last completed, in Unix time.", "kind"),
		idle: r.desc(Coordinator, "lodge_job_idle_seconds",
			"Since anything was last heard of the job that runs and has moved least recently; 0 while none runs."),
	}
	r.collector(Coordinator, j)
	return j
}

func (j *jobs) Describe(c chan<- *prometheus.Desc) {
	c <- j.open
	c <- j.last
	c <- j.idle
}

func (j *jobs) Collect(c chan<- prometheus.Metric) {
	f := j.levels.Load()
	if f == nil {
		return
	}
	levels := (*f)()
	for l, n := range levels.Open {
		c <- prometheus.MustNewConstMetric(j.open, prometheus.GaugeValue, float64(n), l.State, l.Reason)
	}
	for kind, at := range levels.Last {
		c <- prometheus.MustNewConstMetric(j.last, prometheus.GaugeValue, float64(at.UnixMilli())/1000, kind)
	}
	c <- prometheus.MustNewConstMetric(j.idle, prometheus.GaugeValue, levels.Idle.Seconds())
}

// JobsFrom has f asked for the jobs at every scrape. The counters of jobs that end begin with 0, for these kinds and states.
func (m *Metrics) JobsFrom(f func() JobLevels, kinds, states []string) {
	if m == nil {
		return
	}
	for _, k := range kinds {
		for _, s := range states {
			m.jobsEnded.WithLabelValues(k, s)
		}
	}
	m.jobs.levels.Store(&f)
}

// JobEnded counts a job that ended.
func (m *Metrics) JobEnded(kind, state string) {
	if m != nil {
		m.jobsEnded.WithLabelValues(kind, state).Inc()
	}
}
