package evaluator

import (
	"context"
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
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Options configures a pool.
type Options struct {
	Check       string // a constant of package config
	Processes   []config.Evaluator
	Credentials *rpc.Credentials
	Stall       time.Duration // time without progress after which the pool gives up an evaluator
	// Limit is the time after which the party computes a task itself, whatever progress the
	// evaluators report: peers wait for this party too.
	Limit   time.Duration
	Workers int // goroutines for tasks that the party computes itself
	// Excluded, if set, is called once for each evaluator that is excluded, with the reason.
	Excluded func(name, reason string)
	Metrics  *metrics.Metrics
	Log      *slog.Logger
	// Lookup resolves names; nil selects the system's resolver.
	Lookup func(ctx context.Context, host string) ([]string, error)
}

// Pool computes tasks at evaluators. Its results are correct unless Options.Check trusts the
// evaluators.
type Pool struct {
	o Options

	mu        sync.Mutex
	processes []*process
	changed   chan struct{} // closed and replaced when a place may be free, or no evaluator may be asked

	own     *workers      // for tasks that the party computes itself
	sending chan struct{} // holds a token for each upload of multi-key keys, which are in memory during the upload
}

// uploadsTogether limits how many owners' keys are read and sent concurrently.
const uploadsTogether = 2

// process is an evaluator of the configuration.
type process struct {
	config.Evaluator
	excluded  bool
	instances []*instance
}

// New returns a pool, or nil without evaluators. Run maintains its connections.
func New(o Options) *Pool {
	if len(o.Processes) == 0 {
		return nil
	}
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	p := &Pool{o: o, changed: make(chan struct{}), own: newWorkers(max(1, o.Workers)), sending: make(chan struct{}, uploadsTogether)}
	for _, e := range o.Processes {
		p.processes = append(p.processes, &process{Evaluator: e})
		o.Metrics.Set(metrics.EvaluatorUp, 0, e.Name)
		o.Metrics.Set(metrics.EvaluatorExcluded, 0, e.Name)
		o.Metrics.Count(metrics.EvaluatorMismatches, 0, e.Name)
	}
	return p
}

// Under holds the keys under which the tasks of a batch are computed.
type Under struct {
	Scheme     *gbfv.Scheme
	Keys       *keygen.PublicKeys
	KeysDigest round.Digest // digest of the keys' encoding
	MACKey     *gbfv.Ciphertext
	Operand    *gbfv.Left // the MAC key, prepared for products

	pool      *Pool
	hash      [32]byte // hash of the parameter set
	macFrames [2][]byte
	macDigest round.Digest
}

// For returns an evaluator for a batch, or nil if no evaluator can be asked: the party then
// computes as if there were no pool.
func (p *Pool) For(u Under) evaluation.Evaluator {
	if p == nil {
		return nil
	}
	if !p.able(anybody) {
		p.o.Metrics.Count(metrics.EvaluatorLocal, 1, "nobody")
		return nil
	}
	return p.bind(u)
}

// bind returns u bound to the pool, with the digests of its keys.
func (p *Pool) bind(u Under) *Under {
	u.pool, u.hash = p, u.Scheme.Set.Hash()
	u.macFrames = triple.EncodeCiphertext(u.Scheme, u.MACKey)
	u.macDigest = MACKeyDigest(u.macFrames)
	return &u
}

func (u *Under) keysFrames() int { return keygen.EncodedFrames(u.Scheme, u.Keys.Dim) }

// Evaluate implements evaluation.Evaluator. When it returns, no goroutine reads the inputs any
// more.
func (u *Under) Evaluate(ctx context.Context, t evaluation.Task) ([]*gbfv.Ciphertext, error) {
	j := &job{under: u, task: t}
	j.task.Consume = false
	p := u.pool
	//lodge:check evaluator/limit [swap=p.o.Limit=>100 * p.o.Limit] [run=TestCheatsOfAnEvaluator] an
	//  evaluator that reports progress holds a session forever
	limited, cancel := context.WithTimeout(ctx, p.o.Limit)
	defer cancel()
	switch p.o.Check {
	case config.Trust:
		if answers := gather(limited, p, j.question(), 1); len(answers) == 1 {
			return answers[0].results, nil
		}
		return p.compute(ctx, j, "nobody")
	case config.Recompute:
		return p.recompute(ctx, limited, j)
	}
	answers := gather(limited, p, j.question(), 2)
	if agree(answers) {
		evaluation.Free(answers[1].results)
		return answers[0].results, nil
	}
	// The evaluators' results are not used. The party computes the task and finds out which
	// evaluator is wrong.
	reason := "nobody"
	if len(answers) == 2 {
		reason = "mismatch"
	}
	return p.judge(ctx, j, answers, reason)
}

// recompute computes a task in this process and at an evaluator, and checks the evaluator's
// results.
func (p *Pool) recompute(ctx, limited context.Context, j *job) ([]*gbfv.Ciphertext, error) {
	asked := make(chan []answer, 1)
	limited, cancel := context.WithCancel(limited)
	defer cancel()
	go func() { asked <- gather(limited, p, j.question(), 1) }()
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

// answer is an evaluator's result for a task.
type answer = answerOf[[]*gbfv.Ciphertext]

// judge computes a task in this process, and excludes the evaluators whose results differ.
func (p *Pool) judge(ctx context.Context, j *job, answers []answer, reason string) ([]*gbfv.Ciphertext, error) {
	hashes := make([][32]byte, len(answers))
	for i := range answers { // the memory of the results may be needed for the computation
		hashes[i] = gbfv.Hash(answers[i].results)
		evaluation.Free(answers[i].results)
	}
	own, err := p.compute(ctx, j, reason)
	if err != nil || len(answers) == 0 {
		return own, err
	}
	right := gbfv.Hash(own)
	for i, a := range answers {
		//lodge:check evaluator/named [run=TestCheatsOfAnEvaluator] an evaluator with a wrong result
		//  is not named
		if hashes[i] != right {
			p.mismatch(a.from)
		}
	}
	return own, nil
}

// hold compares an evaluator's results with the party's own, and excludes the evaluator if they
// differ.
func (p *Pool) hold(a answer, right [32]byte) {
	//lodge:check evaluator/named/recompute [run=TestCheatsOfAnEvaluator] an evaluator with a wrong
	//  result is not named when the party recomputes everything
	if gbfv.Hash(a.results) != right {
		p.mismatch(a.from)
	}
	evaluation.Free(a.results)
}

func (p *Pool) mismatch(from *process) {
	p.o.Metrics.Count(metrics.EvaluatorMismatches, 1, from.Name)
	p.exclude(from, "its results differ from this party's")
}

// agree reports whether evaluators of two domains computed the same result, bit for bit.
func agree(answers []answer) bool {
	//lodge:check evaluator/compare/domains [drop=answers[0].from.Domain == answers[1].from.Domain]
	//  [run=TestWhoAgrees] one administrator's two evaluators agree with themselves
	if len(answers) != 2 || answers[0].from.Domain == answers[1].from.Domain {
		return false
	}
	//lodge:check evaluator/compare [return=true] [run=TestWhoAgrees] a wrong result of one
	//  evaluator is decrypted
	return slices.EqualFunc(answers[0].results, answers[1].results, (*gbfv.Ciphertext).Equal)
}

// compute computes a task in this process.
func (p *Pool) compute(ctx context.Context, j *job, reason string) ([]*gbfv.Ciphertext, error) {
	most := j.task.Count
	if j.task.Dim > 0 {
		most = p.own.count // sequentially, because a task needs much memory
	}
	n, leave, err := p.own.take(ctx, most)
	if err != nil {
		return nil, err
	}
	defer leave()
	p.o.Metrics.Count(metrics.EvaluatorLocal, 1, reason)
	u := j.under
	return j.task.Run(ctx, gbfv.NewEvaluator(u.Scheme, u.Keys.Keys(u.Scheme)), u.Operand, n)
}

// exclude stops sending requests to an evaluator until the party restarts.
func (p *Pool) exclude(x *process, reason string) {
	p.mu.Lock()
	first := !x.excluded
	x.excluded = true
	p.wake()
	p.mu.Unlock()
	if !first {
		return
	}
	p.o.Metrics.Set(metrics.EvaluatorExcluded, 1, x.Name)
	p.o.Log.Error("an evaluator is wrong and is excluded until this party restarts", "evaluator", x.Name,
		"address", x.Address, "identity", x.Identity, "domain", x.Domain, "reason", reason)
	if p.o.Excluded != nil {
		p.o.Excluded(x.Name, fmt.Sprintf("evaluator %s of domain %s: %s", x.Name, x.Domain, reason))
	}
}
