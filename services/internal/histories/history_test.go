package histories

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// manner selects the events that may occur in a history.
type manner struct {
	steps                                       int
	faults, crashes, network, clocks, evil, end bool
	restarts, rollbacks                         bool
}

// mannerOf chooses the manner for a seed: each kind of event occurs in less than half of the
// histories, and some histories have none.
func (w *world) mannerOf() manner {
	m := manner{steps: 10 + w.rng.IntN(40)}
	some := func() bool { return w.rng.IntN(2) == 0 }
	if w.rng.IntN(8) == 0 {
		return m
	}
	m.faults, m.crashes, m.network, m.clocks, m.evil, m.end = some(), some(), some(), some(), some(), some()
	m.restarts, m.rollbacks = some(), some()
	return m
}

// history runs one history with the parties' stores at where.
func history(t *testing.T, seed uint64, where [parties]backend) (lines, wrong string) {
	w := newWorld(t, seed, where)
	defer w.end()
	m := w.mannerOf()
	w.note("seed %d: %+v", seed, m)
	all := []int{0, 1, 2}
	w.pass(100 * time.Millisecond)
	w.sizes = map[string]uint64{"a": w.tupleSize(), "b": 40}
	w.produce("a", 4+w.rng.Uint64N(30), all, all)
	w.produce("b", 4+w.rng.Uint64N(10), all, all)
	acts := w.acts(m)
	for range m.steps {
		acts[w.rng.IntN(len(acts))]()
		w.pass(time.Duration(w.rng.IntN(50)) * time.Millisecond)
		w.look()
		if wrong := w.model.verdict(); wrong != "" {
			return w.lines(), wrong
		}
	}
	w.settle()
	return w.lines(), w.model.verdict()
}

func (w *world) tupleSize() uint64 {
	switch w.rng.IntN(12) {
	case 0:
		return 150 << 10 // a reservation needs several messages
	case 1, 2, 3:
		return 24 << 10 // a segment holds two tuples
	}
	return 40
}

func (w *world) party() int  { return w.rng.IntN(parties) }
func (w *world) anyone() int { return w.rng.IntN(len(w.clients)) }

func (w *world) some() (list []int) {
	for i := range parties {
		if w.rng.IntN(4) > 0 {
			list = append(list, i)
		}
	}
	return list
}

// reservation returns a known reservation, recent ones more often.
func (w *world) reservation() *tuplesv1.Reservation {
	if len(w.known) == 0 {
		return nil
	}
	return w.known[len(w.known)-1-min(w.rng.IntN(len(w.known)), w.rng.IntN(len(w.known)))]
}

// rightful returns a client that may fetch a reservation from a party according to the record.
func (w *world) rightful(r *tuplesv1.Reservation, i int) int {
	want := ""
	switch c := r.GetClients(); len(c) {
	case 0:
	case 1:
		want = c[0]
	default:
		want = c[min(i, len(c)-1)]
	}
	c := slices.IndexFunc(w.clients, func(p rpc.Principal) bool {
		return p.Name == want || want == "" && p.Serves(r.GetClass().GetTenant())
	})
	return max(c, 0)
}

// acts returns the possible events; events that are listed several times are more likely.
func (w *world) acts(m manner) (list []func()) {
	add := func(n int, f func()) {
		for range n {
			list = append(list, f)
		}
	}
	add(1, w.actProduce)
	add(5, w.actReserve)
	add(8, w.actFetch)
	add(3, w.actFetchAll)
	add(3, w.actRace)
	add(2, w.actRelease)
	add(2, func() { w.pass(time.Duration(1+w.rng.IntN(15)) * time.Second) })
	add(1, w.actActivate)
	add(1, w.actCheck)
	if m.network {
		add(2, w.actNetwork)
	}
	if m.crashes {
		add(2, func() { w.crash(w.party(), []fault{works, before, after, half}[w.rng.IntN(4)], w.rng.IntN(8)) })
	}
	if m.faults {
		add(2, func() { w.crash(w.party(), []fault{fails, doubtful, unwritten}[w.rng.IntN(3)], w.rng.IntN(6)) })
	}
	if m.crashes || m.faults {
		add(2, w.actRestart)
	}
	if m.clocks {
		add(2, w.actClock)
	}
	if m.restarts {
		add(2, w.actCoordinator)
	}
	if m.evil {
		add(6, w.actEvil)
	}
	if m.end {
		add(1, w.actEnd)
	}
	if m.rollbacks && w.parties[0].back.copy != nil {
		add(1, w.actRollback)
	}
	return list
}

func (w *world) actProduce() {
	tenant, count := []string{"a", "b"}[w.rng.IntN(2)], 1+w.rng.Uint64N(40)
	if w.sizes[tenant] > 1<<10 {
		count = 1 + count%12
	}
	all := []int{0, 1, 2}
	store, active := all, all
	if w.rng.IntN(4) == 0 {
		store, active = w.some(), w.some()
	}
	w.produce(tenant, count, store, active)
}

func (w *world) actActivate() {
	b := w.batches[w.rng.IntN(len(w.batches))]
	i := w.party()
	w.note("party %d activates %s", i, b.id)
	w.activate(i, b.id)
	w.coordinatorLooks()
}

func (w *world) actReserve() {
	client := w.anyone()
	key := ""
	if w.rng.IntN(2) == 0 {
		key = fmt.Sprintf("key-%d", w.rng.IntN(6))
	}
	var named []string
	tenant := w.clients[client].Tenants[0]
	switch w.rng.IntN(4) {
	case 0:
		named = []string{w.clients[w.anyone()].Name}
	case 1:
		for range parties {
			named = append(named, tenant+[]string{"1", "2"}[w.rng.IntN(2)])
		}
	}
	count := 1 + w.rng.Uint64N(6)
	if w.rng.IntN(5) == 0 {
		count += w.rng.Uint64N(30)
	}
	patience := 8 * time.Second
	if w.rng.IntN(4) == 0 {
		patience = time.Duration(w.rng.IntN(400)) * time.Millisecond
	}
	w.reserveWithin(patience, client, count, time.Duration(1+w.rng.IntN(30))*time.Second, key, named, w.rng.IntN(6) == 0)
}

// actFetch fetches with an authorised or another client, completely or partially, fast or slowly,
// or with an interruption.
func (w *world) actFetch() { w.aFetch()() }

// aFetch chooses the parameters of a fetch, which may then run concurrently with others.
func (w *world) aFetch() func() {
	r := w.reservation()
	if r == nil {
		return func() {}
	}
	i := w.party()
	client, from, give, slow := w.rightful(r, i), uint64(0), -1, time.Duration(0)
	if w.rng.IntN(4) == 0 {
		client = w.anyone()
	}
	if w.rng.IntN(3) == 0 {
		from = w.rng.Uint64N(r.GetCount() + 1)
	}
	if w.rng.IntN(4) == 0 {
		give = 1 + w.rng.IntN(3)
	}
	if w.rng.IntN(8) == 0 {
		slow = time.Duration(1+w.rng.IntN(6)) * time.Second
	}
	return func() { w.fetch(client, i, r.GetId(), from, give, slow) }
}

// actFetchAll reserves and fetches at all parties, which must succeed while the history is calm.
func (w *world) actFetchAll() {
	client := w.anyone()
	r, err := w.reserve(client, 1+w.rng.Uint64N(4), 20*time.Second, "", nil, false)
	if err != nil {
		if c := rpc.FromError(err).Code; w.calm && c != rpc.OutOfStock {
			w.failed("a reservation fails: %v", err)
		}
		return
	}
	for i := range parties {
		err := w.fetch(client, i, r.GetId(), 0, -1, 0)
		if over := rpc.FromError(err); err != nil && over.Code == rpc.OverQuota && w.clients[client].Name == bounded {
			continue
		}
		if err != nil && w.calm {
			w.failed("a fetch fails: %v", err)
		}
	}
}

func (w *world) failed(format string, args ...any) {
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	w.model.violated(format, args...)
}

func (w *world) actRelease() {
	if r := w.reservation(); r != nil {
		client := w.rightful(&tuplesv1.Reservation{Clients: []string{r.GetOwner()}}, 0)
		if w.rng.IntN(5) == 0 {
			client = w.anyone()
		}
		w.release(client, r.GetId())
	}
}

// actRace runs several events concurrently, mostly about one reservation.
func (w *world) actRace() {
	var list []func()
	r := w.reservation()
	for range 2 + w.rng.IntN(3) {
		client, i := w.anyone(), w.party()
		switch n := w.rng.IntN(6); {
		case n == 0:
			count := 1 + w.rng.Uint64N(5)
			list = append(list, func() { w.reserve(client, count, 10*time.Second, "key-race", nil, false) })
		case n == 1 && r != nil:
			owner := w.rightful(&tuplesv1.Reservation{Clients: []string{r.GetOwner()}}, 0)
			list = append(list, func() { w.release(owner, r.GetId()) })
		case n == 2:
			list = append(list, func() { w.sweep(i) })
		case r != nil:
			if n == 3 {
				client = w.rightful(r, i)
			}
			list = append(list, func() { w.fetch(client, i, r.GetId(), 0, -1, 0) })
		}
	}
	w.note("at the same time:")
	together(list...)
}

func (w *world) sweep(i int) {
	if w.parties[i].running() {
		err := w.parties[i].vault().Sweep()
		w.note("party %d sweeps: %s", i, outcome(err))
	}
}

// actCheck: a check of a MAC key begins, clients fetch meanwhile, and it passes, does not end, or a
// client reports that one of its own failed. The keys of these histories are not proved, so that a
// check that does not pass burns the MAC key.
func (w *world) actCheck() {
	b, i := w.batches[w.rng.IntN(len(w.batches))], w.party()
	v := w.parties[i].vault()
	if !w.parties[i].running() {
		return
	}
	err := v.BeginCheck(b.macKey, "session")
	if errors.Is(err, vaulterr.ErrCheckUnended) { // the end of an earlier check failed to be recorded
		w.calm = false
		w.renew()
	}
	if err != nil {
		return
	}
	w.note("party %d: a check of %s begins", i, b.macKey)
	passes, took := w.rng.IntN(8) > 0, time.Duration(w.rng.IntN(12))*time.Second
	w.calm = w.calm && passes
	together(w.aFetch(), func() {
		time.Sleep(took)
		if passes {
			_, err := v.EndCheck(b.macKey, "session", keys.CheckPassed)
			w.note("party %d: the check passes: %s", i, outcome(err))
			return
		}
		_, err := v.EndCheck(b.macKey, "session", keys.CheckUnfinished)
		w.note("party %d: the check does not end: %s", i, outcome(err))
		w.renew()
	})
}

func (w *world) actNetwork() {
	w.calm = false
	w.net.Lock()
	defer w.net.Unlock()
	from, to, down := w.rng.IntN(ends), w.rng.IntN(parties), w.rng.IntN(2) == 0
	if w.rng.IntN(3) == 0 {
		w.loss = []uint64{0, 3, 10}[w.rng.IntN(3)]
		w.note("one response of %d is lost", w.loss)
		return
	}
	if w.rng.IntN(3) == 0 {
		w.late[to] = []time.Duration{0, 0, 200 * time.Millisecond, time.Second, 7 * time.Second}[w.rng.IntN(5)]
		w.note("the coordinator's calls take %v to reach party %d", w.late[to], to)
		return
	}
	w.down[from][to] = down
	w.note("from %d to %d the network is down: %v", from, to, down)
}

func (w *world) actRestart() {
	w.calm = false
	for i, p := range w.parties {
		if !p.running() {
			w.restart(i, []fault{works, works, before, after, half}[w.rng.IntN(5)], w.rng.IntN(5))
			return
		}
	}
	w.restart(w.party(), works, 0)
}

// actClock moves a party's clock forward or back: by less than a lease, by more, or by so much that
// the party deletes records.
func (w *world) actClock() {
	w.calm = false
	i := w.party()
	by := time.Duration(w.rng.IntN(60)-30) * time.Second
	switch w.rng.IntN(6) {
	case 0:
		by = 25 * time.Hour
	case 1:
		by = 8 * 24 * time.Hour
	case 2:
		by = -time.Duration(w.parties[i].offset.Load()) // back to the correct time
	}
	w.shift(i, by)
	w.pass(time.Second)
}

func (w *world) shift(i int, by time.Duration) {
	w.model.count(i)
	w.note("the clock of party %d moves by %s", i, by)
	w.parties[i].jumps.Add(1)
	w.parties[i].offset.Add(int64(by))
}

// actCoordinator restarts the coordinator, possibly without its records, or lets it crash at a
// write.
func (w *world) actCoordinator() {
	w.calm = false
	c := w.coordinator
	switch w.rng.IntN(3) {
	case 0:
		w.note("the coordinator crashes at a write")
		c.mu.Lock()
		s := c.store
		c.mu.Unlock()
		if s != nil {
			s.arm([]fault{before, after}[w.rng.IntN(2)], w.rng.IntN(3))
		}
		return
	case 1:
		w.note("the coordinator starts without its records")
		c.stop()
		c.back = inMemory()
	default:
		w.note("the coordinator restarts")
	}
	c.stop()
	if err := c.start(); err != nil {
		w.failed("the coordinator does not start: %v", err)
	}
	w.pass(10 * time.Millisecond)
}

// actEnd revokes, burns or pools at a party.
func (w *world) actEnd() {
	w.calm = false
	b := w.batches[w.rng.IntN(len(w.batches))]
	client := 0
	if b.class.GetTenant() == "b" {
		client = 2
	}
	i := w.party()
	switch w.rng.IntN(6) {
	case 0:
		w.drawKey(client, i, b.macKey, tuplesv1.Purpose_PURPOSE_VERIFY)
	case 1:
		w.report(client, i, b.macKey)
	case 2, 3:
		w.drawKey(client, i, b.macKey, tuplesv1.Purpose_PURPOSE_ONLINE)
	case 4:
		w.revoke(client, i, b.id, true)
	default:
		w.revoke(client, i, b.id, false)
	}
}
