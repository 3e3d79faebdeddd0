package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/storetest"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// drawn records the tuples that clients received: for each party, the reservation of each tuple's
// share.
type drawn struct {
	mu       sync.Mutex
	of       []map[string]string
	twice    []string
	replays  []string
	complete int // reservations that were drawn from all parties
	partial  int
}

// take records the shares that a party delivered.
func (d *drawn) take(party int, reservation string, shares []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const tuple = 6 * 16 // bytes: a, b, c and their MACs
	for t := range slices.Chunk(shares, tuple) {
		if before, ok := d.of[party][string(t)]; ok && before != reservation {
			d.twice = append(d.twice, before+" and "+reservation)
		}
		d.of[party][string(t)] = reservation
	}
}

// drawing is a client that reserves tuples and draws them from all parties until it is stopped.
func (c *cluster) drawing(ctx context.Context, j *coordinatorv1.Job, d *drawn, lease time.Duration) {
	for ctx.Err() == nil {
		q := &stockv1.ReserveRequest{
			Class: lodge.ClassOf(j.GetRequest()), Count: 1 + rand.Uint64N(40), Epoch: j.GetEpoch(), Lease: durationpb.New(lease),
			IdempotencyKey: "k" + time.Now().Format("150405.000000000"),
		}
		var r *stockv1.ReserveResponse
		persist(ctx, func(ctx context.Context) (err error) {
			r, err = stockv1.NewStockServiceClient(c.operator).Reserve(ctx, q)
			return err
		})
		id, all := r.GetReservation().GetId(), 0
		if id == "" {
			continue
		}
		for party, conn := range c.clients {
			var shares []byte
			got := persist(ctx, func(ctx context.Context) (err error) {
				part, err := fetch(ctx, conn, id)
				if len(part) > 0 && len(shares) > 0 && !bytes.HasPrefix(part, shares[:min(len(part), len(shares))]) {
					d.mu.Lock()
					d.replays = append(d.replays, id)
					d.mu.Unlock()
				}
				shares = part
				d.take(party, id, part[:len(part)/96*96])
				return err
			})
			if got {
				all++
			}
		}
		d.mu.Lock()
		if all == len(c.clients) {
			d.complete++
		} else {
			d.partial++
		}
		d.mu.Unlock()
	}
}

// reservations describes the open reservations of the coordinator and the parties.
func (c *cluster) reservations(level *stockv1.Stock) string {
	out := fmt.Sprintf("%v\n", level)
	open := []tuplesv1.ReservationState{tuplesv1.ReservationState_RESERVATION_STATE_RESERVED, tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED}
	at, err := stockv1.NewStockServiceClient(c.operator).ListReservations(context.Background(), &stockv1.ListReservationsRequest{})
	out += fmt.Sprintf("coordinator: %v, %v\n", at.GetReservations(), err)
	for i, conn := range c.clients {
		held, err := tuplesv1.NewTuplesServiceClient(conn).ListReservations(context.Background(), &tuplesv1.ListReservationsRequest{States: open})
		out += fmt.Sprintf("party %d: %v, %v\n", i, held.GetReservations(), err)
	}
	return out
}

// persist retries a call until it succeeds or fails with a permanent error.
func persist(ctx context.Context, call func(ctx context.Context) error) bool {
	for ctx.Err() == nil {
		one, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := call(one)
		cancel()
		if err == nil {
			return true
		}
		switch rpc.FromError(err).Code {
		case rpc.Unavailable, rpc.TimedOut, rpc.Busy, rpc.RateLimited, rpc.Cancelled, rpc.Internal:
			time.Sleep(20 * time.Millisecond)
		default:
			return false
		}
	}
	return false
}

var _ = Describe("reservations while processes are killed", func() {
	It("never deliver a tuple twice, and return undelivered tuples to the stock or count them as lost", func() {
		c := newCluster(3)
		epoch := c.complete(keysJob()).GetEpoch()
		j := c.complete(triplesJob(epoch))
		total := j.GetParties()[0].GetStatus().GetCount()
		const lease = 4 * time.Second
		d := &drawn{of: []map[string]string{{}, {}, {}}}
		ctx, stop := context.WithCancel(context.Background())
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() { c.drawing(ctx, j, d, lease) })
		}
		names := []string{"coordinator", "p0", "p1", "p2"}
		for i := range 8 {
			time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond)
			victim := names[(i+rand.IntN(2))%len(names)]
			c.kill(victim)
			time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
			c.start(victim)
		}
		time.Sleep(500 * time.Millisecond)
		stop()
		clients.Wait()
		Expect(d.twice).To(BeEmpty(), "tuples that a party gave with two reservations")
		Expect(d.replays).To(BeEmpty(), "reservations of which a party gave other bytes the second time")
		Expect(d.complete).To(BeNumerically(">", 5), "%d were drawn from some parties only", d.partial)

		var level *stockv1.Stock
		Eventually(func() uint64 { // the leases end
			r, err := stockv1.NewStockServiceClient(c.operator).GetStock(context.Background(), &stockv1.GetStockRequest{Epoch: epoch})
			if err != nil || len(r.GetStock()) != 1 {
				return total
			}
			level = r.GetStock()[0]
			return level.GetReserved()
		}, 30*time.Second, 100*time.Millisecond).MustPassRepeatedly(15).Should(BeZero(), func() string { return c.reservations(level) }) // and remain ended
		GinkgoWriter.Printf("%d reservations drawn from all parties, %d from some; of %d tuples %d are left, %d consumed, %d lost\n",
			d.complete, d.partial, total, level.GetAvailable(), level.GetConsumed(), level.GetLost())
		Expect(level.GetAvailable() + level.GetConsumed() + level.GetLost()).To(Equal(total))

		for _, m := range c.roster.Parties { // remaining batches are complete at every party
			c.kill(m.Name)
			c.start(m.Name)
		}
		r, err := stockv1.NewStockServiceClient(c.operator).Reserve(context.Background(), &stockv1.ReserveRequest{
			Class: lodge.ClassOf(j.GetRequest()), Count: level.GetAvailable(), Wait: true,
		})
		Expect(err).NotTo(HaveOccurred())
		for party, conn := range c.clients {
			shares, err := fetch(context.Background(), conn, r.GetReservation().GetId())
			Expect(err).NotTo(HaveOccurred())
			Expect(uint64(len(shares))).To(Equal(96 * level.GetAvailable()))
			d.take(party, r.GetReservation().GetId(), shares)
		}
		Expect(d.twice).To(BeEmpty())
		held, err := tuplesv1.NewTuplesServiceClient(c.clients[0]).ListBatches(context.Background(), &tuplesv1.ListBatchesRequest{Epoch: epoch})
		Expect(err).NotTo(HaveOccurred())
		Expect(held.GetBatches()[0].GetFree()).To(BeEmpty())
	})
})

var _ = Describe("a party whose vault is in PostgreSQL", func() {
	It("makes and delivers tuples like the others, across kills of the party and of the server", func() {
		server := storetest.NewPostgres(GinkgoTB())
		c := newCluster(3)
		c.kill("p1")
		Expect(os.WriteFile(filepath.Join(c.dir, "p1", "postgres.dsn"), []byte(server.DSN()+"\n"), 0o600)).To(Succeed())
		c.edit("p1", func(s string) string {
			return strings.Replace(s, "dir: vault\n", "postgres_dsn_file: postgres.dsn\n", 1)
		})
		Expect(os.RemoveAll(filepath.Join(c.dir, "p1", "vault"))).To(Succeed())
		c.start("p1")
		epoch := c.complete(keysJob()).GetEpoch()
		draw := func() string {
			GinkgoHelper()
			id := c.reserve(c.complete(triplesJob(epoch)))
			for _, conn := range c.clients {
				shares, err := fetch(context.Background(), conn, id)
				Expect(err).NotTo(HaveOccurred())
				Expect(shares).NotTo(BeEmpty())
			}
			return id
		}
		id := draw()
		before, err := fetch(context.Background(), c.clients[1], id)
		Expect(err).NotTo(HaveOccurred())
		c.kill("p1")
		server.Crash()
		server.Start(GinkgoTB())
		c.start("p1")
		again, err := fetch(context.Background(), c.clients[1], id)
		Expect(err).NotTo(HaveOccurred())
		Expect(bytes.Equal(again, before)).To(BeTrue(), "other bytes after a crash")
		server.Crash() // while the party is running
		server.Start(GinkgoTB())
		Eventually(func() error {
			_, err := fetch(context.Background(), c.clients[1], id)
			return err
		}, 20*time.Second, 200*time.Millisecond).Should(Succeed())
		draw()
		Expect(filepath.Join(c.dir, "p1", "vault")).NotTo(BeADirectory())
	})
})

var _ = Describe("a store that is put back", func() {
	It("is quarantined: its party delivers none of the restored tuples, and resumes with new tuples after its operator's consent", func() {
		c := newCluster(3)
		epoch := c.complete(keysJob()).GetEpoch()
		j := c.complete(triplesJob(epoch))
		path, copied := filepath.Join(c.dir, "p0", "vault"), filepath.Join(c.dir, "copy")
		c.kill("p0")
		Expect(os.CopyFS(copied, os.DirFS(path))).To(Succeed())
		c.start("p0")
		id := c.reserve(j)
		before, err := fetch(context.Background(), c.clients[0], id)
		Expect(err).NotTo(HaveOccurred())
		Expect(before).NotTo(BeEmpty())

		c.kill("p0")
		Expect(os.RemoveAll(path)).To(Succeed())
		Expect(os.CopyFS(path, os.DirFS(copied))).To(Succeed())
		c.start("p0")
		tuples := tuplesv1.NewTuplesServiceClient(c.clients[0])
		Eventually(func() map[tuplesv1.BatchState]int { return c.batches(0) }, 10*time.Second, 50*time.Millisecond).
			Should(Equal(map[tuplesv1.BatchState]int{tuplesv1.BatchState_BATCH_STATE_REVOKED: 1}))
		keys, err := tuples.ListMacKeys(context.Background(), &tuplesv1.ListMacKeysRequest{})
		Expect(err).NotTo(HaveOccurred())
		Expect(keys.GetKeys()[0].GetState()).To(Equal(tuplesv1.MacKeyState_MAC_KEY_STATE_BURNT))
		Expect(keys.GetKeys()[0].GetReason()).To(ContainSubstring("an older copy was put back"))
		q := triplesJob(epoch)
		q.Params, q.Purpose = set, jobv1.Purpose_PURPOSE_TRIPLES
		_, err = c.jobs().SubmitJob(context.Background(), &coordinatorv1.SubmitJobRequest{Job: q})
		Expect(rpc.FromError(err).Code).To(Equal(rpc.Burnt), "the party's epoch is retired")

		c.kill("p0")
		key, err := seal.LoadKey(filepath.Join(c.dir, "p0", "vault.key"))
		Expect(err).NotTo(HaveOccurred())
		v, err := vault.Open(path, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(v.LeaveQuarantine()).To(Succeed())
		Expect(v.Close()).To(Succeed())
		c.start("p0")
		later, err := fetch(context.Background(), c.clients[0], c.reserve(c.complete(triplesJob(c.complete(keysJob()).GetEpoch()))))
		Expect(err).NotTo(HaveOccurred())
		Expect(later).NotTo(BeEmpty())
		for t := range slices.Chunk(later, 96) {
			Expect(bytes.Contains(before, t)).To(BeFalse())
		}
	})
})
