package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// JobLabels holds the labels of unfinished jobs: their state and the reason why they wait.
type JobLabels struct{ State, Reason string }

// JobLevels holds the state of a coordinator's jobs.
type JobLevels struct {
	Open map[JobLabels]int    // unfinished jobs
	Last map[string]time.Time // time of the last completion by kind
	Idle time.Duration        // time since the last progress of the running job that is stalled longest
}

// jobs collects the metrics of jobs at each scrape.
type jobs struct {
	open, last, idle *prometheus.Desc
	levels           atomic.Pointer[func() JobLevels]
}

func newJobs(r *register) *jobs {
	j := &jobs{
		open: r.desc(Coordinator, "lodge_jobs", "Unfinished jobs, by state and the reason why they wait.", "state", "reason"),
		last: r.desc(Coordinator, "lodge_job_last_completed_timestamp_seconds", "When a job last completed, in Unix time.", "kind"),
		idle: r.desc(Coordinator, "lodge_job_idle_seconds",
			"Time since the last report from the running job that is stalled longest; 0 if none runs."),
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

// JobsFrom makes every scrape call f for the jobs. The counters of ended jobs start at 0 for these
// kinds and states.
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
