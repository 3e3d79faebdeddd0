package stock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Queue is the coordinator's queue of jobs, as policies use it.
type Queue interface {
	// Check returns an error for requests that no party could accept.
	Check(q *coordinatorv1.JobRequest) error
	// Tuples returns all jobs that make tuples or masks, in the order of submission.
	Tuples() []Job
	// Submit queues a job of a policy under a key. The same key always refers to the same job, also
	// after a restart.
	Submit(key string, q *coordinatorv1.JobRequest) error
	// Estimate returns the output and the cost of a job.
	Estimate(ctx context.Context, q *coordinatorv1.JobRequest) (*coordinatorv1.EstimateJobResponse, error)
}

// idle is a queue that accepts no jobs.
type idle struct{}

var errIdle = rpc.Errorf(rpc.PolicyRefused, "", "this service accepts no jobs")

func (idle) Check(*coordinatorv1.JobRequest) error          { return errIdle }
func (idle) Tuples() []Job                                  { return nil }
func (idle) Submit(string, *coordinatorv1.JobRequest) error { return errIdle }
func (idle) Estimate(context.Context, *coordinatorv1.JobRequest) (*coordinatorv1.EstimateJobResponse, error) {
	return nil, errIdle
}

// Job is a job that makes tuples or masks.
type Job struct {
	ID      string
	Key     string // idempotency key of the job
	Request *coordinatorv1.JobRequest
	State   jobv1.JobState
	Batch   string // the batch that it makes; empty before parties have it
	Made    uint64 // number of tuples, once parties have them
	Created time.Time
	Ended   time.Time
	Why     string // reason of its failure
	// Interrupted tells that the job ended because the coordinator stopped, which does not predict
	// the outcome of the next job.
	Interrupted bool
}

// completed reports whether the tuples of a job are at the parties.
func (j *Job) completed() bool { return j.State == jobv1.JobState_JOB_STATE_COMPLETED }

// jobPrefix is the prefix of the keys of policies' jobs, followed by the policy's id and the job's
// number. It cannot collide with a client's key: that begins with the client's name, which cannot
// contain a slash.
const jobPrefix = "/stock/"

func jobKey(id string, number uint64) string { return fmt.Sprintf("%s%s/%d", jobPrefix, id, number) }

// ofPolicy parses the key of a policy's job.
func ofPolicy(key string) (id string, number uint64, ok bool) {
	rest, ok := strings.CutPrefix(key, jobPrefix)
	id, digits, found := strings.Cut(rest, "/")
	number, err := strconv.ParseUint(digits, 10, 64)
	return id, number, ok && found && err == nil
}

// How many estimates are cached, and for how long: parties may change their policies.
const (
	maxEstimates  = 4096
	estimatedFor  = 10 * time.Minute
	refusedFor    = 30 * time.Second
	unansweredFor = 2 * time.Second
)

// estimate is the parties' cached estimate for a request.
type estimate struct {
	cost
	block uint32
	err   error
	until time.Time
}

// kept holds the results of the last plan, for requests for the stock.
type kept struct {
	making   map[place]uint64
	policies map[place]shown
}

// shown is a policy with its state, at the place to which it applies now.
type shown struct {
	policy *policy
	held   string
}

// history is a policy's state, derived from its jobs.
type history struct {
	next     uint64 // number of its next job
	failures int
	failed   time.Time
	why      string
}

// keep makes a plan and submits its jobs. Only one goroutine may call it. known holds the jobs that
// were complete before the last poll of the parties; the view has their tuples unless these no
// longer exist. away holds the parties that did not respond.
func (s *Service) keep(ctx context.Context, known map[string]bool, away error) {
	jobs := s.queue.Tuples()
	now := time.Now()
	s.keeping.Lock()
	list := make([]*policy, 0, len(s.policies))
	for _, p := range s.policies {
		list = append(list, p)
	}
	s.keeping.Unlock()
	slices.SortFunc(list, func(a, b *policy) int { return strings.Compare(a.id, b.id) })

	past, running := histories(jobs, list)
	has := s.view.counts()
	making := map[place]uint64{}
	for _, j := range jobs {
		// While a party is unavailable, the coordinator cannot tell whether the view has the tuples
		// of a completed job, and no policy that depends on the party submits jobs.
		away := awayFor(away, ClassOf(j.Request))
		if job.Final(j.State) && (!j.completed() || known[j.ID] || away != nil) || has.batches[j.Batch] {
			continue
		}
		e := s.estimates[estimateKey(j.Request)] // used if no party can be asked
		if away == nil {
			e = s.estimateOf(ctx, proto.CloneOf(j.Request), now)
		}
		n := j.Request.GetCount()
		switch {
		case j.Made > 0:
			n = j.Made
		case e.tuples > 0:
			n = e.tuples
		}
		making[place{keyOf(ClassOf(j.Request)), j.Request.GetEpoch()}] += n
		has.used += e.bytes
	}
	wishes := make([]wish, len(list))
	blocks := make([]uint32, len(list))
	for i, p := range list {
		h := past[p.id]
		w := wish{id: p.id, policy: p.msg, filling: p.Filling, failures: h.failures, failed: h.failed, why: h.why}
		epoch, problem := s.epochFor(p, away)
		w.place, w.problem = place{keyOf(p.msg.GetClass()), epoch}, problem
		w.available, w.making = has.available[w.place], making[w.place]
		if problem == "" {
			e := s.estimateOf(ctx, request(p.msg, epoch), now)
			w.cost, blocks[i] = e.cost, e.block
			if e.err != nil {
				w.problem = "no party takes such a job: " + rpc.FromError(e.err).What
				if unreachable(e.err) {
					w.problem = "no party reports the cost of a job: " + rpc.FromError(e.err).What
				}
			}
		}
		wishes[i] = w
	}
	verdicts := plan(wishes, s.ceilings, has.used, running, now)
	for i, v := range verdicts {
		for n := range v.jobs {
			q := request(list[i].msg, wishes[i].place.epoch)
			q.Dim = blocks[i]
			if err := s.queue.Submit(jobKey(list[i].id, past[list[i].id].next+uint64(n)), q); err != nil {
				verdicts[i].held = "its job could not be submitted: " + rpc.FromError(err).What
				break
			}
			making[wishes[i].place] += wishes[i].cost.tuples
		}
	}
	s.remember(list, wishes, verdicts, making, now)
}

// remember records which policies are filling, and publishes the results of the plan.
func (s *Service) remember(list []*policy, wishes []wish, verdicts []verdict, making map[place]uint64, now time.Time) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	k := kept{making: making, policies: map[place]shown{}}
	for i, p := range list {
		if s.policies[p.id] != p {
			continue // deleted or replaced meanwhile
		}
		if p.Filling != verdicts[i].filling {
			p.Filling = verdicts[i].filling
			if err := s.records.setPolicy(p); err != nil {
				s.log.Error("cannot record the state of a policy", "error", err)
			}
		}
		if old, found := k.policies[wishes[i].place]; !found || old.policy.msg.GetEpoch() == 0 { // a policy for that specific epoch takes precedence
			k.policies[wishes[i].place] = shown{p, verdicts[i].held}
		}
	}
	changed := !maps.Equal(k.making, s.kept.making) || !maps.Equal(k.policies, s.kept.policies)
	s.kept = k
	if changed {
		s.view.show()
	}
}

// histories derives each policy's state from its jobs, and counts the running or waiting jobs of
// all policies.
func histories(jobs []Job, list []*policy) (past map[string]*history, running int) {
	past = map[string]*history{}
	since := map[string]uint64{}
	for _, p := range list {
		past[p.id], since[p.id] = &history{next: p.Since}, p.Since // applies also if the records of its jobs are lost
	}
	for _, j := range jobs {
		id, number, ok := ofPolicy(j.Key)
		if !ok {
			continue
		}
		over := job.Final(j.State)
		if !over {
			running++
		}
		h := past[id]
		if h == nil {
			continue
		}
		h.next = max(h.next, number+1)
		switch {
		case !over:
		case number < since[id] || j.Interrupted:
		case j.completed():
			h.failures = 0
		default:
			h.failures++
			h.failed, h.why = later(h.failed, j.Ended), j.Why
		}
	}
	return past, running
}

// estimateOf returns the cached estimate of a request, or requests one from the parties.
func (s *Service) estimateOf(ctx context.Context, q *coordinatorv1.JobRequest, now time.Time) estimate {
	k := estimateKey(q)
	e, found := s.estimates[k]
	if found && now.Before(e.until) {
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := s.queue.Estimate(ctx, q)
	e = estimate{cost: cost{r.GetTuples(), r.GetStoredBytes(), r.GetMemoryBytes()}, block: r.GetDim(), err: err, until: now.Add(estimatedFor)}
	switch {
	case err == nil:
	case unreachable(err):
		e.until = now.Add(unansweredFor)
	default:
		e.until = now.Add(refusedFor)
	}
	if len(s.estimates) >= maxEstimates {
		clear(s.estimates)
	}
	s.estimates[k] = e
	if err == nil { // jobs give the block explicitly
		q.Dim = r.GetDim()
		s.estimates[estimateKey(q)] = e
	}
	return e
}

// estimateKey returns a map key of the fields on which an estimate depends.
func estimateKey(q *coordinatorv1.JobRequest) string {
	return fmt.Sprintf("%s/%d/%d/%d", keyOf(ClassOf(q)), q.GetEpoch(), q.GetDim(), q.GetCount())
}
