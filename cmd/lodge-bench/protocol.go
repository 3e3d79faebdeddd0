package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/bench"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/engine/params"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// most exceeds the size of every batch: such a job makes one full batch.
const most = 1 << 20

// partyMemory returns the memory limit of a party's sessions: enough for two of the largest batches
// if the machine has that much memory for each party. Otherwise parties make such batches
// sequentially.
func partyMemory(parties int) uint64 {
	const enough = 12 << 30
	var kB uint64
	if _, err := fmt.Sscanf(bench.ThisMachine().Memory, "%d kB", &kB); err != nil {
		return cluster.DefaultMemory
	}
	return min(enough, kB<<10/10*9/uint64(parties))
}

// protocolRows lists the measurements of parties in their own processes, each on its own CPU if
// there are enough.
func protocolRows(cmd *cobra.Command, o *bench.Options) (rows []bench.Row, _ error) {
	for _, set := range o.Sets {
		first := len(rows)
		p := &protocolBench{cmd: cmd, options: o, set: set, duration: 10 * o.Duration}
		rows = append(rows, p.triples("scalar", 1))
		if d := o.Dim(set); d > 1 {
			rows = append(rows, p.triples("matrix", d))
		}
		rows = append(rows, p.growth(), p.latency())
		if set.Keys == params.KeysProved {
			rows = append(rows, p.keys(o.Dim(set)))
		}
		for i := range rows[first:] {
			rows[first+i].Section = fmt.Sprintf("Whole protocols with %s, %d parties", set.Name, o.PartyCount())
		}
	}
	return rows, nil
}

// protocolBench measures one set.
type protocolBench struct {
	cmd      *cobra.Command
	options  *bench.Options
	set      *params.Set
	duration time.Duration
}

// network is a running cluster with keys for triples.
type network struct {
	*protocolBench
	*cluster.Cluster
	epoch    uint64
	dim      int
	keys     *coordinatorv1.Job // the job that made the epoch
	trusting bool               // make products without a sacrifice
}

// batches is the cost of making batches. Costs are averages of the parties, and peak is the
// maximum.
type batches struct {
	tuples    float64
	wall, cpu float64            // seconds; CPU-seconds of a party
	sent      float64            // bytes sent by a party
	peak      float64            // bytes
	shares    map[string]float64 // of the time, by phase, in percent
}

// start starts parties and generates keys for matrix blocks of dimension dim.
func (p *protocolBench) start(ctx context.Context, parties, dim int) (*network, error) {
	c, err := cluster.Start(ctx, terminal.NewProgress(p.cmd.ErrOrStderr()), cluster.Options{
		Parties: parties, Set: p.set.Name, Memory: partyMemory(parties), Measured: true, NoSacrifice: true,
	})
	if err != nil {
		return nil, err
	}
	n := &network{protocolBench: p, Cluster: c, dim: dim}
	keys, err := c.Job(ctx, &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: p.set.Name, Dim: uint32(dim), Purpose: jobv1.Purpose_PURPOSE_TRIPLES,
	})
	if err != nil {
		c.Stop()
		return nil, err
	}
	n.epoch, n.keys = keys.GetEpoch(), keys
	n.resetPeaks()
	return n, nil
}

// resetPeaks restarts the peaks of the processes' memory.
func (n *network) resetPeaks() {
	for _, p := range n.Processes {
		p.ResetPeak()
	}
}

func peakOf(j *coordinatorv1.Job) float64 { return float64(cluster.PeakRSS(j)) }

// snapshots reads the parties' metrics.
func snapshots(ctx context.Context, c *cluster.Cluster) (list []bench.Snapshot, err error) {
	for _, address := range c.Net.Metrics[:len(c.Net.Parties)] {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			return nil, err
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			return nil, err
		}
		s, err := bench.ParseMetrics(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// make makes batches sequentially until d has passed, at least one.
func (n *network) make(ctx context.Context, field string, count uint64, d time.Duration) (*batches, error) {
	return n.makeInFlight(ctx, field, count, d, 1, 1)
}

// makeInFlight runs inFlight concurrent sequences of batches until d has passed. Each sequence
// makes at least least batches.
func (n *network) makeInFlight(ctx context.Context, field string, count uint64, d time.Duration, inFlight, least int) (*batches, error) {
	before, err := snapshots(ctx, n.Cluster)
	if err != nil {
		return nil, err
	}
	q := &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_SCALAR, Params: n.set.Name, Field: field, Dim: uint32(n.dim), Count: count, Epoch: n.epoch,
		Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: devnet.Tenant,
		NoSacrifice: n.trusting,
	}
	if n.dim > 1 {
		d := uint32(n.dim)
		q.Kind, q.Shape = jobv1.Kind_KIND_MATRIX, &jobv1.Shape{Rows: d, Inner: d, Columns: d}
	}
	b := &batches{shares: map[string]float64{}}
	parties := float64(len(n.Clients))
	began := time.Now()
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		failed error
	)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for place := range inFlight {
		c := *n.Cluster
		if place > 0 { // show the progress of one sequence only
			c.Progress = terminal.NewProgress(io.Discard)
		}
		all.Go(func() {
			for made := 0; made < least || time.Since(began) < d; made++ {
				j, err := c.Job(ctx, q)
				if err == nil && j.GetOrdinal() > 1 {
					c.Progress.Say("a party did not make %d batches concurrently", inFlight)
				}
				mu.Lock()
				if err != nil {
					if failed == nil {
						failed = err
					}
					cancel()
				} else {
					b.add(j, parties)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	if failed != nil {
		return nil, failed
	}
	b.wall = time.Since(began).Seconds()
	after, err := snapshots(ctx, n.Cluster)
	if err != nil {
		return nil, err
	}
	for i := range after {
		counted := after[i].Since(before[i])
		b.cpu += counted["process_cpu_seconds_total"] / parties
		for phase, share := range bench.Shares(counted) {
			b.shares[phase] += share / parties
		}
	}
	b.cpu = max(b.cpu, 0.005) // the metric has a resolution of 0.01 s
	return b, nil
}

// add counts a complete batch.
func (b *batches) add(j *coordinatorv1.Job, parties float64) {
	b.tuples += float64(j.GetParties()[0].GetStatus().GetCount())
	b.peak = max(b.peak, peakOf(j))
	for _, p := range j.GetParties() {
		b.sent += float64(p.GetStatus().GetProgress().GetSentBytes()) / parties
	}
}

// sacrificed is the overhead of the sacrifice for a tuple: CPU time and sent bytes of a party, in
// percent.
type sacrificed struct{ cpu, sent float64 }

// sacrifice measures batches with and without a sacrifice in turn, because the speed of a machine
// changes, until d has passed, and at least three of each.
func (n *network) sacrifice(ctx context.Context, field string, d time.Duration) (sacrificed, error) {
	var sums [2]batches // without and with
	began := time.Now()
	for turn := 0; turn < 3 || time.Since(began) < d; turn++ {
		for i := range sums {
			one := *n
			one.trusting = i == 0
			b, err := one.make(ctx, field, most, 0)
			if err != nil {
				return sacrificed{}, err
			}
			sums[i].tuples += b.tuples
			sums[i].cpu += b.cpu
			sums[i].sent += b.sent
		}
	}
	more := func(of func(b *batches) float64) float64 {
		return 100 * (of(&sums[1])/sums[1].tuples/(of(&sums[0])/sums[0].tuples) - 1)
	}
	return sacrificed{more(func(b *batches) float64 { return b.cpu }), more(func(b *batches) float64 { return b.sent })}, nil
}

// triples measures batches of one kind: first one at a time, so that time and memory are those of
// one batch, and then two at a time. A first batch that is not measured makes the MAC key.
func (p *protocolBench) triples(kind string, dim int) bench.Row {
	field, sfx := p.options.FieldOf(p.set), p.options.Suffix(p.set)
	stem, of := kind, "scalar, "+field
	if kind == "matrix" {
		stem, of = fmt.Sprintf("matrix_d%d", dim), fmt.Sprintf("%d x %d, %s", dim, dim, field)
	}
	results := func(n *network, b, two *batches, s sacrificed) []bench.Result {
		cost := bench.Result{Name: stem + "_triples_per_cpu_second" + sfx, Unit: "triples/CPU-s", Value: b.tuples / b.cpu, What: "triples for a CPU-second of a party: " + of}
		if kind == "matrix" {
			cost = bench.Result{Name: stem + "_cpu_seconds_per_triple" + sfx, Unit: "CPU-s", Value: b.cpu / b.tuples, What: "CPU-seconds of a party for a triple: " + of}
		}
		list := []bench.Result{
			cost,
			{Name: stem + "_bytes_per_triple" + sfx, Unit: "B", Value: b.sent / b.tuples, What: "bytes that a party sends for a triple: " + of},
			{Name: stem + "_sacrifice_cpu" + sfx, Unit: "%", Value: s.cpu, What: "CPU time of a party for a triple beyond that without a sacrifice: " + of},
			{Name: stem + "_sacrifice_bytes" + sfx, Unit: "%", Value: s.sent, What: "bytes that a party sends for a triple beyond those without a sacrifice: " + of},
			{Name: stem + "_triples_per_second" + sfx, Unit: "triples/s", Value: b.tuples / b.wall, What: "triples in a second: " + of},
			{Name: stem + "_cpus_used" + sfx, Unit: "CPUs", Value: b.cpu / b.wall, What: "CPUs that a party uses: " + of},
			{Name: "peak_rss_" + stem + sfx, Unit: "B", Value: b.peak, What: "peak memory of a party, making triples: " + of},
			{Name: stem + "_triples_per_second_pipelined" + sfx, Unit: "triples/s", Value: two.tuples / two.wall, What: "triples in a second, two batches in flight: " + of},
			{Name: stem + "_cpus_used_pipelined" + sfx, Unit: "CPUs", Value: two.cpu / two.wall, What: "CPUs that a party uses, two batches in flight: " + of},
			{Name: "peak_rss_" + stem + "_pipelined" + sfx, Unit: "B", Value: two.peak, What: "peak memory of a party, two batches in flight: " + of},
			{Name: "peak_rss_" + stem + "_keys" + sfx, Unit: "B", Value: peakOf(n.keys), What: "peak memory of a party, making keys: " + of},
		}
		for _, phase := range bench.Phases {
			list = append(list, bench.Result{
				Name: fmt.Sprintf("%s_share_%s%s", stem, phase.Name, sfx), Unit: "%", Value: b.shares[phase.Name],
				What: "share of time, " + phase.What + ": " + of,
			})
		}
		return list
	}
	memory := bench.ClusterMemory(p.set, dim, p.options.PartyCount(), 2)
	return bench.Row{Names: namesOf(results(&network{}, &batches{}, &batches{}, sacrificed{})), Memory: memory, Run: func(ctx context.Context) ([]bench.Result, error) {
		n, err := p.start(ctx, p.options.PartyCount(), dim)
		if err != nil {
			return nil, err
		}
		defer n.Stop()
		if err := n.warm(ctx, field); err != nil {
			return nil, err
		}
		b, err := n.make(ctx, field, most, p.duration)
		if err != nil {
			return nil, err
		}
		s, err := n.sacrifice(ctx, field, p.duration)
		if err != nil {
			return nil, err
		}
		n.resetPeaks()
		two, err := n.makeInFlight(ctx, field, most, p.duration, 2, 2)
		if err != nil {
			return nil, err
		}
		return results(n, b, two, s), nil
	}}
}

// warm makes the MAC key, with the smallest batch that needs one, and a full batch that lets the
// heap grow.
func (n *network) warm(ctx context.Context, field string) error {
	scalar := *n
	scalar.dim = 1
	if _, err := scalar.make(ctx, field, 1, 0); err != nil {
		return err
	}
	_, err := n.make(ctx, field, most, 0)
	return err
}

func namesOf(list []bench.Result) (names []string) {
	for _, r := range list {
		names = append(names, r.Name)
	}
	return names
}

// growth measures the cost of a scalar triple in each field of the set.
func (p *protocolBench) growth() bench.Row {
	sfx, fields := p.options.SetSuffix(p.set), p.set.Fields
	if p.options.Field != "" {
		fields = slices.DeleteFunc(slices.Clone(fields), func(f params.FieldSpec) bool { return f.Name != p.options.Field })
	}
	first, last := fields[0], fields[len(fields)-1]
	results := func(cost []float64) (list []bench.Result) {
		for i, f := range fields {
			list = append(list, bench.Result{
				Name: fmt.Sprintf("scalar_cpu_us_per_triple_%s%s", f.Name, sfx), Unit: "us", Value: cost[i],
				What: "CPU time of a party for a triple: scalar, " + f.Name,
			})
		}
		if len(fields) == 1 {
			return list
		}
		bits := float64(last.P().BitLen()) / float64(first.P().BitLen())
		return append(list, bench.Result{
			Name: fmt.Sprintf("scalar_growth_%s_%s%s", first.Name, last.Name, sfx), Unit: "x", Value: cost[len(cost)-1] / cost[0] / bits,
			What: fmt.Sprintf("growth of this time from %s to %s over that of the field's bits", first.Name, last.Name),
		})
	}
	cost := make([]float64, len(fields))
	return bench.Row{Names: namesOf(results(cost)), Run: func(ctx context.Context) ([]bench.Result, error) {
		n, err := p.start(ctx, p.options.PartyCount(), 1)
		if err != nil {
			return nil, err
		}
		defer n.Stop()
		for i, f := range fields {
			if err := n.warm(ctx, f.Name); err != nil {
				return nil, err
			}
			b, err := n.make(ctx, f.Name, most, p.duration/time.Duration(len(cost)))
			if err != nil {
				return nil, err
			}
			cost[i] = 1e6 * b.cpu / b.tuples
		}
		return results(cost), nil
	}}
}

// keys measures proved key generation, including the rotation keys for matrix blocks of dimension
// dim.
func (p *protocolBench) keys(dim int) bench.Row {
	sfx := p.options.SetSuffix(p.set)
	of := fmt.Sprintf("proved key generation, d = %d, %d parties", dim, p.options.KeyParties())
	name := func(unit string) string {
		return fmt.Sprintf("keygen_d%d_%s_%d_parties%s", dim, unit, p.options.KeyParties(), sfx)
	}
	results := func(wall, cpu, sent, peak float64) []bench.Result {
		return []bench.Result{
			{Name: name("seconds"), Unit: "s", Value: wall, What: "time of " + of},
			{Name: name("cpu_seconds"), Unit: "CPU-s", Value: cpu, What: "CPU-seconds of a party: " + of},
			{Name: name("bytes"), Unit: "B", Value: sent, What: "bytes that a party sends: " + of},
			{Name: name("peak_rss"), Unit: "B", Value: peak, What: "peak memory of a party: " + of},
		}
	}
	memory := bench.ClusterMemory(p.set, dim, p.options.KeyParties(), 1)
	return bench.Row{Names: namesOf(results(0, 0, 0, 0)), Memory: memory, Run: func(ctx context.Context) ([]bench.Result, error) {
		began := time.Now()
		n, err := p.start(ctx, p.options.KeyParties(), dim)
		if err != nil {
			return nil, err
		}
		defer n.Stop()
		if n.keys.GetParties()[0].GetStatus().GetKeygenSecurity() != "proved" {
			return nil, errors.New("the keys are not proved")
		}
		wall := time.Since(began).Seconds()
		counted, err := snapshots(ctx, n.Cluster)
		if err != nil {
			return nil, err
		}
		var cpu, sent float64
		for i, c := range counted {
			cpu += c["process_cpu_seconds_total"] / float64(p.options.KeyParties())
			sent = max(sent, float64(n.keys.GetParties()[i].GetStatus().GetProgress().GetSentBytes()))
		}
		return results(wall, cpu, sent, peakOf(n.keys)), nil
	}}
}

// latencyRuns is the number of new clusters that latency takes the median of.
const latencyRuns = 3

// latency measures the time of the smallest batch once there are keys: of the first one, for which
// the parties also make a MAC key, and of the second one.
func (p *protocolBench) latency() bench.Row {
	field, sfx := p.options.FieldOf(p.set), p.options.Suffix(p.set)
	of := fmt.Sprintf("batch of scalar triples, %d parties, %s, median of %d new clusters", p.options.KeyParties(), field, latencyRuns)
	name := func(which string) string {
		return fmt.Sprintf("scalar_%s_batch_seconds_%d_parties%s", which, p.options.KeyParties(), sfx)
	}
	results := func(first, second float64) []bench.Result {
		return []bench.Result{
			{Name: name("first"), Unit: "s", Value: first, What: "time of the first smallest " + of + ", MAC key included"},
			{Name: name("next"), Unit: "s", Value: second, What: "time of the next smallest " + of},
		}
	}
	return bench.Row{Names: namesOf(results(0, 0)), Run: func(ctx context.Context) ([]bench.Result, error) {
		var times [2][]float64
		for range latencyRuns {
			first, second, err := p.firstBatches(ctx, field)
			if err != nil {
				return nil, err
			}
			times[0], times[1] = append(times[0], first), append(times[1], second)
		}
		return results(bench.Median(times[0]), bench.Median(times[1])), nil
	}}
}

// firstBatches returns the times of the first two of the smallest batches in a new cluster that has
// keys, in seconds.
func (p *protocolBench) firstBatches(ctx context.Context, field string) (first, second float64, err error) {
	n, err := p.start(ctx, p.options.KeyParties(), 1)
	if err != nil {
		return 0, 0, err
	}
	defer n.Stop()
	var walls [2]float64
	for i := range walls {
		b, err := n.make(ctx, field, 1, 0)
		if err != nil {
			return 0, 0, err
		}
		walls[i] = b.wall
	}
	return walls[0], walls[1], nil
}
