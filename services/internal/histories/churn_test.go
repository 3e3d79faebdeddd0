package histories

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/coordinator/stock"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
	vaultstock "github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// A review reserved and released 5,820 times in a minute, which grew the coordinator's store from
// 52 kB to 7.7 MB.
const (
	reviewed   = 5820
	mostGrowth = 1 << 20 // of the records of each store, in bytes
)

// size is how many bytes the records of a process's store have.
func (k *keeper) size(t *testing.T) (n int) {
	t.Helper()
	err := k.store.View(func(tx store.Tx) error {
		n = 0
		return tx.Scan("", func(key string, value []byte) error {
			n += len(key) + len(value)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// churn has a client reserve and release for a minute as fast as it is allowed to, at most as often
// as the review did. It returns how often that was.
func (w *world) churn(t *testing.T, lease time.Duration) (made int) {
	t.Helper()
	for start := time.Now(); time.Since(start) < time.Minute && made < reviewed; {
		r, err := w.reserve(0, 1, lease, "", nil, false)
		switch e := rpc.FromError(err); {
		case err == nil:
			w.release(0, r.GetId())
			made++
		case e.Code == rpc.RateLimited && e.Retry > 0 && e.Next != "":
			time.Sleep(e.Retry)
		default:
			t.Fatalf("after %d: %v", made, err)
		}
	}
	return made
}

// A client that reserves and releases as fast as the default limits allow grows no store beyond a
// bound. When the records of its reservations were compacted it can do so again, without growing
// the stores any further. It cannot reserve all stock for a week.
func TestChurn(t *testing.T) {
	where := embedded(filepath.Join(t.TempDir(), "coordinator"))
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, [parties]backend{inMemory(), inMemory(), inMemory()})
		defer w.end()
		w.coordinator.stop()
		w.coordinator.back = where
		serve, f := w.coordinator.service, new(config.CoordinatorFile)
		w.coordinator.service = func(k *keeper, s store.Store) (any, func(context.Context), func() error, error) {
			c, run, end, err := serve(k, s)
			c.(*stock.Service).Limit(func(client, tenant string) stock.Limits { return stock.LimitsOf(f.ReserveLimits(client, tenant)) })
			return c, run, end, err
		}
		if err := w.coordinator.start(); err != nil {
			t.Fatal(err)
		}
		w.sizes = map[string]uint64{"a": 40}
		w.pass(100 * time.Millisecond)
		w.produce("a", 2*reviewed, []int{0, 1, 2}, []int{0, 1, 2})
		w.pass(time.Second)
		if _, err := w.reserve(0, 2*reviewed, 7*24*time.Hour, "", nil, false); rpc.FromError(err) == nil || rpc.FromError(err).Code != rpc.OverQuota {
			t.Errorf("all stock for a week: %v", err)
		}

		lease := time.Duration(f.ReserveLimits("a1", "a").MaxLease)
		all := []*keeper{w.coordinator, w.parties[0].keeper, w.parties[1].keeper, w.parties[2].keeper}
		var before []int
		for _, k := range all {
			before = append(before, k.size(t))
		}
		const entry = 64 // bytes of an entry of the sweep's index, which a party keeps for a day after a withdrawal
		total := 0
		for minute := range 2 {
			made := w.churn(t, lease)
			total += made
			for i, k := range all {
				grown := k.size(t) - before[i]
				t.Logf("minute %d: %d reservations; store %d grew by %d bytes", minute, made, i, grown)
				if grown > mostGrowth {
					t.Errorf("store %d grew by %d bytes", i, grown)
				}
			}
			if made < 100 {
				t.Errorf("only %d reservations in a minute", made)
			}
			w.pass(lease + 2*time.Hour)
			for i, k := range all {
				if grown := k.size(t) - before[i]; i > 0 && grown > total*entry || grown > mostGrowth {
					t.Errorf("store %d has %d bytes more when it was compacted", i, grown)
				}
			}
		}
		if n := len(w.everywhere()); n > 0 {
			t.Errorf("the parties remember %d reservations", n)
		}
	})
}

// Tuples of a released reservation go to another one. When the parties have forgotten the first,
// nobody revives it: not under its old lease, which is over, and not under a new one, because the
// batches know what was given out.
func TestCompactionRevivesNothing(t *testing.T) {
	scenario(t, func(t *testing.T, w *world) {
		old, err := w.reserve(0, 40, time.Minute, "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		w.release(0, old.GetId())
		w.pass(3 * time.Second)
		again, err := w.reserve(0, 40, 4*time.Hour, "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		for i := range parties {
			if err := w.fetch(0, i, again.GetId(), 0, -1, 0); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(2 * time.Hour)
		if s := w.states(old.GetId()); s != [parties]vaultstock.ReservationState{} {
			t.Errorf("the released reservation is remembered as %q", s)
		}
		for name, c := range map[string]struct {
			lease time.Time
			want  rpc.Code
		}{"its old lease": {old.GetLease().AsTime(), rpc.Expired}, "a new lease": {time.Now().Add(time.Hour), rpc.Taken}} {
			r := proto.CloneOf(old)
			r.Lease = timestamppb.New(c.lease)
			r.State = tuplesv1.ReservationState_RESERVATION_STATE_UNSPECIFIED
			for i := range parties {
				lied := tuplesv1.NewTuplesServiceClient(w.conn(rpc.Principal{Role: rpc.Coordinator, Name: "coordinator", Party: -1}, coordinator, i))
				got, err := lied.Propose(t.Context(), &tuplesv1.ProposeRequest{Reservations: []*tuplesv1.Reservation{r}})
				if err != nil || len(got.GetOutcomes()) != 1 || got.GetOutcomes()[0].GetCode() != string(c.want) {
					t.Errorf("%s at party %d: %v, %v", name, i, got, err)
				}
				if w.fetch(0, i, old.GetId(), 0, -1, 0) == nil {
					t.Errorf("%s: party %d gives it out", name, i)
				}
			}
		}
	})
}
