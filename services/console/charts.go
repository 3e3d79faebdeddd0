package console

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lodge-mpc/lodge/services/console/history"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Limits on charts.
const (
	maxCharts = 64               // series of one request
	maxOlder  = 16               // the same, if they come from Prometheus
	maxSince  = 366 * 24 * 3600  // seconds
	maxPoints = 720              // of a series from Prometheus
	olderTime = 15 * time.Second // for a request to Prometheus
	shortest  = 2 * history.Step // the least time of a chart
)

// shown are the metrics without the label of a client or tenant that every client with the
// permission "status" sees: what GetStatus tells it.
var shown = []string{
	"lodge_build_info", "lodge_certificate_expiry_timestamp_seconds", "lodge_peer_up",
	"lodge_peer_round_trip_seconds_sum", "lodge_peer_round_trip_seconds_count",
	"lodge_sessions_running", "lodge_disk_free_bytes", "lodge_disk_size_bytes", "lodge_disk_min_free_bytes", "lodge_disk_low",
	"lodge_store_quarantined", "lodge_store_fault", "lodge_audit_fault",
	"lodge_accusations", "lodge_excluded_parties", "lodge_unnamed_failures", "lodge_generation_stopped",
	"process_resident_memory_bytes", "process_start_time_seconds",
}

// maySee reports whether an identity may see a series. A client sees series about its own tenants
// and itself. Series about all clients together are for operators, because they reveal the
// activity of other tenants.
func maySee(p rpc.Principal, s history.Series) bool {
	switch {
	case p.Role == rpc.Self:
		return true
	case p.Role != rpc.Client:
		return slices.Contains(shown, s.Metric)
	case !p.May(config.PermStatus):
		return false
	}
	tenants, clients, own := false, false, false
	for _, l := range s.Labels {
		switch l.Name {
		case "tenant":
			//lodge:check console/charts/tenant [run=TestCharts] a client sees the stock of other
			//  tenants
			if !p.Serves(l.Value) {
				return false
			}
			tenants = true
		case "client", "with", "owner":
			clients, own = true, own || l.Value == p.Name
		}
	}
	//lodge:check console/charts/client [run=TestCharts] a client sees what other clients do
	if clients {
		return own
	}
	//lodge:check console/charts/others [run=TestCharts] a client sees what all clients together do
	if !tenants && !slices.Contains(shown, s.Metric) && !p.May(config.PermOperate) {
		return false
	}
	return true
}

// series lists the series that the identity may see.
func (c *Console) series(w http.ResponseWriter, r *http.Request) {
	who := r.Context().Value(callerKey{}).(caller)
	list := c.ring.List(func(s history.Series) bool { return maySee(who.Principal, s) })
	reply(w, http.StatusOK, struct {
		Series  []string `json:"series"`
		Step    float64  `json:"step"`
		Seconds float64  `json:"seconds"`
	}{append([]string{}, list...), history.Step.Seconds(), c.ring.Length().Seconds()})
}

// chart is the response of history. A missing value is null.
type chart struct {
	Step   float64               `json:"step"`
	End    int64                 `json:"end"` // in Unix time
	Series map[string][]*float64 `json:"series"`
}

// history returns recent values of series, or older ones from Prometheus.
func (c *Console) history(w http.ResponseWriter, r *http.Request) {
	who := r.Context().Value(callerKey{}).(caller)
	q := r.URL.Query()
	since, err := strconv.ParseUint(q.Get("since"), 10, 32)
	if err != nil || since == 0 || since > maxSince {
		fail(w, rpc.Errorf(rpc.Invalid, "write since=SECONDS", "since is not a number of seconds from 1 to %d", maxSince))
		return
	}
	var names []string
	for _, list := range q["series"] {
		names = append(names, split(list)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	span := max(time.Duration(since)*time.Second, shortest)
	old := c.older != nil && span > c.ring.Length()
	most := maxCharts
	if old {
		most = maxOlder
	}
	//lodge:check console/charts/bound [run=TestHistory] a request takes any amount of memory
	if len(names) == 0 || len(names) > most {
		fail(w, rpc.Errorf(rpc.Invalid, "", "%d series; write 1 to %d", len(names), most))
		return
	}
	var list []history.Series
	for _, name := range names {
		s, ok := c.ring.Get(name)
		// The error for a hidden series equals that for an unknown one.
		//lodge:check console/charts/seen [swap=!maySee(who.Principal, s)=>false] [run=TestHistory] a
		//  client reads the metrics of other tenants by name
		if !ok || !maySee(who.Principal, s) {
			fail(w, rpc.Errorf(rpc.NotFound, "/api/series lists them", "there is no series %.200q", name))
			return
		}
		list = append(list, s)
	}
	if old {
		out, refused := c.older.query(r.Context(), list, span, c.now())
		if refused != nil {
			fail(w, refused)
			return
		}
		reply(w, http.StatusOK, out)
		return
	}
	values, end := c.ring.Values(names, span)
	out := chart{history.Step.Seconds(), end.Unix(), map[string][]*float64{}}
	for i, name := range names {
		out.Series[name] = points(values[i])
	}
	reply(w, http.StatusOK, out)
}

// points returns values for JSON, which has neither NaN nor infinity.
func points(values []float64) []*float64 {
	out := make([]*float64, len(values))
	for i, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[i] = &values[i]
		}
	}
	return out
}

// split splits a list of series at the commas outside of braces and quotes.
func split(list string) (names []string) {
	from, braces, quoted := 0, false, false
	for i := 0; i < len(list); i++ {
		switch b := list[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case !quoted && b == '{':
			braces = true
		case !quoted && b == '}':
			braces = false
		case !quoted && !braces && b == ',':
			names = append(names, list[from:i])
			from = i + 1
		}
	}
	return slices.DeleteFunc(append(names, list[from:]), func(s string) bool { return s == "" })
}
