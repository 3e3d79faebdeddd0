package histories

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	vaultstock "github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const field, params = "p128", "set"

func (w *world) client(p rpc.Principal, i int) tuplesv1.TuplesServiceClient {
	return tuplesv1.NewTuplesServiceClient(w.conn(p, clients, i))
}

func (w *world) stock(p rpc.Principal) stockv1.StockServiceClient {
	return stockv1.NewStockServiceClient(w.conn(p, clients, coordinator))
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	e := rpc.FromError(err)
	return string(e.Code) + " (" + e.What + ")"
}

// produce stores a batch at parties, and activates it at some of them.
func (w *world) produce(tenant string, count uint64, store, activate []int) {
	size := w.sizes[tenant]
	w.ids++
	if w.keys[tenant] == 0 {
		w.keys[tenant] = 1
	}
	b := batch{id: fmt.Sprintf("batch-%02d", w.ids), epoch: w.epoch, macKey: fmt.Sprintf("mac-%s-%d", tenant, w.keys[tenant]), count: count,
		size: size, class: &tuplesv1.Class{Tenant: tenant, Kind: kind, Params: params, Field: field}}
	w.batches = append(w.batches, b)
	w.note("batch %s of %d tuples of %d bytes under %s, epoch %d, stored at %v, activated at %v", b.id, count, size, b.macKey, b.epoch, store, activate)
	for _, i := range store {
		if err := w.parties[i].keep(&b); err != nil {
			w.note("  party %d: %v", i, err)
		}
	}
	for _, i := range activate {
		w.activate(i, b.id)
	}
	w.coordinatorLooks()
}

func (w *world) activate(i int, id string) {
	v := w.parties[i].vault()
	if !w.parties[i].running() {
		return
	}
	if err := v.ActivateBatch(id); err != nil {
		w.note("  party %d activates %s: %v", i, id, err)
	}
	if b, err := v.Batch(id); err == nil && b.State == vaultstock.BatchAvailable {
		w.model.mu.Lock()
		w.model.active[i][id] = true
		w.model.mu.Unlock()
	}
}

// coordinatorLooks makes the coordinator poll the parties for their stock, as it does after a job.
func (w *world) coordinatorLooks() {
	if p := w.coordinator.current(); p.running() {
		p.server.(interface{ Sync() }).Sync()
		synctest.Wait()
	}
}

// keep stores a batch at the party, with its epoch and MAC key if they are new.
func (p *party) keep(b *batch) error {
	v := p.vault()
	if !p.running() {
		return errors.New("the party is not running")
	}
	if _, err := v.Epoch(b.epoch); errors.Is(err, vaulterr.ErrNotFound) {
		e, err := v.NewEpoch(keys.Epoch{ID: b.epoch, Purpose: "triples", Params: params})
		if err != nil {
			return err
		}
		if err := e.Commit(); err != nil {
			return err
		}
		if err := v.ActivateEpoch(b.epoch); err != nil {
			return err
		}
	}
	c := vaultstock.Batch{ID: b.id, Epoch: b.epoch, MACKey: b.macKey, Params: params, Field: field, Kind: job.KindName(b.class.GetKind()), Dim: 1,
		Count: b.count, Tenant: b.class.GetTenant(), Digest: sha256.Sum256([]byte(b.id)), TupleBytes: b.size}
	w, err := v.NewBatch(c)
	if err != nil {
		return err
	}
	defer w.Abort()
	for t := range b.count {
		if _, err := w.Write(share(p.index, b.id, t, b.size)); err != nil {
			return err
		}
	}
	var fresh *keys.NewMACKey
	if _, err := v.MACKey(b.macKey); errors.Is(err, vaulterr.ErrNotFound) {
		fresh = &keys.NewMACKey{MACKey: keys.MACKey{ID: b.macKey, Epoch: b.epoch, Params: params, Field: field, Tenant: b.class.GetTenant()},
			Secret: []byte("share of " + b.macKey)}
	}
	return w.Commit(fresh)
}

// reserve reserves tuples at the coordinator.
func (w *world) reserve(client int, count uint64, lease time.Duration, key string, named []string, wait bool) (*tuplesv1.Reservation, error) {
	return w.reserveWithin(8*time.Second, client, count, lease, key, named, wait)
}

// reserveWithin is reserve with the given timeout of the client.
func (w *world) reserveWithin(patience time.Duration, client int, count uint64, lease time.Duration, key string, named []string, wait bool) (*tuplesv1.Reservation, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p := w.clients[client]
	r, err := w.stock(p).Reserve(ctx, &stockv1.ReserveRequest{Count: count, Lease: durationpb.New(lease), IdempotencyKey: key, Clients: named, Wait: wait,
		Class: &tuplesv1.Class{Tenant: p.Tenants[0], Kind: kind, Params: params, Field: field}})
	x := r.GetReservation()
	w.note("%s reserves %d for %s key=%q for %v wait=%v: %s %s", p.Name, count, lease, key, named, wait, x.GetId(), outcome(err))
	if err != nil {
		return nil, err
	}
	w.logs.Lock()
	defer w.logs.Unlock()
	if !slices.ContainsFunc(w.known, func(r *tuplesv1.Reservation) bool { return r.GetId() == x.GetId() }) {
		w.known = append(w.known, x)
	}
	return x, nil
}

// fetch makes a client fetch a reservation from a party. The client stops after give messages
// unless give is negative, and pauses for slow between messages.
func (w *world) fetch(client, i int, id string, from uint64, give int, slow time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	p := w.clients[client]
	err := func() error {
		s, err := w.client(p, i).Fetch(ctx, &tuplesv1.FetchRequest{ReservationId: id, From: from})
		if err != nil {
			return err
		}
		sum := sha256.New()
		for n := 0; n != give; n++ {
			r, err := s.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			sum.Write(r.GetChunk())
			if want := r.GetSha256(); want != nil && !slices.Equal(want, sum.Sum(nil)) {
				w.model.mu.Lock()
				w.model.violated("the checksum of %s from party %d is wrong", id, i)
				w.model.mu.Unlock()
			}
			time.Sleep(slow)
		}
		return errors.New("given up")
	}()
	w.note("%s fetches %s at %d from=%d give=%d slow=%s: %s", p.Name, id, i, from, give, slow, outcome(err))
	return err
}

func (w *world) release(client int, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	r, err := w.stock(w.clients[client]).Release(ctx, &stockv1.ReleaseRequest{Id: id})
	w.note("%s releases %s: returned=%v %s", w.clients[client].Name, id, r.GetReturned(), outcome(err))
}

// gone: clients draw, report and revoke the tuples and keys that a party holds.
func (w *world) drawKey(client, i int, key string, purpose tuplesv1.Purpose) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	_, err := w.client(w.clients[client], i).DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: key, Purpose: purpose})
	w.note("%s draws %s at %d, %s: %s", w.clients[client].Name, key, i, purpose, outcome(err))
	if err == nil && purpose == tuplesv1.Purpose_PURPOSE_VERIFY {
		w.epoch++
		w.renew()
	}
}

// renew makes later batches use other MAC keys.
func (w *world) renew() {
	for _, t := range []string{"a", "b"} {
		w.keys[t]++
	}
}

func (w *world) report(client, i int, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	_, err := w.client(w.clients[client], i).ReportFailedCheck(ctx, &tuplesv1.ReportFailedCheckRequest{MacKeyId: key, Reason: "test"})
	w.note("%s reports %s at %d: %s", w.clients[client].Name, key, i, outcome(err))
	w.renew()
}

func (w *world) revoke(client, i int, id string, dry bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	_, err := w.client(w.clients[client], i).Revoke(ctx, &tuplesv1.RevokeRequest{BatchIds: []string{id}, Reason: "test", DryRun: dry})
	w.note("%s revokes %s at %d, dry=%v: %s", w.clients[client].Name, id, i, dry, outcome(err))
}

// crash stops a party, or arms a fault at a later write.
func (w *world) crash(i int, f fault, n int) {
	w.calm = false
	p := w.parties[i]
	if f == works {
		w.note("party %d is killed", i)
		p.stop()
		return
	}
	w.note("party %d: %s at write %d from now", i, f, n)
	p.mu.Lock()
	s := p.store
	p.mu.Unlock()
	if s != nil {
		s.arm(f, n)
	}
}

// restart restarts a party, with a fault at its nth write.
func (w *world) restart(i int, f fault, n int) {
	p := w.parties[i]
	p.stop()
	s, err := p.back.open()
	if err == nil {
		x := &faulty{inner: s}
		x.arm(f, n)
		err = p.startOn(x)
	}
	w.note("party %d starts, %s at write %d: %s", i, f, n, outcome(err))
	w.model.count(i) // before it sweeps
}

// look records which parties are in quarantine.
func (w *world) look() {
	for i, p := range w.parties {
		if !p.running() {
			continue
		}
		reason, err := p.vault().Quarantined()
		if err != nil {
			continue
		}
		w.model.mu.Lock()
		if reason != "" && !w.model.held[i] {
			w.note("party %d is in quarantine: %s", i, reason)
			if !w.model.rolled[i] {
				w.model.violated("party %d is in quarantine although no older copy of its store was restored: %s", i, reason)
			}
		}
		w.model.held[i] = reason != ""
		w.model.mu.Unlock()
		if reason != "" {
			w.calm = false
		}
	}
}

// together runs functions concurrently.
func together(list ...func()) {
	var wg sync.WaitGroup
	for _, f := range list {
		wg.Go(f)
	}
	wg.Wait()
}

// lines returns the log of the history.
func (w *world) lines() string {
	w.logs.Lock()
	defer w.logs.Unlock()
	return strings.Join(w.log, "\n")
}
