package coordinator

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	"github.com/lodge-mpc/lodge/services/coordinator/stock"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// maxSamples is the maximum number of earlier jobs whose median forms an estimate.
const maxSamples = 9

// EstimateJob implements the service.
func (c *Coordinator) EstimateJob(ctx context.Context, r *coordinatorv1.EstimateJobRequest) (*coordinatorv1.EstimateJobResponse, error) {
	caller, _ := rpc.Caller(ctx)
	//lodge:check coordinator/job/tenant-of-estimate [run=TestJobsOfTenants] a client gets estimates
	//  for another tenant
	if err := serves(caller, r.GetJob()); err != nil {
		return nil, err
	}
	return c.estimate(ctx, r.GetJob())
}

// estimate combines the estimates of the parties, which have the engine, with the records of
// earlier jobs.
func (c *Coordinator) estimate(ctx context.Context, q *coordinatorv1.JobRequest) (*coordinatorv1.EstimateJobResponse, error) {
	if q == nil || !job.Stocked(q.GetKind()) {
		return nil, rpc.Errorf(rpc.Invalid, "request a kind of tuples, or masks", "cannot estimate: %s", job.NoTuples(q.GetKind()))
	}
	checked := proto.CloneOf(q)
	masks := q.GetKind() == jobv1.Kind_KIND_MASKS
	if !masks {
		checked.Dim = max(1, q.GetDim())
	}
	//lodge:check coordinator/estimate/valid [run=TestEstimateRefusals] there is an estimate for an
	//  invalid job
	if err := c.check(checked); err != nil {
		return nil, err
	}
	ask := c.askTuples
	if masks {
		ask = c.askMasks
	}
	answers, err := c.askAll(ctx, c.members(q), ask(q))
	if err != nil {
		return nil, err
	}
	first := answers[0]
	out := &coordinatorv1.EstimateJobResponse{Tuples: first.GetTuples(), Dim: first.GetDim(), Basis: coordinatorv1.EstimateBasis_ESTIMATE_BASIS_MODEL}
	seconds := 0.0
	for _, a := range answers {
		//lodge:check coordinator/estimate/agreed [run=TestEstimateRefusals] an estimate mixes
		//  answers about different jobs
		if a.GetTuples() != first.GetTuples() || a.GetDim() != first.GetDim() {
			return nil, rpc.Errorf(rpc.Internal, "run the same release everywhere", "parties estimate different jobs for the same request")
		}
		out.TupleBytes = max(out.TupleBytes, a.GetTupleBytes())
		out.SentBytes = max(out.SentBytes, a.GetSentBytes())
		out.MemoryBytes = max(out.MemoryBytes, a.GetMemoryBytes())
		seconds = max(seconds, a.GetComputeSeconds()+float64(a.GetSentBytes())/modelBandwidth)
	}
	//lodge:check coordinator/estimate/possible [run=TestEstimateRefusals] an estimate is computed from
	//  impossible numbers
	//lodge:check coordinator/estimate/possible-none [drop=out.Tuples == 0]
	//  [run=TestEstimateRefusals] a batch of no tuples crashes the coordinator
	//lodge:check coordinator/estimate/possible-tuples [drop=out.Tuples > maxEstimate]
	//  [run=TestEstimateRefusals] a batch has more tuples than any party can make
	//lodge:check coordinator/estimate/possible-size [drop=out.TupleBytes > maxEstimate]
	//  [run=TestEstimateRefusals] the size of an estimate overflows
	//lodge:check coordinator/estimate/possible-memory [drop=out.MemoryBytes > 1<<60]
	//  [run=TestEstimateRefusals] an estimate asks for impossible memory
	//lodge:check coordinator/estimate/possible-time [drop=!(seconds < 1e9)]
	//  [run=TestEstimateRefusals] an estimate has no duration
	if out.Tuples == 0 || out.Tuples > maxEstimate || out.TupleBytes > maxEstimate ||
		out.MemoryBytes > 1<<60 || !(seconds < 1e9) { // which bounds SentBytes too
		return nil, rpc.Errorf(rpc.Internal, "compare the releases that the parties run", "a party's estimate is invalid: %v", first)
	}
	out.Jobs = (q.GetCount()-1)/out.Tuples + 1
	out.StoredBytes = out.Tuples * out.TupleBytes
	out.Duration = durationpb.New(time.Duration(max(0, seconds) * float64(time.Second)))
	if masks { // there is no model of masks
		out.Basis = coordinatorv1.EstimateBasis_ESTIMATE_BASIS_UNSPECIFIED
	}
	if took, sent, n := c.past(q, out); n > 0 {
		out.Basis, out.Samples = coordinatorv1.EstimateBasis_ESTIMATE_BASIS_HISTORY, uint32(n)
		out.Duration, out.SentBytes = durationpb.New(took), sent
	}
	out.AllTuples, out.AllStoredBytes, out.AllSentBytes = times(out.Jobs, out.Tuples), times(out.Jobs, out.StoredBytes), times(out.Jobs, out.SentBytes)
	out.AllDuration = durationpb.New(time.Duration(min(times(out.Jobs, uint64(out.Duration.AsDuration())), math.MaxInt64)))
	return out, nil
}

// times returns a·b, or the largest uint64 if the product overflows.
func times(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

// maxBatch is an upper bound on the number of tuples in a batch: 16 blocks of the slots of the
// largest ring.
const maxBatch = 1 << 20

// maxEstimate bounds the number of tuples and the bytes of a tuple in a party's estimate.
const maxEstimate = 1 << 31

// modelBandwidth is the bandwidth per party that the model assumes, in bytes per second (1 Gbit/s).
const modelBandwidth = 125e6

// asking requests an estimate from one party.
type asking func(ctx context.Context, p *member) (*triplesv1.EstimateResponse, error)

// askTuples returns a request for the estimate of a job that makes tuples.
func (c *Coordinator) askTuples(q *coordinatorv1.JobRequest) asking {
	spec := c.trial(q)
	spec.Dim, spec.Count = q.GetDim(), min(q.GetCount(), maxBatch) // a party rejects a session above its limit
	return func(ctx context.Context, p *member) (*triplesv1.EstimateResponse, error) {
		return triplesv1.NewTriplesServiceClient(p.conn).Estimate(ctx, &triplesv1.EstimateRequest{Spec: spec})
	}
}

// askMasks returns a request for the estimate of a job that makes masks. A party reports only their
// sizes.
func (c *Coordinator) askMasks(q *coordinatorv1.JobRequest) asking {
	spec := c.trial(q)
	return func(ctx context.Context, p *member) (*triplesv1.EstimateResponse, error) {
		r, err := thresholdv1.NewThresholdServiceClient(p.conn).Estimate(ctx, &thresholdv1.EstimateRequest{Spec: spec})
		if err != nil {
			return nil, err
		}
		return &triplesv1.EstimateResponse{Tuples: r.GetMasks(), TupleBytes: r.GetMaskBytes(), MemoryBytes: r.GetMemoryBytes()}, nil
	}
}

// askAll requests an estimate from all parties. One response is enough because each party plans
// independently, but no party may refuse.
func (c *Coordinator) askAll(ctx context.Context, parties []*member, ask asking) (answers []*triplesv1.EstimateResponse, err error) {
	type answer struct {
		r   *triplesv1.EstimateResponse
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, c.timing.call)
	defer cancel()
	list := make([]chan answer, len(parties))
	for i, p := range parties {
		ch := make(chan answer, 1)
		list[i] = ch
		go func() {
			r, err := ask(ctx, p)
			ch <- answer{r, err}
		}()
	}
	var away error
	for i, p := range parties {
		a := <-list[i]
		switch {
		case a.err == nil:
			answers = append(answers, a.r)
		case unreachable(a.err) || rpc.FromError(a.err).Code == rpc.Cancelled:
			away = cmp.Or(away, error(rpc.Errorf(rpc.FromError(a.err).Code, "try again when it can be reached", "party %d (%s) cannot be reached", p.index, p.name)))
		default:
			e := *rpc.FromError(a.err)
			e.What = "party " + p.name + " refuses: " + text(e.What, maxReason)
			//lodge:check coordinator/estimate/refused [as=away = &e] [run=TestEstimateRefusals]
			//  there is an estimate for a job that a party rejects
			return nil, &e
		}
	}
	if len(answers) == 0 {
		return nil, away
	}
	return answers, nil
}

// past returns the medians over the last jobs that made as many tuples of the same class in the
// same way, and the number of these jobs.
func (c *Coordinator) past(q *coordinatorv1.JobRequest, e *coordinatorv1.EstimateJobResponse) (took time.Duration, sent uint64, n int) {
	var durations []time.Duration
	var bytes []uint64
	c.mu.Lock()
	for _, id := range slices.Backward(c.list) {
		j := c.jobs[id].job
		if len(durations) == maxSamples {
			break
		}
		if j.GetState() != completed || !alike(j.GetRequest(), q) || j.GetRequest().GetDim() != e.GetDim() || made(j) != e.GetTuples() {
			continue
		}
		most := uint64(0)
		for _, p := range j.GetParties() {
			most = max(most, p.GetStatus().GetProgress().GetSentBytes())
		}
		durations = append(durations, j.GetEnded().AsTime().Sub(j.GetStarted().AsTime()))
		bytes = append(bytes, most)
	}
	c.mu.Unlock()
	if len(durations) == 0 {
		return 0, 0, 0
	}
	slices.Sort(durations)
	slices.Sort(bytes)
	return max(0, durations[len(durations)/2]), bytes[len(bytes)/2], len(durations)
}

// alike reports whether two jobs make tuples or masks at the same cost.
func alike(a, b *coordinatorv1.JobRequest) bool {
	return a.GetKind() == b.GetKind() && a.GetParams() == b.GetParams() && a.GetField() == b.GetField() &&
		a.GetNoSacrifice() == b.GetNoSacrifice() && proto.Equal(a.GetShape(), b.GetShape()) &&
		a.GetForm() == b.GetForm() && len(a.GetGroup()) == len(b.GetGroup())
}

// made returns the number of tuples that a job made.
func made(j *coordinatorv1.Job) uint64 {
	if len(j.GetParties()) == 0 {
		return 0
	}
	return j.GetParties()[0].GetStatus().GetCount()
}

// queue is the coordinator as the stock's policies see it.
type queue Coordinator

var _ stock.Queue = (*queue)(nil)

// Check implements stock.Queue.
func (c *queue) Check(q *coordinatorv1.JobRequest) error { return (*Coordinator)(c).check(q) }

// Estimate implements stock.Queue.
func (c *queue) Estimate(ctx context.Context, q *coordinatorv1.JobRequest) (*coordinatorv1.EstimateJobResponse, error) {
	return (*Coordinator)(c).estimate(ctx, q)
}

// Submit implements stock.Queue.
func (c *queue) Submit(key string, q *coordinatorv1.JobRequest) error {
	_, err := (*Coordinator)(c).add(q, key, config.StockName)
	return err
}

// Tuples implements stock.Queue.
func (c *queue) Tuples() (list []stock.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.list {
		e := c.jobs[id]
		j := e.job
		if !job.Stocked(j.GetRequest().GetKind()) {
			continue
		}
		list = append(list, stock.Job{
			ID: id, Key: e.key, Request: j.GetRequest(), State: j.GetState(), Batch: j.GetBatchId(), Made: made(j),
			Created: j.GetCreated().AsTime(), Ended: j.GetEnded().AsTime(), Why: j.GetFailure().GetReason(),
			Interrupted: interrupted(j),
		})
	}
	return list
}
