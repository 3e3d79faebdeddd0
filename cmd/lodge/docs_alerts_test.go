package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/services/host/metrics"
)

// alertRule is an entry of a file of rules.
type alertRule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// Every alert says what it means, leads to its section of docs/operations/alerts.md, which says how
// grave it is, and has a case in which it fires and one in which it does not; there are no other
// sections. It asks for metrics that there are.
func TestAlertsDocument(t *testing.T) {
	read := func(path ...string) []byte {
		b, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []alertRule
		}
	}
	if err := yaml.Unmarshal(read("dashboards", "rules", "lodge.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	page, cases := string(read("docs", "operations", "alerts.md")), string(read("dashboards", "rules", "lodge_test.yaml"))
	known := map[string]bool{}
	for _, m := range metrics.New("test", metrics.Both).List() {
		known[m.Name] = true
	}
	var alerts []string
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			alerts = append(alerts, r.Alert)
			severity := r.Labels["severity"]
			if severity != "warning" && severity != "critical" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s has the severity %q and the annotations %v", r.Alert, severity, r.Annotations)
			}
			const pages = "https://github.com/lodge-mpc/lodge/blob/main/docs/operations/alerts.md#"
			if r.Annotations["runbook_url"] != pages+strings.ToLower(r.Alert) {
				t.Errorf("%s leads to %s", r.Alert, r.Annotations["runbook_url"])
			}
			_, section, _ := strings.Cut(page, "\n## "+r.Alert+"\n\n")
			if grave := "*" + strings.ToUpper(severity[:1]) + severity[1:]; !strings.HasPrefix(section, grave) {
				t.Errorf("the section of %s does not begin with %s", r.Alert, grave)
			}
			if after := ", after " + strings.TrimSuffix(r.For, "m") + " min.*"; r.For != "" && !strings.Contains(section[:min(40, len(section))], after) {
				t.Errorf("the section of %s does not begin with %q", r.Alert, after)
			}
			for _, kind := range []string{" fires\n", " does not fire\n"} {
				if !strings.Contains(cases, "- name: "+r.Alert+kind) {
					t.Errorf("%s has no case%s", r.Alert, kind)
				}
			}
			for _, name := range regexp.MustCompile(`lodge_\w+`).FindAllString(r.Expr, -1) {
				if !known[name] {
					t.Errorf("%s asks for %s, which there is not", r.Alert, name)
				}
			}
		}
	}
	var sections []string
	for _, s := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(page, -1) {
		sections = append(sections, s[1])
	}
	if !slices.Equal(sections, alerts) {
		t.Errorf("sections are %v, alerts %v", sections, alerts)
	}
}
