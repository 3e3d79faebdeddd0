package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
)

const (
	askTime = 10 * time.Second // for a short answer
	stall   = 30 * time.Second // between two chunks
	// longest is how long one party sends before another one is asked for the rest.
	longest = 5 * time.Minute
)

// maxAnnounced is how many records are told at a time.
const maxAnnounced = 128

// Run keeps the registry up to date until ctx is done. One that is nil does nothing.
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

// fault logs what is wrong, once until it is right again.
func (r *Registry) fault(about, what string, err error) {
	r.mu.Lock()
	known := r.faults[about]
	r.faults[about] = err != nil
	r.mu.Unlock()
	switch {
	case err != nil && !known:
		r.Log.Warn(what, "about", about, "error", err)
	case err == nil && known:
		r.Log.Info("it is right again", "about", about)
	}
}

// announce tells all peers of this party's own records that are new. Who misses it asks.
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
		r.fault(r.Names[i]+"/announce", "a party does not take the records of multi-key keys", reachable(err))
	}
}

// reachable leaves out that a party is not there, which others tell.
func reachable(err error) error {
	if code := rpc.FromError(err); code != nil && (code.Code == rpc.Unavailable || code.Code == rpc.TimedOut || code.Code == rpc.Cancelled) {
		return nil
	}
	return err
}

// ask takes the records that a peer has, and says whether it has answered.
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
	r.fault(r.Names[peer]+"/list", "a party has records of multi-key keys that are refused", reachable(err))
	return answered
}

// fetchAll begins to fetch what is current and not here, and removes what is not current any more. Keys are fetched beside
// each other: an owner who sends slowly delays nobody's but its own. It says whether all is here.
func (r *Registry) fetchAll(ctx context.Context) (all bool) {
	defer r.count()
	wanted, missing, busy := r.plan()
	used, err := r.disk.tidy(wanted, busy)
	r.fault("files", "files of multi-key keys cannot be removed", err)
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

// plan says which keys are to be here, which of these are missing, and which are being fetched. The last may be some that
// nobody wants any more: these are stopped.
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

// writing says whether the file of keys is being written: for an entry, or an earlier one that had the same keys. The caller
// holds the lock.
func (r *Registry) writing(e *Entry) bool {
	for x := range r.fetching {
		if x.Place == e.Place && x.Key == e.Key {
			return true
		}
	}
	return false
}

// size is what keys take on disk.
func (r *Registry) size(e *Entry) int64 { return int64(e.Size) + int64(32*r.Context.Chunks()) }

// begin has keys fetched if there is room beside what is used, which has what is on disk of them.
func (r *Registry) begin(ctx context.Context, e *Entry, used *int64) error {
	need := max(0, r.size(e)-r.disk.taken(e.Record))
	if *used+need > r.Limit {
		return fmt.Errorf("%w: keys of %d bytes beside %d, and room for %d; raise multikey.max_keys", ErrRoom, need, *used, r.Limit)
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

// ended takes note of what has become of a fetch.
func (r *Registry) ended(ctx context.Context, e *Entry, err error) {
	r.mu.Lock()
	delete(r.fetching, e)
	wanted := e.State() == "current"
	if wanted && err == nil {
		r.present[e] = true
	}
	r.mu.Unlock()
	if !wanted {
		r.nudge() // its file is to be removed
		return
	}
	if err != nil && ctx.Err() != nil {
		return
	}
	r.Metrics.MultikeyFetched(outcome(err))
	if err != nil {
		err = fmt.Errorf("version %d: %w", e.Version, err)
	}
	r.fault(r.Names[e.Place]+"/keys", "multi-key keys cannot be fetched", err) // of an owner: it has as many versions as it likes
	if err == nil {
		r.Log.Info("multi-key keys are here", "owner", r.Names[e.Place], "version", e.Version, "key", fmt.Sprintf("%x", e.Key[:]))
		r.nudge()
	}
}

// outcome is what metrics have of a fetch.
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

// count has metrics say whose keys are here.
func (r *Registry) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for place := range r.book.owners {
		if e := r.book.current(place); e != nil && r.here(e) {
			n++
		}
	}
	r.Metrics.MultikeyPublished(n)
}

// fetch gets keys from their owner, and what that does not give from the other parties.
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
		return errors.Join(failed, ctx.Err(), fmt.Errorf("registry: %d of %d chunks are here", p.next, r.Context.Chunks()))
	}
	return nil
}

// from takes what is missing from one party. What it sends that is wrong is not kept.
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
	h, err := headOf(m)
	if err != nil {
		return err
	}
	if err := p.begin(h); err != nil {
		return err
	}
	for !p.done() {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: it ends after %d of %d chunks", ErrChunk, p.next, len(h.digests))
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

// headOf is the head in a first response.
func headOf(m *multikeyv1.GetPublishedResponse) (h head, err error) {
	h.header = m.GetHeader()
	for _, d := range m.GetChunkDigests() {
		if len(d) != 32 {
			return h, fmt.Errorf("%w: a digest of %d bytes", ErrDigests, len(d))
		}
		h.digests = append(h.digests, [32]byte(d))
	}
	return h, nil
}
