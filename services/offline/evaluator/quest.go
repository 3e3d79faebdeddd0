package evaluator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// question is a request to evaluators.
type question[T any] struct {
	may func(*instance) bool // whether an evaluator may receive the request
	put func(context.Context, *instance) (T, error)
}

// anybody accepts every evaluator, for tasks that all evaluators compute.
func anybody(*instance) bool { return true }

// question returns the request for a task.
func (j *job) question() question[[]*gbfv.Ciphertext] {
	return question[[]*gbfv.Ciphertext]{anybody, func(ctx context.Context, i *instance) ([]*gbfv.Ciphertext, error) {
		return i.evaluate(ctx, j)
	}}
}

// answerOf is the response of an evaluator.
type answerOf[T any] struct {
	from    *process
	results T
}

// gather collects count responses from evaluators of different domains. It returns fewer if not
// enough evaluators can respond.
func gather[T any](ctx context.Context, p *Pool, what question[T], count int) (answers []answerOf[T]) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := &quest[T]{pool: p, what: what, domains: map[string]bool{}}
	if !p.able(what.may) {
		return nil
	}
	got := make(chan *answerOf[T], count)
	for range count {
		go func() { got <- q.answer(ctx) }()
	}
	for range count {
		a := <-got
		if a == nil {
			cancel() // fewer responses are useless: the party computes now
			continue
		}
		answers = append(answers, *a)
	}
	return answers
}

// quest collects responses to one question from evaluators of different domains.
type quest[T any] struct {
	pool    *Pool
	what    question[T]
	domains map[string]bool // domains with a request or a response; guarded by the pool's lock
}

// tries limits the number of requests for one response, at any evaluators.
const tries = 4

// answer returns one response, or nil if no evaluator responds.
func (q *quest[T]) answer(ctx context.Context) *answerOf[T] {
	p, domain := q.pool, ""
	for range tries {
		i := q.take(ctx, domain)
		if i == nil {
			return nil
		}
		domain = i.of.Domain
		began := time.Now()
		results, err := q.what.put(ctx, i)
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
		case outcome == "cancelled": // the evaluator reports the cancellation, which only means that it is unavailable
			outcome = string(rpc.Unavailable)
		}
		p.o.Metrics.Count(metrics.EvaluatorRequests, 1, i.of.Name, outcome)
		if outcome == "ok" {
			p.o.Metrics.Observe(metrics.EvaluatorTime, time.Since(began), i.of.Name)
		}
		p.release(i, outcome)
		switch {
		case err == nil:
			return &answerOf[T]{i.of, results}
		case ctx.Err() != nil:
			return nil
		//lodge:check evaluator/named/fault [run=TestCheatsOfAnEvaluator] an evaluator with an
		//  invalid answer is not named
		case wrong != nil:
			p.exclude(i.of, wrong.what)
		default:
			p.o.Log.Warn("a request to an evaluator failed", "evaluator", i.of.Name, "address", i.address, "outcome", outcome, "error", err)
		}
	}
	return nil
}

// take waits for a place at an evaluator of the given domain or of a domain that has no request
// yet. It returns nil if no evaluator may be asked.
func (q *quest[T]) take(ctx context.Context, domain string) *instance {
	p := q.pool
	for {
		p.mu.Lock()
		best, some := p.choose(func(i *instance) bool {
			//lodge:check evaluator/compare/asked [drop=(i.of.Domain == domain ||
			//  !q.domains[i.of.Domain])] [run=TestOneDomain] [redundant=answers from one domain are
			//  never used, and the party computes itself] both evaluators are of one domain
			return (i.of.Domain == domain || !q.domains[i.of.Domain]) && q.what.may(i)
		})
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

// choose returns the usable evaluator with the most free places, and whether any evaluator may be
// asked. The caller must hold the lock.
func (p *Pool) choose(may func(*instance) bool) (best *instance, some bool) {
	now := time.Now()
	for _, x := range p.processes {
		//lodge:check evaluator/excluded [run=TestCheatsOfAnEvaluator] [redundant=an excluded
		//  evaluator may be asked beside two others, and its answer is compared as usual] an
		//  evaluator that was wrong is used again
		if x.excluded {
			continue
		}
		for _, i := range x.instances {
			if !i.usable(now) || !may(i) {
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

// able reports whether enough evaluators may be asked to get a response that can be used, or
// compared.
func (p *Pool) able(may func(*instance) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	domains, now := map[string]bool{}, time.Now()
	for _, x := range p.processes {
		//lodge:check evaluator/excluded/enough [drop=!x.excluded] [run=TestCheatsOfAnEvaluator] an
		//  excluded evaluator counts as available
		if !x.excluded && slices.ContainsFunc(x.instances, func(i *instance) bool { return i.usable(now) && may(i) }) {
			domains[x.Domain] = true
		}
	}
	if p.o.Check == config.Compare {
		//lodge:check evaluator/compare/alone [swap=1=>0] [run=TestNobodyToAsk] one evaluator alone
		//  is used where two must agree
		return len(domains) > 1
	}
	return len(domains) > 0
}

const (
	pauseBusy = time.Second // after an evaluator was busy with tasks of other requesters
	maxPause  = 5 * time.Minute
)

// release returns a place and records the outcome.
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

// wake makes all goroutines that wait for a place check again. The caller must hold the lock.
func (p *Pool) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}
