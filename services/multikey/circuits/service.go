// Package circuits computes netlists on multi-key ciphertexts for the clients of one party
// (lodge.multikey.v1.EvaluationService). All its data is public: ciphertexts, keys, and netlists.
// The owners of the keys decrypt results elsewhere, if they agree.
package circuits

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	service "github.com/lodge-mpc/lodge/services/multikey"
)

// Rules maps each method to the permission that a caller needs.
var Rules = func() rpc.Rules {
	rules := rpc.Rules{}
	for _, m := range []string{"Estimate", "Submit", "GetJob", "WatchJob", "ListJobs", "CancelJob", "GetResult"} {
		rules["/lodge.multikey.v1.EvaluationService/"+m] = rpc.Allow(rpc.Client).With(config.PermEvaluate)
	}
	return rules
}()

// Keys is the registry of public keys.
type Keys interface {
	// Usable returns an *rpc.Error if the keys must not be used for new computations.
	Usable(multikey.KeyID) error
	Load(context.Context, multikey.KeyID) (*multikey.Keys, error)
}

// Config configures a party's service.
type Config struct {
	Context *service.Context // nil if the roster pins no context
	Keys    Keys
	Limits  config.MultikeyService
	Workers int
	// Rotate returns a function that computes the rotations of an evaluation instead of the
	// evaluator. If Rotate or its result is nil, the evaluator computes them.
	Rotate  func(*multikey.Evaluator) multikey.Rotate
	Metrics *metrics.Metrics
	Log     *slog.Logger
	Now     func() time.Time // nil: the system clock
}

// Service implements lodge.multikey.v1.EvaluationService. Run computes the jobs.
type Service struct {
	multikeyv1.UnsafeEvaluationServiceServer
	Config
	keys *cache

	mu      sync.Mutex
	memory  int64            // reserved by uploads, and by jobs that have not ended
	held    map[string]int64 // reserved by each client
	jobs    []*job           // in the order of submission
	wake    chan struct{}    // closed when a job may begin, or has ended
	results results
	// rotation is the time of one rotation on one worker, in seconds; 0: not measured yet.
	rotation float64
}

// New returns the service.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Service{Config: c, held: map[string]int64{}, wake: make(chan struct{}), results: results{limit: int64(c.Limits.MaxResults), keep: time.Duration(c.Limits.KeepResults)}}
	if c.Context != nil {
		s.keys = newCache(c.Context.Scheme, c.Keys, int64(c.Limits.MaxKeysMemory), c.Workers)
		s.tell()
	}
	return s
}

// reserve reserves memory for a client until release is called. A client gets at most half of the
// total memory.
func (s *Service) reserve(client string, bytes int64) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := int64(s.Limits.MaxMemory)
	share := limit / 2
	switch {
	case bytes > share:
		return nil, rpc.Errorf(rpc.TooLarge, "split the request, or have the operator raise multikey.max_memory, half of which is a client's share",
			"the evaluation needs about %d bytes, but a client's share is %d bytes", bytes, share)
	case s.held[client]+bytes > share:
		return nil, rpc.Errorf(rpc.Busy, "try again when another evaluation of this client has ended", "the evaluation needs about %d bytes, but this client has only %d bytes left", bytes, share-s.held[client])
	case s.memory+bytes > limit:
		return nil, rpc.Errorf(rpc.Busy, "try again when another evaluation has ended", "the evaluation needs about %d bytes, but only %d bytes are free", bytes, limit-s.memory)
	}
	s.memory += bytes
	s.held[client] += bytes
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.memory -= bytes
		if s.held[client] -= bytes; s.held[client] == 0 {
			delete(s.held, client)
		}
		s.stir()
	}), nil
}

// stir wakes all waiting goroutines and updates the metrics. The caller must hold the lock.
func (s *Service) stir() {
	s.tell()
	close(s.wake)
	s.wake = make(chan struct{})
}

// tell updates the metrics. The caller must hold the lock.
func (s *Service) tell() {
	found := map[multikeyv1.EvaluationState]int{}
	for _, j := range s.jobs {
		found[j.state]++
	}
	s.Metrics.Set(metrics.MultikeyOngoing, float64(found[waiting]), "waiting")
	s.Metrics.Set(metrics.MultikeyOngoing, float64(found[running]), "running")
	s.Metrics.Set(metrics.MultikeyBytes, float64(s.memory))
	s.Metrics.Set(metrics.MultikeyResults, float64(s.results.used))
	s.Metrics.Set(metrics.MultikeyRotation, s.rotation)
}

// refused converts an error of the engine to an *rpc.Error.
func refused(err error) error {
	var known *rpc.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, circuit.ErrTooBig):
		return rpc.Errorf(rpc.TooLarge, "split the netlist", "%v", err)
	case errors.Is(err, circuit.ErrSyntax), errors.Is(err, circuit.ErrWire):
		return rpc.Errorf(rpc.Invalid, "`lodge mk netlist check` validates a netlist", "%v", err)
	case errors.Is(err, circuit.ErrInputs), errors.Is(err, circuit.ErrKeys):
		return rpc.Errorf(rpc.Invalid, "", "%v", err)
	case errors.Is(err, multikey.ErrParties):
		return rpc.Errorf(rpc.Invalid, "combine inputs of fewer parties, or have the parties pin a set for more parties", "%v", err)
	case errors.Is(err, multikey.ErrSet), errors.Is(err, multikey.ErrCRS):
		return rpc.Errorf(rpc.Foreign, "", "%v", err)
	}
	return err
}

// Estimate implements the service.
func (s *Service) Estimate(stream multikeyv1.EvaluationService_EstimateServer) error {
	caller, _ := rpc.Caller(stream.Context())
	in, err := s.receive(caller.Name, func() (message, error) { return stream.Recv() }, false)
	if err != nil {
		return refused(err)
	}
	defer in.release()
	rotation, err := s.measure(stream.Context(), in)
	if err != nil {
		return refused(err)
	}
	return stream.SendAndClose(&multikeyv1.EstimateResponse{Cost: in.describe(rotation, s.Workers)})
}

// measure returns the time of a rotation in seconds. If it is unknown, measure computes some
// rotations with the request's keys.
func (s *Service) measure(ctx context.Context, in *intake) (float64, error) {
	s.mu.Lock()
	rotation := s.rotation
	s.mu.Unlock()
	ids := in.ids()
	if rotation > 0 || len(ids) == 0 || in.cost.Rotations() == 0 {
		return rotation, nil
	}
	e, release, err := s.keys.take(ctx, ids[:1])
	if err != nil {
		return 0, err
	}
	defer release()
	// The time does not depend on the plaintext of a ciphertext, and hardly on its words unless
	// they are 0.
	c := &multikey.Ciphertext{Parts: []multikey.Part{{Key: ids[0], A: make([]uint32, s.Context.Dim)}}}
	for i := range c.Parts[0].A {
		c.Parts[0].A[i] = uint32(i+1) * 0x9e3779b9
	}
	const times = 3
	began := time.Now()
	for range times {
		if _, err := e.Gate(ctx, 1, multikey.And, c, multikey.Trivial(true), nil); err != nil {
			return 0, err
		}
	}
	rotation = time.Since(began).Seconds() / times
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotation = rotation
	return rotation, nil
}

// Submit implements the service.
func (s *Service) Submit(stream multikeyv1.EvaluationService_SubmitServer) error {
	caller, _ := rpc.Caller(stream.Context())
	in, err := s.receive(caller.Name, func() (message, error) { return stream.Recv() }, true)
	if err != nil {
		return refused(err)
	}
	j, err := s.add(caller.Name, in)
	if err != nil {
		in.release()
		return refused(err)
	}
	return stream.SendAndClose(&multikeyv1.SubmitResponse{Job: s.describe(j)})
}

// GetJob implements the service.
func (s *Service) GetJob(ctx context.Context, m *multikeyv1.GetJobRequest) (*multikeyv1.GetJobResponse, error) {
	j, err := s.find(ctx, m.GetRequestId())
	if err != nil {
		return nil, err
	}
	return &multikeyv1.GetJobResponse{Job: s.describe(j)}, nil
}

// WatchJob implements the service.
func (s *Service) WatchJob(m *multikeyv1.WatchJobRequest, stream multikeyv1.EvaluationService_WatchJobServer) error {
	j, err := s.find(stream.Context(), m.GetRequestId())
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last *multikeyv1.EvaluationJob
	for {
		d := s.describe(j)
		if last == nil || d.GetState() != last.GetState() || d.GetDone() != last.GetDone() {
			if err := stream.Send(&multikeyv1.WatchJobResponse{Job: d}); err != nil {
				return err
			}
			last = d
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-j.over:
			if d.GetEnded() != nil {
				return nil
			}
		case <-tick.C:
		}
	}
}

// ListJobs implements the service.
func (s *Service) ListJobs(ctx context.Context, _ *multikeyv1.ListJobsRequest) (*multikeyv1.ListJobsResponse, error) {
	caller, _ := rpc.Caller(ctx)
	s.mu.Lock()
	var own []*job
	for i := len(s.jobs) - 1; i >= 0; i-- {
		if s.jobs[i].client == caller.Name {
			own = append(own, s.jobs[i])
		}
	}
	s.mu.Unlock()
	m := &multikeyv1.ListJobsResponse{}
	for _, j := range own {
		m.Jobs = append(m.Jobs, s.describe(j))
	}
	return m, nil
}

// CancelJob implements the service.
func (s *Service) CancelJob(ctx context.Context, m *multikeyv1.CancelJobRequest) (*multikeyv1.CancelJobResponse, error) {
	j, err := s.find(ctx, m.GetRequestId())
	if err != nil {
		return nil, err
	}
	s.cancel(j)
	select {
	case <-j.over:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &multikeyv1.CancelJobResponse{Job: s.describe(j)}, nil
}

// GetResult implements the service.
func (s *Service) GetResult(m *multikeyv1.GetResultRequest, stream multikeyv1.EvaluationService_GetResultServer) error {
	caller, _ := rpc.Caller(stream.Context())
	s.mu.Lock()
	r := s.results.get(caller.Name, m.GetResultDigest(), s.Now())
	s.mu.Unlock()
	if r == nil {
		return rpc.Errorf(rpc.NotFound, "submit the evaluation again, with another request id; its result will have the digest in the job", "this client has no such result")
	}
	b := r.bytes
	if m.GetOffset() > uint64(len(b)) {
		return rpc.Errorf(rpc.Invalid, "", "byte %d of %d", m.GetOffset(), len(b))
	}
	if err := stream.Send(&multikeyv1.GetResultResponse{Results: r.groups, Bytes: uint64(len(b))}); err != nil {
		return err
	}
	for chunk := range slices.Chunk(b[m.GetOffset():], chunkSize) {
		if err := stream.Send(&multikeyv1.GetResultResponse{Chunk: chunk}); err != nil {
			return err
		}
	}
	return nil
}
