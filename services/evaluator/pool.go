package evaluator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/metrics"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// Options of a pool.
type Options struct {
	Check       string // of package config
	Processes   []config.Evaluator
	Credentials *rpc.Credentials
	Stall       time.Duration // without progress before an evaluator is given up
	// Limit is how long a task is left to evaluators before the party computes it itself, whatever progress they say they
	// make: peers wait for this party too.
	Limit   time.Duration
	Workers int // of what the party computes itself
	// Excluded is called once for an evaluator that is not asked any more, and why, if set.
	Excluded func(name, reason string)
	Metrics  *metrics.Metrics
	Log      *slog.Logger
	// Lookup resolves names; nil: as the system does.
	Lookup func(ctx context.Context, host string) ([]string, error)
}

// Pool has evaluators compute. What it gives is right unless Options.Check says that they are trusted.
type Pool struct {
	o Options

	mu        sync.Mutex
	processes []*process
	changed   chan struct{} // closed and replaced when a place may be free, or nobody can be asked

	own *workers // of what the party computes itself
}

// process is an evaluator of the configuration.
type process struct {
	config.Evaluator
	excluded  bool
	instances []*instance
}

// New makes a pool, of which Run keeps the connections; nil without evaluators.
func New(o Options) *Pool {
	if len(o.Processes) == 0 {
		return nil
	}
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	p := &Pool{o: o, changed: make(chan struct{}), own: newWorkers(max(1, o.Workers))}
	for _, e := range o.Processes {
		p.processes = append(p.processes, &process{Evaluator: e})
		o.Metrics.Evaluator(e.Name)
	}
	return p
}

// Under is what the tasks of a batch are computed under.
type Under struct {
	Scheme     *gbfv.Scheme
	Keys       *keygen.PublicKeys
	KeysDigest round.Digest // of the keys' encoding
	MACKey     *gbfv.Ciphertext
	Operand    *gbfv.Left // of the MAC key

	pool      *Pool
	hash      [32]byte // of the set
	macFrames [2][]byte
	macDigest round.Digest
}

// For gives an evaluator for a batch, or nil when nobody can be asked: the party then computes as if there were no pool.
func (p *Pool) For(u Under) evaluation.Evaluator {
	if p == nil {
		return nil
	}
	if !p.able() {
		p.o.Metrics.EvaluatedLocally("nobody")
		return nil
	}
	return p.bind(u)
}

// bind has what is computed under u computed by the pool.
func (p *Pool) bind(u Under) *Under {
	u.pool, u.hash = p, u.Scheme.Set.Hash()
	u.macFrames = triple.EncodeCiphertext(u.Scheme, u.MACKey)
	u.macDigest = MACKeyDigest(u.macFrames)
	return &u
}

func (u *Under) keysFrames() int { return keygen.EncodedFrames(u.Scheme, u.Keys.Dim) }

// Evaluate implements evaluation.Evaluator. When it returns, nobody reads the inputs any more.
func (u *Under) Evaluate(ctx context.Context, t evaluation.Task) ([]*gbfv.Ciphertext, error) {
	j := &job{under: u, task: t}
	j.task.Consume = false
	p := u.pool
	limited, cancel := context.WithTimeout(ctx, p.o.Limit)
	defer cancel()
	switch p.o.Check {
	case config.Trust:
		if answers := p.ask(limited, j, 1); len(answers) == 1 {
			return answers[0].results, nil
		}
		return p.compute(ctx, j, "nobody")
	case config.Recompute:
		return p.recompute(ctx, limited, j)
	}
	answers := p.ask(limited, j, 2)
	if agree(answers) {
		evaluation.Free(answers[1].results)
		return answers[0].results, nil
	}
	// Nothing of what came is used. The party computes, and sees who was wrong.
	reason := "nobody"
	if len(answers) == 2 {
		reason = "mismatch"
	}
	return p.judge(ctx, j, answers, reason)
}

// recompute computes a task here and has an evaluator compute it too, to see whether it does so rightly.
func (p *Pool) recompute(ctx, limited context.Context, j *job) ([]*gbfv.Ciphertext, error) {
	asked := make(chan []answer, 1)
	limited, cancel := context.WithCancel(limited)
	defer cancel()
	go func() { asked <- p.ask(limited, j, 1) }()
	own, err := p.compute(ctx, j, "recompute")
	if err != nil {
		cancel()
	}
	answers := <-asked
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		p.hold(a, gbfv.Hash(own))
	}
	return own, nil
}

// answer is what an evaluator computed.
type answer struct {
	from    *process
	results []*gbfv.Ciphertext
}

// judge computes a task here, and names the evaluators whose answers differ.
func (p *Pool) judge(ctx context.Context, j *job, answers []answer, reason string) ([]*gbfv.Ciphertext, error) {
	hashes := make([][32]byte, len(answers))
	for i := range answers { // what they hold may be needed to compute with
		hashes[i] = gbfv.Hash(answers[i].results)
		evaluation.Free(answers[i].results)
	}
	own, err := p.compute(ctx, j, reason)
	if err != nil || len(answers) == 0 {
		return own, err
	}
	right := gbfv.Hash(own)
	for i, a := range answers {
		if hashes[i] != right {
			p.mismatch(a.from)
		}
	}
	return own, nil
}

// hold compares an answer with the party's own result.
func (p *Pool) hold(a answer, right [32]byte) {
	if gbfv.Hash(a.results) != right {
		p.mismatch(a.from)
	}
	evaluation.Free(a.results)
}

func (p *Pool) mismatch(from *process) {
	p.o.Metrics.EvaluatorMismatch(from.Name)
	p.exclude(from, "it computed something else than this party")
}

// agree says whether evaluators of two domains have computed the same, bit for bit.
func agree(answers []answer) bool {
	if len(answers) != 2 || answers[0].from.Domain == answers[1].from.Domain {
		return false
	}
	return slices.EqualFunc(answers[0].results, answers[1].results, (*gbfv.Ciphertext).Equal)
}

// compute computes a task here.
func (p *Pool) compute(ctx context.Context, j *job, reason string) ([]*gbfv.Ciphertext, error) {
	most := j.task.Count
	if j.task.Dim > 0 {
		most = p.own.count // and one at a time, as it takes much memory
	}
	n, leave, err := p.own.take(ctx, most)
	if err != nil {
		return nil, err
	}
	defer leave()
	p.o.Metrics.EvaluatedLocally(reason)
	u := j.under
	return j.task.Run(ctx, gbfv.NewEvaluator(u.Scheme, u.Keys.Keys(u.Scheme)), u.Operand, n)
}

// exclude has an evaluator never asked again, until the party starts anew.
func (p *Pool) exclude(x *process, reason string) {
	p.mu.Lock()
	first := !x.excluded
	x.excluded = true
	p.wake()
	p.mu.Unlock()
	if !first {
		return
	}
	p.o.Metrics.EvaluatorExcluded(x.Name)
	p.o.Log.Error("an evaluator is wrong and is not asked any more until this party starts again", "evaluator", x.Name,
		"address", x.Address, "identity", x.Identity, "domain", x.Domain, "reason", reason)
	if p.o.Excluded != nil {
		p.o.Excluded(x.Name, fmt.Sprintf("evaluator %s of domain %s: %s", x.Name, x.Domain, reason))
	}
}

// ask has a task computed by so many evaluators of different domains. It gives fewer answers when there are not so many.
func (p *Pool) ask(ctx context.Context, j *job, count int) (answers []answer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := &quest{pool: p, domains: map[string]bool{}}
	if !p.able() {
		return nil
	}
	got := make(chan *answer, count)
	for range count {
		go func() { got <- q.answer(ctx, j) }()
	}
	for range count {
		a := <-got
		if a == nil {
			cancel() // one answer fewer is of no use: the party computes now
			continue
		}
		answers = append(answers, *a)
	}
	return answers
}

// quest is the search for answers to one task, no two of the same domain.
type quest struct {
	pool    *Pool
	domains map[string]bool // that are asked or were; the pool's lock is held for it
}

// tries is how often one answer is asked for, here or there.
const tries = 4

// answer gets one answer; nil if there is none to be had.
func (q *quest) answer(ctx context.Context, j *job) *answer {
	p, domain := q.pool, ""
	for range tries {
		i := q.take(ctx, domain)
		if i == nil {
			return nil
		}
		domain = i.of.Domain
		began := time.Now()
		results, err := i.evaluate(ctx, j)
		outcome := outcomeOf(err)
		var wrong *fault
		switch {
		case errors.As(err, &wrong):
			outcome = "faulty"
		case errors.Is(err, errStalled):
			outcome = "stalled"
		case err != nil && (errors.Is(ctx.Err(), context.DeadlineExceeded) || outcome == string(rpc.TimedOut)):
			outcome = "slow"
		case err != nil && ctx.Err() != nil:
			outcome = "cancelled"
		case outcome == "cancelled": // by the evaluator, which can no more than be away
			outcome = string(rpc.Unavailable)
		}
		p.o.Metrics.EvaluatorRequest(i.of.Name, outcome, time.Since(began))
		p.release(i, outcome)
		switch {
		case err == nil:
			return &answer{i.of, results}
		case ctx.Err() != nil:
			return nil
		case wrong != nil:
			p.exclude(i.of, wrong.what)
		default:
			p.o.Log.Warn("an evaluator does not compute", "evaluator", i.of.Name, "address", i.address, "outcome", outcome, "error", err)
		}
	}
	return nil
}

// take waits for a place at an evaluator of this domain, or of one that is not asked yet; nil if there is none.
func (q *quest) take(ctx context.Context, domain string) *instance {
	p := q.pool
	for {
		p.mu.Lock()
		best, some := p.choose(func(x *process) bool { return x.Domain == domain || !q.domains[x.Domain] })
		if best != nil {
			best.running++
			q.domains[best.of.Domain] = true
			if best.of.Domain != domain {
				delete(q.domains, domain)
			}
		}
		changed := p.changed
		p.mu.Unlock()
		if best != nil || !some {
			return best
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// choose gives the evaluator with the most room of those that may be asked, and whether there is one at all. The caller holds
// the lock.
func (p *Pool) choose(may func(*process) bool) (best *instance, some bool) {
	now := time.Now()
	for _, x := range p.processes {
		if x.excluded || !may(x) {
			continue
		}
		for _, i := range x.instances {
			if !i.usable(now) {
				continue
			}
			some = true
			if i.full || i.running >= i.places {
				continue
			}
			if best == nil || i.running*best.places < best.running*i.places {
				best = i
			}
		}
	}
	return best, some
}

func (i *instance) usable(now time.Time) bool { return i.up && !i.gone && now.After(i.until) }

// able says whether there are evaluators enough for an answer that can be used, or compared.
func (p *Pool) able() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	domains, now := map[string]bool{}, time.Now()
	for _, x := range p.processes {
		if !x.excluded && slices.ContainsFunc(x.instances, func(i *instance) bool { return i.usable(now) }) {
			domains[x.Domain] = true
		}
	}
	if p.o.Check == config.Compare {
		return len(domains) > 1
	}
	return len(domains) > 0
}

const (
	pauseBusy = time.Second // after an evaluator was busy with something that is not ours
	maxPause  = 5 * time.Minute
)

// release gives a place back, and remembers how it went.
func (p *Pool) release(i *instance, outcome string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i.running--
	i.full = false
	i.leave()
	switch outcome {
	case "ok":
		i.fails = 0
	case "cancelled":
	case string(rpc.Busy):
		if i.full = i.running > 0; !i.full {
			i.until = time.Now().Add(pauseBusy)
		}
	default:
		i.until = time.Now().Add(min(p.o.Stall<<min(i.fails, 10), maxPause))
		i.fails++
	}
	p.wake()
}

// wake has everybody who waits for a place look again. The caller holds the lock.
func (p *Pool) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}
