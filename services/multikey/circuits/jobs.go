package circuits

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

const (
	// maxRunning is the number of jobs that run concurrently.
	maxRunning = 2
	// maxEnded is the number of ended jobs that are kept.
	maxEnded = 1000
	// maxKept is the maximum number of results that are kept, whatever their size.
	maxKept = 10000
)

const (
	waiting   = multikeyv1.EvaluationState_EVALUATION_STATE_WAITING
	running   = multikeyv1.EvaluationState_EVALUATION_STATE_RUNNING
	done      = multikeyv1.EvaluationState_EVALUATION_STATE_DONE
	failed    = multikeyv1.EvaluationState_EVALUATION_STATE_FAILED
	cancelled = multikeyv1.EvaluationState_EVALUATION_STATE_CANCELLED
)

// job is a submitted evaluation. The service's lock guards the fields that change.
type job struct {
	client  string
	request [requestSize]byte
	digest  [32]byte
	netlist [32]byte
	cost    *multikeyv1.EvaluationCost
	created time.Time
	over    chan struct{} // closed when the job has ended

	in             *intake // nil when the job has ended
	state          multikeyv1.EvaluationState
	stop           context.CancelFunc // of a running job
	gates          int
	started, ended time.Time
	result         *result
	err            *rpc.Error
}

func (j *job) ongoing() bool { return j.state == waiting || j.state == running }

// add adds a job, or returns the job of the same request.
func (s *Service) add(client string, in *intake) (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ongoing := 0
	for _, j := range s.jobs {
		if j.client != client {
			continue
		}
		if j.request == in.request {
			if j.digest != in.digest {
				return nil, rpc.Errorf(rpc.Conflict, "draw another request id", "the request id was used for another evaluation")
			}
			go in.release()
			return j, nil
		}
		if j.ongoing() {
			ongoing++
		}
	}
	if ongoing >= s.Limits.MaxPerClient {
		return nil, rpc.Errorf(rpc.Busy, "wait until one of them has ended, or cancel one", "%d evaluations of this client are waiting or running", ongoing)
	}
	j := &job{
		client: client, request: in.request, digest: in.digest, netlist: in.netlist, cost: in.describe(s.rotation, s.Workers), created: s.Now(),
		over: make(chan struct{}), in: in, state: waiting,
	}
	s.jobs = append(s.jobs, j)
	s.stir()
	return j, nil
}

// find returns one of the caller's jobs.
func (s *Service) find(ctx context.Context, request []byte) (*job, error) {
	caller, _ := rpc.Caller(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.client == caller.Name && bytes.Equal(j.request[:], request) {
			return j, nil
		}
	}
	return nil, rpc.Errorf(rpc.NotFound, "`lodge mk jobs` lists the jobs that this party remembers", "no such evaluation of this client")
}

// cancel ends a job.
func (s *Service) cancel(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch j.state {
	case waiting:
		s.finish(j, cancelled, nil)
	case running:
		j.stop()
	}
}

// finish ends a job. The caller must hold the lock.
func (s *Service) finish(j *job, state multikeyv1.EvaluationState, err *rpc.Error) {
	outcome, bootstraps := "ok", int(j.cost.GetBootstraps())
	if state != done {
		outcome, bootstraps = "cancelled", 0
	}
	if err != nil {
		outcome = string(err.Code)
	}
	s.Metrics.Count(metrics.MultikeyEvaluations, 1, outcome)
	s.Metrics.Count(metrics.MultikeyBootstraps, bootstraps)
	j.state, j.err, j.ended = state, err, s.Now()
	go j.in.release() // release takes the lock
	j.in = nil
	close(j.over)
	ended := 0
	for _, x := range s.jobs {
		if !x.ongoing() {
			ended++
		}
	}
	if ended > maxEnded {
		i := slices.IndexFunc(s.jobs, func(x *job) bool { return !x.ongoing() })
		s.jobs = slices.Delete(s.jobs, i, i+1)
	}
	s.stir()
}

// Run computes jobs until ctx is done.
func (s *Service) Run(ctx context.Context) {
	if s.Context == nil {
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	for {
		s.mu.Lock()
		j := s.choose()
		wake := s.wake
		if j != nil {
			var own context.Context
			own, j.stop = context.WithCancel(ctx)
			j.state, j.started = running, s.Now()
			s.tell()
			all.Go(func() { s.compute(own, j) })
		}
		s.mu.Unlock()
		if j != nil {
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
	}
}

// choose returns the job to begin next: the oldest job of a client with the fewest running jobs. It
// returns nil if no job may begin. The caller must hold the lock.
func (s *Service) choose() (best *job) {
	counts, total := map[string]int{}, 0
	for _, j := range s.jobs {
		if j.state == running {
			counts[j.client]++
			total++
		}
	}
	if total >= maxRunning {
		return nil
	}
	for _, j := range s.jobs {
		if j.state == waiting && (best == nil || counts[j.client] < counts[best.client]) {
			best = j
		}
	}
	return best
}

// compute runs a job.
func (s *Service) compute(ctx context.Context, j *job) {
	in := j.in // not changed before finish
	defer j.stop()
	r, err := s.evaluate(ctx, j, in)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.results.put(j.client, r, s.Now())
		j.result = r
		s.finish(j, done, nil)
	case ctx.Err() != nil:
		s.finish(j, cancelled, nil)
	default:
		e := rpc.FromError(refused(err))
		if e.Code == rpc.Internal {
			s.Log.Error("evaluation failed", "client", j.client, "error", err)
		}
		s.finish(j, failed, e)
	}
}

func (s *Service) evaluate(ctx context.Context, j *job, in *intake) (*result, error) {
	ids := in.ids()
	for _, id := range ids { // keys may have been revoked since the submission
		if err := s.Keys.Usable(id); err != nil {
			return nil, err
		}
	}
	e, release, err := s.keys.take(ctx, ids)
	if err != nil {
		return nil, err
	}
	defer release()
	began := time.Now()
	local := circuit.Local{Evaluator: e, Workers: s.Workers}
	if s.Rotate != nil {
		local.Rotate = s.Rotate(e)
	}
	out, err := in.program.Run(ctx, local, in.input, func(gates int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		j.gates = gates
	})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	s.learn(in, took.Seconds())
	s.Metrics.Observe(metrics.MultikeyTime, took)
	s.Log.Info("evaluation ended", "client", j.client, "gates", in.cost.Gates, "bootstraps", in.cost.Total(), "seconds", took.Seconds())
	return newResult(in.scheme, out), nil
}

// learnFrom is the minimum number of rotations of an evaluation from which learn estimates the time
// of a rotation.
const learnFrom = 10

// learn averages the time per rotation of an evaluation into the estimate. The time includes the
// effect of concurrent jobs, and merging and switching, which belong to each rotation.
func (s *Service) learn(in *intake, seconds float64) {
	n := in.cost.Rotations()
	if n < learnFrom {
		return
	}
	rotation := seconds * in.width(s.Workers) / float64(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rotation > 0 {
		rotation = (rotation + s.rotation) / 2
	}
	s.rotation = rotation
}

// describe returns a job in its wire format.
func (s *Service) describe(j *job) *multikeyv1.EvaluationJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &multikeyv1.EvaluationJob{
		RequestId: j.request[:], State: j.state, Cost: j.cost, Done: uint64(j.gates), Created: timestamppb.New(j.created), NetlistDigest: j.netlist[:],
	}
	if !j.started.IsZero() {
		d.Started = timestamppb.New(j.started)
	}
	if !j.ended.IsZero() {
		d.Ended = timestamppb.New(j.ended)
	}
	if r := j.result; r != nil {
		d.ResultDigest, d.Results, d.KeptUntil = r.digest[:], r.groups, timestamppb.New(j.ended.Add(s.results.keep))
	}
	if j.err != nil {
		d.Code, d.What, d.Next = string(j.err.Code), j.err.What, j.err.Next
	}
	return d
}

// result is a list of ciphertexts, identified by its digest.
type result struct {
	digest [32]byte
	groups []*multikeyv1.InputGroup
	bytes  []byte // nil when the result is no longer kept
}

func newResult(s *multikey.Scheme, list []*multikey.Ciphertext) *result {
	r, h := new(result), sha256.New()
	for i, c := range list {
		at := len(r.bytes)
		r.bytes = s.AppendCiphertext(r.bytes, c)
		sum := sha256.Sum256(r.bytes[at:])
		h.Write(sum[:])
		ids := c.Keys()
		if i > 0 && slices.Equal(ids, list[i-1].Keys()) {
			r.groups[len(r.groups)-1].Count++
			continue
		}
		g := &multikeyv1.InputGroup{Form: multikeyv1.InputForm_INPUT_FORM_CIPHERTEXTS, Count: 1}
		for _, id := range ids {
			g.Keys = append(g.Keys, id[:])
		}
		r.groups = append(r.groups, g)
	}
	h.Sum(r.digest[:0])
	return r
}

// results holds the latest results within the limit. A client cannot displace the results of
// clients that have fewer.
type results struct {
	limit int64
	keep  time.Duration
	used  int64
	list  []kept
}

type kept struct {
	*result
	client string
	until  time.Time
}

// put stores a result and evicts old results of the client that stores most. The caller must hold
// the service's lock.
func (r *results) put(client string, x *result, now time.Time) {
	r.trim(now)
	held := map[string]int64{}
	for _, k := range r.list {
		held[k.client] += int64(len(k.bytes))
	}
	size := int64(len(x.bytes))
	held[client] += size
	for len(r.list) > 0 && (r.used+size > r.limit || len(r.list) >= maxKept) {
		victim := 0
		for i, k := range r.list {
			if held[k.client] > held[r.list[victim].client] {
				victim = i
			}
		}
		held[r.list[victim].client] -= int64(len(r.list[victim].bytes))
		r.forget(victim)
	}
	r.list = append(r.list, kept{x, client, now.Add(r.keep)})
	r.used += size
}

// trim removes expired results.
func (r *results) trim(now time.Time) {
	for len(r.list) > 0 && now.After(r.list[0].until) {
		r.forget(0)
	}
}

func (r *results) forget(i int) {
	r.used -= int64(len(r.list[i].bytes))
	r.list[i].bytes = nil
	r.list = slices.Delete(r.list, i, i+1)
}

// get returns a copy of a client's result, whose bytes are immutable, or nil if it is not kept. The
// caller must hold the lock.
func (r *results) get(client string, digest []byte, now time.Time) *result {
	r.trim(now)
	for _, k := range r.list {
		if k.client == client && bytes.Equal(k.digest[:], digest) {
			x := *k.result
			return &x
		}
	}
	return nil
}
