package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/host/config"
)

// startPrometheus starts a Prometheus server which has, for the last day, the values of one series
// of two processes, and returns its URL.
func startPrometheus(w *world) string {
	t := w.t
	for _, tool := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("LODGE_REQUIRE_PROMETHEUS") != "" {
				t.Fatal(err)
			}
			t.Skipf("%s is not installed", tool)
		}
	}
	var b bytes.Buffer
	b.WriteString("# TYPE lodge_peer_up gauge\n")
	now := time.Now().Truncate(time.Minute)
	for _, p := range []string{"p0", "p1"} {
		for at := now.Add(-24 * time.Hour); !at.After(now); at = at.Add(time.Minute) {
			v := 0 // bob was down in every second hour, as p0 saw it
			if p == "p1" || at.Unix()/3600%2 == 0 {
				v = 1
			}
			fmt.Fprintf(&b, "lodge_peer_up{peer=\"bob\",process=%q} %d %d\n", p, v, at.Unix())
		}
	}
	b.WriteString("# EOF\n")
	data := w.path("prometheus-data")
	if out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", w.write("values", b.Bytes()), data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l := w.listen()
	address := l.Addr().String()
	w.must(l.Close())
	file := w.write("prometheus.yml", []byte("global: {scrape_interval: 1h}\n"))
	log, err := os.Create(w.path("prometheus.log"))
	w.must(err)
	cmd := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+data, "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = log, log
	w.must(cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()
		log.Close()
	})
	for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if r, err := http.Get("http://" + address + "/-/ready"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return "http://" + address
			}
		}
		if time.Now().After(until) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("Prometheus does not start: %s", text)
		}
	}
}

// A real Prometheus has the values before the ring: exactly those of this process.
func TestRealPrometheus(t *testing.T) {
	var url string
	at := func(match map[string]string) setting {
		return func(w *world, f *config.Console) {
			if url == "" {
				url = startPrometheus(w)
			}
			f.Prometheus = config.ConsolePrometheus{URL: url, Match: match}
		}
	}
	w := newWorld(t, at(map[string]string{"process": "p0"}))
	samples(w, 2)
	var out chart
	const name = `lodge_peer_up{peer="bob"}`
	a := w.in("anna").get("/api/history?since=86400&series=" + name)
	if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK {
		t.Fatalf("%v %d %s", err, a.status, a.body)
	}
	values := out.Series[name]
	if out.Step != 121 || len(values) != 714 {
		t.Fatalf("%d values at a step of %v s", len(values), out.Step)
	}
	right, missing := 0, 0
	for i, v := range values {
		second := out.End - int64(float64(len(values)-1-i)*out.Step)
		want := 0.0
		if second/60*60/3600%2 == 0 {
			want = 1
		}
		switch {
		case v == nil:
			missing++
		case *v == want:
			right++
		default:
			t.Errorf("%s is %v", time.Unix(second, 0).UTC(), *v)
		}
	}
	if missing > 2 || right < 710 {
		t.Errorf("%d values are right, %d are missing", right, missing)
	}
	other := newWorld(t, at(map[string]string{"peer": "bob"}))
	samples(other, 2)
	if a := other.in("anna").get("/api/history?since=86400&series=" + name); a.code() != "conflict" && a.code() != "unavailable" {
		t.Errorf("labels of two processes: %d %s", a.status, a.body)
	}
}
