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

// metricsList returns the list in docs/reference/metrics.md for one kind of process.
func metricsList(list []metrics.Info, of metrics.Process) string {
	var b strings.Builder
	for _, m := range list {
		if m.Of != of {
			continue
		}
		labels := ""
		if len(m.Labels) > 0 {
			labels = "{" + strings.Join(m.Labels, ",") + "}"
		}
		fmt.Fprintf(&b, "- `%s%s` (%s): %s\n", m.Name, labels, m.Type, strings.TrimSuffix(m.Help, "."))
	}
	return b.String()
}

// TestMetricsDocument checks that docs/reference/metrics.md lists every metric of every process
// with its labels, type and help, and describes every label.
func TestMetricsDocument(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	list := metrics.New("test", metrics.All).List()
	for heading, of := range map[string]metrics.Process{"Parties": metrics.Party, "The coordinator": metrics.Coordinator, "Parties and the coordinator": metrics.Both,
		"Evaluators": metrics.Evaluator, "All processes": metrics.All} {
		want := "## " + heading + "\n\n" + metricsList(list, of)
		if !strings.Contains(text, want) {
			t.Errorf("docs/reference/metrics.md lacks:\n\n%s", want)
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
	for _, row := range regexp.MustCompile("(?m)^\\| ((?:`\\w+`(?:, )?)+) \\| [^|]* \\|$").FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(strings.ReplaceAll(row[1], "`", ""), ", ") {
			described[name] = true
			if !labels[name] {
				t.Errorf("no metric has the label %s", name)
			}
		}
	}
	for l := range labels {
		if !described[l] {
			t.Errorf("the page does not describe the label %s", l)
		}
	}
}
