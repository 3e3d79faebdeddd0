package linear

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

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
	run   *run
	leave func(error)
	call  *job.Call
	with  string // client at the other end
	// source of the randomness of a run's answers, at the end that sends the matrix.
	source *sample.Source
}

// open validates a header, plans the product and joins the run.
func (s *Service) open(h *linearv1.RunHeader, who side, caller rpc.Principal) (_ *end, err error) {
	if h == nil {
		return nil, rpc.Errorf(rpc.Invalid, "send the header first", "no header")
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
	var x *end
	err := s.ask(stream, caller, &x)
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

func (s *Service) ask(stream linearv1.LinearService_AskServer, caller rpc.Principal, at **end) error {
	var x *end
	var key *linear.PublicKey
	var in *linear.Inputs
	err := upload(stream.Recv, func(m *linearv1.AskRequest) (_ time.Duration, err error) {
		if x == nil {
			if x, err = s.open(m.GetHeader(), owner, caller); err != nil {
				return 0, err
			}
			*at = x
			_, all := x.ciphertexts()
			x.intake = intakeOf(x.input(&key, &in), all)
		}
		if err := x.run.failed(); err != nil {
			return 0, err
		}
		if err := x.add(m.GetChunk()); err != nil {
			return 0, err
		}
		if x.whole() == nil {
			return 0, errWhole // the client closes its side of the stream once it has all answers
		}
		return patience(x.all), nil
	})
	switch {
	case err != nil && !errors.Is(err, errWhole):
		return err
	case x == nil:
		return rpc.Errorf(rpc.Invalid, "send the header first", "no header")
	}
	if err := x.whole(); err != nil {
		return err
	}
	e, err := x.accept(key, in)
	if err != nil {
		return err
	}
	if err := stream.Send(&linearv1.AskResponse{Terms: x.terms()}); err != nil {
		return err
	}
	x.run.input <- e
	if err := x.run.wait(stream.Context(), giver, x.with, s.Policy.WaitTime()); err != nil {
		return err
	}
	err = x.relay(stream.Context(), func(chunk []byte, complete bool) error {
		return stream.Send(&linearv1.AskResponse{Chunk: chunk, Complete: complete})
	})
	if err != nil {
		return err
	}
	// The client confirms by closing its side of the stream. Any further message is an error.
	err = upload(stream.Recv, func(m *linearv1.AskRequest) (time.Duration, error) { return grace, x.add(append(m.GetChunk(), 0)) })
	if err != nil {
		return err
	}
	close(x.run.done)
	return nil
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
		count, _ := x.ciphertexts()
		inputs(yield, x.scheme, func() *linear.PublicKey { return *key }, count, in)
	}
}

// relay sends the answers as they are computed.
func (x *end) relay(ctx context.Context, f func(chunk []byte, complete bool) error) error {
	for {
		select {
		case answer, more := <-x.run.answer:
			if !more {
				return f(nil, true)
			}
			if err := send(answer, func(chunk []byte) error { return f(chunk, false) }); err != nil {
				return err
			}
		case <-x.run.ctx.Done():
			return x.run.failed()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Answer implements the service.
func (s *Service) Answer(stream linearv1.LinearService_AnswerServer) error {
	caller, _ := rpc.Caller(stream.Context())
	var x *end
	err := s.answer(stream, caller, &x)
	if x != nil {
		s.Metrics.Count(metrics.LinearProducts, 1, x.kind, outcome(err))
	}
	x.close(s, err)
	return err
}

func (s *Service) answer(stream linearv1.LinearService_AnswerServer, caller rpc.Principal, at **end) error {
	var x *end
	ctx := stream.Context()
	err := upload(stream.Recv, func(m *linearv1.AnswerRequest) (_ time.Duration, err error) {
		if x == nil {
			if x, err = s.open(m.GetHeader(), giver, caller); err != nil {
				return 0, err
			}
			*at = x
			if err := s.begin(ctx, x, caller, stream); err != nil {
				return 0, err
			}
		}
		if err := x.run.failed(); err != nil {
			return 0, err
		}
		return patience(x.all), x.add(m.GetChunk())
	})
	switch {
	case err != nil:
		return err
	case x == nil:
		return rpc.Errorf(rpc.Invalid, "send the header first", "no header")
	}
	if err := x.whole(); err != nil {
		return err
	}
	close(x.run.answer)
	select {
	case <-x.run.done:
	case <-x.run.ctx.Done():
		return x.run.failed()
	case <-ctx.Done():
		return ctx.Err()
	}
	return stream.Send(&linearv1.AnswerResponse{Complete: true})
}

// begin waits for the key owner's input and prepares to receive the matrix.
func (s *Service) begin(ctx context.Context, x *end, caller rpc.Principal, stream linearv1.LinearService_AnswerServer) error {
	if err := x.run.wait(ctx, owner, x.with, s.Policy.WaitTime()); err != nil {
		return err
	}
	if err := s.mayDistance(x); err != nil { // before the input arrives
		return err
	}
	e, err := x.run.evaluator(ctx)
	if err != nil {
		return err
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
	work := &giving{shared: x.shared, with: e, workers: s.Workers}
	work.source = func(g int) *sample.Source { return x.source.Sub("linear answer", uint64(g)) }
	work.emit = func(answer []byte, shares []uint64) error {
		if err := x.run.give(ctx, answer); err != nil {
			return err
		}
		s.Metrics.Count(metrics.LinearAnswers, 1, x.kind)
		return send(x.encode(shares), func(chunk []byte) error { return stream.Send(&linearv1.AnswerResponse{Chunk: chunk}) })
	}
	x.intake = intakeOf(work.parts(), x.answerBytes())
	return nil
}
