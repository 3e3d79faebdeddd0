package linear

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/linear"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
)

// Run names a product on shares. Both ends use the same name, and use it only once.
type Run [16]byte

// NewRun returns a random name.
func NewRun() (r Run) {
	rand.Read(r[:])
	return r
}

// Ends holds the parameters that both ends of a product on shares must agree on.
type Ends struct {
	Run Run
	// With is the name of the client at the other end, as the party knows it.
	With string
	// Set names the parameter set; empty means linear.DefaultVector, under which the asking end
	// proves its input.
	Set string
	// Progress, unless nil, is called with the number of bytes sent and of answers received.
	Progress func(Progress)
}

// Vector is a product of a matrix and a shared vector.
type Vector struct {
	Ends
	Rows, Cols int
	Packing    linear.Packing
	Slots      int
}

// Batch is, for each output, a sum over shared matrices times vectors.
type Batch struct {
	Ends
	Rows, Cols, Count, Outputs int
}

// Shares holds one end's share of a product, modulo T.
type Shares struct {
	Entries     []uint64 // rows of the product; for a batch, output by output
	T           uint64
	Up, Down    uint64 // bytes
	LogDistance float64
	Security    string // "passive", or "passive_evaluator" if the owner of the key proved its input
}

// plan is the plan of a vector or a batch.
type plan struct {
	*Client
	Ends
	scheme  *linear.Scheme
	header  *linearv1.RunHeader
	vector  *linear.VectorPlan // or
	batch   *linear.BatchPlan
	answers int
	size    int
	inputs  int // bytes of the key and the input
	result  *Shares
}

var packings = map[linear.Packing]linearv1.Packing{
	linear.Forward: linearv1.Packing_PACKING_FORWARD, linear.Double: linearv1.Packing_PACKING_DOUBLE, linear.Tiled: linearv1.Packing_PACKING_TILED,
}

func (c *Client) begin(e Ends) (*plan, error) {
	scheme, err := find(e.Set, linear.DefaultVector)
	if err != nil {
		return nil, err
	}
	hash := scheme.Hash()
	return &plan{Client: c, Ends: e, scheme: scheme, header: &linearv1.RunHeader{Run: e.Run[:], Set: scheme.Name, SetHash: hash[:], With: e.With}}, nil
}

func (c *Client) planVector(v *Vector) (*plan, error) {
	p, err := c.begin(v.Ends)
	if err != nil {
		return nil, err
	}
	if p.vector, err = p.scheme.PlanVector(v.Rows, v.Cols, v.Packing, v.Slots); err != nil {
		return nil, ofEngine(err)
	}
	p.header.Shape = &linearv1.RunHeader_Vector{Vector: &linearv1.VectorShape{
		Rows: uint32(v.Rows), Cols: uint32(v.Cols), Packing: packings[v.Packing], Slots: uint32(v.Slots),
	}}
	p.answers, p.size, p.inputs = p.vector.Answers, p.vector.AnswerSize(), p.scheme.PublicKeySize(false)+p.vector.UpBytes()
	p.result = &Shares{Entries: make([]uint64, v.Rows), T: p.scheme.T}
	return p, nil
}

func (c *Client) planBatch(b *Batch) (*plan, error) {
	p, err := c.begin(b.Ends)
	if err != nil {
		return nil, err
	}
	if p.batch, err = p.scheme.PlanBatch(b.Rows, b.Cols, b.Count, b.Outputs); err != nil {
		return nil, ofEngine(err)
	}
	p.header.Shape = &linearv1.RunHeader_Batch{Batch: &linearv1.BatchShape{
		Rows: uint32(b.Rows), Cols: uint32(b.Cols), Count: uint32(b.Count), Outputs: uint32(b.Outputs),
	}}
	p.answers, p.size, p.inputs = p.batch.Answers, p.batch.AnswerSize(), p.scheme.PublicKeySize(false)+p.batch.UpBytes()
	p.result = &Shares{Entries: make([]uint64, b.Rows*b.Outputs), T: p.scheme.T}
	return p, nil
}

// put writes the results of an answer to their places.
func (p *plan) put(g int, v []uint64) {
	if p.vector != nil {
		from, to := p.vector.RowsOf(g)
		copy(p.result.Entries[from:to], v)
		return
	}
	part := p.batch.PartOf(g)
	for o := part.Output; o < part.OutputEnd; o++ {
		n := copy(p.result.Entries[o*p.batch.Rows+part.Row:o*p.batch.Rows+part.RowEnd], v)
		v = v[n:]
	}
}

// results returns the results of answer g.
func (p *plan) results(g int) int {
	if p.vector != nil {
		from, to := p.vector.RowsOf(g)
		return to - from
	}
	return p.batch.PartOf(g).Len()
}

func (p *plan) tell(sent uint64, all uint64, answers int) {
	if p.Progress != nil {
		p.Progress(Progress{Sent: sent, ToSend: all, Answers: answers, Expect: p.answers})
	}
}

// AskVector runs the end that has the key. It sends its encrypted share of the vector, Cols
// residues modulo T, and receives its share of the product.
func (c *Client) AskVector(ctx context.Context, v *Vector, share []uint64) (*Shares, error) {
	p, err := c.planVector(v)
	if err != nil {
		return nil, err
	}
	return p.ask(ctx, share)
}

// AskBatch runs the end that has the key. It sends its encrypted shares of the matrices, each row
// by row, consecutively, and receives its share of the results.
func (c *Client) AskBatch(ctx context.Context, b *Batch, matrices []uint64) (*Shares, error) {
	p, err := c.planBatch(b)
	if err != nil {
		return nil, err
	}
	return p.ask(ctx, matrices)
}

func (p *plan) ask(ctx context.Context, share []uint64) (*Shares, error) {
	source, err := draw("linear client input")
	if err != nil {
		return nil, err
	}
	defer source.Wipe()
	keys, errors := source.Sub("keys"), source.Sub("input")
	defer keys.Wipe()
	defer errors.Wipe()
	secret, public := p.scheme.Generate(false, keys)
	defer secret.Wipe()
	var in *linear.Inputs
	if p.vector != nil {
		in, err = p.vector.Encrypt(secret, share, p.workers(), errors)
	} else {
		in, err = p.batch.Encrypt(secret, share, p.workers(), errors)
	}
	if err != nil {
		return nil, ofEngine(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.calls.Ask(ctx)
	if err != nil {
		return nil, p.failed(err)
	}
	up := &upload{send: func(chunk []byte) error { return stream.Send(&linearv1.AskRequest{Chunk: chunk}) }}
	up.report = func(sent uint64) { p.tell(sent, uint64(p.inputs), 0) }
	err = stream.Send(&linearv1.AskRequest{Header: p.header})
	if err == nil {
		_, err = up.Write(public.Encode())
	}
	if err == nil {
		err = up.inputs(in)
	}
	if err == nil {
		err = up.flush()
	}
	if err := ignore(err); err != nil {
		return nil, p.failed(err)
	}
	p.result.Up = up.sent
	answers := &pieces{size: func(int) int { return p.size }, most: p.answers}
	answers.take = func(g int, b []byte) error {
		var v []uint64
		var err error
		if p.vector != nil {
			v, err = p.vector.Open(secret, g, b)
		} else {
			v, err = p.batch.Open(secret, g, b)
		}
		if err != nil {
			return err
		}
		p.put(g, v)
		p.tell(up.sent, uint64(p.inputs), g+1)
		return nil
	}
	err = receive(p, answers, func() (response, error) { return stream.Recv() }, func() { _ = stream.CloseSend() })
	return p.finish(err)
}

// finish returns the result, or erases it on error: shares of a failed run are useless.
func (p *plan) finish(err error) (*Shares, error) {
	if err != nil {
		clear(p.result.Entries)
		return nil, err
	}
	return p.result, nil
}

// response is the common form of the responses to both ends.
type response interface {
	GetTerms() *linearv1.Terms
	GetChunk() []byte
	GetComplete() bool
}

// receive receives terms and answers until the run is complete, and calls done when it has
// everything.
func receive(p *plan, answers *pieces, recv func() (response, error), done func()) error {
	first, err := recv()
	if err != nil {
		return p.failed(err)
	}
	if p.result.Security = passive; p.scheme.HasProof() {
		p.result.Security = passiveEvaluator
	}
	if err := p.checkTerms(first.GetTerms(), p.result.Security, p.answers, p.size); err != nil {
		return err
	}
	p.result.LogDistance = first.GetTerms().GetLogDistance()
	complete := false
	for {
		r, err := recv()
		switch {
		case errors.Is(err, io.EOF) && complete:
			return nil
		case errors.Is(err, io.EOF):
			return p.bad("it ends before the run is complete")
		case err != nil:
			return p.failed(err)
		case complete:
			return p.bad("it sends more after the end")
		}
		p.result.Down += uint64(len(r.GetChunk()))
		if err := answers.add(r.GetChunk()); err != nil {
			return p.bad("%v", err)
		}
		if complete = r.GetComplete(); complete && answers.i != p.answers {
			return p.bad("its answers end after %d of %d", answers.i, p.answers)
		}
		if complete {
			done()
		}
	}
}

// AnswerVector runs the end that has the matrix. row writes its rows, of Cols residues modulo T,
// one after another; share is this end's share of the vector, or nil for 0. It returns this end's
// share of the product.
func (c *Client) AnswerVector(ctx context.Context, v *Vector, share []uint64, row func(i int, into []uint64) error) (*Shares, error) {
	p, err := c.planVector(v)
	if err != nil {
		return nil, err
	}
	if share == nil {
		share = make([]uint64, v.Cols)
	}
	if len(share) != v.Cols {
		return nil, lodge.Errorf(lodge.Invalid, "", "the vector has %d entries, want %d", len(share), v.Cols)
	}
	return p.answer(ctx, v.Rows+1, v.Cols, func(i int, into []uint64) error {
		if i == 0 {
			copy(into, share)
			return nil
		}
		return row(i-1, into)
	})
}

// AnswerBatch runs the end that has the vectors, Count of Cols residues for each output, and its
// shares of the matrices, or nil for 0. It returns this end's share of the results.
func (c *Client) AnswerBatch(ctx context.Context, b *Batch, matrices, vectors []uint64) (*Shares, error) {
	p, err := c.planBatch(b)
	if err != nil {
		return nil, err
	}
	if matrices == nil {
		matrices = make([]uint64, b.Count*b.Rows*b.Cols)
	}
	if len(matrices) != b.Count*b.Rows*b.Cols || len(vectors) != b.Outputs*b.Count*b.Cols {
		return nil, lodge.Errorf(lodge.Invalid, "", "%d entries of matrices and %d of vectors, want %d and %d", len(matrices), len(vectors), b.Count*b.Rows*b.Cols, b.Outputs*b.Count*b.Cols)
	}
	return p.answer(ctx, b.Count*(b.Rows+b.Outputs), b.Cols, func(i int, into []uint64) error {
		if i < b.Count*b.Rows {
			copy(into, matrices[i*b.Cols:])
		} else {
			copy(into, vectors[(i-b.Count*b.Rows)*b.Cols:])
		}
		return nil
	})
}

// answer sends the given number of lines of cols residues and receives the shares as they arrive.
func (p *plan) answer(ctx context.Context, lines, cols int, line func(i int, into []uint64) error) (*Shares, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.calls.Answer(ctx)
	if err != nil {
		return nil, p.failed(err)
	}
	modulus := []uint64{p.scheme.T}
	all := uint64(codec.PolySize(cols, modulus)) * uint64(lines)
	up := &upload{send: func(chunk []byte) error { return stream.Send(&linearv1.AnswerRequest{Chunk: chunk}) }}
	var mine error // an error in the caller's input
	var sending sync.WaitGroup
	sending.Go(func() {
		if mine = p.lines(up, stream, lines, cols, line); mine != nil {
			cancel()
		}
	})
	shares := &pieces{size: func(g int) int { return codec.PolySize(p.results(g), modulus) }, most: p.answers}
	shares.take = func(g int, b []byte) error {
		v := make([]uint64, p.results(g))
		if err := codec.DecodePoly([][]uint64{v}, modulus, b); err != nil {
			return err
		}
		p.put(g, v)
		p.tell(min(all, uint64(g+1)*all/uint64(p.answers)), all, g+1)
		return nil
	}
	err = receive(p, shares, func() (response, error) { return stream.Recv() }, func() {})
	if err != nil {
		cancel()
	}
	sending.Wait()
	p.result.Up = up.sent
	if mine != nil {
		err = mine
	}
	return p.finish(err)
}

// lines sends the factors. It only returns errors of the caller's input.
func (p *plan) lines(up *upload, stream linearv1.LinearService_AnswerClient, lines, cols int, line func(i int, into []uint64) error) error {
	if stream.Send(&linearv1.AnswerRequest{Header: p.header}) != nil { // Recv reports the cause, here and below
		return nil
	}
	v, modulus := make([]uint64, cols), []uint64{p.scheme.T}
	defer clear(v)
	var b []byte
	for i := range lines {
		if err := line(i, v); err != nil {
			return err
		}
		for _, x := range v {
			if x >= p.scheme.T {
				return lodge.Errorf(lodge.Invalid, "reduce it", "an entry of line %d is not a residue modulo %d", i, p.scheme.T)
			}
		}
		b = codec.AppendPoly(b[:0], [][]uint64{v}, modulus)
		if _, err := up.Write(b); err != nil {
			return nil
		}
	}
	if up.flush() == nil {
		_ = stream.CloseSend()
	}
	return nil
}
