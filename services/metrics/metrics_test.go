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
	m := New("v1")
	m.Round("triples", "open", time.Second, time.Millisecond)
	m.Sent("bob", 10)
	m.Received("bob", 20)
	m.Resumed("bob")
	end := m.SessionStarted("triples")
	m.Call("/x/Y", "peer", "ok", time.Second)
	m.Stored("scalar", "p128", 5)
	m.Delivered("scalar", "p128", 5)
	m.Decryption("answered")
	m.Jobs("PENDING", 1)
	m.JobEnded("scalar", "COMPLETED")
	m.Reservation("reserved", 2*time.Second, false)
	m.Reservation("out_of_stock", time.Second, true)
	m.Stock([]StockLevel{{StockLabels: StockLabels{"old", "scalar", "p128", "S14"}, Available: 1}})
	m.Stock([]StockLevel{
		{StockLabels: StockLabels{"dev", "scalar", "p128", "S14"}, Available: 7, Lost: 2, TimeToEmpty: 90 * time.Second},
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
		`lodge_peer_bytes_total{direction="received",peer="bob"} 20`,
		`lodge_peer_bytes_total{direction="sent",peer="bob"} 10`,
		`lodge_sessions_total{outcome="ok",protocol="triples"} 1`,
		`lodge_sessions_running{protocol="triples"} 0`,
		`lodge_tuples_stored_total{field="p128",kind="scalar"} 5`,
		`lodge_stock_tuples{field="p128",kind="scalar",params="S14",state="available",tenant="dev"} 7`,
		`lodge_stock_tuples{field="p128",kind="scalar",params="S14",state="lost",tenant="dev"} 2`,
		`lodge_stock_time_to_empty_seconds{field="p128",kind="scalar",params="S14",tenant="dev"} 90`,
		`lodge_stock_time_to_empty_seconds{field="p128",kind="bit",params="S14",tenant="dev"} +Inf`,
		`lodge_reservations_total{outcome="out_of_stock"} 1`,
		`lodge_reservation_seconds_count 1`,
		`go_goroutines`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, `tenant="old"`) {
		t.Error("a stock that is not there any more is shown")
	}
	// Base units in the names of everything that has one.
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
	m.Round("", "", 0, 0)
	m.Sent("", 1)
	m.Received("", 1)
	m.Resumed("")
	m.SessionStarted("")("ok")
	m.Call("", "", "", 0)
	m.Stored("", "", 1)
	m.Delivered("", "", 1)
	m.Decryption("")
	m.Jobs("", 1)
	m.JobEnded("", "")
	m.Stock(nil)
	m.Reservation("", 0, true)
}
