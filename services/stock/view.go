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
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/spans"
)

// key tells classes apart.
type key string

func keyOf(c *tuplesv1.Class) key {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil {
		return "" // a message that came over the wire can be written
	}
	return key(b)
}

// shelf is a batch as all parties report it.
type shelf struct {
	batch *tuplesv1.Batch
	class key
	free  spans.Set // at all parties, less what is being reserved
	alike bool      // all parties report it, in the same state
}

// group is tuples that may go together into a reservation: of one class, under one MAC key.
type group struct {
	class  key
	epoch  uint64
	macKey string
}

func (s *shelf) group() group { return group{s.class, s.batch.GetEpoch(), s.batch.GetMacKeyId()} }

// view is what there is to reserve. It is no more than a guess: the parties decide.
type view struct {
	mu      sync.Mutex
	shelves map[string]*shelf
	held    map[string]spans.Set // by batch: in reservations that are being proposed
	settled []settled            // proposed, perhaps after the parties were asked last
	asked   uint64               // how often the parties were asked
	// delivered are the tuples of open reservations that all parties delivered, which these hold until the leases end
	delivered map[place]uint64
	asOf      time.Time            // when all parties answered last; zero: never
	away      []*stockv1.AwayParty // those that did not answer since; nothing can be reserved while there are any
	changed   chan struct{}
}

// settled are ranges that were proposed before the parties were asked for the next time.
type settled struct {
	ranges []*tuplesv1.Range
	asked  uint64
}

func newView() *view {
	return &view{shelves: map[string]*shelf{}, held: map[string]spans.Set{}, delivered: map[place]uint64{}, changed: make(chan struct{})}
}

// ask notes that the parties are asked from now on, and gives the number of that time.
func (v *view) ask() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	return v.asked
}

// set takes what the parties report, each a list of its batches, when they were asked for the nth time.
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

// lose notes that parties are away. What there was remains to be seen, and of masks what their quorums report that are there.
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

// merge gives the batches that all parties report alike that have them, with what is free at all of these.
func merge(reports [][]*tuplesv1.Batch) map[string]*shelf {
	shelves := map[string]*shelf{}
	seen := map[string]int{}         // by how many of those that have it
	strange := map[string]struct{}{} // masks that somebody reports who is not in the quorum
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
				s.batch.TupleBytes = max(s.batch.GetTupleBytes(), b.GetTupleBytes()) // the owner of input masks has more
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

// turnOf is the place of a party among those that have a batch: all parties, and of masks their quorum; -1: it is not
// among them.
func turnOf(b *tuplesv1.Batch, party int) int {
	if !masks(b.GetClass()) {
		return party
	}
	return slices.Index(b.GetClass().GetQuorum(), uint32(party))
}

// masks reports whether a class is one of masks, which only their quorum has, and which nobody reserves.
func masks(c *tuplesv1.Class) bool { return c.GetKind() == jobv1.Kind_KIND_MASKS }

// shows reports whether a client may know of the stock of a class: that of its tenants, and masks, which are nobody's.
func shows(caller rpc.Principal, c *tuplesv1.Class) bool {
	return masks(c) || caller.Serves(c.GetTenant())
}

// same reports whether two parties mean the same batch.
func same(a, b *tuplesv1.Batch) bool {
	return a.GetState() == b.GetState() && a.GetEpoch() == b.GetEpoch() && a.GetMacKeyId() == b.GetMacKeyId() && a.GetCount() == b.GetCount() &&
		string(a.GetDigest()) == string(b.GetDigest()) && proto.Equal(a.GetClass(), b.GetClass())
}

// touch tells those who watch. The caller holds the lock.
func (v *view) touch() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// show tells those who watch that something else of the stock has changed.
func (v *view) show() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.touch()
}

// watch gives a channel that is closed at the next change.
func (v *view) watch() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// pick takes count tuples of a class from the view: of the epoch asked for, or else of the newest that has enough under
// one MAC key, from the oldest batches first. has says how many there are at most under one key. While a party is away
// there are none.
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

// settle forgets that ranges are being reserved: the parties have recorded them, or whatever they did will be seen when
// they are asked next.
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
