package stock

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
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

// lose notes that parties are away. What there was remains to be seen.
func (v *view) lose(away []*stockv1.AwayParty) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.EqualFunc(v.away, away, func(a, b *stockv1.AwayParty) bool { return proto.Equal(a, b) }) {
		v.away = away
		v.touch()
	}
}

func spanOf(r *tuplesv1.Range) spans.Span {
	return spans.Span{First: r.GetFirst(), Count: r.GetCount()}
}

// merge gives the batches that all parties report alike, with what is free at all of them.
func merge(reports [][]*tuplesv1.Batch) map[string]*shelf {
	shelves := map[string]*shelf{}
	seen := map[string]int{}
	for i, report := range reports {
		for _, b := range report {
			list := make([]spans.Span, len(b.GetFree()))
			for i, x := range b.GetFree() {
				list[i] = spans.Span{First: x.GetFirst(), Count: x.GetCount()}
			}
			free := spans.Of(list...)
			s := shelves[b.GetId()]
			switch {
			case i == 0:
				shelves[b.GetId()] = &shelf{b, keyOf(b.GetClass()), free, true}
			case s == nil || seen[b.GetId()] != i:
				continue
			case !same(s.batch, b):
				s.free, s.alike = nil, false
			default:
				s.free = s.free.And(free)
				s.batch.Lost = max(s.batch.GetLost(), b.GetLost())
				s.batch.TupleBytes = max(s.batch.GetTupleBytes(), b.GetTupleBytes()) // the owner of input masks has more
			}
			seen[b.GetId()] = i + 1
		}
	}
	for id, s := range shelves {
		if seen[id] != len(reports) {
			s.free, s.alike = nil, false
		}
	}
	return shelves
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
