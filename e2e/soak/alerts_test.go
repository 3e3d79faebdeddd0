//go:build soak

package soak

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/e2e/outside"
)

// expected alerts must fire when processes are killed repeatedly and one stays down for a while.
var expected = []string{"LodgeProcessDown", "LodgeProcessRestarts", "LodgePeerDown", "LodgeJobsFail"}

// tolerated alerts may fire: a kill may interrupt a MAC check, the stock may run out, and other
// programs use the disk.
var tolerated = []string{
	"LodgeMACCheckFailed", "LodgeStockLow", "LodgeStockHeldBack", "LodgeStockEmptiesSoon", "LodgeOutOfStock", "LodgeReservationsFail",
	"LodgeDiskFills", "LodgeDiskFull",
}

// prometheus is a real Prometheus server that scrapes the cluster and loads the alerts of
// dashboards/rules.
type prometheus struct{ url string }

// scaled returns the alerts with shortened waiting times.
func scaled(text string) string {
	return regexp.MustCompile(`(?m)^(\s+for: )(\S+)$`).ReplaceAllStringFunc(text, func(line string) string {
		head, value, _ := strings.Cut(line, "for: ")
		d, err := time.ParseDuration(value)
		if err != nil {
			return line
		}
		return fmt.Sprintf("%sfor: %dms", head, int64(float64(d.Milliseconds())**scale))
	})
}

func startPrometheus(t *testing.T, c *cluster) prometheus {
	t.Helper()
	dir := t.TempDir()
	rules, err := os.ReadFile(filepath.Join("..", "..", "dashboards", "rules", "lodge.yaml"))
	outside.Must(t, err)
	outside.Must(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(scaled(string(rules))), 0o600))
	var b strings.Builder
	b.WriteString("global: {scrape_interval: 2s, evaluation_interval: 2s}\nrule_files: [rules.yaml]\nscrape_configs:\n  - job_name: lodge\n    static_configs:\n")
	for _, p := range c.procs {
		fmt.Fprintf(&b, "      - {targets: [%q], labels: {process: %s}}\n", p.metrics, p.name)
	}
	outside.Must(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(b.String()), 0o600))
	address := outside.FreeAddress(t)
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	log, err := os.Create(filepath.Join(dir, "log"))
	outside.Must(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	outside.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
	})
	p := prometheus{"http://" + address}
	c.Until("Prometheus", func() bool {
		r, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return p
}

// fired returns the alerts that have fired at any time.
func (p prometheus) fired(t *testing.T) map[string]bool {
	t.Helper()
	r, err := http.Get(p.url + "/api/v1/query?" + url.Values{
		"query": {fmt.Sprintf(`count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[%ds]))`, int(span.Seconds())+600)},
	}.Encode())
	outside.Must(t, err)
	defer r.Body.Close()
	var answer struct {
		Status string
		Data   struct {
			Result []struct{ Metric map[string]string }
		}
	}
	outside.Must(t, json.NewDecoder(r.Body).Decode(&answer))
	if answer.Status != "success" {
		t.Fatal(answer.Status)
	}
	names := map[string]bool{}
	for _, s := range answer.Data.Result {
		names[s.Metric["alertname"]] = true
	}
	return names
}

// judge asserts that all expected alerts fired, and no alerts other than expected or tolerated
// ones.
func (p prometheus) judge(t *testing.T, expected, tolerated []string) {
	fired := p.fired(t)
	t.Logf("alerts that fired: %s", strings.Join(slices.Sorted(keys(fired)), ", "))
	for _, name := range expected {
		if !fired[name] {
			t.Errorf("%s did not fire", name)
		}
	}
	for name := range fired {
		if !slices.Contains(expected, name) && !slices.Contains(tolerated, name) {
			t.Errorf("%s fired", name)
		}
	}
}

func keys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
