package history

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// newRing returns a ring of a new registry, and its log.
func newRing(length time.Duration) (*Ring, *prometheus.Registry, *bytes.Buffer) {
	registry, log := prometheus.NewRegistry(), &bytes.Buffer{}
	return New(registry, length, slog.New(slog.NewTextHandler(log, nil))), registry, log
}

// text writes values; a missing one is a dash.
func text(values []float64) string {
	var b strings.Builder
	for _, v := range values {
		if math.IsNaN(v) {
			b.WriteString("-")
		} else {
			fmt.Fprintf(&b, "%g", v)
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

// A ring keeps exactly its length, however often and how late it samples.
func TestLength(t *testing.T) {
	r, registry, _ := newRing(time.Minute)
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "lodge_x"})
	registry.MustRegister(g)
	now := time.Now()
	for i := range 1000 {
		g.Set(float64(i))
		r.Sample(now.Add(time.Duration(i) * Step))
		values, end := r.Values([]string{"lodge_x"}, time.Hour)
		if n := min(i+1, 12); len(values[0]) != n || values[0][n-1] != float64(i) || values[0][0] != float64(i-n+1) || !end.Equal(now.Add(time.Duration(i)*Step)) {
			t.Fatalf("after %d samples: %s", i+1, text(values[0]))
		}
	}
	if values, _ := r.Values([]string{"lodge_x", "none"}, 10*time.Second); text(values[0]) != "998 999" || text(values[1]) != "- -" {
		t.Errorf("%v", values)
	}
	if r.Length() != time.Minute {
		t.Error(r.Length())
	}
	hour, _, _ := newRing(time.Hour)
	if hour.Length() != time.Hour || hour.slots != 720 {
		t.Errorf("an hour has %d samples", hour.slots)
	}
}

// Samples that the process missed are missing, at their place. A second sample at once is ignored.
func TestMissed(t *testing.T) {
	r, registry, _ := newRing(30 * time.Second)
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "lodge_x"})
	registry.MustRegister(g)
	now := time.Now()
	at := func(after time.Duration, v float64, want string) {
		t.Helper()
		g.Set(v)
		now = now.Add(after)
		r.Sample(now)
		if values, _ := r.Values([]string{"lodge_x"}, time.Minute); text(values[0]) != want {
			t.Errorf("%s, not %s", text(values[0]), want)
		}
	}
	at(0, 1, "1")
	at(Step, 2, "1 2")
	at(Step/5, 9, "1 2")
	at(3*Step-Step/5, 3, "1 2 - - 3")
	at(Step+Step/3, 4, "1 2 - - 3 4")
	at(2*Step, 5, "- - 3 4 - 5")
	at(100*Step, 6, "- - - - - 6")
	at(5*Step, 7, "6 - - - - 7")
}

// Counters, gauges and histograms are kept; the names and labels are those of the text format.
func TestNames(t *testing.T) {
	r, registry, _ := newRing(time.Minute)
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "lodge_c_total"}, []string{"z", "a"})
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "lodge_h_seconds"})
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "go_memstats_x"})
	registry.MustRegister(c, h, other)
	c.WithLabelValues("1", "q\"\\\n").Add(3)
	h.Observe(0.5)
	h.Observe(1)
	r.Sample(time.Now())
	all := r.List(func(Series) bool { return true })
	want := `[lodge_c_total{a="q\"\\\n",z="1"} lodge_h_seconds_count lodge_h_seconds_sum]`
	if fmt.Sprint(all) != want {
		t.Errorf("%v", all)
	}
	if values, _ := r.Values(all, time.Minute); text([]float64{values[0][0], values[1][0], values[2][0]}) != "3 2 1.5" {
		t.Errorf("%v", values)
	}
	if s, ok := r.Get(all[0]); !ok || s.Metric != "lodge_c_total" || len(s.Labels) != 2 || s.String() != all[0] {
		t.Errorf("%v", s)
	}
	if list := r.List(func(s Series) bool { return len(s.Labels) == 0 }); len(list) != 2 {
		t.Errorf("%v", list)
	}
}

// The number of series is limited, and a series that has gone makes place when its last value has
// left the ring.
func TestSeriesAreBounded(t *testing.T) {
	r, registry, log := newRing(30 * time.Second)
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "lodge_x"}, []string{"n"})
	registry.MustRegister(g)
	for i := range maxSeries + 100 {
		g.WithLabelValues(fmt.Sprint(i)).Set(1)
	}
	now := time.Now()
	count := func() int { return len(r.List(func(Series) bool { return true })) }
	r.Sample(now)
	r.Sample(now.Add(Step))
	if count() != maxSeries || strings.Count(log.String(), "too many") != 1 {
		t.Errorf("%d series, log: %s", count(), log)
	}
	g.Reset()
	g.WithLabelValues("new").Set(1)
	for i := range 5 {
		r.Sample(now.Add(time.Duration(i+2) * Step))
		if count() != maxSeries {
			t.Fatalf("%d series after %d", count(), i)
		}
	}
	r.Sample(now.Add(7 * Step))
	r.Sample(now.Add(8 * Step))
	if list := r.List(func(Series) bool { return true }); len(list) != 1 || list[0] != `lodge_x{n="new"}` {
		t.Errorf("%d series", len(list))
	}
}
