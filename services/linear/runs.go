package linear

import (
	"context"
	"sync"
	"time"

	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

const runIDSize = 16

// side is one of the two sides of a run.
type side int

const (
	owner side = iota // owner of the key
	giver             // owner of the matrix
)

func (s side) String() string { return [...]string{"owner of the key", "owner of the matrix"}[s] }

// runKey identifies a run. It contains the names of both clients, so no other client can join.
type runKey struct {
	id           [runIDSize]byte
	owner, giver string
}

// meaning is the part of a header on which both ends must agree.
type meaning struct {
	set, packing   string
	a, b, c, d     uint32
	vector, header bool
}

func meaningOf(h *linearv1.RunHeader) meaning {
	m := meaning{set: h.GetSet(), header: true}
	if v := h.GetVector(); v != nil {
		m.vector, m.a, m.b, m.c, m.packing = true, v.GetRows(), v.GetCols(), v.GetSlots(), v.GetPacking().String()
	}
	if b := h.GetBatch(); b != nil {
		m.a, m.b, m.c, m.d = b.GetRows(), b.GetCols(), b.GetCount(), b.GetOutputs()
	}
	return m
}

// runs holds the runs that have an end at this party.
type runs struct {
	mu   sync.Mutex
	open map[runKey]*run
}

// run is a product on shares of two clients. If one end fails, the run fails for both.
type run struct {
	ctx    context.Context // ends when the run has failed
	fail   context.CancelCauseFunc
	means  meaning
	came   [2]chan struct{} // closed when the side has joined
	ends   [2]bool
	who    [2]rpc.Principal // the callers of the sides that joined
	here   int              // number of joined sides
	input  chan func() work // one value, from the key owner's end
	answer chan []byte      // closed after the last answer
	done   chan struct{}    // closed when the key owner has all answers
}

// lost returns the error of an end whose other end has failed.
func lost(who side, client string, err error) *rpc.Error {
	known := rpc.FromError(err)
	if known.Code == rpc.Burnt { // the budget belongs to both: another run would be refused too
		return known
	}
	code := known.Code
	return rpc.Errorf(rpc.Unavailable, "begin another run at both ends, with a new id", "the %s, client %s, has failed: %s", who, client, code)
}

// enter joins a client's end to its run. The caller must call leave with the outcome.
func (r *runs) enter(h *linearv1.RunHeader, who side, caller rpc.Principal) (_ *run, leave func(error), err error) {
	client := caller.Name
	if len(h.GetRun()) != runIDSize || h.GetWith() == "" {
		return nil, nil, rpc.Errorf(rpc.Invalid, "draw 16 random bytes for both ends, and name the other client", "a run without an id of 16 bytes, or without another client")
	}
	//lodge:check linearservice/named [swap=runKey{[runIDSize]byte(h.GetRun()), client,
	//  h.GetWith()}=>runKey{[runIDSize]byte(h.GetRun()), "", ""}] [run=TestEndsMustFit] a client
	//  takes the place of another client in a run
	key := runKey{[runIDSize]byte(h.GetRun()), client, h.GetWith()}
	if who == giver {
		key.owner, key.giver = key.giver, key.owner
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.open[key]
	if x == nil {
		x = &run{means: meaningOf(h), input: make(chan func() work, 1), answer: make(chan []byte), done: make(chan struct{})}
		x.came = [2]chan struct{}{make(chan struct{}), make(chan struct{})}
		x.ctx, x.fail = context.WithCancelCause(context.Background())
		if r.open == nil {
			r.open = map[runKey]*run{}
		}
		r.open[key] = x
	}
	switch {
	//lodge:check linearservice/twice [run=TestEndsMustFit] one end of a run joins twice
	case x.ends[who]:
		return nil, nil, rpc.Errorf(rpc.Conflict, "use each id only once", "the %s has already joined this run", who)
	//lodge:check linearservice/meaning [run=TestEndsMustFit] the two ends of a run mean different
	//  products
	case x.means != meaningOf(h):
		err := rpc.Errorf(rpc.Conflict, "name the same set and shape at both ends", "the %s requests another product than client %s", who, h.GetWith())
		x.fail(err)
		return nil, nil, err
	}
	x.ends[who], x.who[who] = true, caller
	x.here++
	close(x.came[who])
	return x, func(err error) { r.leave(key, x, who, client, err) }, nil
}

func (r *runs) leave(key runKey, x *run, who side, client string, err error) {
	if err != nil {
		x.fail(lost(who, client, err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.here--; x.here == 0 || err != nil {
		x.fail(nil)
		if r.open[key] == x {
			delete(r.open, key)
		}
	}
}

// wait waits until the other client's end joins. The limit covers only joining; later steps have
// their own timeouts.
func (x *end) wait(of side, most time.Duration) error {
	over := time.NewTimer(most)
	defer over.Stop()
	select {
	case <-x.run.came[of]:
		return nil
	case <-x.ctx.Done():
		return context.Cause(x.ctx)
	case <-over.C:
		return rpc.Errorf(rpc.Unavailable, "begin both ends at about the same time", "the %s, client %s, did not come within %s", of, x.with, most)
	}
}
