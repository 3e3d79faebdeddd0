package multikey

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
)

// Request is a netlist to compute, and its inputs in order: so many bits together as the netlist has.
type Request struct {
	ID      [16]byte // drawn when it is used first; the same again is the same job
	Netlist *circuit.Netlist
	Inputs  []Group
}

const chunkSize = 1 << 20

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
		return nil, invalid("give the inputs of the netlist in its order", "%d bits, and the netlist has %d", bits, want)
	}
	return h, nil
}

// send sends bytes in chunks. What goes wrong the answer says.
func send[M any](stream interface{ Send(*M) error }, message func(chunk []byte) *M, b []byte) {
	for len(b) > 0 {
		n := min(len(b), chunkSize)
		if stream.Send(message(b[:n])) != nil {
			return
		}
		b = b[n:]
	}
}

// Estimate says what an evaluation would take, and sends no inputs.
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
	_ = stream.Send(&multikeyv1.EstimateRequest{Header: h}) // the answer says what is wrong
	send(stream, func(b []byte) *multikeyv1.EstimateRequest { return &multikeyv1.EstimateRequest{Chunk: b} }, text)
	m, err := stream.CloseAndRecv()
	if err != nil {
		return nil, lodge.FromError(err)
	}
	return m.GetCost(), nil
}

// Submit has a netlist computed, and does not wait for it.
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
	_ = stream.Send(&multikeyv1.SubmitRequest{Header: h}) // the answer says what is wrong
	send(stream, func(b []byte) *multikeyv1.SubmitRequest { return &multikeyv1.SubmitRequest{Chunk: b} }, body)
	m, err := stream.CloseAndRecv()
	if err != nil {
		return nil, lodge.FromError(err)
	}
	return m.GetJob(), nil
}

// Jobs lists the client's evaluations, the last first.
func (p *Party) Jobs(ctx context.Context) ([]*multikeyv1.EvaluationJob, error) {
	m, err := p.evaluation.ListJobs(ctx, &multikeyv1.ListJobsRequest{})
	if err != nil {
		return nil, lodge.FromError(err)
	}
	return m.GetJobs(), nil
}

// Cancel ends an evaluation.
func (p *Party) Cancel(ctx context.Context, id [16]byte) (*multikeyv1.EvaluationJob, error) {
	m, err := p.evaluation.CancelJob(ctx, &multikeyv1.CancelJobRequest{RequestId: id[:]})
	if err != nil {
		return nil, lodge.FromError(err)
	}
	return m.GetJob(), nil
}

// pause is how long a watch that broke off is not begun again.
const pause = time.Second

// Await watches an evaluation until it ends, also where the connection breaks. Progress, which may be nil, hears of it. The
// error is of a job that has not succeeded, too.
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

// outcome returns the error of a job that has ended.
func outcome(j *multikeyv1.EvaluationJob) error {
	switch j.GetState() {
	case multikeyv1.EvaluationState_EVALUATION_STATE_DONE:
		return nil
	case multikeyv1.EvaluationState_EVALUATION_STATE_CANCELLED:
		return &lodge.Error{Code: lodge.Cancelled, What: "the evaluation was cancelled", Next: "submit it again"}
	}
	return &lodge.Error{Code: lodge.Code(j.GetCode()), What: j.GetWhat(), Next: j.GetNext()}
}

// Result fetches the result of a job that is done, and holds it against its digest. When the connection breaks it goes on
// where it was. Receive, which may be nil, hears how many bytes are there.
func (p *Party) Result(ctx context.Context, j *multikeyv1.EvaluationJob, receive func(done, of int)) ([]Group, error) {
	var count, size int
	for _, g := range j.GetResults() {
		count += int(g.GetCount())
		if len(g.GetKeys()) > p.scheme.Parties || count > circuit.MaxWires {
			return nil, wrong("a result that cannot be")
		}
		size += int(g.GetCount()) * p.scheme.CiphertextSize(len(g.GetKeys()))
	}
	var b []byte // which grows with what comes
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
		return nil, wrong("ciphertexts of another digest")
	}
	return groups, nil
}

// some fetches what is missing of a result of so many bytes.
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
		return wrong("%d bytes, not %d", head.GetBytes(), size)
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

// Evaluate submits a request, waits for it, and fetches the result, whose digest the job has.
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

// Ciphertexts are the ciphertexts of groups, in order.
func Ciphertexts(groups []Group) (list []*multikey.Ciphertext) {
	for _, g := range groups {
		for i := range g.Len() {
			if g.Batch != nil {
				list = append(list, g.Batch.Ciphertext(i))
			} else {
				list = append(list, g.Ciphertexts[i])
			}
		}
	}
	return list
}
