package histories

import (
	"time"
)

// leave takes a party out of quarantine.
func (w *world) leave(i int) {
	err := w.parties[i].vault().LeaveQuarantine()
	w.note("party %d leaves quarantine: %s", i, outcome(err))
	w.model.mu.Lock()
	w.model.held[i] = err != nil
	w.model.mu.Unlock()
	w.renew()
}

func (w *world) connect() {
	w.net.Lock()
	defer w.net.Unlock()
	w.down, w.loss, w.late = [ends][ends]bool{}, 0, [parties]time.Duration{}
}

// settle ends all faults, waits for the ends of all leases, and checks that every tuple is
// accounted for and that clients are served.
func (w *world) settle() {
	w.note("all faults end")
	w.connect()
	latest := int64(0)
	for i, p := range w.parties {
		latest = max(latest, p.offset.Load())
		w.restart(i, works, 0)
		if !p.running() {
			w.failed("party %d does not start", i)
			return
		}
		w.model.count(i)
	}
	w.coordinator.stop()
	if err := w.coordinator.start(); err != nil {
		w.failed("the coordinator does not start: %v", err)
		return
	}
	for i, p := range w.parties {
		w.shift(i, -time.Duration(p.offset.Load()))
	}
	w.pass(70 * time.Second) // longer than every honest lease
	w.look()
	for _, by := range []time.Duration{time.Duration(latest) + 26*time.Hour, 30 * 24 * time.Hour} {
		for i := range parties {
			w.shift(i, by)
		}
		w.pass(3 * time.Second)
	}
	for i := range parties {
		w.model.settled(i)
		w.shift(i, -time.Duration(w.parties[i].offset.Load()))
		if w.model.held[i] {
			w.leave(i)
		}
	}
	if w.model.verdict() != "" {
		return
	}
	w.serve()
}

// serve checks that a client can reserve and fetch new tuples at all parties.
func (w *world) serve() {
	all := []int{0, 1, 2}
	w.epoch++
	w.renew()
	w.produce("b", 100, all, all)
	w.pass(6 * time.Second)
	r, err := w.reserve(2, 77, time.Minute, "", nil, true)
	if err != nil {
		w.failed("reserving fails at the end: %v", err)
		return
	}
	for i := range parties {
		if err := w.fetch(3, i, r.GetId(), 0, -1, 0); err != nil {
			w.failed("fetching fails at the end: %v", err)
		}
	}
}
