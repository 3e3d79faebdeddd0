//go:build pages

package pages

import (
	"flag"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/e2e/outside"
)

var (
	ring = flag.Duration("ring", time.Hour, "console.history of the cluster")
	span = flag.Duration("for", 70*time.Minute, "how long the test of the history takes")
)

// changing is a series that has another value in each sample.
const changing = "process_cpu_seconds_total"

// window is the history of a series as a page gets it.
type window struct {
	Step   float64
	End    int64
	Series map[string][]*float64
}

// past returns the values that a console has of a series, NaN for those that are missing.
func past(t *testing.T, b *browser, name string) (values []float64, end int64) {
	t.Helper()
	var w window
	outside.Must(t, b.get("/api/history?since=1000000&series="+url.QueryEscape(name), &w))
	if w.Step != 5 || len(w.Series) != 1 {
		t.Fatalf("a step of %v s, %d series", w.Step, len(w.Series))
	}
	for _, v := range w.Series[name] {
		if v == nil {
			values = append(values, math.NaN())
		} else {
			values = append(values, *v)
		}
	}
	return values, w.End
}

// follow appends the new values of a window to those that were read before, which must be its
// beginning.
func follow(before, now []float64) (all []float64, ok bool) {
	if len(before) == 0 {
		return now, true
	}
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	for more := range len(now) {
		old := now[:len(now)-more]
		if n := len(old); n <= len(before) && slices.EqualFunc(old, before[len(before)-n:], same) {
			return append(before, now[len(now)-more:]...), true
		}
	}
	return before, false
}

// A console keeps the values of its ring's length, exactly: all of the last time, and none before.
func TestHistory(t *testing.T) {
	c := start(t, map[string]any{"history": ring.String()})
	b := c.browse("coordinator", "operator")
	p := c.browse("p0", "client-p0")
	slots := int(*ring / (5 * time.Second))
	begun := time.Now()
	reads := map[*browser][]float64{}
	full := 0
	for time.Since(begun) < *span {
		c.Complete(c.Submit("--kind", "scalar", "--params", set, "--epoch", "1", "--count", "1000"))
		for _, x := range []*browser{b, p} {
			values, end := past(t, x, changing)
			late := time.Since(time.Unix(end, 0))
			if late < -time.Second || late > 20*time.Second {
				t.Errorf("the last value is from %s ago", late.Round(time.Second))
			}
			all, ok := follow(reads[x], values)
			if !ok {
				t.Fatalf("after %s the values are others than before", time.Since(begun).Round(time.Second))
			}
			reads[x] = all
			if want := min(len(all), slots); len(values) != want {
				t.Fatalf("after %d samples a ring of %d has %d", len(all), slots, len(values))
			}
			if len(all) > slots {
				full++
			}
			missing := 0
			for _, v := range values {
				if math.IsNaN(v) {
					missing++
				}
			}
			if missing > max(1, len(values)/50) { // a busy machine may miss a few
				t.Errorf("%d of %d values are missing", missing, len(values))
			}
		}
		time.Sleep(min(20*time.Second, *ring/4))
	}
	if full == 0 {
		t.Fatalf("the ring of %s was never full within %s", *ring, *span)
	}
	for _, x := range []*browser{b, p} {
		t.Logf("%s: %d samples in %s, of which the ring keeps %d, %s", x.origin, len(reads[x]), time.Since(begun).Round(time.Second), slots, *ring)
		if n, least := len(reads[x]), int(span.Seconds()/5)-slots/10-12; n < least {
			t.Errorf("only %d samples, fewer than %d", n, least)
		}
	}
	for name := range c.procs {
		pages, err := strconv.ParseUint(c.stat(name)[21], 10, 64)
		outside.Must(t, err)
		t.Logf("%s has %d MiB of memory", name, pages*4096>>20)
	}
	var list struct{ Series []string }
	outside.Must(t, b.get("/api/series", &list))
	if !slices.Contains(list.Series, changing) || !slices.ContainsFunc(list.Series, func(s string) bool { return strings.HasPrefix(s, "lodge_jobs") }) {
		t.Errorf("the coordinator lists %q", list.Series)
	}
}
