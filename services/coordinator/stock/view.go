package stock

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/spans"
)

// key is a map key for a class.
type key string

func keyOf(c *tuplesv1.Class) key {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil {
		return "" // a message received over the wire can be encoded
	}
	return key(b)
}

// shelf is a batch as all parties report it.
type shelf struct {
	batch *tuplesv1.Batch
	class key
	free  spans.Set // free at all parties, minus the ranges being reserved
	alike bool      // all parties report the batch in the same state
}

// group identifies tuples that one reservation may combine: one class under one MAC key.
type group struct {
	class  key
	epoch  uint64
	macKey string
}

func (s *shelf) group() group { return group{s.class, s.batch.GetEpoch(), s.batch.GetMacKeyId()} }

// view is the coordinator's view of the stock. It is only an estimate: the parties decide.
type view struct {
	mu      sync.Mutex
	shelves map[string]*shelf
	held    map[string]spans.Set // by batch: ranges of reservations that are being proposed
	settled []settled            // proposed ranges that the parties' last reports may lack
	asked   uint64               // number of polls of the parties
	// delivered counts the tuples of open reservations that all parties delivered. The reservations
	// hold them until their leases end.
	delivered map[place]uint64
	asOf      time.Time            // when all parties last responded; zero: never
	away      []*stockv1.AwayParty // parties that have not responded since; if not empty, nothing can be reserved
	changed   chan struct{}
}

// settled holds ranges that were proposed before the given poll of the parties.
type settled struct {
	ranges []*tuplesv1.Range
	asked  uint64
}

func newView() *view {
	return &view{shelves: map[string]*shelf{}, held: map[string]spans.Set{}, delivered: map[place]uint64{}, changed: make(chan struct{})}
}

// ask starts a poll of the parties and returns its number.
func (v *view) ask() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	return v.asked
}

// set replaces the stock by the parties' reports of their batches, from the nth poll.
func (v *view) set(reports [][]*tuplesv1.Batch, n uint64, now time.Time) {
	shelves := merge(reports)
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, held := range v.held {
		if s := shelves[id]; s != nil {
			for _, x := range held {
				s.free = s.free.Without(x)
			}
		}
	}
	v.settled = slices.DeleteFunc(v.settled, func(x settled) bool { return x.asked < n })
	for _, x := range v.settled {
		for _, r := range x.ranges {
			if s := shelves[r.GetBatchId()]; s != nil {
				s.free = s.free.Without(spanOf(r))
			}
		}
	}
	v.shelves, v.asOf, v.away = shelves, now, nil
	v.touch()
}

// lose records that parties are unavailable. The stock stays visible; stock of masks is updated if
// the whole quorum reported it.
func (v *view) lose(away []*stockv1.AwayParty, reports [][]*tuplesv1.Batch) {
	there := func(c *tuplesv1.Class) bool {
		return masks(c) && !slices.ContainsFunc(away, func(a *stockv1.AwayParty) bool { return slices.Contains(c.GetQuorum(), a.GetParty()) })
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.shelves, func(_ string, s *shelf) bool { return there(s.batch.GetClass()) })
	for id, s := range merge(reports) {
		if there(s.batch.GetClass()) {
			v.shelves[id] = s
		}
	}
	if !slices.EqualFunc(v.away, away, func(a, b *stockv1.AwayParty) bool { return proto.Equal(a, b) }) {
		v.away = away
		v.touch()
	}
}

func spanOf(r *tuplesv1.Range) spans.Span {
	return spans.Span{First: r.GetFirst(), Count: r.GetCount()}
}

// merge returns the batches that all parties holding them report identically, with the ranges that
// are free at all of them.
func merge(reports [][]*tuplesv1.Batch) map[string]*shelf {
	shelves := map[string]*shelf{}
	seen := map[string]int{}         // number of parties that reported the batch, of those that have it
	strange := map[string]struct{}{} // masks that a party outside the quorum reports
	for i, report := range reports {
		for _, b := range report {
			turn := turnOf(b, i)
			list := make([]spans.Span, len(b.GetFree()))
			for i, x := range b.GetFree() {
				list[i] = spans.Span{First: x.GetFirst(), Count: x.GetCount()}
			}
			free := spans.Of(list...)
			s := shelves[b.GetId()]
			switch {
			case turn < 0:
				strange[b.GetId()] = struct{}{}
				continue
			case turn == 0 && s == nil:
				shelves[b.GetId()] = &shelf{b, keyOf(b.GetClass()), free, true}
			case s == nil || seen[b.GetId()] != turn:
				continue
			case !same(s.batch, b):
				s.free, s.alike = nil, false
			default:
				s.free = s.free.And(free)
				s.batch.Lost = max(s.batch.GetLost(), b.GetLost())
				s.batch.TupleBytes = max(s.batch.GetTupleBytes(), b.GetTupleBytes()) // the owner of input masks stores more
			}
			seen[b.GetId()] = turn + 1
		}
	}
	for id, s := range shelves {
		all := len(reports)
		if masks(s.batch.GetClass()) {
			all = len(s.batch.GetClass().GetQuorum())
		}
		if _, is := strange[id]; is || seen[id] != all {
			s.free, s.alike = nil, false
		}
	}
	return shelves
}

// turnOf returns the index of a party among those that hold a batch: all parties, or the quorum of
// masks. It returns -1 if the party does not hold the batch.
func turnOf(b *tuplesv1.Batch, party int) int {
	if !masks(b.GetClass()) {
		return party
	}
	return slices.Index(b.GetClass().GetQuorum(), uint32(party))
}

// masks reports whether a class is one of masks, which only their quorum holds and which cannot be
// reserved.
func masks(c *tuplesv1.Class) bool { return c.GetKind() == jobv1.Kind_KIND_MASKS }

// shows reports whether a client may see the stock of a class: the stock of its tenants, and masks,
// which belong to no tenant.
func shows(caller rpc.Principal, c *tuplesv1.Class) bool {
	return masks(c) || caller.Serves(c.GetTenant())
}

// same reports whether two reports describe the same batch in the same state.
func same(a, b *tuplesv1.Batch) bool {
	return a.GetState() == b.GetState() && a.GetEpoch() == b.GetEpoch() && a.GetMacKeyId() == b.GetMacKeyId() && a.GetCount() == b.GetCount() &&
		string(a.GetDigest()) == string(b.GetDigest()) && proto.Equal(a.GetClass(), b.GetClass())
}

// touch wakes the watchers. The caller must hold the lock.
func (v *view) touch() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// show wakes the watchers after another change of the stock.
func (v *view) show() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.touch()
}

// watch returns a channel that is closed at the next change.
func (v *view) watch() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// pick takes count tuples of a class from the view, oldest batches first. It uses the given epoch,
// or otherwise the newest epoch that has enough tuples under one MAC key. has is the largest number
// available under one key. While a party is unavailable, no tuples are available.
func (v *view) pick(class *tuplesv1.Class, epoch, count uint64) (g group, ranges []*tuplesv1.Range, has uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.away) > 0 {
		return g, nil, 0
	}
	k, free := keyOf(class), map[group]uint64{}
	for _, s := range v.shelves {
		if s.class == k && (epoch == 0 || s.batch.GetEpoch() == epoch) {
			free[s.group()] += s.free.Count()
		}
	}
	found := false
	for x, n := range free {
		has = max(has, n)
		if n >= count && (!found || x.epoch > g.epoch || x.epoch == g.epoch && x.macKey < g.macKey) {
			g, found = x, true
		}
	}
	if !found {
		return g, nil, has
	}
	var from []*shelf
	for _, s := range v.shelves {
		if s.group() == g && len(s.free) > 0 {
			from = append(from, s)
		}
	}
	slices.SortFunc(from, func(a, b *shelf) int { return cmp.Compare(a.batch.GetId(), b.batch.GetId()) })
	for _, s := range from {
		for _, x := range s.free {
			if count == 0 {
				break
			}
			x.Count = min(x.Count, count)
			count -= x.Count
			ranges = append(ranges, &tuplesv1.Range{BatchId: s.batch.GetId(), First: x.First, Count: x.Count})
		}
	}
	for _, r := range ranges {
		x := spanOf(r)
		v.held[r.GetBatchId()] = v.held[r.GetBatchId()].With(x)
		v.shelves[r.GetBatchId()].free = v.shelves[r.GetBatchId()].free.Without(x)
	}
	v.touch()
	return g, ranges, has
}

// settle removes ranges from the ranges being reserved. Either the parties have recorded them, or
// the next poll shows their state.
func (v *view) settle(ranges []*tuplesv1.Range) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range ranges {
		left := v.held[r.GetBatchId()].Without(spanOf(r))
		if v.held[r.GetBatchId()] = left; len(left) == 0 {
			delete(v.held, r.GetBatchId())
		}
	}
	v.settled = append(v.settled, settled{ranges, v.asked})
}
