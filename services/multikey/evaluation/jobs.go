package evaluation

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
	"github.com/lodge-mpc/lodge/services/rpc"
)

const (
	// maxRunning is how many jobs share the processors.
	maxRunning = 2
	// maxEnded is how many jobs that have ended are remembered.
	maxEnded = 1000
	// maxKept is how many results are kept, however small.
	maxKept = 10000
)

const (
	waiting   = multikeyv1.EvaluationState_EVALUATION_STATE_WAITING
	running   = multikeyv1.EvaluationState_EVALUATION_STATE_RUNNING
	done      = multikeyv1.EvaluationState_EVALUATION_STATE_DONE
	failed    = multikeyv1.EvaluationState_EVALUATION_STATE_FAILED
	cancelled = multikeyv1.EvaluationState_EVALUATION_STATE_CANCELLED
)

// job is an evaluation that a client has submitted. The service's lock is held for what changes.
type job struct {
	client  string
	request [requestSize]byte
	digest  [32]byte
	netlist [32]byte
	cost    *multikeyv1.EvaluationCost
	created time.Time
	over    chan struct{} // closed when it has ended

	in             *intake // nil when it has ended
	state          multikeyv1.EvaluationState
	stop           context.CancelFunc // of a job that runs
	gates          int
	started, ended time.Time
	result         *result
	err            *rpc.Error
}

func (j *job) ongoing() bool { return j.state == waiting || j.state == running }

// add adds a job, or finds the one that the same request began.
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
		return nil, rpc.Errorf(rpc.Busy, "wait until one has ended, or cancel one", "%d evaluations of this client wait or run", ongoing)
	}
	j := &job{
		client: client, request: in.request, digest: in.digest, netlist: in.netlist, cost: in.describe(s.rotation, s.Workers), created: s.Now(),
		over: make(chan struct{}), in: in, state: waiting,
	}
	s.jobs = append(s.jobs, j)
	s.stir()
	return j, nil
}

// find gives a job of the caller's.
func (s *Service) find(ctx context.Context, request []byte) (*job, error) {
	caller, _ := rpc.Caller(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.client == caller.Name && bytes.Equal(j.request[:], request) {
			return j, nil
		}
	}
	return nil, rpc.Errorf(rpc.NotFound, "`lodge mk jobs` lists those that this party remembers", "no such evaluation of this client")
}

// cancel has a job end.
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

// finish ends a job. The caller holds the lock.
func (s *Service) finish(j *job, state multikeyv1.EvaluationState, err *rpc.Error) {
	outcome, bootstraps := "ok", int(j.cost.GetBootstraps())
	if state != done {
		outcome, bootstraps = "cancelled", 0
	}
	if err != nil {
		outcome = string(err.Code)
	}
	s.Metrics.MultikeyEvaluated(outcome, bootstraps)
	j.state, j.err, j.ended = state, err, s.Now()
	go j.in.release() // which takes the lock
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

// choose gives the job that begins next: the first of a client that has the fewest running; nil if there is no room. The
// caller holds the lock.
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

// compute computes a job.
func (s *Service) compute(ctx context.Context, j *job) {
	in := j.in // nobody changes it before finish
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
			s.Log.Error("an evaluation has failed", "client", j.client, "error", err)
		}
		s.finish(j, failed, e)
	}
}

func (s *Service) evaluate(ctx context.Context, j *job, in *intake) (*result, error) {
	ids := in.ids()
	for _, id := range ids { // what has become of keys since
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
	s.Metrics.MultikeyTook(took)
	s.Log.Info("an evaluation has ended", "client", j.client, "gates", in.cost.Gates, "bootstraps", in.cost.Total(), "seconds", took.Seconds())
	return newResult(in.scheme, out), nil
}

// learnFrom is from how many rotations on an evaluation says what one takes.
const learnFrom = 10

// learn takes what an evaluation took for the next estimates, with what was before. It took as long as it did with what ran
// beside it, and with merging and switching, which is a part of each rotation.
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

// describe is a job as the wire has it.
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

// result is ciphertexts, which their digest names.
type result struct {
	digest [32]byte
	groups []*multikeyv1.InputGroup
	bytes  []byte // nil when it is not kept any more
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

// results are those that are kept: the last ones for which there is room, and no client takes that of others who have less.
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

// put keeps a result, in place of older ones: of the client that has most of them. The caller holds the service's lock.
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

// trim forgets what is too old.
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

// get gives a copy of a client's result, whose bytes nobody changes; nil if it is not kept. The caller holds the lock.
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
