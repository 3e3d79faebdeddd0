//go:build dashboards

package dashboards

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// prometheus has the address of the server and the time of its first sample.
type prometheus struct {
	t     *testing.T
	url   string
	since time.Time
}

// rateInterval replaces Grafana's $__rate_interval: several scrape intervals of the test.
const rateInterval = 15 * time.Second

// point is a value at a time, in seconds of Unix time.
type point struct{ at, value float64 }

// series is the result of a query for one set of labels.
type series struct {
	labels map[string]string
	points []point
}

// known reports whether the series has a value that is a number.
func (s series) known() bool {
	for _, p := range s.points {
		if !math.IsNaN(p.value) {
			return true
		}
	}
	return false
}

func (p prometheus) ready() bool {
	r, err := http.Get(p.url + "/-/ready")
	if err != nil {
		return false
	}
	defer r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// get sends a request to the API and ends the test unless it succeeds.
func (p prometheus) get(path string, values url.Values, into any) {
	p.t.Helper()
	r, err := http.Get(p.url + "/api/v1/" + path + "?" + values.Encode())
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Status != "success" {
		p.t.Fatalf("%s %v: %s %v", path, values, answer.Error, err)
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		p.t.Fatal(err)
	}
}

// now returns the current result of a query.
func (p prometheus) now(expr string) []series { return p.chosen(expr, nil) }

// chosen has the selected values of single-valued variables.
func (p prometheus) chosen(expr string, one map[string]string) []series {
	p.t.Helper()
	return p.query("query", url.Values{"query": {p.filled(expr, one)}})
}

// over returns the results of a query since the beginning, at the given number of points in time.
func (p prometheus) over(expr string, moments int, one map[string]string) []series {
	p.t.Helper()
	end := time.Now()
	step := max(time.Second, end.Sub(p.since)/time.Duration(moments))
	return p.query("query_range", url.Values{
		"query": {p.filled(expr, one)}, "start": {stamp(p.since)}, "end": {stamp(end)}, "step": {fmt.Sprintf("%.3f", step.Seconds())},
	})
}

func stamp(t time.Time) string { return fmt.Sprintf("%.3f", float64(t.UnixMilli())/1000) }

// filled substitutes values for Grafana's variables and for the dashboards' variables: the selected
// value of a single-valued variable, or all values.
func (p prometheus) filled(expr string, one map[string]string) string {
	expr = strings.ReplaceAll(expr, "$__rate_interval", rateInterval.String())
	expr = strings.ReplaceAll(expr, "$__range", fmt.Sprintf("%ds", int(time.Since(p.since).Seconds())+1))
	return regexp.MustCompile(`\$\w+`).ReplaceAllStringFunc(expr, func(v string) string { return cmp.Or(one[v[1:]], ".*") })
}

func (p prometheus) query(path string, values url.Values) (list []series) {
	p.t.Helper()
	var data struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Value  [2]any
			Values [][2]any
		}
	}
	p.get(path, values, &data)
	for _, r := range data.Result {
		s := series{labels: r.Metric}
		if data.ResultType == "vector" {
			r.Values = [][2]any{r.Value}
		}
		for _, v := range r.Values {
			at, _ := v[0].(float64)
			text, _ := v[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			s.points = append(s.points, point{at, value})
		}
		list = append(list, s)
	}
	return list
}

// rule is an alert as Prometheus evaluates it.
type rule struct {
	Name, Health, LastError, State, LastEvaluation string
}

// rules returns all alerts by name.
func (p prometheus) rules() map[string]rule {
	p.t.Helper()
	var data struct{ Groups []struct{ Rules []rule } }
	p.get("rules", nil, &data)
	all := map[string]rule{}
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			all[r.Name] = r
		}
	}
	return all
}

// values returns the values for a variable's query, label_values(METRIC, LABEL).
func (p prometheus) values(query string) (list []string) {
	p.t.Helper()
	m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(query)
	if m == nil {
		p.t.Fatalf("not a variable query: %s", query)
	}
	p.get("label/"+m[2]+"/values", url.Values{"match[]": {m[1]}}, &list)
	return list
}
