package main

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/bench"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

const (
	thresholdRequest = 4000 // ciphertexts of a request
	thresholdOnes    = 200  // requests of one ciphertext, if a row has at least a second
	thresholdWrong   = 3    // accepted wrong messages of a batch with masks of the paper's form
)

// Targets of key generation among three parties with the paper's set, and of the decryption of one
// ciphertext.
const (
	paperSet          = "T11-53"
	wantKeygenCPU     = 12
	wantKeygenPeak    = 2e9
	wantKeygenBytes   = 1.1e9
	wantOneComputing  = 2
	wantPaperTrips    = 2
	wantExactTripsAdd = 2 // in addition to the rounds of a bitwise comparison
)

// thresholdRows lists the measurements of threshold keys: first of the protocols without the
// services, then of parties in their own processes.
func thresholdRows(cmd *cobra.Command, o *bench.Options) ([]bench.Row, error) {
	rows := o.ThresholdOperations()
	for _, set := range o.Threshold {
		for _, t := range o.Thresholds(set) {
			b := &thresholdBench{cmd: cmd, set: set, threshold: t, holders: o.Holders(t), count: o.ThresholdMessages(t), runs: o.ThresholdRuns()}
			b.slug = o.ThresholdSlug(set)
			b.ones = max(5, int(min(1, o.Duration.Seconds())*thresholdOnes))
			rows = append(rows, bench.Row{
				Section: fmt.Sprintf("Threshold keys with %s, t = %d of %d parties", set.Name, t, b.holders),
				Names:   namesOf(b.results(newThresholdMeasured())),
				Run: func(ctx context.Context) ([]bench.Result, error) {
					m, err := b.measure(ctx)
					if err != nil {
						return nil, err
					}
					return b.results(m), nil
				},
			})
		}
	}
	return rows, nil
}

// thresholdBench measures one set with one threshold.
type thresholdBench struct {
	cmd               *cobra.Command
	set               *lwe.Set
	threshold         int
	holders           int    // of a key
	slug              string // suffix of the names of results
	count, runs, ones int    // messages of a batch, batches, and requests of one ciphertext
}

// used is the average cost of the parties of a quorum.
type used struct {
	cpu, wall, sent float64 // CPU-seconds, seconds, bytes to other parties
	peak            float64 // bytes, only of key generation
	flights         float64 // messages that a party waited for in sequence, only of sessions of calls
}

// thresholdMeasured holds medians: of key generation for a party, and otherwise for a message and a
// party.
type thresholdMeasured struct {
	keys                     used
	masks, lwe, rings, alone map[string]used // by form
	latency                  map[string]latencies
	bitwise                  map[string]int // rounds of a bitwise comparison
}

func newThresholdMeasured() *thresholdMeasured {
	return &thresholdMeasured{
		masks: map[string]used{}, lwe: map[string]used{}, rings: map[string]used{}, alone: map[string]used{}, latency: map[string]latencies{},
		bitwise: map[string]int{},
	}
}

func (b *thresholdBench) results(m *thresholdMeasured) []bench.Result {
	name := func(stem string) string {
		return fmt.Sprintf("threshold_%s_t%d_%s", stem, b.threshold, b.slug)
	}
	list := []bench.Result{
		{Name: name("keygen_cpu_seconds"), Unit: "CPU-s", Value: m.keys.cpu, What: "CPU-seconds of a party: key generation"},
		{Name: name("keygen_seconds"), Unit: "s", Value: m.keys.wall, What: "time of key generation"},
		{Name: name("keygen_peak_rss"), Unit: "B", Value: m.keys.peak, What: "peak memory of a party: key generation"},
		{Name: name("keygen_bytes"), Unit: "B", Value: m.keys.sent, What: "bytes that a party sends: key generation"},
	}
	if b.set.Name == paperSet && b.threshold == 1 {
		list[0], list[2], list[3] = list[0].Wanted(wantKeygenCPU), list[2].Wanted(wantKeygenPeak), list[3].Wanted(wantKeygenBytes)
	}
	for _, form := range bench.ThresholdForms {
		add := func(stem, unit, what string, value, want float64) {
			list = append(list, bench.Result{Name: name(stem), Unit: unit, Value: value, What: what + ", " + form + " form"}.Wanted(want))
		}
		want := func(stem string) float64 { return bench.ThresholdWant(stem, form, b.threshold) }
		each := fmt.Sprintf("a ciphertext, requests of %d LWE ciphertexts", b.request())
		add("masks_us_"+form, "us", "CPU time of a party for a mask, jobs of "+fmt.Sprint(b.count), 1e6*m.masks[form].cpu, want("masks_us"))
		add("masks_bytes_"+form, "B", "bytes that a party sends for a mask", m.masks[form].sent, want("masks_bytes"))
		add("decrypt_us_"+form, "us", "CPU time of a party for "+each, 1e6*m.lwe[form].cpu, want("decrypt_us"))
		add("decrypt_bytes_"+form, "B", "bytes that a party sends to others for "+each, m.lwe[form].sent, want("decrypt_bytes"))
		add("decrypt_per_second_"+form, "1/s", "messages in a second, requests of LWE ciphertexts", ratePerSecond(m.lwe[form]), 0)
		add("decrypt_ring_us_"+form, "us", "CPU time of a party for a message, requests of ring ciphertexts", 1e6*m.rings[form].cpu, want("decrypt_us"))
		if b.threshold > 1 {
			continue
		}
		trips := float64(wantPaperTrips)
		if form == "exact" {
			trips = wantExactTripsAdd + float64(m.bitwise[form])
		}
		add("one_trips_"+form, "trips", "round trips between the parties for one ciphertext: half the messages that one waits for", m.alone[form].flights/2, trips)
		add("one_cpu_ms_"+form, "ms", "CPU time of a party for one ciphertext", 1e3*m.alone[form].cpu, wantOneComputing)
		add("one_ms_min_"+form, "ms", fmt.Sprintf("shortest time of %d requests of one ciphertext", b.ones), m.latency[form].at(0), 0)
		add("one_ms_median_"+form, "ms", "median time", m.latency[form].at(50), 0)
	}
	return list
}

func ratePerSecond(u used) float64 {
	if u.wall == 0 {
		return 0
	}
	return 1 / u.wall
}

// request returns the number of ciphertexts of a request.
func (b *thresholdBench) request() int { return min(b.count, thresholdRequest) }

// thresholdRun is a cluster with threshold keys and a client.
type thresholdRun struct {
	*thresholdBench
	*cluster.Cluster
	epoch  uint64
	quorum []int
	client *threshold.Client
	key    *threshold.Key
	public *lwe.PublicKey
}

func (b *thresholdBench) measure(ctx context.Context) (*thresholdMeasured, error) {
	m := newThresholdMeasured()
	r, err := b.start(ctx, m)
	if err != nil {
		return nil, err
	}
	defer r.end()
	for _, form := range bench.ThresholdForms {
		if err := r.form(ctx, form, m); err != nil {
			return nil, fmt.Errorf("%s form: %w", form, err)
		}
	}
	return m, nil
}

// start starts parties, generates keys, and connects a client.
func (b *thresholdBench) start(ctx context.Context, m *thresholdMeasured) (_ *thresholdRun, err error) {
	c, err := cluster.Start(ctx, terminal.NewProgress(b.cmd.ErrOrStderr()), cluster.Options{
		Parties: b.holders, Set: b.set.Name, Memory: partyMemory(b.holders), Measured: true,
	})
	if err != nil {
		return nil, err
	}
	r := &thresholdRun{thresholdBench: b, Cluster: c}
	defer func() {
		if err != nil {
			r.end()
		}
	}()
	for i := range b.threshold + 1 {
		r.quorum = append(r.quorum, i)
	}
	if err := r.keys(ctx, m); err != nil {
		return nil, err
	}
	config, err := c.Client(devnet.App)
	if err != nil {
		return nil, err
	}
	if r.client, err = threshold.Dial(config); err != nil {
		return nil, err
	}
	r.client.Patience = 30 * time.Second
	if r.key, err = r.client.Key(ctx, r.epoch); err != nil {
		return nil, err
	}
	r.public, err = r.client.PublicKey(ctx, r.key)
	return r, err
}

// end disconnects the client and stops the parties.
func (r *thresholdRun) end() {
	if r.client != nil {
		r.client.Close()
	}
	r.Stop()
}

// median returns the median of each figure.
func median(list []used) (u used) {
	of := func(get func(used) float64) float64 {
		var v []float64
		for _, x := range list {
			v = append(v, get(x))
		}
		return bench.Median(v)
	}
	return used{
		of(func(u used) float64 { return u.cpu }), of(func(u used) float64 { return u.wall }), of(func(u used) float64 { return u.sent }),
		of(func(u used) float64 { return u.peak }), of(func(u used) float64 { return u.flights }),
	}
}

// meter calls f and returns the cost of each of n pieces of work, as an average of the first
// parties.
func (r *thresholdRun) meter(ctx context.Context, parties, n int, f func() error) (u used, err error) {
	before, err := snapshots(ctx, r.Cluster)
	if err != nil {
		return u, err
	}
	began := time.Now()
	if err := f(); err != nil {
		return u, err
	}
	u.wall = time.Since(began).Seconds() / float64(n)
	after, err := snapshots(ctx, r.Cluster)
	if err != nil {
		return u, err
	}
	for i := range parties {
		counted, flights := after[i].Since(before[i]), 0.0
		for series, v := range counted {
			name, labels, _ := strings.Cut(series, "{")
			switch {
			case !strings.Contains(labels, `protocol="`+plan.Threshold+`"`):
			case name == "lodge_peer_bytes_total" && strings.Contains(labels, `direction="sent"`):
				u.sent += v / float64(parties*n)
			case name == "lodge_round_duration_seconds_count" && !strings.Contains(labels, `round="local"`):
				flights += v / float64(n)
			}
		}
		u.flights = max(u.flights, flights)
		u.cpu += max(counted["process_cpu_seconds_total"], 0.005) / float64(parties*n) // the metric has a resolution of 0.01 s
	}
	return u, nil
}

// keys measures key generation. Each run makes new keys.
func (r *thresholdRun) keys(ctx context.Context, m *thresholdMeasured) error {
	var list []used
	runs := r.runs
	if r.threshold > 1 {
		runs = 1
	}
	for range runs {
		var j *coordinatorv1.Job
		u, err := r.meter(ctx, r.holders, 1, func() (err error) {
			j, err = r.ThresholdKeys(ctx, r.set.Name, r.threshold)
			return err
		})
		if err != nil {
			return err
		}
		u.sent, u.peak, r.epoch = float64(cluster.SentBytes(j))/float64(r.holders), peakOf(j), j.GetEpoch()
		list = append(list, u)
	}
	m.keys = median(list)
	return nil
}

// form measures masks and decryptions of a form, after a few that let the heaps grow.
func (r *thresholdRun) form(ctx context.Context, form string, m *thresholdMeasured) error {
	if _, err := r.masks(ctx, form, 2*r.count+r.ones+64); err != nil {
		return err
	}
	if _, err := r.decrypt(ctx, form, r.request(), false); err != nil {
		return err
	}
	var made, decrypted, rings []used
	for range r.runs {
		u, err := r.masks(ctx, form, r.count)
		if err != nil {
			return err
		}
		made = append(made, u)
		if u, err = r.decrypt(ctx, form, r.count, false); err != nil {
			return err
		}
		decrypted = append(decrypted, u)
		if _, err := r.masks(ctx, form, r.count); err != nil {
			return err
		}
		if u, err = r.decrypt(ctx, form, r.count, true); err != nil {
			return err
		}
		rings = append(rings, u)
	}
	m.masks[form], m.lwe[form], m.rings[form] = median(made), median(decrypted), median(rings)
	if r.threshold > 1 {
		return nil
	}
	return r.alone(ctx, form, m)
}

// masks makes masks of a form.
func (r *thresholdRun) masks(ctx context.Context, form string, count int) (used, error) {
	return r.meter(ctx, len(r.quorum), count, func() error {
		_, err := r.Masks(ctx, r.set.Name, r.epoch, r.quorum, count, form)
		return err
	})
}

// requests encrypts count random messages for requests of a form with up to most messages each. It
// returns the plaintexts in want.
func (r *thresholdRun) requests(form string, count, most int, rings bool) (list []*threshold.Request, want [][]uint64, err error) {
	s := r.key.Scheme()
	for ; count > 0; count -= most {
		q := &threshold.Request{Quorum: r.quorum, Paper: form == "paper"}
		messages := make([]uint64, min(count, most))
		for i := range messages {
			messages[i] = rand.Uint64N(s.P)
		}
		made, err := threshold.Encrypt(r.key, r.public, messages, lwe.Plain)
		if err != nil {
			return nil, nil, err
		}
		if rings {
			q.Ring, q.Coefficients = made, min(len(messages), s.N())
		} else {
			for i := range messages {
				c := s.NewLWE()
				s.Extract(c, made[i/s.N()], i%s.N())
				q.LWE = append(q.LWE, c)
			}
		}
		if _, err := q.Digest(r.key); err != nil { // encodes the ciphertexts before the measurement
			return nil, nil, err
		}
		list, want = append(list, q), append(want, messages)
	}
	return list, want, nil
}

// decrypt measures the decryption of count messages, one request after the other.
func (r *thresholdRun) decrypt(ctx context.Context, form string, count int, rings bool) (used, error) {
	most := r.request()
	if rings { // all full ring ciphertexts of the batch in one request, then the rest
		n := r.key.Scheme().N()
		most = max(n, count/n*n)
	}
	list, want, err := r.requests(form, count, most, rings)
	if err != nil {
		return used{}, err
	}
	return r.meter(ctx, len(r.quorum), count, func() error {
		for i, q := range list {
			if err := r.ask(ctx, q, want[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// ask sends a request and compares the result.
func (r *thresholdRun) ask(ctx context.Context, q *threshold.Request, want []uint64) error {
	got, err := r.client.Decrypt(ctx, r.key, q)
	if err != nil {
		return err
	}
	wrong := len(want) - len(got.Messages)
	for i, m := range got.Messages {
		if m != want[i] {
			wrong++
		}
	}
	if wrong > thresholdWrong || wrong > 0 && !q.Paper {
		return fmt.Errorf("%d of %d messages are wrong", wrong, len(want))
	}
	return nil
}

// alone measures the decryption of ciphertexts one by one.
func (r *thresholdRun) alone(ctx context.Context, form string, m *thresholdMeasured) error {
	p, err := decrypt.ParamsOf(r.key.Scheme(), r.threshold, form == "paper")
	if err != nil {
		return err
	}
	m.bitwise[form] = bits.Len(uint(p.Kind.LogPhi - 1))
	list, want, err := r.requests(form, r.ones, 1, false)
	if err != nil {
		return err
	}
	var took latencies
	m.alone[form], err = r.meter(ctx, len(r.quorum), len(list), func() error {
		for i, q := range list {
			began := time.Now()
			if err := r.ask(ctx, q, want[i]); err != nil {
				return err
			}
			took = append(took, time.Since(began).Seconds()*1e3)
		}
		return nil
	})
	slices.Sort(took)
	m.latency[form] = took
	return err
}
