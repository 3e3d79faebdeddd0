package metrics

import (
	"slices"
	"strings"

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

// List describes all metrics of the process that Lodge defines, by name. Prometheus' collectors for
// Go and the process are not included.
func (m *Metrics) List() []Info {
	list := slices.Clone(m.list)
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// register creates metrics, and registers those that the process has.
type register struct {
	process  Process
	registry *prometheus.Registry
	list     []Info
}

func (r *register) note(of Process, kind, name, help string, labels ...string) bool {
	if of&r.process == 0 {
		return false
	}
	r.list = append(r.list, Info{name, kind, help, labels, of})
	return true
}

func (r *register) counter(of Process, name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	if r.note(of, "counter", name, help, labels...) {
		r.registry.MustRegister(v)
	}
	return v
}

// count returns a counter without labels, which starts at 0.
func (r *register) count(of Process, name, help string) prometheus.Counter {
	return r.counter(of, name, help).WithLabelValues()
}

func (r *register) gauge(of Process, name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	if r.note(of, "gauge", name, help, labels...) {
		r.registry.MustRegister(v)
	}
	return v
}

func (r *register) histogram(of Process, name, help string, labels ...string) *prometheus.HistogramVec {
	return r.buckets(of, name, help, prometheus.ExponentialBuckets(0.001, 2.5, 14), labels...) // 1 ms to 2.5 min
}

func (r *register) buckets(of Process, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	if r.note(of, "histogram", name, help, labels...) {
		r.registry.MustRegister(v)
	}
	return v
}

// collector registers a collector that describes itself; its gauges are recorded one by one.
func (r *register) collector(of Process, c prometheus.Collector) {
	if of&r.process != 0 {
		r.registry.MustRegister(c)
	}
}

// desc records a gauge of a collector.
func (r *register) desc(of Process, name, help string, labels ...string) *prometheus.Desc {
	r.note(of, "gauge", name, help, labels...)
	return prometheus.NewDesc(name, help, labels, nil)
}
