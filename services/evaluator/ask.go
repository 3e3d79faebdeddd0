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
	"github.com/lodge-mpc/lodge/services/rpc"
)

// errStalled ends a call whose evaluator makes no progress.
var errStalled = errors.New("evaluator: it makes no progress")

// fault is what no evaluator does that works: an answer that is not one to what was asked. It names the evaluator.
type fault struct{ what string }

func (f *fault) Error() string { return "evaluator: " + f.what }

func faultf(format string, args ...any) error { return &fault{fmt.Sprintf(format, args...)} }

// watch is a context that ends when nothing has been heard for a time.
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

// cause makes an error of a call that of the watch, if that has ended it.
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

	uploads  sync.Mutex                // held by who sends materials
	sent     map[multikey.KeyID]uint64 // by who holds uploads: the last upload of an owner's keys
	uploaded atomic.Uint64             // uploads of owners' keys so far

	// The pool's lock is held for these.
	up      bool
	gone    bool // the name has the address no more
	places  int  // evaluations at the same time
	running int
	kinds   map[[32]byte][32]byte // of arithmetic, by the hash of the set
	silent  int                   // questions in a row whether it is up that it did not answer in time
	full    bool                  // it was busy, until something of ours has ended there
	fails   int                   // in a row
	until   time.Time
}

// evaluate has a task computed.
func (i *instance) evaluate(ctx context.Context, j *job) ([]*gbfv.Ciphertext, error) {
	for range 3 { // between sending what is missing and the evaluation it may have gone again
		results, missing, err := i.try(ctx, j)
		if err != nil || len(missing) == 0 {
			return results, err
		}
		if err := i.put(ctx, j.under, missing); err != nil {
			return nil, err
		}
	}
	return nil, rpc.Errorf(rpc.Busy, "raise max_keys_memory of this evaluator", "it does not keep the keys that it was sent")
}

// try asks once. It gives results, or what the evaluator lacks.
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
	if err := stream.Send(&evaluatorv1.EvaluateRequest{Header: h}); err != nil && !errors.Is(err, io.EOF) { // Recv says what went wrong
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
		return nil, nil, faultf("it does not answer the header")
	//lodge:check evaluator/answer [run=TestCheatsOfAnEvaluator] the answer to another request is
	//  accepted
	case string(answer.GetRequestDigest()) != string(digest[:]):
		return nil, nil, faultf("it answers another request")
	case len(answer.GetMissing()) > materials:
		return nil, nil, faultf("it lacks %d things, and there are %d", len(answer.GetMissing()), materials)
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
		frame = codec.AppendPoly(frame[:0], p.C, primes) // what is sent is a copy
		if err := stream.Send(&evaluatorv1.EvaluateRequest{Frame: frame}); err != nil {
			if errors.Is(err, io.EOF) {
				return nil // Recv says what went wrong
			}
			return err
		}
		i.count("sent", len(frame))
		w.progress()
	}
	return stream.CloseSend()
}

// maxProgress bounds how much progress an evaluator may say that it makes, for each product or input.
const maxProgress = 64

// results reads the answer to a request, up to its end. It is exactly what was asked for, or a fault.
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
				return nil, faultf("it ends after %d of %d polynomials", in.read(), in.want)
			}
			return in.list, nil
		}
		if err != nil {
			if e := rpc.FromError(err); e.Code == rpc.TooLarge && w.Err() == nil {
				return nil, faultf("it sends a message that is too large")
			}
			return nil, err
		}
		switch kind := m.GetKind().(type) {
		case *evaluatorv1.EvaluateResponse_Progress:
			//lodge:check evaluator/progress [drop=kind.Progress.GetDone() <= done]
			//  [drop=kind.Progress.GetDone() > most] [run=TestCheatsOfAnEvaluator] progress can
			//  stand still or exceed the total
			if begun || kind.Progress.GetDone() <= done || kind.Progress.GetDone() > most {
				return nil, faultf("it says %d pieces are done, after %d", kind.Progress.GetDone(), done)
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
				return nil, faultf("its results are those of another request")
			//lodge:check evaluator/results/number [run=TestCheatsOfAnEvaluator] results of the
			//  wrong number are accepted
			case int(r.GetCiphertexts()) != want:
				return nil, faultf("it gives %d results of %d", r.GetCiphertexts(), want)
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
			return nil, faultf("a message that belongs to nothing")
		}
		w.progress()
	}
}

// materials is how many kinds there are.
const materials = 2

// put sends what an evaluator lacks, once for all who find that it does.
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
			return faultf("it lacks what there is not: %d", m)
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
