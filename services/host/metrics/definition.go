package metrics

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Process is the set of processes that have a metric.
type Process int

// The processes.
const (
	Party Process = 1 << iota
	Coordinator
	Evaluator
	Both = Party | Coordinator
	All  = Both | Evaluator
)

// Info describes a metric.
type Info struct {
	Name, Type, Help string
	Labels           []string
	Of               Process
}

// definition is a metric of the table.
type definition struct {
	Info
	desc    *prometheus.Desc // of a level
	buckets []float64        // of a histogram
}

// A Counter, Gauge, Histogram or Level is a metric of the table. The value of a level is read at
// each scrape.
type (
	Counter   struct{ *definition }
	Gauge     struct{ *definition }
	Histogram struct{ *definition }
	Level     struct{ *definition }
)

// table lists all metrics, in the order of their definitions.
var table []*definition

func define(of Process, kind, name, help string, labels []string) *definition {
	d := &definition{Info: Info{name, kind, help, labels, of}}
	table = append(table, d)
	return d
}

func counter(of Process, name, help string, labels ...string) Counter {
	return Counter{define(of, "counter", name, help, labels)}
}

func gauge(of Process, name, help string, labels ...string) Gauge {
	return Gauge{define(of, "gauge", name, help, labels)}
}

func level(of Process, name, help string, labels ...string) Level {
	d := define(of, "gauge", name, help, labels)
	d.desc = prometheus.NewDesc(name, help, labels, nil)
	return Level{d}
}

func histogram(of Process, name, help string, labels ...string) Histogram {
	return Histogram{define(of, "histogram", name, help, labels)}.within(prometheus.ExponentialBuckets(0.001, 2.5, 14)) // 1 ms to 2.5 min
}

func (h Histogram) within(buckets []float64) Histogram {
	h.buckets = buckets
	return h
}

// vector returns the metric's series, or nil for a level.
func (d *definition) vector() prometheus.Collector {
	switch {
	case d.desc != nil:
		return nil
	case d.Type == "counter":
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
	case d.Type == "gauge":
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.Labels)
	}
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.buckets}, d.Labels)
}

// List describes all metrics of the process that Lodge defines, by name. Prometheus' collectors for
// Go and the process are not included.
func (m *Metrics) List() (list []Info) {
	for _, d := range table {
		if d.Of&m.process != 0 {
			list = append(list, d.Info)
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Count adds n to the series of a counter with these labels, and creates it if necessary. Like Set,
// Add and Observe, it does nothing if the process does not have the metric.
func (m *Metrics) Count(c Counter, n int, labels ...string) {
	if v, ok := m.of(c.definition).(*prometheus.CounterVec); ok {
		v.WithLabelValues(labels...).Add(float64(n))
	}
}

// Set sets the series of a gauge with these labels.
func (m *Metrics) Set(g Gauge, to float64, labels ...string) {
	if v, ok := m.of(g.definition).(*prometheus.GaugeVec); ok {
		v.WithLabelValues(labels...).Set(to)
	}
}

// SetIf sets the series of a gauge to 1 or 0.
func (m *Metrics) SetIf(g Gauge, on bool, labels ...string) {
	if on {
		m.Set(g, 1, labels...)
	} else {
		m.Set(g, 0, labels...)
	}
}

// SetAll replaces all series of a gauge with one label by those of values.
func (m *Metrics) SetAll(g Gauge, values map[string]int) {
	if v, ok := m.of(g.definition).(*prometheus.GaugeVec); ok {
		v.Reset()
	}
	for label, n := range values {
		m.Set(g, float64(n), label)
	}
}

// Add adds n to the series of a gauge with these labels.
func (m *Metrics) Add(g Gauge, n int, labels ...string) {
	if v, ok := m.of(g.definition).(*prometheus.GaugeVec); ok {
		v.WithLabelValues(labels...).Add(float64(n))
	}
}

// Observe adds a duration to the series of a histogram with these labels.
func (m *Metrics) Observe(h Histogram, took time.Duration, labels ...string) {
	if v, ok := m.of(h.definition).(*prometheus.HistogramVec); ok {
		v.WithLabelValues(labels...).Observe(took.Seconds())
	}
}

// of returns the series of a metric, or nil if the process does not have it.
func (m *Metrics) of(d *definition) prometheus.Collector {
	if m == nil {
		return nil
	}
	return m.vectors[d]
}

// SetLevel sets the series of a level with these labels during a scrape.
type SetLevel func(l Level, value float64, labels ...string)

// Read makes every scrape call read, which passes the values of these levels to its argument.
func (m *Metrics) Read(levels []Level, read func(set SetLevel)) {
	if m != nil {
		m.registry.MustRegister(reader{levels, read})
	}
}

// reader implements prometheus.Collector.
type reader struct {
	levels []Level
	read   func(set SetLevel)
}

func (r reader) Describe(c chan<- *prometheus.Desc) {
	for _, l := range r.levels {
		c <- l.desc
	}
}

func (r reader) Collect(c chan<- prometheus.Metric) {
	r.read(func(l Level, value float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, value, labels...)
	})
}
