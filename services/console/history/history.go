// Package history keeps the recent values of a process's own metrics, so that charts need no
// Prometheus server. It samples a Prometheus registry at a fixed step into rings of a fixed length.
package history

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Step is the time between two samples.
const Step = 5 * time.Second

// maxSeries limits the series, and so the memory: 8 bytes for each sample of each series, 24 MB for
// an hour.
const maxSeries = 4096

// Label is a label of a series.
type Label struct{ Name, Value string }

// Series identifies a series.
type Series struct {
	Metric string
	Labels []Label // by name
}

// escaper escapes a label's value as in the Prometheus text format.
var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// String returns the name in the Prometheus text format, with the labels in alphabetical order.
func (s Series) String() string {
	if len(s.Labels) == 0 {
		return s.Metric
	}
	var b strings.Builder
	b.WriteString(s.Metric)
	for i, l := range s.Labels {
		b.WriteString([]string{"{", ","}[min(i, 1)])
		b.WriteString(l.Name + `="` + escaper.Replace(l.Value) + `"`)
	}
	b.WriteByte('}')
	return b.String()
}

// Ring holds the recent values of a registry's metrics. Methods are safe for concurrent use.
type Ring struct {
	from  prometheus.Gatherer
	slots int // samples of a full ring
	log   *slog.Logger

	mu      sync.Mutex
	series  map[string]*line
	ticks   uint64    // samples so far, including missed ones
	end     time.Time // time of the last sample; zero before the first
	dropped bool      // whether there were more series than maxSeries
}

// line is the ring of one series. The sample of tick t is at t % slots.
type line struct {
	series Series
	values []float64 // NaN where there is none
	last   uint64    // the last tick with a value
}

// New returns a ring of the given length, which is rounded down to whole steps, with at least one.
func New(from prometheus.Gatherer, length time.Duration, log *slog.Logger) *Ring {
	return &Ring{from: from, slots: max(1, int(length/Step)), log: log, series: map[string]*line{}}
}

// Length returns the time that a full ring covers.
func (r *Ring) Length() time.Duration { return time.Duration(r.slots) * Step }

// Run samples until ctx is done.
func (r *Ring) Run(ctx context.Context) {
	tick := time.NewTicker(Step)
	defer tick.Stop()
	for {
		r.Sample(time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sample takes the sample of a time. Steps that were missed since the last sample have no values. A
// second sample within half a step is ignored.
func (r *Ring) Sample(now time.Time) {
	r.mu.Lock()
	steps := uint64(1)
	if !r.end.IsZero() {
		steps = uint64(max(0, math.Round(float64(now.Sub(r.end))/float64(Step))))
	}
	r.mu.Unlock()
	if steps == 0 {
		return
	}
	families, err := r.from.Gather()
	if err != nil {
		r.log.Warn("some metrics cannot be read", "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for range min(steps, uint64(r.slots)) { // clear the slots of the new ticks
		r.ticks++
		at := r.ticks % uint64(r.slots)
		for _, l := range r.series {
			l.values[at] = math.NaN()
		}
	}
	r.ticks += steps - min(steps, uint64(r.slots))
	r.end = now
	for _, f := range families {
		r.family(f)
	}
	maps.DeleteFunc(r.series, func(_ string, l *line) bool { return r.ticks-l.last >= uint64(r.slots) })
}

// kept reports whether the ring keeps a metric.
func kept(name string) bool {
	return strings.HasPrefix(name, "lodge_") || strings.HasPrefix(name, "process_") || name == "go_goroutines"
}

// family stores the present values of a metric. Histograms are stored as sum and count.
func (r *Ring) family(f *dto.MetricFamily) {
	name := f.GetName()
	if !kept(name) {
		return
	}
	for _, m := range f.GetMetric() {
		switch {
		case m.Counter != nil:
			r.put(name, m, m.GetCounter().GetValue())
		case m.Gauge != nil:
			r.put(name, m, m.GetGauge().GetValue())
		case m.Histogram != nil:
			r.put(name+"_sum", m, m.GetHistogram().GetSampleSum())
			r.put(name+"_count", m, float64(m.GetHistogram().GetSampleCount()))
		}
	}
}

// put stores a value at the present tick.
func (r *Ring) put(name string, m *dto.Metric, v float64) {
	s := Series{Metric: name}
	for _, l := range m.GetLabel() {
		s.Labels = append(s.Labels, Label{l.GetName(), l.GetValue()})
	}
	slices.SortFunc(s.Labels, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	key := s.String()
	l := r.series[key]
	if l == nil {
		//lodge:check console/history/series [run=TestSeriesAreBounded] labels of many values fill
		//  the memory
		if len(r.series) >= maxSeries {
			if !r.dropped {
				r.log.Warn("the console keeps no history of some metrics: there are too many", "limit", maxSeries)
			}
			r.dropped = true
			return
		}
		l = &line{series: s, values: make([]float64, r.slots)}
		for i := range l.values {
			l.values[i] = math.NaN()
		}
		r.series[key] = l
	}
	l.values[r.ticks%uint64(r.slots)], l.last = v, r.ticks
}

// List returns the series that may be seen, by name.
func (r *Ring) List(seen func(Series) bool) (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, l := range r.series {
		if seen(l.series) {
			list = append(list, key)
		}
	}
	slices.Sort(list)
	return list
}

// Get returns the series of a name.
func (r *Ring) Get(name string) (Series, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.series[name]
	if !ok {
		return Series{}, false
	}
	return l.series, true
}

// Values returns the samples of some series in the last time, oldest first, and the time of the
// last one. All have the same length; NaN marks a missing sample, and a series that is not known
// has only these.
func (r *Ring) Values(names []string, last time.Duration) (values [][]float64, end time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(max(1, int((last+Step-1)/Step)), r.slots, int(min(r.ticks, uint64(r.slots))))
	for _, name := range names {
		out := make([]float64, n)
		for i := range out {
			out[i] = math.NaN()
			if l := r.series[name]; l != nil {
				out[i] = l.values[(r.ticks-uint64(n-1-i))%uint64(r.slots)]
			}
		}
		values = append(values, out)
	}
	return values, r.end
}
