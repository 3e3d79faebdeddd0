package multikey

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/internal/transfer"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
)

// Request is a netlist to compute and its inputs, whose total number of bits must match the
// netlist, in order.
type Request struct {
	ID      [16]byte // drawn on first use; a request with the same ID is the same job
	Netlist *circuit.Netlist
	Inputs  []Group
}

func (p *Party) header(r *Request, text []byte) (*multikeyv1.EvaluationHeader, error) {
	if r.ID == ([16]byte{}) {
		rand.Read(r.ID[:])
	}
	set, crs := p.scheme.Hash(), p.scheme.CRS()
	h := &multikeyv1.EvaluationHeader{RequestId: r.ID[:], ParamsHash: set[:], CrsDigest: crs[:], NetlistBytes: uint64(len(text))}
	bits := 0
	for i := range r.Inputs {
		h.Inputs = append(h.Inputs, r.Inputs[i].describe())
		bits += r.Inputs[i].Len()
	}
	if want := r.Netlist.InputBits(); bits != want {
		return nil, lodge.Errorf(lodge.Invalid, "give the inputs of the netlist in its order", "%d bits, but the netlist has %d", bits, want)
	}
	return h, nil
}

// Estimate returns the cost of an evaluation without sending inputs.
func (p *Party) Estimate(ctx context.Context, r *Request) (*multikeyv1.EvaluationCost, error) {
	text := r.Netlist.Append(nil)
	h, err := p.header(r, text)
	if err != nil {
		return nil, err
	}
	stream, err := p.evaluation.Estimate(ctx)
	if err != nil {
		return nil, lodge.FromError(err)
	}
	send := transfer.To(stream) // the response reports its error
	send.Send(&multikeyv1.EstimateRequest{Header: h})
	send.Bytes(text, func(b []byte) *multikeyv1.EstimateRequest { return &multikeyv1.EstimateRequest{Chunk: b} })
	m, err := stream.CloseAndRecv()
	if err != nil {
		return nil, lodge.FromError(err)
	}
	return m.GetCost(), nil
}

// Submit submits a netlist and returns without waiting for the result.
func (p *Party) Submit(ctx context.Context, r *Request) (*multikeyv1.EvaluationJob, error) {
	body := r.Netlist.Append(nil)
	h, err := p.header(r, body)
	if err != nil {
		return nil, err
	}
	for i := range r.Inputs {
		body = r.Inputs[i].append(body, p.scheme)
	}
	stream, err := p.evaluation.Submit(ctx)
	if err != nil {
		return nil, lodge.FromError(err)
	}
	send := transfer.To(stream) // the response reports its error
	send.Send(&multikeyv1.SubmitRequest{Header: h})
	send.Bytes(body, func(b []byte) *multikeyv1.SubmitRequest { return &multikeyv1.SubmitRequest{Chunk: b} })
	m, err := stream.CloseAndRecv()
	if err != nil {
		return nil, lodge.FromError(err)
	}
	return m.GetJob(), nil
}

// Jobs lists the client's evaluations, latest first.
func (p *Party) Jobs(ctx context.Context) ([]*multikeyv1.EvaluationJob, error) {
	m, err := p.evaluation.ListJobs(ctx, &multikeyv1.ListJobsRequest{})
	if err != nil {
		return nil, lodge.FromError(err)
	}
	return m.GetJobs(), nil
}

// Cancel cancels an evaluation.
func (p *Party) Cancel(ctx context.Context, id [16]byte) (*multikeyv1.EvaluationJob, error) {
	m, err := p.evaluation.CancelJob(ctx, &multikeyv1.CancelJobRequest{RequestId: id[:]})
	if err != nil {
		return nil, lodge.FromError(err)
	}
	return m.GetJob(), nil
}

// pause is the delay before a broken watch is resumed.
const pause = time.Second

// Await watches an evaluation until it ends, and resumes after broken connections. It calls
// progress, which may be nil. It returns an error also if the job has not succeeded.
func (p *Party) Await(ctx context.Context, id [16]byte, progress func(*multikeyv1.EvaluationJob)) (*multikeyv1.EvaluationJob, error) {
	for {
		stream, err := p.evaluation.WatchJob(ctx, &multikeyv1.WatchJobRequest{RequestId: id[:]}, grpc.WaitForReady(true))
		var last *multikeyv1.EvaluationJob
		for err == nil {
			var m *multikeyv1.WatchJobResponse
			if m, err = stream.Recv(); err == nil {
				if last = m.GetJob(); progress != nil {
					progress(last)
				}
			}
		}
		if last.GetEnded() != nil {
			return last, outcome(last)
		}
		if e := lodge.FromError(err); !errors.Is(err, io.EOF) && e.Code != lodge.Unavailable || ctx.Err() != nil {
			return last, e
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// outcome returns the error of a finished job.
func outcome(j *multikeyv1.EvaluationJob) error {
	switch j.GetState() {
	case multikeyv1.EvaluationState_EVALUATION_STATE_DONE:
		return nil
	case multikeyv1.EvaluationState_EVALUATION_STATE_CANCELLED:
		return &lodge.Error{Code: lodge.Cancelled, What: "the evaluation was cancelled", Next: "submit it again"}
	}
	return &lodge.Error{Code: lodge.Code(j.GetCode()), What: j.GetWhat(), Next: j.GetNext()}
}

// Result downloads the result of a finished job and verifies its digest. It resumes after broken
// connections. It calls receive, which may be nil, with the number of bytes received.
func (p *Party) Result(ctx context.Context, j *multikeyv1.EvaluationJob, receive func(done, of int)) ([]Group, error) {
	var count, size int
	for _, g := range j.GetResults() {
		count += int(g.GetCount())
		if len(g.GetKeys()) > p.scheme.Parties || count > circuit.MaxWires {
			return nil, wrong("an invalid result")
		}
		size += int(g.GetCount()) * p.scheme.CiphertextSize(len(g.GetKeys()))
	}
	var b []byte // grows with the received data
	for {
		before := len(b)
		err := p.some(ctx, j.GetResultDigest(), &b, size, receive)
		if err == nil {
			break
		}
		if e := lodge.FromError(err); e.Code != lodge.Unavailable || len(b) == before {
			return nil, err
		}
	}
	var groups []Group
	for _, d := range j.GetResults() {
		g, rest, err := decode(p.scheme, d, b)
		if err != nil {
			return nil, wrong("%v", err)
		}
		groups, b = append(groups, g), rest
	}
	digest := Digest(p.scheme, groups)
	if len(b) > 0 || !bytes.Equal(digest[:], j.GetResultDigest()) {
		return nil, wrong("ciphertexts with a different digest")
	}
	return groups, nil
}

// some downloads the missing part of a result of the given size.
func (p *Party) some(ctx context.Context, digest []byte, b *[]byte, size int, receive func(done, of int)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.evaluation.GetResult(ctx, &multikeyv1.GetResultRequest{ResultDigest: digest, Offset: uint64(len(*b))})
	if err != nil {
		return lodge.FromError(err)
	}
	head, err := stream.Recv()
	if err != nil {
		return ended(err)
	}
	if head.GetBytes() != uint64(size) {
		return wrong("%d bytes, want %d", head.GetBytes(), size)
	}
	for len(*b) < size {
		m, err := stream.Recv()
		if err != nil {
			return ended(err)
		}
		if len(*b)+len(m.GetChunk()) > size {
			return wrong("more than %d bytes", size)
		}
		*b = append(*b, m.GetChunk()...)
		if receive != nil {
			receive(len(*b), size)
		}
	}
	return nil
}

// Evaluate submits a request, waits for it, and downloads the result, whose digest the job states.
func (p *Party) Evaluate(ctx context.Context, r *Request, progress func(*multikeyv1.EvaluationJob)) ([]Group, *multikeyv1.EvaluationJob, error) {
	if _, err := p.Submit(ctx, r); err != nil {
		return nil, nil, err
	}
	j, err := p.Await(ctx, r.ID, progress)
	if err != nil {
		return nil, j, err
	}
	groups, err := p.Result(ctx, j, nil)
	return groups, j, err
}

// Ciphertexts returns the ciphertexts of groups, in order.
func Ciphertexts(groups []Group) (list []*multikey.Ciphertext) {
	for _, g := range groups {
		for i := range g.Len() {
			list = append(list, g.ciphertext(i))
		}
	}
	return list
}
