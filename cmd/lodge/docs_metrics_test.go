package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/metrics"
)

// metricsTable is the table of docs/reference/metrics.md with the metrics that these processes
// have.
func metricsTable(list []metrics.Info, of metrics.Process) string {
	var b strings.Builder
	b.WriteString("| metric | type | unit | labels | what |\n|---|---|---|---|---|\n")
	for _, m := range list {
		if m.Of != of {
			continue
		}
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "` `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, unitOf(m.Name), labels, strings.TrimSuffix(m.Help, "."))
	}
	return b.String()
}

// unitOf a metric, which its name says.
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, unit := range []string{"seconds", "bytes", "tuples", "ratio"} {
		if strings.HasSuffix(name, "_"+unit) || strings.HasPrefix(name, "lodge_"+unit) || unit == "tuples" && strings.Contains(name, "_tuples_") {
			return unit
		}
	}
	return ""
}

// docs/reference/metrics.md has every metric of every process, as the process describes it, and no
// other. The values that it gives for labels are about labels that there are.
func TestMetricsDocument(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	list := metrics.New("test", metrics.All).List()
	for heading, of := range map[string]metrics.Process{"Parties": metrics.Party, "The coordinator": metrics.Coordinator, "Both": metrics.Both,
		"Evaluators": metrics.Evaluator, "All": metrics.All} {
		want := "## " + heading + "\n\n" + metricsTable(list, of)
		if !strings.Contains(text, want) {
			t.Errorf("docs/reference/metrics.md has not:\n\n%s", want)
		}
	}
	namesMetrics(t, text, len(list))
	labels := map[string]bool{}
	for _, m := range list {
		for _, l := range m.Labels {
			labels[l] = true
		}
	}
	described := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| [^|]* \\|$").FindAllStringSubmatch(text, -1) {
		described[row[1]] = true
		if !labels[row[1]] {
			t.Errorf("no metric has the label %s", row[1])
		}
	}
	for l := range labels {
		if !described[l] {
			t.Errorf("nothing is said of the label %s", l)
		}
	}
}
