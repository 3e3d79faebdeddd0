package linear

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/sample"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// end is one client's end of a run, created from its header.
type end struct {
	*shared
	*intake
	ctx   context.Context // ends with the client's call, and when the run has failed
	run   *run
	leave func(error)
	call  *job.Call
	with  string // client at the other end
	// source of the randomness of a run's answers, at the end that sends the matrix.
	source *sample.Source
}

// open validates a header, plans the product and joins the run.
func (s *Service) open(ctx context.Context, h *linearv1.RunHeader, who side, caller rpc.Principal) (_ *end, err error) {
	if h == nil {
		return nil, rpc.NoHeader
	}
	x := &end{with: h.GetWith()}
	if x.shared, err = s.openShared(h); err != nil {
		return nil, err
	}
	room := x.askRoom()
	if who == giver {
		room = x.answerRoom(s.Workers)
	}
	if x.call, err = s.admit(caller.Name, room); err != nil {
		return nil, err
	}
	if x.run, x.leave, err = s.runs.enter(h, who, caller); err != nil {
		x.call.Release()
		return nil, err
	}
	var cancel context.CancelCauseFunc
	x.ctx, cancel = context.WithCancelCause(ctx)
	context.AfterFunc(x.run.ctx, func() { cancel(context.Cause(x.run.ctx)) }) // a run ends at the latest when both ends have left
	return x, nil
}

// close releases what open acquired and reports the outcome to the run.
func (x *end) close(s *Service, err error) {
	if x == nil {
		return
	}
	x.leave(err)
	x.intake.close()
	if x.source != nil {
		x.source.Wipe()
	}
	x.call.Release()
}

// Ask implements the service.
func (s *Service) Ask(stream linearv1.LinearService_AskServer) error {
	caller, _ := rpc.Caller(stream.Context())
	x, err := s.ask(stream, caller)
	if x != nil && err != nil && rpc.FromError(err).Code == rpc.BadProof { // an honest client never sends a wrong proof
		s.Metrics.Count(metrics.LinearProducts, 1, x.kind, outcome(err))
		note := fmt.Sprintf("%s, with client %s: %v", x.shared, x.with, err)
		if _, failed := s.Audit.Append(audit.Entry{Event: audit.Refused, Actor: caller.Name, Auth: audit.Auth(caller.Auth), Note: note}); failed != nil {
			err = failed
		}
	}
	x.close(s, err)
	return err
}

func (s *Service) ask(stream linearv1.LinearService_AskServer, caller rpc.Principal) (*end, error) {
	var key *linear.PublicKey
	var in *linear.Inputs
	x, err := upload(stream.Recv, func(m *linearv1.AskRequest) (*end, error) {
		x, err := s.open(stream.Context(), m.GetHeader(), owner, caller)
		if err == nil {
			x.intake = intakeOf(x.input(&key, &in), x.askBytes())
		}
		return x, err
	}, func(x *end, m *linearv1.AskRequest) error {
		if err := x.take(m.GetChunk()); err != nil {
			return err
		}
		if x.whole() == nil {
			return errWhole // the client closes its side of the stream once it has all answers
		}
		return nil
	})
	if err != nil && !errors.Is(err, errWhole) {
		return x, err
	}
	if err := x.whole(); err != nil {
		return x, err
	}
	w, err := x.accept(key, in)
	if err != nil {
		return x, err
	}
	if err := stream.Send(&linearv1.AskResponse{Terms: x.terms()}); err != nil {
		return x, err
	}
	x.run.input <- w
	if err := x.wait(giver, s.Policy.WaitTime()); err != nil {
		return x, err
	}
	err = x.relay(func(chunk []byte, complete bool) error {
		return stream.Send(&linearv1.AskResponse{Chunk: chunk, Complete: complete})
	})
	if err != nil {
		return x, err
	}
	// The client confirms by closing its side of the stream. Any further message is an error.
	err = rpc.Upload(grace, stream.Recv, func(m *linearv1.AskRequest) error { return x.add(append(m.GetChunk(), 0)) })
	if err == nil {
		close(x.run.done)
	}
	return x, err
}

// take adds a chunk unless the run has failed.
func (x *end) take(chunk []byte) error {
	if err := context.Cause(x.run.ctx); err != nil {
		return err
	}
	return x.add(chunk)
}

// errWhole ends an upload that is complete.
var errWhole = errors.New("linear: the upload is complete")

// input returns the parts of the upload: the owner's key and input.
func (x *end) input(key **linear.PublicKey, in **linear.Inputs) iter.Seq[part] {
	return func(yield func(part) bool) {
		if !yield(part{x.scheme.PublicKeySize(false), func(b []byte) (err error) {
			*key, err = x.scheme.DecodePublicKey(b)
			return err
		}}) {
			return
		}
		inputs(yield, x.scheme, func() *linear.PublicKey { return *key }, x.inputs, in)
	}
}

// relay sends the answers as they are computed.
func (x *end) relay(f func(chunk []byte, complete bool) error) error {
	for {
		select {
		case answer, more := <-x.run.answer:
			if !more {
				return f(nil, true)
			}
			for chunk := range slices.Chunk(answer, maxChunk) {
				if err := f(chunk, false); err != nil {
					return err
				}
			}
		case <-x.ctx.Done():
			return context.Cause(x.ctx)
		}
	}
}

// Answer implements the service.
func (s *Service) Answer(stream linearv1.LinearService_AnswerServer) error {
	caller, _ := rpc.Caller(stream.Context())
	x, err := s.answer(stream, caller)
	if x != nil {
		s.Metrics.Count(metrics.LinearProducts, 1, x.kind, outcome(err))
	}
	x.close(s, err)
	return err
}

func (s *Service) answer(stream linearv1.LinearService_AnswerServer, caller rpc.Principal) (*end, error) {
	x, err := upload(stream.Recv, func(m *linearv1.AnswerRequest) (*end, error) {
		x, err := s.open(stream.Context(), m.GetHeader(), giver, caller)
		if err == nil {
			err = s.begin(x, caller, stream)
		}
		return x, err
	}, func(x *end, m *linearv1.AnswerRequest) error { return x.take(m.GetChunk()) })
	if err != nil {
		return x, err
	}
	if err := x.whole(); err != nil {
		return x, err
	}
	close(x.run.answer)
	select {
	case <-x.run.done:
	case <-x.ctx.Done():
		return x, context.Cause(x.ctx)
	}
	return x, stream.Send(&linearv1.AnswerResponse{Complete: true})
}

// begin waits for the key owner's input and prepares to receive the matrix.
func (s *Service) begin(x *end, caller rpc.Principal, stream linearv1.LinearService_AnswerServer) error {
	if err := x.wait(owner, s.Policy.WaitTime()); err != nil {
		return err
	}
	if err := s.mayDistance(x); err != nil { // before the input arrives
		return err
	}
	var begin func() work
	select {
	case begin = <-x.run.input:
	case <-x.ctx.Done():
		return context.Cause(x.ctx)
	}
	release, err := s.Audit.Hold(audit.Entry{Event: audit.Multiplied, Actor: caller.Name, Auth: audit.Auth(caller.Auth), Note: "multiplied"})
	//lodge:check linearservice/audit-room [run=TestFullAuditDisk] a full audit disk uses up statistical distance without an answer
	if err != nil {
		return err
	}
	defer release()
	spent, err := s.spend(x)
	if err != nil {
		return err
	}
	note := fmt.Sprintf("%s, for client %s, security %s, distance 2^%.1f, 2^%.1f spent of 2^%.1f", x.shared, x.with, x.security(),
		x.terms().GetLogDistance(), math.Log2(spent.Spent), math.Log2(spent.Budget))
	//lodge:check linearservice/log [swap=audit.Multiplied=>audit.Reserved]
	//  [run=TestProductsAreInTheLog] the owner of a matrix cannot see in the audit log how often it
	//  was used
	if _, err := s.Audit.Append(audit.Entry{Event: audit.Multiplied, Actor: caller.Name, Auth: audit.Auth(caller.Auth), Note: note}); err != nil {
		return err
	}
	if err := stream.Send(&linearv1.AnswerResponse{Terms: x.terms()}); err != nil {
		return err
	}
	if x.source, err = session.Source("linear " + x.kind); err != nil {
		return err
	}
	give := &giving{shared: x.shared, work: begin(), workers: s.Workers}
	give.source = func(g int) *sample.Source { return x.source.Sub("linear answer", uint64(g)) }
	give.emit = func(answer []byte, shares []uint64) error {
		select {
		case x.run.answer <- answer:
		case <-x.ctx.Done():
			return context.Cause(x.ctx)
		}
		s.Metrics.Count(metrics.LinearAnswers, 1, x.kind)
		for chunk := range slices.Chunk(x.encode(shares), maxChunk) {
			if err := stream.Send(&linearv1.AnswerResponse{Chunk: chunk}); err != nil {
				return err
			}
		}
		return nil
	}
	x.intake = intakeOf(give.parts, x.answerBytes())
	return nil
}
