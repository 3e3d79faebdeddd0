package metrics

import (
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestServe(t *testing.T) {
	m := New("v1", Both)
	at := Place{"triples", "open"}
	m.Round(at, time.Second, time.Millisecond)
	m.Sent(at, "bob", 10)
	m.Received(at, "bob", 20)
	m.Resumed("bob")
	end := m.SessionStarted("triples")
	m.Call("/x/Y", "peer", "ok", time.Second)
	m.Stored("scalar", "p128", 5)
	m.Delivered("scalar", "p128", 5)
	m.Decryption("answered")
	m.JobsFrom(func() JobLevels {
		return JobLevels{Open: map[JobLabels]int{{"pending", "queue"}: 2}, Last: map[string]time.Time{"keys": time.Unix(5, 0)}, Idle: time.Minute}
	}, []string{"keys"}, []string{"failed"})
	m.Peers("bob", "carol")
	m.Reached("bob", true, time.Millisecond)
	m.Blamed("bob", "popk-bound")
	m.Proofs(ProofPlaintexts, true, 2)
	m.MACCheckFailed(true)
	m.Store(true, false)
	m.StoreSize(9, map[string]int{"batch": 3})
	m.Disk("store", 1, 2, 3, true)
	m.AuditFault(true)
	m.Streams("peer", 1)
	m.Connections("client", 3)
	m.Refused("slow")
	m.MultikeyFetched("ok")
	m.MultikeyPublished(2)
	m.MultikeyEvaluated("ok", 100)
	m.MultikeyOngoing(MultikeyLevels{Waiting: 2, Running: 1, Bytes: 1000, ResultBytes: 500, Rotation: 0.02})
	m.MultikeyOwn(2, 1)
	m.MultikeyTook(2 * time.Second)
	m.MultikeyDecrypted(4, 6)
	m.AnyCiphertextsRules(1)
	m.AnyCiphertexts(3)
	m.MultikeyDecrypted(3, 0) // adds no series
	m.UnnamedChecks("mac")
	m.JobEnded("scalar", "COMPLETED")
	m.Reservation("reserved", 2*time.Second, false)
	m.Reservation("out_of_stock", time.Second, true)
	m.ReservationRefused("share")
	m.OpenReservations(map[string]int{"alice": 4})
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
		`lodge_multikey_results_bytes 500`,
		`lodge_multikey_rotation_seconds 0.02`,
		`lodge_multikey_decrypted_total{keys="4"} 6`,
		`go_goroutines`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, `keys="3"`) {
		t.Error("decrypting no messages adds a series")
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
	m.Round(Place{}, 0, 0)
	m.Sent(Place{}, "", 1)
	m.Received(Place{}, "", 1)
	m.Resumed("")
	m.SessionStarted("")("ok")
	m.Call("", "", "", 0)
	m.Stored("", "", 1)
	m.Delivered("", "", 1)
	m.Decryption("")
	m.JobsFrom(nil, nil, nil)
	m.Peers("")
	m.Reached("", true, 1)
	m.Blamed("", "")
	m.Proofs("", true, 1)
	m.MACCheckFailed(false)
	m.EvidenceLost()
	m.Store(true, true)
	m.StoreSize(1, nil)
	m.Disk("", 1, 1, 0, false)
	m.Streams("", 1)
	m.UnnamedChecks("")
	m.MultikeyOwn(1, 1)
	m.MultikeyFetched("")
	m.MultikeyPublished(1)
	m.MultikeyEvaluated("", 1)
	m.MultikeyTook(1)
	m.MultikeyOngoing(MultikeyLevels{})
	m.MultikeyDecrypted(1, 1)
	m.JobEnded("", "")
	m.Stock(nil)
	m.Reservation("", 0, true)
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
