package evaluator

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Rules maps each method to the permission that a caller needs: only the party that the evaluator
// serves may call.
var Rules = rpc.Rules{
	"/lodge.evaluator.v1.EvaluatorService/GetCapacity": rpc.Allow(rpc.Owner),
	"/lodge.evaluator.v1.EvaluatorService/Put":         rpc.Allow(rpc.Owner),
	"/lodge.evaluator.v1.EvaluatorService/Evaluate":    rpc.Allow(rpc.Owner),
	"/lodge.evaluator.v1.EvaluatorService/Rotate":      rpc.Allow(rpc.Owner),
}

const (
	uploadStall = 30 * time.Second // for the next message of an upload
	beat        = time.Second      // between two progress messages
)

// Service implements lodge.evaluator.v1.
type Service struct {
	evaluatorv1.UnsafeEvaluatorServiceServer
	version string
	params  []config.ParamsPin
	metrics *metrics.Metrics
	cache   *cache
	budget  *budget
	workers int

	rotators map[string]*multikey.Rotator // for the multi-key parameter sets

	mu      sync.Mutex
	schemes map[string]*gbfv.Scheme // by parameter set and field
}

// NewService returns the service for a configuration whose parameter sets exist in this build.
func NewService(f *config.EvaluatorFile, version string, m *metrics.Metrics) *Service {
	workers := runtime.GOMAXPROCS(0)
	most := f.MaxConcurrent
	if most == 0 {
		most = workers + 1
	}
	return &Service{
		version: version, params: f.Params, metrics: m, workers: workers, schemes: map[string]*gbfv.Scheme{}, rotators: rotatorsOf(f.Params),
		cache: newCache(int64(f.MaxKeysMemory)), budget: &budget{limit: int64(f.MaxMemory), most: most},
	}
}

// GetCapacity implements the service.
func (s *Service) GetCapacity(context.Context, *evaluatorv1.GetCapacityRequest) (*evaluatorv1.GetCapacityResponse, error) {
	return &evaluatorv1.GetCapacityResponse{
		Version: s.version, Concurrent: uint32(s.budget.most), KeysMemoryBytes: uint64(s.cache.limit), MemoryBytes: uint64(s.budget.limit),
		Arithmetic: s.arithmetic(),
	}, nil
}

// pinned returns an error unless the configuration has the parameter set with this hash.
func (s *Service) pinned(name string, hash []byte) error {
	pin, ok := config.Pin(s.params, name)
	if !ok {
		return rpc.Errorf(rpc.PolicyRefused, "add it to params of this evaluator", "this evaluator does not compute with this parameter set")
	}
	//lodge:check evaluator/set [run=@served] the two sides compute with different parameters
	if string(hash) != string(pin[:]) {
		return rpc.Errorf(rpc.PinMismatch, "run the same build at the party and at its evaluators", "parameter set %s has another hash in this build", name)
	}
	return nil
}

// scheme returns the scheme of a pinned set and one of its fields; an empty field selects any.
func (s *Service) scheme(name string, hash []byte, field string) (*gbfv.Scheme, error) {
	if err := s.pinned(name, hash); err != nil {
		return nil, err
	}
	set, err := params.Lookup(name)
	if err != nil {
		return nil, rpc.Errorf(rpc.Invalid, "", "%v", err)
	}
	if field == "" {
		field = set.Fields[0].Name
	}
	spec, err := set.Field(field)
	if err != nil {
		return nil, rpc.Errorf(rpc.Invalid, "", "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := name + "/" + field
	if s.schemes[key] == nil {
		if s.schemes[key], err = gbfv.New(set, spec); err != nil {
			return nil, err
		}
	}
	return s.schemes[key], nil
}

// next receives one message of an upload within uploadStall.
func next[T any](recv func() (T, error)) (T, error) {
	type message struct {
		m   T
		err error
	}
	got := make(chan message, 1)
	go func() { // ends at the latest with the handler, which ends the stream
		m, err := recv()
		got <- message{m, err}
	}()
	over := time.NewTimer(uploadStall)
	defer over.Stop()
	select {
	case r := <-got:
		return r.m, r.err
	case <-over.C:
		var none T
		return none, rpc.Errorf(rpc.TimedOut, "send the messages without pauses", "no message was received for %s", uploadStall)
	}
}

// Put implements the service.
func (s *Service) Put(stream evaluatorv1.EvaluatorService_PutServer) error {
	first, err := next(stream.Recv)
	if err != nil {
		return invalid(err)
	}
	h := first.GetHeader()
	if h == nil || len(first.GetFrame()) > 0 {
		return rpc.Errorf(rpc.Invalid, "send the header first, in its own message", "no header")
	}
	if err := checkDigest("digest", h.GetDigest()); err != nil {
		return err
	}
	frames := func() ([]byte, error) {
		m, err := next(stream.Recv)
		if err != nil {
			return nil, err
		}
		if m.GetHeader() != nil {
			return nil, rpc.Errorf(rpc.Invalid, "", "a second header")
		}
		return m.GetFrame(), nil
	}
	p := place{material: h.GetMaterial(), params: h.GetParams(), field: h.GetField(), digest: round.Digest(h.GetDigest())}
	bytes, read, err := s.material(h, frames)
	if err != nil {
		return err
	}
	if _, release, known := s.cache.take(p); known {
		release()
		return stream.SendAndClose(&evaluatorv1.PutResponse{})
	}
	keep, err := s.cache.reserve(p, bytes)
	if err != nil {
		return err
	}
	value, digest, err := read()
	switch {
	case err != nil:
		keep(nil)
		return invalid(err)
	//lodge:check evaluator/keys [run=TestPut] keys are cached under a digest that is not theirs
	case digest != p.digest:
		keep(nil)
		return rpc.Errorf(rpc.Invalid, "", "the material does not match the announced digest")
	}
	keep(value)
	return stream.SendAndClose(&evaluatorv1.PutResponse{})
}

// material returns the memory that a material needs, and a function that reads the material from
// frames and computes its digest.
func (s *Service) material(h *evaluatorv1.PutHeader, frames func() ([]byte, error)) (bytes int64, read func() (any, round.Digest, error), err error) {
	if h.GetMaterial() == evaluatorv1.Material_MATERIAL_ROTATION_KEY {
		return s.rotationKey(h, frames)
	}
	if len(h.GetKeysHeader()) > 0 || len(h.GetFirstChunkDigest()) > 0 {
		return 0, nil, rpc.Errorf(rpc.Invalid, "", "only multi-key keys have a keys header or a digest of the first chunk")
	}
	scheme, err := s.scheme(h.GetParams(), h.GetParamsHash(), h.GetField())
	if err != nil {
		return 0, nil, err
	}
	switch h.GetMaterial() {
	case evaluatorv1.Material_MATERIAL_KEYS:
		dim := int(h.GetDim())
		if dim < 1 || dim > scheme.N()/2 || dim&(dim-1) != 0 || h.GetField() != "" {
			return 0, nil, rpc.Errorf(rpc.Invalid, "", "keys of dimension %d, for one field: %v", dim, h.GetField() != "")
		}
		return keysBytes(scheme, dim), func() (any, round.Digest, error) { return readKeys(scheme, dim, frames) }, nil
	case evaluatorv1.Material_MATERIAL_MAC_KEY:
		if h.GetField() == "" || h.GetDim() != 0 {
			return 0, nil, rpc.Errorf(rpc.Invalid, "", "a MAC key without a field, or with a dimension")
		}
		return operandBytes(scheme), func() (any, round.Digest, error) { return readMACKey(scheme, frames) }, nil
	}
	return 0, nil, rpc.Errorf(rpc.Invalid, "", "unknown material %d", h.GetMaterial())
}

// invalid marks decoding errors as invalid requests. Errors that have a code keep it.
func invalid(err error) error {
	var known *rpc.Error
	if _, status := status.FromError(err); status || errors.As(err, &known) {
		return err
	}
	return rpc.Errorf(rpc.Invalid, "", "%v", err)
}

// readKeys decodes evaluation keys from frames and computes their digest.
func readKeys(s *gbfv.Scheme, dim int, frames func() ([]byte, error)) (any, round.Digest, error) {
	h := keygen.NewFramesHash()
	keys, err := keygen.Decode(s, dim, func() ([]byte, error) {
		f, err := frames()
		if err == nil {
			h.Frame(f)
		}
		return f, err
	})
	if err != nil {
		return nil, round.Digest{}, err
	}
	return keys, h.Sum(), nil
}

// readMACKey decodes the ciphertext of a MAC key, prepares it for products, and computes its
// digest.
func readMACKey(s *gbfv.Scheme, frames func() ([]byte, error)) (any, round.Digest, error) {
	var both [2][]byte
	for i := range both {
		f, err := frames()
		if errors.Is(err, io.EOF) {
			err = codec.ErrTruncated
		}
		if err != nil {
			return nil, round.Digest{}, err
		}
		both[i] = f
	}
	if _, err := frames(); err == nil {
		return nil, round.Digest{}, codec.ErrTrailing
	} else if !errors.Is(err, io.EOF) {
		return nil, round.Digest{}, err
	}
	ct, err := triple.DecodeCiphertext(s, both)
	if err != nil {
		return nil, round.Digest{}, err
	}
	return s.Left(ct), MACKeyDigest(both), nil
}

// Evaluate implements the service.
func (s *Service) Evaluate(stream evaluatorv1.EvaluatorService_EvaluateServer) (err error) {
	began := time.Now()
	defer func() { s.metrics.Observe(metrics.EvaluatorServed, time.Since(began), outcomeOf(err)) }()
	first, err := next(stream.Recv)
	if err != nil {
		return invalid(err)
	}
	h := first.GetHeader()
	if h == nil || len(first.GetFrame()) > 0 {
		return rpc.Errorf(rpc.Invalid, "send the header first, in its own message", "no header")
	}
	if len(h.GetNonce()) != nonceSize {
		return rpc.Errorf(rpc.Invalid, "", "a nonce of %d bytes, not %d", len(h.GetNonce()), nonceSize)
	}
	if err := errors.Join(checkDigest("digest of keys", h.GetKeysDigest()), checkDigest("digest of a MAC key", h.GetMacKeyDigest())); err != nil {
		return err
	}
	scheme, err := s.scheme(h.GetParams(), h.GetParamsHash(), h.GetField())
	if err != nil {
		return err
	}
	what, err := shape(h, scheme)
	if err != nil {
		return rpc.Errorf(rpc.Invalid, "", "%v", err)
	}
	var missing []evaluatorv1.Material
	held := func(m evaluatorv1.Material, field string, digest []byte) (any, func()) {
		v, release, ok := s.cache.take(place{m, h.GetParams(), field, round.Digest(digest)})
		if !ok {
			missing = append(missing, m)
			release = func() {}
		}
		return v, release
	}
	keys, leaveKeys := held(evaluatorv1.Material_MATERIAL_KEYS, "", h.GetKeysDigest())
	defer leaveKeys()
	alpha, leaveAlpha := held(evaluatorv1.Material_MATERIAL_MAC_KEY, h.GetField(), h.GetMacKeyDigest())
	defer leaveAlpha()
	digest := requestDigest(h)
	answer := &evaluatorv1.Answer{RequestDigest: digest[:], Missing: missing}
	if len(missing) > 0 {
		return stream.Send(&evaluatorv1.EvaluateResponse{Kind: &evaluatorv1.EvaluateResponse_Answer{Answer: answer}})
	}
	public := keys.(*keygen.PublicKeys)
	//lodge:check evaluator/dimension [run=@served] [redundant=a product without its rotation keys
	//  fails later] a product needs rotation keys that do not exist
	if what.Dim > public.Dim {
		return rpc.Errorf(rpc.Invalid, "", "matrices in blocks of %d, but rotation keys for %d", what.Dim, public.Dim)
	}
	leave, err := s.budget.take(what.MemoryBytes(scheme, s.workers))
	if err != nil {
		return err
	}
	defer leave()
	if err := stream.Send(&evaluatorv1.EvaluateResponse{Kind: &evaluatorv1.EvaluateResponse_Answer{Answer: answer}}); err != nil {
		return err
	}
	inputs := newReader(scheme, scheme.Q.Len(), what.Count)
	defer inputs.free()
	if err := receive(stream, inputs); err != nil {
		return invalid(err)
	}
	task := evaluation.Task{Shape: what, Inputs: inputs.list, Consume: true}
	results, err := compute(stream, &task, gbfv.NewEvaluator(scheme, public.Keys(scheme)), alpha.(*gbfv.Left), s.workers)
	if err != nil {
		return err
	}
	defer evaluation.Free(results)
	return sendResults(stream, digest, results, scheme, what.Primes)
}

// receive reads the inputs to the end of the request stream.
func receive(stream evaluatorv1.EvaluatorService_EvaluateServer, inputs *reader) error {
	for {
		m, err := next(stream.Recv)
		switch {
		case errors.Is(err, io.EOF) && inputs.done():
			return nil
		case errors.Is(err, io.EOF):
			return codec.ErrTruncated
		case err != nil:
			return err
		case inputs.done():
			return codec.ErrTrailing
		case m.GetHeader() != nil:
			return rpc.Errorf(rpc.Invalid, "", "a second header")
		}
		if err := inputs.frame(m.GetFrame()); err != nil {
			return err
		}
	}
}

// compute runs a task and reports its progress at intervals.
func compute(stream evaluatorv1.EvaluatorService_EvaluateServer, t *evaluation.Task, e *gbfv.Evaluator, alpha *gbfv.Left, workers int) ([]*gbfv.Ciphertext, error) {
	var ended atomic.Uint32
	e.Ended = func() { ended.Add(1) }
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	type outcome struct {
		results []*gbfv.Ciphertext
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		results, err := t.Run(ctx, e, alpha, workers)
		done <- outcome{results, err}
	}()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for said := uint32(0); ; {
		select {
		case o := <-done:
			return o.results, o.err
		case <-tick.C:
		}
		now := ended.Load()
		if now == said {
			continue
		}
		said = now
		if err := stream.Send(&evaluatorv1.EvaluateResponse{Kind: &evaluatorv1.EvaluateResponse_Progress{Progress: &evaluatorv1.Progress{Done: now}}}); err != nil {
			cancel()
			<-done // the computation still uses the inputs
			return nil, err
		}
	}
}

// sendResults sends the results together with the digest of their request.
func sendResults(stream evaluatorv1.EvaluatorService_EvaluateServer, request round.Digest, list []*gbfv.Ciphertext, s *gbfv.Scheme, k int) error {
	begin := &evaluatorv1.Results{RequestDigest: request[:], Ciphertexts: uint32(len(list))}
	if err := stream.Send(&evaluatorv1.EvaluateResponse{Kind: &evaluatorv1.EvaluateResponse_Results{Results: begin}}); err != nil {
		return err
	}
	primes := s.Prefix(k).Primes()
	var frame []byte
	for _, p := range polynomials(list) {
		frame = codec.AppendPoly(frame[:0], p.C, primes) // gRPC sends a copy
		if err := stream.Send(&evaluatorv1.EvaluateResponse{Kind: &evaluatorv1.EvaluateResponse_Frame{Frame: frame}}); err != nil {
			return err
		}
	}
	return nil
}

// outcomeOf returns the outcome label of an evaluation.
func outcomeOf(err error) string {
	if err == nil {
		return "ok"
	}
	return string(rpc.FromError(err).Code)
}
