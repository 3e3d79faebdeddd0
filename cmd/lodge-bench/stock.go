package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/bench"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/engine/params"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	vaultstock "github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// The size of the measured stock, and how clients draw from it.
const (
	stockTuples   = 10_000_000 // scalar triples; fewer if a row has less than a second, or for larger fields
	stockLeast    = 50_000
	stockElements = 6   // field elements of a triple: a party's shares and their MACs
	stockClients  = 100 // connections
	stockRate     = 500 // reservations a second, in total
	stockPerDraw  = 100 // tuples of a reservation
	stockBatch    = "bench-1"
	stockMACKey   = "mac-bench"
	stockDataUnit = 1 << 20 // bytes that the benchmark stores at a time
)

// stockRows lists the measurements of a cluster that stores and delivers tuples. The tuples are
// random bytes, because the cost does not depend on their values.
func stockRows(cmd *cobra.Command, o *bench.Options) ([]bench.Row, error) {
	b := &stockBench{cmd: cmd, parties: o.KeyParties(), duration: 20 * o.Duration, tuples: int(min(1, o.Duration.Seconds()) * stockTuples)}
	if err := b.choose(o.Field); err != nil {
		return nil, err
	}
	b.tuples = max(b.tuples, stockLeast)
	of := fmt.Sprintf("%d scalar triples, %s, embedded store", b.tuples, b.class.Field)
	results := func(m *stockMeasured) []bench.Result {
		return []bench.Result{
			{Name: "stock_store_bytes_per_second", Unit: "B/s", Value: m.store, What: "bytes of shares stored, encrypted, by one process: " + of},
			{Name: "stock_store_peak_rss", Unit: "B", Value: m.storePeak, What: "peak memory of that process: " + of},
			{Name: "stock_fetch_bytes_per_second", Unit: "B/s", Value: m.fetch, What: "bytes of shares that a client draws over mutual TLS: " + of},
			{Name: "stock_fetch_peak_rss", Unit: "B", Value: m.fetchPeak, What: "peak memory of the party meanwhile: " + of},
			{Name: "reserve_one_party_p50", Unit: "ms", Value: m.record.at(50), What: m.record.what("median time of a reservation at one party")},
			{Name: "reserve_one_party_p99", Unit: "ms", Value: m.record.at(99), What: m.record.what("99th percentile")},
			{Name: "reserve_p50", Unit: "ms", Value: m.reserve.at(50), What: m.reserve.what("median time of a reservation at all parties")},
			{Name: "reserve_p99", Unit: "ms", Value: m.reserve.at(99), What: m.reserve.what("99th percentile")},
			{Name: "draw_p50", Unit: "ms", Value: m.draw.at(50), What: "median time to draw one reservation from a party, in sequence"},
			{Name: "draw_p99", Unit: "ms", Value: m.draw.at(99), What: "99th percentile"},
			{Name: "reserve_achieved", Unit: "1/s", Value: m.achieved, What: m.reserve.what("reservations that were made in a second")},
		}
	}
	return []bench.Row{{
		Section: fmt.Sprintf("Stock, %d parties", b.parties), Names: namesOf(results(&stockMeasured{})),
		Run: func(ctx context.Context) ([]bench.Result, error) {
			m, err := b.measure(ctx)
			if err != nil {
				return nil, err
			}
			return results(m), nil
		},
	}}, nil
}

// stockBench measures one class of tuples.
type stockBench struct {
	cmd      *cobra.Command
	parties  int
	duration time.Duration
	tuples   int
	bytes    uint64 // of a party's shares of one tuple
	class    *tuplesv1.Class
}

// choose selects the headline set, or the default set for a field that only the default set has.
func (b *stockBench) choose(field string) error {
	if field == "" {
		field = "p128"
	}
	var err error
	for _, name := range []string{bench.Headline, params.Default} {
		var set *params.Set
		if set, err = params.Lookup(name); err != nil {
			return err
		}
		var spec params.FieldSpec
		if spec, err = set.Field(field); err == nil {
			const small = 128
			bits := spec.P().BitLen()
			b.bytes, b.tuples = uint64(stockElements*bits/8), b.tuples*small/max(bits, small)
			b.class = &tuplesv1.Class{Tenant: devnet.Tenant, Kind: jobv1.Kind_KIND_SCALAR, Params: name, Field: field}
			return nil
		}
	}
	return err
}

// stockMeasured holds the figures. Those of storing are of the last party.
type stockMeasured struct {
	store, storePeak, fetch, fetchPeak, achieved float64
	record, reserve, draw                        latencies
}

// latencies are sorted times in milliseconds.
type latencies []float64

func (l latencies) at(percent int) float64 {
	if len(l) == 0 {
		return 0
	}
	return l[min(len(l)-1, len(l)*percent/100)]
}

func (latencies) what(s string) string {
	return fmt.Sprintf("%s: %d clients, %d a second in open loop, %d tuples each", s, stockClients, stockRate, stockPerDraw)
}

func (b *stockBench) measure(ctx context.Context) (*stockMeasured, error) {
	m := &stockMeasured{}
	c, err := cluster.Start(ctx, terminal.NewProgress(b.cmd.ErrOrStderr()), cluster.Options{Parties: b.parties, Set: b.class.Params, Prepare: func(net *devnet.Cluster) error {
		for i, file := range net.Parties {
			if err := b.fill(file, i, m); err != nil {
				return err
			}
		}
		return unlimited(net)
	}})
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	c.Party(0).ResetPeak()
	if err := b.record(ctx, c, m); err != nil {
		return nil, err
	}
	if err := b.open(ctx, c, m); err != nil {
		return nil, err
	}
	return m, b.drawAll(ctx, c, m)
}

// unlimited raises the limits of clients above the rate and the connections of the benchmark.
func unlimited(net *devnet.Cluster) error {
	const callers = "\ncallers: {connections: 2000, connections_per_client: 1000, calls: 4000, calls_per_client: 2000}\n"
	err := appendTo(net.Coordinator, callers+"tenant_reservations: {"+devnet.Tenant+
		": {max_open: 1000000, max_tuples: 1000000000, per_second: 1e6, burst: 1000000}}\n")
	for _, file := range net.Parties {
		err = errors.Join(err, appendTo(file, callers))
	}
	return err
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// fill stores the tuples, with unused keys, in the vault of a party that does not run.
func (b *stockBench) fill(file string, party int, m *stockMeasured) error {
	f, err := config.LoadParty(file)
	if err != nil {
		return err
	}
	key, err := seal.LoadKey(f.Vault.KeyFile)
	if err != nil {
		return err
	}
	v, err := vault.Open(f.Vault.Dir, key)
	if err != nil {
		return err
	}
	err = b.plantKeys(v, f.Roster.Hash())
	if err == nil {
		debug.FreeOSMemory() // the memory of earlier benchmarks must not count
		cluster.ResetPeak(os.Getpid())
		began := time.Now()
		err = b.plantTuples(v, party)
		m.store = float64(b.tuples) * float64(b.bytes) / time.Since(began).Seconds()
		_, peak := metrics.ResidentBytes()
		m.storePeak = float64(peak)
	}
	return errors.Join(err, v.Close())
}

func (b *stockBench) plantKeys(v *vault.Vault, roster [32]byte) error {
	e, err := v.NewEpoch(keys.Epoch{ID: 1, Params: b.class.Params, Purpose: "triples", RosterHash: roster})
	if err != nil {
		return err
	}
	return errors.Join(e.Commit(), v.ActivateEpoch(1))
}

func (b *stockBench) plantTuples(v *vault.Vault, party int) error {
	w, err := v.NewBatch(vaultstock.Batch{
		ID: stockBatch, Epoch: 1, MACKey: stockMACKey, Params: b.class.Params, Field: b.class.Field, Kind: "scalar", Dim: 1,
		Count: uint64(b.tuples), Tenant: devnet.Tenant, TupleBytes: b.bytes,
	})
	if err != nil {
		return err
	}
	defer w.Abort() // does nothing after Commit
	data := make([]byte, stockDataUnit)
	rand.NewChaCha8([32]byte{byte(party)}).Read(data)
	for left := b.tuples * int(b.bytes); left > 0; left -= len(data) {
		data = data[:min(len(data), left)]
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	fresh := &keys.NewMACKey{MACKey: keys.MACKey{ID: stockMACKey, Epoch: 1, Params: b.class.Params, Field: b.class.Field, Tenant: devnet.Tenant}}
	return errors.Join(w.Commit(fresh), v.ActivateBatch(stockBatch))
}

// connection holds a client's connections to the coordinator and to a party.
type connection struct {
	stock  stockv1.StockServiceClient
	tuples tuplesv1.TuplesServiceClient
	class  *tuplesv1.Class
}

func (b *stockBench) connect(c *cluster.Cluster) (conns []connection, closing func(), err error) {
	var open []*grpc.ClientConn
	closing = func() {
		for _, c := range open {
			c.Close()
		}
	}
	for range stockClients {
		at, p := c.Net.Roster.Coordinator, c.Net.Roster.Parties[0]
		one, err := cluster.Dial(c.Net, devnet.Operator, at.Address, at.Identity)
		if err == nil {
			open = append(open, one)
			var two *grpc.ClientConn
			if two, err = cluster.Dial(c.Net, devnet.ClientName(0), p.Address, p.Identity); err == nil {
				open = append(open, two)
				conns = append(conns, connection{stockv1.NewStockServiceClient(one), tuplesv1.NewTuplesServiceClient(two), b.class})
			}
		}
		if err != nil {
			closing()
			return nil, nil, err
		}
	}
	return conns, closing, nil
}

// open reserves tuples at a fixed rate that does not wait for responses. Then one client draws the
// reservations from party 0 sequentially.
func (b *stockBench) open(ctx context.Context, c *cluster.Cluster, m *stockMeasured) error {
	conns, closing, err := b.connect(c)
	if err != nil {
		return err
	}
	defer closing()
	for _, x := range conns { // connect before the measurement
		r, err := x.reserve(ctx)
		if err == nil {
			_, err = readAll(ctx, x.tuples, r)
		}
		if err != nil {
			return err
		}
	}
	ids := make([]string, b.calls())
	began := time.Now()
	m.reserve, err = b.openLoop(func(i int) (err error) {
		ids[i], err = conns[i%len(conns)].reserve(ctx)
		return err
	})
	m.achieved = float64(len(ids)) / time.Since(began).Seconds()
	if err != nil {
		return err
	}
	for _, id := range ids {
		began := time.Now()
		n, err := readAll(ctx, conns[0].tuples, id)
		if err == nil && n != stockPerDraw*int(b.bytes) {
			err = fmt.Errorf("%d bytes of shares for %d tuples", n, stockPerDraw)
		}
		if err != nil {
			return err
		}
		m.draw = append(m.draw, time.Since(began).Seconds()*1e3)
	}
	slices.Sort(m.draw)
	return nil
}

// calls returns the number of calls of an open loop.
func (b *stockBench) calls() int { return max(stockClients, int(b.duration.Seconds()*stockRate)) }

// openLoop makes calls at a fixed rate that does not wait for responses. It returns the sorted
// times from when each call was due to its response.
func (b *stockBench) openLoop(call func(i int) error) (latencies, error) {
	var all sync.WaitGroup
	took, errs := make(latencies, b.calls()), make([]error, b.calls())
	began := time.Now()
	for i := range took {
		due := began.Add(time.Duration(i) * time.Second / stockRate)
		time.Sleep(time.Until(due))
		all.Go(func() {
			errs[i] = call(i)
			took[i] = time.Since(due).Seconds() * 1e3
		})
	}
	all.Wait()
	slices.Sort(took)
	return took, errors.Join(errs...)
}

// recordConnections is the number of connections over which the coordinator's identity calls one
// party; a party accepts at most 64 from it.
const recordConnections = 50

// record requests that one party record reservations of the last tuples, as the coordinator does,
// over several connections.
func (b *stockBench) record(ctx context.Context, c *cluster.Cluster, m *stockMeasured) error {
	at := filepath.Join(filepath.Dir(c.Net.Coordinator), "tls")
	credentials, err := rpc.LoadCredentials(rpc.Files{Certificate: at + ".pem", Key: at + ".key", CA: filepath.Join(c.Net.Dir, "ca.pem")})
	if err != nil {
		return err
	}
	p := c.Net.Roster.Parties[0]
	var clients []tuplesv1.TuplesServiceClient
	for range recordConnections {
		conn, err := rpc.Dial(p.Address, p.Identity, credentials)
		if err != nil {
			return err
		}
		defer conn.Close()
		clients = append(clients, tuplesv1.NewTuplesServiceClient(conn))
		if _, err := clients[len(clients)-1].ListBatches(ctx, &tuplesv1.ListBatchesRequest{}); err != nil { // connect before the measurement
			return err
		}
	}
	lease := timestamppb.New(time.Now().Add(time.Hour))
	m.record, err = b.openLoop(func(i int) error {
		r, err := clients[i%recordConnections].Propose(ctx, &tuplesv1.ProposeRequest{Reservations: []*tuplesv1.Reservation{{
			Id: fmt.Sprintf("one-%d", i), Class: b.class, Epoch: 1, MacKeyId: stockMACKey, Owner: devnet.Operator, Lease: lease,
			Ranges: []*tuplesv1.Range{{BatchId: stockBatch, First: uint64(b.tuples - i - 1), Count: 1}},
		}}})
		if err == nil && r.GetOutcomes()[0].GetCode() != "" {
			err = errors.New(r.GetOutcomes()[0].GetWhat())
		}
		return err
	})
	return err
}

// reserve makes a reservation at all parties.
func (x connection) reserve(ctx context.Context) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	r, err := x.stock.Reserve(ctx, &stockv1.ReserveRequest{Class: x.class, Count: stockPerDraw, Wait: true})
	return r.GetReservation().GetId(), err
}

// readAll draws a reservation and returns the number of bytes.
func readAll(ctx context.Context, client tuplesv1.TuplesServiceClient, id string) (n int, err error) {
	stream, err := client.Fetch(ctx, &tuplesv1.FetchRequest{ReservationId: id})
	if err != nil {
		return 0, err
	}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		n += len(r.GetChunk())
	}
}

// drawAll draws the remaining tuples with one client and one reservation.
func (b *stockBench) drawAll(ctx context.Context, c *cluster.Cluster, m *stockMeasured) error {
	list, err := stockv1.NewStockServiceClient(c.Operator).GetStock(ctx, &stockv1.GetStockRequest{})
	if err != nil || len(list.GetStock()) == 0 {
		return errors.Join(err, errors.New("no stock"))
	}
	r, err := stockv1.NewStockServiceClient(c.Operator).Reserve(ctx, &stockv1.ReserveRequest{Class: b.class, Count: list.GetStock()[0].GetAvailable() / 10 * 9})
	if err != nil {
		return err
	}
	c.Party(0).ResetPeak()
	began := time.Now()
	n, err := readAll(ctx, tuplesv1.NewTuplesServiceClient(c.Clients[0]), r.GetReservation().GetId())
	if err != nil {
		return err
	}
	m.fetch = float64(n) / time.Since(began).Seconds()
	s, err := statusv1.NewStatusServiceClient(c.Clients[0]).GetStatus(ctx, &statusv1.GetStatusRequest{})
	m.fetchPeak = float64(s.GetPeakRssBytes())
	return err
}
