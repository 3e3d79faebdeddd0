package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

const (
	askTime = 10 * time.Second // for a short response
	stall   = 30 * time.Second // between two chunks
	// longest is how long one party may send before the rest is requested from another.
	longest = 5 * time.Minute
)

// maxAnnounced is the number of records in one announcement.
const maxAnnounced = 128

// Run keeps the registry up to date until ctx is done. A nil registry does nothing.
func (r *Registry) Run(ctx context.Context) {
	if r == nil {
		return
	}
	defer r.fetches.Wait()
	pause := soon
	for {
		r.fault("own", ownFault, r.own())
		r.announce(ctx)
		all := true
		for i, p := range r.Peers {
			if p != nil {
				all = r.ask(ctx, i) && all
			}
		}
		all = r.fetchAll(ctx) && all
		if pause = min(2*pause, every); all {
			pause = every
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			again.Stop()
			return
		case <-r.wake:
			again.Stop()
			pause = soon
		case <-again.C:
		}
	}
}

// fault logs an error, once until it is resolved.
func (r *Registry) fault(about, what string, err error) {
	r.mu.Lock()
	known := r.faults[about]
	r.faults[about] = err != nil
	r.mu.Unlock()
	switch {
	case err != nil && !known:
		r.Log.Warn(what, "about", about, "error", err)
	case err == nil && known:
		r.Log.Info("resolved", "about", about)
	}
}

// announce sends this party's new records to all peers. A peer that misses them requests them
// later.
func (r *Registry) announce(ctx context.Context) {
	r.mu.Lock()
	var list [][]byte
	for _, e := range r.book.owners[r.Self] {
		var signed [][]byte
		for _, b := range [][]byte{e.Signed, e.Revocation} {
			if b != nil {
				signed = append(signed, b)
			}
		}
		if len(signed) > r.told[e] {
			list = append(list, signed...)
			r.told[e] = len(signed)
		}
	}
	r.mu.Unlock()
	if len(list) == 0 {
		return
	}
	list = list[max(0, len(list)-maxAnnounced):]
	for i, p := range r.Peers {
		if p == nil {
			continue
		}
		short, cancel := context.WithTimeout(ctx, askTime)
		_, err := multikeyv1.NewRegistryServiceClient(p).Announce(short, &multikeyv1.AnnounceRequest{Records: list})
		cancel()
		r.fault(r.Names[i]+"/announce", "a party does not accept records of multi-key keys", reachable(err))
	}
}

// reachable drops errors of unreachable parties, which are reported elsewhere.
func reachable(err error) error {
	if code := rpc.FromError(err); code != nil && (code.Code == rpc.Unavailable || code.Code == rpc.TimedOut || code.Code == rpc.Cancelled) {
		return nil
	}
	return err
}

// ask requests a peer's records, and reports whether it has responded.
func (r *Registry) ask(ctx context.Context, peer int) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	m, err := multikeyv1.NewRegistryServiceClient(r.Peers[peer]).ListPublished(ctx, &multikeyv1.ListPublishedRequest{})
	answered := err == nil
	if answered {
		var list [][]byte
		for _, k := range m.GetKeys() {
			for _, signed := range [][]byte{k.GetRecord(), k.GetRevocation()} {
				if len(signed) > 0 {
					list = append(list, signed)
				}
			}
		}
		err = r.accept(list)
	}
	r.fault(r.Names[peer]+"/list", "a party has invalid records of multi-key keys", reachable(err))
	return answered
}

// fetchAll starts to fetch current keys that are missing, and removes keys that are no longer
// current. Fetches run concurrently, so that a slow owner delays only its own keys. It reports
// whether no keys are missing.
func (r *Registry) fetchAll(ctx context.Context) (all bool) {
	defer r.count()
	wanted, missing, busy := r.plan()
	used, err := r.disk.tidy(wanted, busy)
	r.fault("files", "cannot remove files of multi-key keys", err)
	for _, e := range busy {
		used += r.size(e)
	}
	for _, e := range missing {
		if err := r.begin(ctx, e, &used); err != nil {
			r.ended(ctx, e, err)
		}
	}
	return len(missing)+len(busy) == 0
}

// plan returns the keys that should be stored, those of them that are missing, and those that are
// being fetched. It stops fetches of keys that are no longer current.
func (r *Registry) plan() (wanted, missing, busy []*Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for owner := range r.book.owners {
		e := r.book.current(owner)
		if e == nil || owner == r.Self {
			continue
		}
		wanted = append(wanted, e)
		if !r.present[e] && !r.writing(e) {
			missing = append(missing, e)
		}
	}
	for e := range r.present {
		if e.State() != "current" {
			delete(r.present, e)
		}
	}
	for e, stop := range r.fetching {
		if busy = append(busy, e); e.State() != "current" {
			stop()
		}
	}
	return wanted, missing, busy
}

// writing reports whether the file of an entry's keys is being written, for this entry or for an
// earlier entry with the same keys. The caller must hold the lock.
func (r *Registry) writing(e *Entry) bool {
	for x := range r.fetching {
		if x.Place == e.Place && x.Key == e.Key {
			return true
		}
	}
	return false
}

// size returns the size of keys on disk.
func (r *Registry) size(e *Entry) int64 { return int64(e.Size) + int64(32*r.Context.Chunks()) }

// begin starts to fetch keys if the limit allows. used is the size of the stored keys; a stored
// part of these keys does not count twice.
func (r *Registry) begin(ctx context.Context, e *Entry, used *int64) error {
	need := max(0, r.size(e)-r.disk.taken(e.Record))
	if *used+need > r.Limit {
		return fmt.Errorf("%w: keys of %d bytes in addition to %d bytes, but the limit is %d; raise multikey.max_keys", ErrRoom, need, *used, r.Limit)
	}
	*used += need
	own, stop := context.WithCancel(ctx)
	r.mu.Lock()
	r.fetching[e] = stop
	r.mu.Unlock()
	r.fetches.Go(func() {
		defer stop()
		r.ended(ctx, e, r.fetch(own, e))
	})
	return nil
}

// ended records the outcome of a fetch.
func (r *Registry) ended(ctx context.Context, e *Entry, err error) {
	r.mu.Lock()
	delete(r.fetching, e)
	wanted := e.State() == "current"
	if wanted && err == nil {
		r.present[e] = true
	}
	r.mu.Unlock()
	if !wanted {
		r.nudge() // removes its file
		return
	}
	if err != nil && ctx.Err() != nil {
		return
	}
	r.Metrics.Count(metrics.MultikeyFetches, 1, outcome(err))
	if err != nil {
		err = fmt.Errorf("version %d: %w", e.Version, err)
	}
	r.fault(r.Names[e.Place]+"/keys", "cannot fetch multi-key keys", err) // per owner: an owner can publish any number of versions
	if err == nil {
		r.Log.Info("multi-key keys are complete", "owner", r.Names[e.Place], "version", e.Version, "key", fmt.Sprintf("%x", e.Key[:]))
		r.nudge()
	}
}

// outcome returns the metric label for the outcome of a fetch.
func outcome(err error) string {
	for _, wrong := range []error{ErrDigests, ErrChunk, multikey.ErrKeys, multikey.ErrSet, multikey.ErrCRS, multikey.ErrOwner} {
		if errors.Is(err, wrong) {
			return "refused"
		}
	}
	if err != nil {
		return "failed"
	}
	return "ok"
}

// count updates the metric of stored keys.
func (r *Registry) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for place := range r.book.owners {
		if e := r.book.current(place); e != nil && r.here(e) {
			n++
		}
	}
	r.Metrics.Set(metrics.MultikeyPublished, float64(n))
}

// fetch fetches keys from their owner, and missing chunks from the other parties.
func (r *Registry) fetch(ctx context.Context, e *Entry) error {
	if r.disk.whole(e.Record) {
		return nil
	}
	p, err := r.disk.open(e.Record)
	if err != nil {
		return err
	}
	order := []int{e.Place}
	for i := range r.Peers {
		if i != e.Place {
			order = append(order, i)
		}
	}
	var failed error
	for _, i := range order {
		if r.Peers[i] == nil || p.done() || ctx.Err() != nil {
			continue
		}
		if err := r.from(ctx, i, p); err != nil {
			failed = errors.Join(failed, fmt.Errorf("from %s: %w", r.Names[i], err))
		}
	}
	whole := p.done()
	if err := p.close(); err != nil {
		return err
	}
	if !whole {
		return errors.Join(failed, ctx.Err(), fmt.Errorf("registry: only %d of %d chunks were received", p.next, r.Context.Chunks()))
	}
	return nil
}

// from fetches missing chunks from one party. Wrong data is not stored.
func (r *Registry) from(ctx context.Context, peer int, p *part) error {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	idle := time.AfterFunc(stall, cancel)
	defer idle.Stop()
	stream, err := multikeyv1.NewRegistryServiceClient(r.Peers[peer]).GetPublished(ctx, &multikeyv1.GetPublishedRequest{Key: p.record.Key[:], First: uint32(p.next)})
	if err != nil {
		return err
	}
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	h, err := keyset.HeadOf(m.GetHeader(), m.GetChunkDigests())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDigests, err)
	}
	if err := p.begin(h); err != nil {
		return err
	}
	for !p.done() {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: the stream ended after %d of %d chunks", ErrChunk, p.next, len(h.Digests))
		}
		if err != nil {
			return err
		}
		if err := p.put(int(m.GetIndex()), m.GetChunk()); err != nil {
			return err
		}
		idle.Reset(stall)
	}
	return nil
}
