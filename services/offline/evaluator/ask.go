package evaluator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// errStalled ends a call whose evaluator makes no progress.
var errStalled = errors.New("evaluator: no progress within the stall timeout")

// fault is a response that a correct evaluator never sends, because it does not match the request.
// The pool excludes an evaluator for it.
type fault struct{ what string }

func (f *fault) Error() string { return "evaluator: " + f.what }

func faultf(format string, args ...any) error { return &fault{fmt.Sprintf(format, args...)} }

// watch is a context that ends when progress is not called within the stall timeout.
type watch struct {
	context.Context
	cancel context.CancelCauseFunc
	stall  time.Duration
	timer  *time.Timer
}

func newWatch(ctx context.Context, stall time.Duration) *watch {
	w := &watch{stall: stall}
	w.Context, w.cancel = context.WithCancelCause(ctx)
	//lodge:check evaluator/stall [swap=stall=>100 * stall] [run=TestAnEvaluatorStands] an evaluator
	//  that makes no progress holds a session
	w.timer = time.AfterFunc(stall, func() { w.cancel(errStalled) })
	return w
}

func (w *watch) progress() { w.timer.Reset(w.stall) }

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// cause returns errStalled instead of err if the watch ended the call.
func (w *watch) cause(err error) error {
	if err != nil && errors.Is(context.Cause(w), errStalled) {
		return errStalled
	}
	return err
}

// instance is an evaluator at one address.
type instance struct {
	of      *process
	address string
	conn    *grpc.ClientConn
	client  evaluatorv1.EvaluatorServiceClient
	count   func(direction string, bytes int)
	stall   time.Duration

	uploads  sync.Mutex                // held while sending materials
	sent     map[multikey.KeyID]uint64 // guarded by uploads: the number of the last upload of an owner's keys
	uploaded atomic.Uint64             // number of uploads of owners' keys

	// The pool's lock guards the following fields.
	up      bool
	gone    bool // the name no longer resolves to this address
	places  int  // number of concurrent evaluations
	running int
	kinds   map[[32]byte][32]byte // kind of arithmetic by the hash of the parameter set
	silent  int                   // consecutive capacity requests without a timely response
	full    bool                  // the evaluator was busy, until one of this party's evaluations ends there
	fails   int                   // consecutive failures
	until   time.Time
}

// evaluate computes a task at this evaluator.
func (i *instance) evaluate(ctx context.Context, j *job) ([]*gbfv.Ciphertext, error) {
	for range 3 { // the evaluator may evict a material between its upload and the evaluation
		results, missing, err := i.try(ctx, j)
		if err != nil || len(missing) == 0 {
			return results, err
		}
		if err := i.put(ctx, j.under, missing); err != nil {
			return nil, err
		}
	}
	return nil, rpc.Errorf(rpc.Busy, "raise max_keys_memory of this evaluator", "the evaluator evicts the keys that were uploaded before it can use them")
}

// try sends one request. It returns the results, or the materials that the evaluator lacks.
func (i *instance) try(ctx context.Context, j *job) (_ []*gbfv.Ciphertext, missing []evaluatorv1.Material, err error) {
	w := newWatch(ctx, i.stall)
	defer w.end()
	defer func() { err = w.cause(err) }()
	stream, err := i.client.Evaluate(w)
	if err != nil {
		return nil, nil, err
	}
	h := &evaluatorv1.EvaluateHeader{
		Nonce: make([]byte, nonceSize), Params: j.under.Scheme.Set.Name, ParamsHash: j.under.hash[:], Field: j.under.Scheme.Spec.Name,
		KeysDigest: j.under.KeysDigest[:], MacKeyDigest: j.under.macDigest[:],
	}
	rand.Read(h.Nonce)
	header(h, &j.task.Shape)
	if err := stream.Send(&evaluatorv1.EvaluateRequest{Header: h}); err != nil && !errors.Is(err, io.EOF) { // Recv returns the error
		return nil, nil, err
	}
	m, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	w.progress()
	answer, digest := m.GetAnswer(), requestDigest(h)
	switch {
	case answer == nil:
		return nil, nil, faultf("the stream ended without a response to the header")
	//lodge:check evaluator/answer [run=TestCheatsOfAnEvaluator] the answer to another request is
	//  accepted
	case string(answer.GetRequestDigest()) != string(digest[:]):
		return nil, nil, faultf("the response has the digest of another request")
	case len(answer.GetMissing()) > materials:
		return nil, nil, faultf("the evaluator reports %d missing materials of %d kinds", len(answer.GetMissing()), materials)
	case len(answer.GetMissing()) > 0:
		return nil, answer.GetMissing(), nil
	}
	if err := i.send(w, stream, j); err != nil {
		return nil, nil, err
	}
	results, err := i.results(w, stream, j, digest)
	return results, nil, err
}

// send sends the inputs of a task.
func (i *instance) send(w *watch, stream evaluatorv1.EvaluatorService_EvaluateClient, j *job) error {
	primes := j.under.Scheme.Q.Primes()
	var frame []byte
	for _, p := range polynomials(j.task.Inputs) {
		frame = codec.AppendPoly(frame[:0], p.C, primes) // gRPC sends a copy
		if err := stream.Send(&evaluatorv1.EvaluateRequest{Frame: frame}); err != nil {
			if errors.Is(err, io.EOF) {
				return nil // Recv returns the error
			}
			return err
		}
		i.count("sent", len(frame))
		w.progress()
	}
	return stream.CloseSend()
}

// maxProgress bounds the progress that an evaluator may report, per product or input.
const maxProgress = 64

// results reads the response to its end. It returns exactly the requested results, or a fault.
func (i *instance) results(w *watch, stream evaluatorv1.EvaluatorService_EvaluateClient, j *job, request round.Digest) (_ []*gbfv.Ciphertext, err error) {
	want := j.task.Results()
	in := newReader(j.under.Scheme, j.task.Primes, want)
	defer func() {
		if err != nil {
			in.free()
		}
	}()
	done, most, begun := uint32(0), uint32(maxProgress*(j.task.Count+j.task.Products()+1)), false
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			//lodge:check evaluator/results/complete [drop=!in.done()] [run=TestCheatsOfAnEvaluator]
			//  incomplete results are accepted
			if !begun || !in.done() {
				return nil, faultf("the stream ended after %d of %d polynomials", in.read(), in.want)
			}
			return in.list, nil
		}
		if err != nil {
			if e := rpc.FromError(err); e.Code == rpc.TooLarge && w.Err() == nil {
				return nil, faultf("the evaluator sent a message that is too large")
			}
			return nil, err
		}
		switch kind := m.GetKind().(type) {
		case *evaluatorv1.EvaluateResponse_Progress:
			//lodge:check evaluator/progress [drop=kind.Progress.GetDone() <= done]
			//  [drop=kind.Progress.GetDone() > most] [run=TestCheatsOfAnEvaluator] progress can
			//  stand still or exceed the total
			if begun || kind.Progress.GetDone() <= done || kind.Progress.GetDone() > most {
				return nil, faultf("invalid progress report: %d pieces done, after %d", kind.Progress.GetDone(), done)
			}
			done = kind.Progress.GetDone()
		case *evaluatorv1.EvaluateResponse_Results:
			switch r := kind.Results; {
			//lodge:check evaluator/results [drop=string(r.GetRequestDigest()) !=
			//  string(request[:])] [run=TestCheatsOfAnEvaluator] the results of another request are
			//  accepted
			//lodge:check evaluator/results/once [drop=begun] [run=TestCheatsOfAnEvaluator] results
			//  can begin twice
			case begun || string(r.GetRequestDigest()) != string(request[:]):
				return nil, faultf("the results have the digest of another request")
			//lodge:check evaluator/results/number [run=TestCheatsOfAnEvaluator] results of the
			//  wrong number are accepted
			case int(r.GetCiphertexts()) != want:
				return nil, faultf("the evaluator announces %d results of %d", r.GetCiphertexts(), want)
			}
			begun = true
		case *evaluatorv1.EvaluateResponse_Frame:
			//lodge:check evaluator/results/begun [run=TestCheatsOfAnEvaluator] [redundant=results
			//  without a header are rejected at their end] polynomials arrive before the header of
			//  the results
			if !begun {
				return nil, faultf("results before their header")
			}
			if err := in.frame(kind.Frame); err != nil {
				return nil, faultf("%v", err)
			}
			i.count("received", len(kind.Frame))
		default:
			return nil, faultf("unexpected message")
		}
		w.progress()
	}
}

// materials is the number of kinds of materials.
const materials = 2

// put uploads the materials that an evaluator lacks. Concurrent requests that find the same
// material missing cause only one upload.
func (i *instance) put(ctx context.Context, u *Under, missing []evaluatorv1.Material) error {
	i.uploads.Lock()
	defer i.uploads.Unlock()
	for _, m := range missing {
		h := &evaluatorv1.PutHeader{Material: m, Params: u.Scheme.Set.Name, ParamsHash: u.hash[:]}
		var frames int
		var frame func(int) []byte
		switch m {
		case evaluatorv1.Material_MATERIAL_KEYS:
			h.Digest, h.Dim = u.KeysDigest[:], uint32(u.Keys.Dim)
			frames, frame = u.keysFrames(), func(n int) []byte { return u.Keys.Frame(u.Scheme, n) }
		case evaluatorv1.Material_MATERIAL_MAC_KEY:
			h.Digest, h.Field = u.macDigest[:], u.Scheme.Spec.Name
			frames, frame = len(u.macFrames), func(n int) []byte { return u.macFrames[n] }
		default:
			return faultf("the evaluator reports an unknown material as missing: %d", m)
		}
		if err := i.upload(ctx, h, frames, frame); err != nil {
			return err
		}
	}
	return nil
}

func (i *instance) upload(ctx context.Context, h *evaluatorv1.PutHeader, frames int, frame func(int) []byte) (err error) {
	w := newWatch(ctx, i.stall)
	defer w.end()
	defer func() { err = w.cause(err) }()
	stream, err := i.client.Put(w)
	if err != nil {
		return err
	}
	if err = stream.Send(&evaluatorv1.PutRequest{Header: h}); err == nil {
		w.progress()
		for n := range frames {
			f := frame(n)
			if err = stream.Send(&evaluatorv1.PutRequest{Frame: f}); err != nil {
				break
			}
			i.count("sent", len(f))
			w.progress()
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = stream.CloseAndRecv()
	return err
}

// job is a task under the keys of a batch.
type job struct {
	under *Under
	task  evaluation.Task
}
