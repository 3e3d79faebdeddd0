package metrics

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func TestServe(t *testing.T) {
	m := New("v1", Both)
	m.Observe(RoundDuration, time.Second, "triples", "open")
	m.Observe(RoundCompute, time.Millisecond, "triples", "open")
	m.Count(PeerBytes, 10, "triples", "open", "bob", "sent")
	m.Count(PeerBytes, 20, "triples", "open", "bob", "received")
	m.Count(PeerResumes, 1, "bob")
	end := m.SessionStarted("triples")
	m.Count(TuplesStored, 5, "scalar", "p128")
	m.Count(TuplesDelivered, 5, "scalar", "p128")
	m.Count(Decryptions, 1, "answered")
	m.Count(JobsEnded, 0, "keys", "failed")
	m.Read([]Level{JobsOpen, JobLast, JobIdle}, func(set SetLevel) {
		set(JobsOpen, 2, "pending", "queue")
		set(JobLast, 5, "keys")
		set(JobIdle, 60)
	})
	m.Peers("bob", "carol")
	m.SetIf(PeerUp, true, "bob")
	m.Observe(PeerTrip, time.Millisecond, "bob")
	m.Blamed("bob", "popk-bound")
	m.Proofs(ProofPlaintexts, true, 2)
	m.Count(MACCheckFailures, 1, "online")
	m.SetIf(StoreQuarantined, true)
	m.SetAll(StoreRecords, map[string]int{"mask": 2})
	m.SetAll(StoreRecords, map[string]int{"batch": 3})
	m.Disk("store", 1, 2, 3, true)
	server := m.Server(rpc.Options{Reflection: true})
	server.Observe("/x/Y", rpc.Peer, "ok", time.Second)
	server.Streams(rpc.Peer, 1)
	server.Connected(rpc.Client, 3)
	server.Refused("slow")
	if !server.Reflection {
		t.Error("the server's other options are lost")
	}
	m.Set(MultikeyOngoing, 2, "waiting")
	m.Count(MultikeyEvaluations, 1, "ok")
	m.Set(MultikeyOwn, 1, "retired")
	m.Observe(MultikeyTime, 2*time.Second)
	m.Count(MultikeyDecrypted, 6, "4")
	m.Certificate(func() time.Time { return time.Unix(7, 0) })
	m.Count(Reservations, 1, "out_of_stock")
	m.Observe(ReservationTime, 2*time.Second)
	m.Count(ReservationsRefused, 1, "share")
	m.Set(ReservationsOpen, 4, "alice")
	m.Count(UnnamedFailures, 0, "mac")
	m.Set(EvaluatorExcluded, 1, "e")
	m.Observe(EvaluatorServed, time.Second, "ok") // of another process
	m.Stock([]StockLevel{{StockLabels: StockLabels{"old", "scalar", "p128", "S14"}, Available: 1}})
	m.Stock([]StockLevel{
		{StockLabels: StockLabels{"dev", "scalar", "p128", "S14"}, Available: 7, Lost: 2, Low: 14, High: 20, Ratio: 0.5, TimeToEmpty: 90 * time.Second},
		{StockLabels: StockLabels{"dev", "bit", "p128", "S14"}, Reserved: 3, TimeToEmpty: math.MaxInt64},
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Serve(ctx, l) }()
	scrape := func() string {
		r, err := http.Get("http://" + l.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if !strings.Contains(scrape(), `lodge_sessions_running{protocol="triples"} 1`) {
		t.Error("no running session")
	}
	end("ok")
	text := scrape()
	for _, want := range []string{
		`lodge_build_info{version="v1"} 1`,
		`lodge_round_duration_seconds_sum{protocol="triples",round="open"} 1`,
		`lodge_peer_bytes_total{direction="received",peer="bob",protocol="triples",round="open"} 20`,
		`lodge_peer_bytes_total{direction="sent",peer="bob",protocol="triples",round="open"} 10`,
		`lodge_sessions_total{outcome="ok",protocol="triples"} 1`,
		`lodge_sessions_running{protocol="triples"} 0`,
		`lodge_tuples_stored_total{field="p128",kind="scalar"} 5`,
		`lodge_stock_tuples{field="p128",kind="scalar",params="S14",state="available",tenant="dev"} 7`,
		`lodge_stock_tuples{field="p128",kind="scalar",params="S14",state="lost",tenant="dev"} 2`,
		`lodge_stock_time_to_empty_seconds{field="p128",kind="scalar",params="S14",tenant="dev"} 90`,
		`lodge_stock_time_to_empty_seconds{field="p128",kind="bit",params="S14",tenant="dev"} +Inf`,
		`lodge_reservations_total{outcome="out_of_stock"} 1`,
		`lodge_reservation_seconds_count 1`,
		`lodge_reservations_refused_total{limit="share"} 1`,
		`lodge_reservations_refused_total{limit="rate"} 0`,
		`lodge_reservations_open{owner="alice"} 4`,
		`lodge_jobs{reason="queue",state="pending"} 2`,
		`lodge_job_last_completed_timestamp_seconds{kind="keys"} 5`,
		`lodge_job_idle_seconds 60`,
		`lodge_jobs_ended_total{kind="keys",state="failed"} 0`,
		`lodge_peer_up{peer="bob"} 1`,
		`lodge_peer_up{peer="carol"} 0`,
		`lodge_blames_total{class="proof",peer="bob"} 1`,
		`lodge_blames_total{class="echo",peer="carol"} 0`,
		`lodge_proofs_checked_total{outcome="ok",proof="plaintexts"} 2`,
		`lodge_mac_check_failures_total{phase="online"} 1`,
		`lodge_store_quarantined 1`,
		`lodge_store_records{kind="batch"} 3`,
		`lodge_disk_free_bytes{volume="store"} 1`,
		`lodge_rpc_streams{role="peer"} 1`,
		`lodge_rpc_connections{role="client"} 3`,
		`lodge_rpc_refused_total{reason="slow"} 1`,
		`lodge_rpc_refused_total{reason="calls"} 0`,
		`lodge_unnamed_failures_total{check="mac"} 0`,
		`lodge_stock_low_watermark_ratio{field="p128",kind="scalar",params="S14",tenant="dev"} 0.5`,
		`lodge_multikey_own_keys{state="retired"} 1`,
		`lodge_multikey_evaluations{state="waiting"} 2`,
		`lodge_multikey_evaluation_seconds_sum 2`,
		`lodge_certificate_expiry_timestamp_seconds 7`,
		`lodge_rpc_duration_seconds_sum{code="ok",method="/x/Y",role="peer"} 1`,
		`lodge_evidence_lost_total 0`,
		`lodge_accusations 0`,
		`lodge_multikey_decrypted_total{keys="4"} 6`,
		`go_goroutines`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, absent := range []string{`lodge_store_records{kind="mask"}`, `lodge_evaluator_served_seconds`, `lodge_multikey_rotation_seconds 0`} {
		if strings.Contains(text, absent) {
			t.Errorf("%s is shown", absent)
		}
	}
	if strings.Contains(text, `tenant="old"`) {
		t.Error("a stock that no longer exists is shown")
	}
	// The name of every metric with a unit ends in a base unit.
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (lodge_\w+) (counter|histogram)$`).FindAllStringSubmatch(text, -1) {
		if !strings.HasSuffix(name[1], "_total") && !strings.HasSuffix(name[1], "_seconds") {
			t.Errorf("%s has no unit", name[1])
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + l.Addr().String() + "/metrics"); err == nil {
		t.Error("still served")
	}
}

func TestNil(t *testing.T) {
	var m *Metrics
	m.Count(PeerBytes, 1, "", "", "", "")
	m.Set(PeerUp, 1, "")
	m.SetIf(PeerUp, true, "")
	m.SetAll(StoreRecords, map[string]int{"batch": 1})
	m.Add(running, 1, "")
	m.Observe(RoundDuration, 0, "", "")
	m.Read([]Level{JobIdle}, nil)
	m.SessionStarted("")("ok")
	m.Peers("")
	m.Blamed("", "")
	m.Proofs("", true, 1)
	m.Disk("", 1, 1, 0, false)
	m.Stock(nil)
	m.Server(rpc.Options{}).Observe("", "", "", 0)
}

// TestLabels checks the number of labels of every call outside this package that names a metric,
// because a wrong number panics only when the call runs.
func TestLabels(t *testing.T) {
	before := map[string]int{"Count": 2, "Set": 2, "SetIf": 2, "Add": 2, "Observe": 2, "set": 2, "SetAll": 1} // arguments before the labels
	labels, files := names(t), 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && d.Name() == "bin" { // built files, and the images of make compose
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			x, ok := call.Args[0].(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := x.X.(*ast.Ident); !ok || of.Name != "metrics" {
				return true
			}
			want, ok := labels[x.Sel.Name]
			if !ok {
				return true
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			files++
			if got := len(call.Args) - before[name]; before[name] == 0 || got != want && !call.Ellipsis.IsValid() {
				t.Errorf("%s: %s of %s with %d labels, want %d", path, name, x.Sel.Name, got, want)
			}
			return true
		})
		return nil
	})
	if err != nil || files < 50 {
		t.Error(files, err)
	}
}

// names returns the number of labels of each exported metric of the table.
func names(t *testing.T) map[string]int {
	f, err := parser.ParseFile(token.NewFileSet(), "table.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	byMetric, found := map[string]int{}, map[string]int{}
	for _, d := range table {
		byMetric[d.Name] = len(d.Labels)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			ast.Inspect(v.Values[0], func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(lit.Value, `"lodge_`) {
					found[v.Names[0].Name] = byMetric[strings.Trim(lit.Value, `"`)]
				}
				return true
			})
		}
		return true
	})
	return found
}

// Clients that hold connections do not prevent scraping, and can hold only few.
func TestServeBoundsConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go New("v1", Both).Serve(t.Context(), l)
	var held []net.Conn
	for range 40 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held = append(held, c)
	}
	r, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Error(r.Status)
	}
	for _, c := range held[:20] { // closed by later connections, long before any timeout
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a connection responds without a request")
		}
	}
}
