package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/console/history"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// An identity sees the series about its tenants and itself. Series about everybody are for
// operators.
func TestCharts(t *testing.T) {
	label := func(name, value string) []history.Label { return []history.Label{{Name: name, Value: value}} }
	about := map[string]history.Series{
		"process":     {Metric: "process_resident_memory_bytes"},
		"everybody":   {Metric: "lodge_jobs", Labels: label("state", "pending")},
		"tenant a":    {Metric: "lodge_stock_available", Labels: label("tenant", "a")},
		"tenant b":    {Metric: "lodge_stock_available", Labels: label("tenant", "b")},
		"anna":        {Metric: "lodge_reservations_open", Labels: label("owner", "anna")},
		"ben":         {Metric: "lodge_reservations_open", Labels: label("owner", "ben")},
		"anna, ben":   {Metric: "lodge_linear_distance_spent_ratio", Labels: append(label("client", "anna"), label("with", "ben")...)},
		"ben, cleo":   {Metric: "lodge_linear_distance_spent_ratio", Labels: append(label("client", "ben"), label("with", "cleo")...)},
		"a, of anna":  {Metric: "x", Labels: append(label("owner", "anna"), label("tenant", "a")...)},
		"a, of ben":   {Metric: "x", Labels: append(label("owner", "ben"), label("tenant", "a")...)},
		"b, of anna":  {Metric: "x", Labels: append(label("owner", "anna"), label("tenant", "b")...)},
		"no labelled": {Metric: "lodge_tuples_stored_total"},
	}
	anna := rpc.Principal{Role: rpc.Client, Name: "anna", Permissions: []string{config.PermStatus, config.PermOperate}, Tenants: []string{"a"}}
	look := anna
	look.Permissions = []string{config.PermStatus}
	nothing := anna
	nothing.Permissions = []string{config.PermFetch, config.PermOperate}
	for _, c := range []struct {
		who  string
		p    rpc.Principal
		sees []string
	}{
		{"the process itself", rpc.Principal{Role: rpc.Self}, []string{"process", "everybody", "tenant a", "tenant b", "anna", "ben", "anna, ben", "ben, cleo", "a, of anna", "a, of ben", "b, of anna", "no labelled"}},
		{"a peer", rpc.Principal{Role: rpc.Peer, Tenants: []string{"a"}}, []string{"process"}},
		{"an operator", anna, []string{"process", "everybody", "tenant a", "anna", "anna, ben", "a, of anna", "no labelled"}},
		{"a client", look, []string{"process", "tenant a", "anna", "anna, ben", "a, of anna"}},
		{"a client without the permission", nothing, nil},
	} {
		want := map[string]bool{}
		for _, name := range c.sees {
			want[name] = true
		}
		for name, s := range about {
			if got := maySee(c.p, s); got != want[name] {
				t.Errorf("%s, %s: %v", c.who, name, got)
			}
		}
	}
}

// samples fills the history of a world.
func samples(w *world, n int) {
	w.metrics.Set(metrics.StoreBytes, 5) // for operators
	w.metrics.Add(metrics.PeerUp, 1, "bob")
	now := time.Now()
	for i := range n {
		w.console.ring.Sample(now.Add(time.Duration(i+1) * history.Step))
	}
}

// A page reads the recent values of the series that its identity may see.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	samples(w, 30)
	var list struct {
		Series        []string
		Step, Seconds float64
	}
	names := func(name string) string {
		a := w.in(name).get("/api/series")
		if err := json.Unmarshal(a.body, &list); err != nil || a.status != http.StatusOK || list.Step != 5 || list.Seconds != 60 {
			t.Fatalf("%v %d %s", err, a.status, a.body)
		}
		return strings.Join(list.Series, " ")
	}
	if got := names("anna"); !strings.Contains(got, "lodge_store_bytes") || !strings.Contains(got, `lodge_peer_up{peer="bob"}`) {
		t.Error(got)
	}
	if got := names("ben"); strings.Contains(got, "lodge_store_bytes") || !strings.Contains(got, `lodge_peer_up{peer="bob"}`) {
		t.Error(got)
	}
	if got := names("cleo"); got != "" {
		t.Error(got)
	}
	b := w.in("anna")
	var out chart
	a := b.get(`/api/history?since=20&series=lodge_store_bytes,lodge_peer_up{peer="bob"}&series=process_resident_memory_bytes`)
	if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK || len(out.Series) != 3 || len(out.Series["lodge_store_bytes"]) != 4 || *out.Series["lodge_store_bytes"][3] != 5 {
		t.Errorf("%v %d %s", err, a.status, a.body)
	}
	if a := b.get(`/api/history?since=100000&series=lodge_store_bytes`); json.Unmarshal(a.body, &out) != nil || len(out.Series["lodge_store_bytes"]) != 12 {
		t.Errorf("a ring of a minute has %d samples: %s", len(out.Series["lodge_store_bytes"]), a.body)
	}
	for path, want := range map[string]string{
		"since=60&series=lodge_none":                 "not_found",
		"since=60":                                   "invalid_request",
		"since=0&series=lodge_store_bytes":           "invalid_request",
		"since=-1&series=lodge_store_bytes":          "invalid_request",
		"since=99999999999&series=lodge_store_bytes": "invalid_request",
		"since=60&series=" + strings.Join(strings.Split(strings.Repeat("abcdefgh", 9), ""), ","): "not_found",
	} {
		if a := b.get("/api/history?" + path); a.code() != want {
			t.Errorf("%.80s: %d %s", path, a.status, a.body)
		}
	}
	var many strings.Builder
	for i := range maxCharts + 1 {
		fmt.Fprintf(&many, "&series=s%d", i)
	}
	if a := b.get("/api/history?since=60" + many.String()); a.code() != "invalid_request" {
		t.Errorf("too many: %d %s", a.status, a.body)
	}
	if a := w.in("ben").get("/api/history?since=60&series=lodge_store_bytes"); a.code() != "not_found" {
		t.Errorf("ben reads it by name: %d %s", a.status, a.body)
	}
}

// Values older than the ring come from Prometheus, for this process only.
func TestPrometheus(t *testing.T) {
	var asked, result string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.FormValue("query")
		at := r.FormValue("end")
		fmt.Fprint(w, strings.ReplaceAll(result, "END", at))
	}))
	defer server.Close()
	w := newWorld(t, func(_ *world, f *config.Console) {
		f.Prometheus = config.ConsolePrometheus{URL: server.URL + "/prom/", Match: map[string]string{"instance": "p0:7190", "job": `l"odge`}}
	})
	samples(w, 2)
	b := w.in("anna")
	result = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[END,"7"]]}]}}`
	var out chart
	a := b.get(`/api/history?since=86400&series=lodge_peer_up{peer="bob"}`)
	if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK {
		t.Fatalf("%v %d %s", err, a.status, a.body)
	}
	got := out.Series[`lodge_peer_up{peer="bob"}`]
	if asked != `lodge_peer_up{peer="bob",instance="p0:7190",job="l\"odge"}` || len(got) == 0 || len(got) > maxPoints || got[0] != nil || got[len(got)-1] == nil || *got[len(got)-1] != 7 || out.Step < 120 {
		t.Errorf("asked %s, got %s", asked, a.body)
	}
	asked = ""
	if a := b.get(`/api/history?since=60&series=lodge_peer_up{peer="bob"}`); a.status != http.StatusOK || asked != "" {
		t.Errorf("recent values come from Prometheus: %s", asked)
	}
	result = `{"status":"success","data":{"resultType":"matrix","result":[{"values":[]},{"values":[]}]}}`
	if a := b.get("/api/history?since=86400&series=lodge_store_bytes"); a.code() != "conflict" {
		t.Errorf("two processes: %d %s", a.status, a.body)
	}
	result = "<html>"
	if a := b.get("/api/history?since=86400&series=lodge_store_bytes"); a.code() != "unavailable" {
		t.Errorf("nonsense: %d %s", a.status, a.body)
	}
	asked = ""
	if a := w.in("ben").get("/api/history?since=86400&series=lodge_store_bytes"); a.code() != "not_found" || asked != "" {
		t.Errorf("ben reads it by name: %d %s, %s", a.status, a.body, asked)
	}
	server.Close()
	if a := b.get("/api/history?since=86400&series=lodge_store_bytes"); a.code() != "unavailable" {
		t.Errorf("without Prometheus: %d %s", a.status, a.body)
	}
	if s := b.get("/api/session"); !strings.Contains(string(s.body), `"prometheus":true`) {
		t.Errorf("%s", s.body)
	}
}

// Commas in labels do not separate series.
func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "[]",
		"a,b":                     `["a" "b"]`,
		`a{x="1",y="2"},b`:        `["a{x=\"1\",y=\"2\"}" "b"]`,
		`a{x="},{\"",y="2"},,b{}`: `["a{x=\"},{\\\"\",y=\"2\"}" "b{}"]`,
		`a{x="`:                   `["a{x=\""]`,
	} {
		if got := fmt.Sprintf("%q", split(text)); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
