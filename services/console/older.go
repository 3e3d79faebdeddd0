package console

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/services/console/history"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// older reads values from a Prometheus server that are older than the ring.
type older struct {
	url    string // of the range queries
	client *http.Client
	match  []history.Label // tell this process from others
	places chan struct{}   // of running requests
}

// Limits on requests to Prometheus.
const (
	olderAtOnce  = 4
	olderMaxBody = 1 << 20 // bytes of a response
)

// newOlder returns a reader of a Prometheus server; nil if none is configured.
func newOlder(o config.ConsolePrometheus) (*older, error) {
	if o.URL == "" {
		return nil, nil
	}
	var roots *x509.CertPool
	if o.CA != "" {
		b, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, fmt.Errorf("console: the authority of Prometheus: %w", err)
		}
		list, err := pki.ParseCertificates(b)
		if err != nil {
			return nil, fmt.Errorf("console: the authority of Prometheus: %s %w", o.CA, err)
		}
		roots = x509.NewCertPool()
		for _, c := range list {
			roots.AddCert(c)
		}
	}
	out := &older{
		url: strings.TrimSuffix(o.URL, "/") + "/api/v1/query_range", places: make(chan struct{}, olderAtOnce),
		client: &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
				MaxIdleConns: olderAtOnce, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it answers with a redirection") },
		},
	}
	for _, name := range slices.Sorted(maps.Keys(o.Match)) {
		out.match = append(out.match, history.Label{Name: name, Value: o.Match[name]})
	}
	return out, nil
}

// sample is a value of Prometheus at a time, in Unix time: [1435781430.781, "1"].
type sample struct {
	at, value float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *sample) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &[]any{&s.at, &text}); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(text, 64)
	s.value = v
	return err
}

// matrix is the result of a range query.
type matrix []struct {
	Values []sample `json:"values"`
}

// get returns the series that a selector finds.
func (o *older) get(ctx context.Context, selector string, begin, end time.Time, step time.Duration) (matrix, error) {
	form := url.Values{
		"query": {selector}, "start": {strconv.FormatInt(begin.Unix(), 10)}, "end": {strconv.FormatInt(end.Unix(), 10)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := o.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	var out struct {
		Data struct {
			Result matrix `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, olderMaxBody)).Decode(&out); err != nil {
		return nil, errors.New("the response is not the expected JSON")
	}
	return out.Data.Result, nil
}

// query returns the values of series in a time before now, in at most maxPoints steps.
func (o *older) query(ctx context.Context, list []history.Series, span time.Duration, now time.Time) (chart, *rpc.Error) {
	ctx, cancel := context.WithTimeout(ctx, olderTime)
	defer cancel()
	select {
	case o.places <- struct{}{}:
		defer func() { <-o.places }()
	case <-ctx.Done():
		return chart{}, errBusy("try again in a moment", "other requests to Prometheus are running")
	}
	step := max(history.Step, (span/maxPoints).Truncate(time.Second)+time.Second)
	n := int(span / step)
	end := now.Truncate(step)
	begin := end.Add(-time.Duration(n-1) * step)
	out := chart{step.Seconds(), end.Unix(), map[string][]*float64{}}
	for _, s := range list {
		full := history.Series{Metric: s.Metric, Labels: append(slices.Clone(s.Labels), o.match...)}
		result, err := o.get(ctx, full.String(), begin, end, step)
		if err != nil {
			return chart{}, rpc.Errorf(rpc.Unavailable, "see that console.prometheus.url is right and the server runs", "Prometheus does not answer: %.200v", err)
		}
		//lodge:check console/prometheus/one [run=TestPrometheus] a chart shows another process
		if len(result) > 1 {
			return chart{}, rpc.Errorf(rpc.Conflict, "write labels in console.prometheus.match that only this process has", "Prometheus has %d series like %s", len(result), full)
		}
		values := make([]float64, n)
		for i := range values {
			values[i] = math.NaN()
		}
		for _, m := range result {
			for _, v := range m.Values {
				if i := int(math.Round((v.at - float64(begin.Unix())) / step.Seconds())); i >= 0 && i < n {
					values[i] = v.value
				}
			}
		}
		out.Series[s.String()] = points(values)
	}
	return out, nil
}
