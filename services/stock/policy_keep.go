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
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// Queue is the coordinator's queue of jobs, as policies use it.
type Queue interface {
	// Check refuses a request that no party could take.
	Check(q *coordinatorv1.JobRequest) error
	// Tuples lists all jobs that make tuples or masks, in the order of submission.
	Tuples() []Job
	// Submit queues a job of a policy under a key: the same key is the same job, also after a restart.
	Submit(key string, q *coordinatorv1.JobRequest) error
	// Estimate says what a job would make and take.
	Estimate(ctx context.Context, q *coordinatorv1.JobRequest) (*coordinatorv1.EstimateJobResponse, error)
}

// idle is a queue that takes no jobs.
type idle struct{}

var errIdle = rpc.Errorf(rpc.PolicyRefused, "", "no jobs are taken here")

func (idle) Check(*coordinatorv1.JobRequest) error          { return errIdle }
func (idle) Tuples() []Job                                  { return nil }
func (idle) Submit(string, *coordinatorv1.JobRequest) error { return errIdle }
func (idle) Estimate(context.Context, *coordinatorv1.JobRequest) (*coordinatorv1.EstimateJobResponse, error) {
	return nil, errIdle
}

// Job is a job that makes tuples or masks.
type Job struct {
	ID      string
	Key     string // under which it was submitted
	Request *coordinatorv1.JobRequest
	State   jobv1.JobState
	Batch   string // that it makes; empty before parties have it
	Made    uint64 // tuples, once parties have them
	Created time.Time
	Ended   time.Time
	Why     string // how it failed
	// Interrupted: it ended with the coordinator, which says nothing of the next.
	Interrupted bool
}

// completed reports whether the tuples of a job are at the parties.
func (j *Job) completed() bool { return j.State == jobv1.JobState_JOB_STATE_COMPLETED }

// jobPrefix begins the keys of the jobs of policies: those of clients begin with a name, which has no such character.
// The policy's id follows, and the job's number.
const jobPrefix = "/stock/"

func jobKey(id string, number uint64) string { return fmt.Sprintf("%s%s/%d", jobPrefix, id, number) }

// ofPolicy reads the key of a policy's job.
func ofPolicy(key string) (id string, number uint64, ok bool) {
	rest, ok := strings.CutPrefix(key, jobPrefix)
	id, digits, found := strings.Cut(rest, "/")
	number, err := strconv.ParseUint(digits, 10, 64)
	return id, number, ok && found && err == nil
}

// How many estimates are remembered, and for how long: parties may change their policies.
const (
	maxEstimates  = 4096
	estimatedFor  = 10 * time.Minute
	refusedFor    = 30 * time.Second
	unansweredFor = 2 * time.Second
)

// estimate is what parties have said of a request.
type estimate struct {
	cost
	block uint32
	err   error
	until time.Time
}

// kept is what keeping found last, for those who ask what there is.
type kept struct {
	making   map[place]uint64
	policies map[place]shown
}

// shown is a policy as it stands, at the place that it is for at this moment.
type shown struct {
	policy *policy
	held   string
}

// history is what the jobs say of a policy.
type history struct {
	next     uint64 // number of its next job
	failures int
	failed   time.Time
	why      string
}

// keep makes a plan and submits its jobs. It is called by one goroutine. known are the jobs whose tuples are in the view
// if they are anywhere: those that were complete before the parties were asked last. away says who could not be.
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
		// With a party away nobody knows of completed jobs whether the view has their tuples, and no policy acts on it.
		away := awayFor(away, ClassOf(j.Request))
		if job.Final(j.State) && (!j.completed() || known[j.ID] || away != nil) || has.batches[j.Batch] {
			continue
		}
		e := s.estimates[estimateKey(j.Request)] // no party may be there to ask
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
					w.problem = "no party says what a job takes: " + rpc.FromError(e.err).What
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

// remember records which policies are filling up, and shows what was found.
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
				s.log.Error("recording the state of a policy", "error", err)
			}
		}
		if old, found := k.policies[wishes[i].place]; !found || old.policy.msg.GetEpoch() == 0 { // that of the very epoch goes first
			k.policies[wishes[i].place] = shown{p, verdicts[i].held}
		}
	}
	changed := !maps.Equal(k.making, s.kept.making) || !maps.Equal(k.policies, s.kept.policies)
	s.kept = k
	if changed {
		s.view.show()
	}
}

// histories reads what became of the jobs of each policy, and how many of them, of any policy, run or wait.
func histories(jobs []Job, list []*policy) (past map[string]*history, running int) {
	past = map[string]*history{}
	since := map[string]uint64{}
	for _, p := range list {
		past[p.id], since[p.id] = &history{next: p.Since}, p.Since // also where the records of its jobs are lost
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

// estimateOf asks what a request makes and takes, once.
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
	if err == nil { // jobs name the block
		q.Dim = r.GetDim()
		s.estimates[estimateKey(q)] = e
	}
	return e
}

// estimateKey tells requests apart by what their estimates depend on.
func estimateKey(q *coordinatorv1.JobRequest) string {
	return fmt.Sprintf("%s/%d/%d/%d", keyOf(ClassOf(q)), q.GetEpoch(), q.GetDim(), q.GetCount())
}
