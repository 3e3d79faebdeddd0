//go:build console

package console

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

var (
	soak = flag.Duration("soak", 0, "how long TestSoak runs; it runs alone")
	ring = flag.Duration("ring", time.Hour, "the history that the consoles of TestSoak keep")
)

// step is the time between two samples of a chart.
const step = 5 * time.Second

// TestSoak runs a cluster that makes triples for longer than its consoles keep history. A console
// must have all samples of that time, and not one more, and its process must stop growing.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("make console-soak runs it")
	}
	c := start(t)
	for name := range c.origins {
		c.kill(name)
		c.edit(name, func(f map[string]any) { f["console"].(map[string]any)["history"] = ring.String() })
		c.launch(name)
	}
	c.operator.Ready(4)
	c.operator.Complete(c.operator.Submit("--kind", "keys", "--params", set))
	c.operator.Run("stock", "policies", "set", "--kind", "scalar", "--low", "2000000", "--high", "4000000", "--batch", "2000", "--params", set)
	reader := c.reader("coordinator")
	const series = "process_resident_memory_bytes"
	began, full := time.Now(), int(*ring/step)
	var memory []float64 // once for each length of the ring
	for next := began.Add(*ring); time.Since(began) < *soak; time.Sleep(step) {
		values := reader.history(series, *ring+time.Hour)
		// The process has run for a little longer than the test.
		want, missing := min(full, int(time.Since(began)/step)-1), 0
		if len(values) > full || len(values) < want {
			t.Fatalf("after %s, a ring of %s has %d samples", time.Since(began).Round(time.Second), *ring, len(values))
		}
		for _, v := range values[len(values)-max(0, want):] {
			if v == nil {
				missing++
			}
		}
		if missing > 1+want/100 {
			t.Fatalf("after %s, %d of %d samples are missing", time.Since(began).Round(time.Second), missing, want)
		}
		if now := time.Now(); now.After(next) && len(values) == full && values[full-1] != nil {
			memory, next = append(memory, *values[full-1]), now.Add(*ring)
			t.Logf("after %s: %d samples, %.0f MB", time.Since(began).Round(time.Second), len(values), memory[len(memory)-1]/1e6)
		}
	}
	if len(memory) == 0 {
		t.Fatalf("%s is not longer than the ring of %s", *soak, *ring)
	}
	if first, last := memory[0], memory[len(memory)-1]; last > 1.5*first {
		t.Errorf("the process grew from %.0f to %.0f MB with a full ring", first/1e6, last/1e6)
	}
}

// reader reads the charts of a console as the operator.
type reader struct {
	*cluster
	origin string
	http   *http.Client
}

func (c *cluster) reader(process string) *reader {
	c.Helper()
	base := filepath.Join(c.dir, "clients", devnet.Operator)
	pair, err := tls.LoadX509KeyPair(base+".pem", base+".key")
	c.must(err)
	roots := x509.NewCertPool()
	authority, err := os.ReadFile(filepath.Join(c.dir, "ca.pem"))
	c.must(err)
	roots.AppendCertsFromPEM(authority)
	jar, err := cookiejar.New(nil)
	c.must(err)
	r := &reader{c, c.origins[process], &http.Client{Jar: jar, Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, ForceAttemptHTTP2: true,
	}}}
	r.call(http.MethodPost, "/signin/certificate")
	return r
}

// call sends a request as the pages do, and returns the body of the response.
func (r *reader) call(method, path string) []byte {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), method, r.origin+path, nil)
	r.must(err)
	q.Header.Set("Sec-Fetch-Site", "same-origin")
	w, err := r.http.Do(q)
	r.must(err)
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	r.must(err)
	if w.StatusCode >= http.StatusBadRequest {
		r.Fatalf("%s: %d %s", path, w.StatusCode, body)
	}
	return body
}

// history returns the samples of a series; those without a value are nil.
func (r *reader) history(series string, since time.Duration) []*float64 {
	r.Helper()
	var out struct{ Series map[string][]*float64 }
	r.must(json.Unmarshal(r.call(http.MethodGet, fmt.Sprintf("/api/history?since=%.0f&series=%s", since.Seconds(), series)), &out))
	return out.Series[series]
}
