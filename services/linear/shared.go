package linear

import (
	"fmt"
	"sync"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/sample"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Maximum number of entries of products on shares: of a matrix that is streamed, and of data that
// is held in memory.
const (
	maxMatrix = 1 << 32
	maxHeld   = 1 << 28
)

// shared is a product on shares: a matrix times a vector, or sums over a batch.
type shared struct {
	kind, text string
	scheme     *linear.Scheme
	plan       interface {
		Distance() float64
		UpBytes() int
		AnswerSize() int
	}
	inputs, answers int // ciphertexts of the key owner, and answers
	lines, cols     int // the matrix owner sends lines of residues
	// held is the memory, in bytes, for the matrix owner's lines and the shares of the results.
	held uint64
	// accept validates the key owner's input. Its result allocates the memory for the lines.
	accept func(*linear.PublicKey, *linear.Inputs) (func() work, error)
}

// work computes answers from the lines of the matrix owner.
type work struct {
	// line returns the place for line i. The answers in ready(i) can be computed once it is filled.
	line   func(i int) []uint64
	ready  func(i int) (from, to int)
	answer func(g int, source *sample.Source) (encoded []byte, shares []uint64, err error)
	wipe   func()
}

// ProvedSince is the first protocol version whose clients prove their inputs by default.
const ProvedSince = 13

// openShared validates an end's header and plans the product.
func (s *Service) openShared(h *linearv1.RunHeader) (*shared, error) {
	scheme, err := s.scheme(h.GetSet(), h.GetSetHash())
	if err != nil {
		return nil, err
	}
	//lodge:check linearservice/unproved [run=TestUnprovedInputsAreRefused] a malformed input of a client tells it the matrix of the other
	if !s.AllowUnproved && !scheme.HasProof() {
		return nil, rpc.Errorf(rpc.PolicyRefused, fmt.Sprintf("name the parameter set %s at both ends; clients of protocol version %d and later do by default. "+
			"To accept %s, the operator sets allow_unproved_linear: true in the party's file; docs/guides/linear.md explains what such inputs reveal", linear.DefaultVector, ProvedSince, scheme.Name),
			"inputs under parameter set %s are not proved to be well formed, and this party requires proofs", scheme.Name)
	}
	tooLarge := func(what string, most uint64) error {
		return rpc.Errorf(rpc.TooLarge, "multiply blocks of the matrices", "%s of more than %d entries", what, most)
	}
	switch x := h.GetShape().(type) {
	case *linearv1.RunHeader_Vector:
		v := x.Vector
		if uint64(v.GetRows())*uint64(v.GetCols()) > maxMatrix {
			return nil, tooLarge("a matrix", maxMatrix)
		}
		packing, known := packings[v.GetPacking()]
		if !known {
			return nil, rpc.Errorf(rpc.Invalid, "", "packing %d", v.GetPacking())
		}
		plan, err := scheme.PlanVector(int(v.GetRows()), int(v.GetCols()), packing, int(v.GetSlots()))
		if err != nil {
			return nil, refusal(err)
		}
		return vector(scheme, plan, s.Workers), nil
	case *linearv1.RunHeader_Batch:
		b := x.Batch
		rows, cols, count, outputs := uint64(b.GetRows()), uint64(b.GetCols()), uint64(b.GetCount()), uint64(b.GetOutputs())
		if max(rows, cols, count, outputs) > linear.MaxEntries || count*cols > maxHeld || max(count*cols*max(rows, outputs), outputs*rows) > maxHeld {
			return nil, tooLarge("matrices, vectors or results", maxHeld)
		}
		plan, err := scheme.PlanBatch(int(rows), int(cols), int(count), int(outputs))
		if err != nil {
			return nil, refusal(err)
		}
		return batch(scheme, plan), nil
	}
	return nil, rpc.Errorf(rpc.Invalid, "give the shape of a matrix, or of a batch", "no shape")
}

var packings = map[linearv1.Packing]linear.Packing{
	linearv1.Packing_PACKING_UNSPECIFIED: linear.Cheapest,
	linearv1.Packing_PACKING_FORWARD:     linear.Forward,
	linearv1.Packing_PACKING_DOUBLE:      linear.Double,
	linearv1.Packing_PACKING_TILED:       linear.Tiled,
}

// vector describes a matrix times a vector. The lines are the matrix owner's share of the vector
// and the rows of the matrix. The rows of as many answers are held as are computed concurrently.
func vector(scheme *linear.Scheme, p *linear.VectorPlan, workers int) *shared {
	x := &shared{
		kind: metrics.LinearVector, text: fmt.Sprintf("a matrix of %d x %d times a shared vector", p.Rows, p.Cols), scheme: scheme, plan: p,
		inputs: p.Blocks, answers: p.Answers, lines: p.Rows + 1, cols: p.Cols,
	}
	x.held = 8*uint64(p.Cols)*(uint64(workers)*uint64(p.PerAnswer)+3) + 16*uint64(workers)*uint64(p.PerAnswer)
	x.accept = func(key *linear.PublicKey, in *linear.Inputs) (func() work, error) {
		e, err := p.Evaluator(key, in)
		return func() work { return vectorWork(p, e, workers) }, refusal(err)
	}
	return x
}

func vectorWork(p *linear.VectorPlan, e *linear.VectorEvaluator, workers int) work {
	share, held := make([]uint64, p.Cols), make([][]uint64, workers)
	rows := func(g int) []uint64 {
		from, to := p.RowsOf(g)
		return held[g%workers][:(to-from)*p.Cols]
	}
	return work{
		line: func(i int) []uint64 {
			if i == 0 {
				return share
			}
			g, row := (i-1)/p.PerAnswer, (i-1)%p.PerAnswer
			if held[g%workers] == nil { // otherwise the previous answer that used it has been sent
				held[g%workers] = make([]uint64, p.PerAnswer*p.Cols)
			}
			return rows(g)[row*p.Cols:][:p.Cols]
		},
		ready: func(i int) (from, to int) {
			if i == 0 || i%p.PerAnswer > 0 && i < p.Rows {
				return 0, 0
			}
			return (i - 1) / p.PerAnswer, (i-1)/p.PerAnswer + 1
		},
		answer: func(g int, source *sample.Source) ([]byte, []uint64, error) {
			return e.Answer(g, rows(g), share, source)
		},
		wipe: func() {
			for _, v := range append(held, share) {
				clear(v)
			}
		},
	}
}

// batch describes sums over a batch. The lines are the rows of the matrix owner's shares of the
// matrices, and its vectors.
func batch(scheme *linear.Scheme, p *linear.BatchPlan) *shared {
	matrices := p.Count * p.Rows * p.Cols
	x := &shared{
		kind: metrics.LinearBatch, text: fmt.Sprintf("%d shared matrices of %d x %d times vectors of %d outputs", p.Count, p.Rows, p.Cols, p.Outputs),
		scheme: scheme, plan: p, inputs: p.Inputs, answers: p.Answers, lines: p.Count * (p.Rows + p.Outputs), cols: p.Cols,
	}
	x.held = 8 * (uint64(x.lines)*uint64(p.Cols) + 3*uint64(p.Cols+scheme.N()))
	x.accept = func(key *linear.PublicKey, in *linear.Inputs) (func() work, error) {
		e, err := p.Evaluator(key, in)
		return func() work {
			held := make([]uint64, x.lines*p.Cols)
			return work{
				line: func(i int) []uint64 { return held[i*p.Cols:][:p.Cols] },
				ready: func(i int) (from, to int) {
					if i < x.lines-1 {
						return 0, 0
					}
					return 0, p.Answers
				},
				answer: func(g int, source *sample.Source) ([]byte, []uint64, error) {
					return e.Answer(g, held[matrices:], held[:matrices], source)
				},
				wipe: func() { clear(held) },
			}
		}, refusal(err)
	}
	return x
}

// String describes the shape of the product.
func (x *shared) String() string { return x.text }

// security returns the security level of the product.
func (x *shared) security() string {
	if x.scheme.HasProof() {
		return passiveEvaluator
	}
	return passive
}

// terms returns the terms that follow from set and shape.
func (x *shared) terms() *linearv1.Terms {
	return &linearv1.Terms{
		Security: x.security(), Answers: uint32(x.answers), AnswerBytes: uint64(x.plan.AnswerSize()), LogDistance: x.plan.Distance(),
	}
}

// askBytes returns the size of the key owner's upload in bytes.
func (x *shared) askBytes() uint64 { return uint64(x.scheme.PublicKeySize(false) + x.plan.UpBytes()) }

// askRoom returns the memory of the key owner's end in bytes.
func (x *shared) askRoom() uint64 {
	return 2*rpc.MaxMessage + keyRoom(x.scheme, false) + 2*uint64(x.inputs)*polynomial(x.scheme) + uint64(x.scheme.ProofMemory())
}

// residues returns the packed size of n residues in bytes.
func (x *shared) residues(n int) int { return codec.PolySize(n, []uint64{x.scheme.T}) }

// decode unpacks residues.
func (x *shared) decode(v []uint64, b []byte) error {
	//lodge:check linearservice/residues [run=TestRunsRefuse] the matrix is accepted with several
	//  encodings
	if err := codec.DecodePoly([][]uint64{v}, []uint64{x.scheme.T}, b); err != nil {
		return rpc.Errorf(rpc.Invalid, "pack residues modulo T as docs/reference/formats.md says", "the upload contains invalid residues modulo %d: %v", x.scheme.T, err)
	}
	return nil
}

// encode packs residues.
func (x *shared) encode(v []uint64) []byte {
	return codec.AppendPoly(make([]byte, 0, x.residues(len(v))), [][]uint64{v}, []uint64{x.scheme.T})
}

// answerRoom returns the memory of the matrix owner's end in bytes, with the memory for computing
// answers.
func (x *shared) answerRoom(workers int) uint64 {
	return 2*rpc.MaxMessage + uint64(workers)*perAnswer*polynomial(x.scheme) + x.held
}

// answerBytes returns the size of the matrix owner's upload in bytes.
func (x *shared) answerBytes() uint64 { return uint64(x.residues(x.cols)) * uint64(x.lines) }

// giving processes the matrix owner's upload and computes the answers.
type giving struct {
	*shared
	work
	// source returns the randomness of an answer, and emit receives the answer and the share of the
	// results.
	source func(g int) *sample.Source
	emit   func(answer []byte, shares []uint64) error
	// workers is the number of answers computed concurrently.
	workers int
	begun   []chan computed // in the order of the answers
	group   sync.WaitGroup
}

// computed is an answer or an error.
type computed struct {
	answer []byte
	shares []uint64
	err    error
}

// parts returns the parts of the matrix owner's upload. The computation of an answer begins as soon
// as its lines are complete.
func (x *giving) parts(yield func(part) bool) {
	defer func() {
		x.end()
		x.wipe()
	}()
	for i := range x.lines {
		take := func(b []byte) error {
			if err := x.decode(x.line(i), b); err != nil {
				return err
			}
			for g, to := x.ready(i); g < to; g++ {
				if err := x.begin(g); err != nil {
					return err
				}
			}
			return nil
		}
		if !yield(part{x.residues(x.cols), take}) {
			return
		}
	}
}

// end waits for running computations and erases the shares of answers that were not sent.
func (x *giving) end() {
	x.group.Wait()
	for _, done := range x.begun {
		clear((<-done).shares)
	}
}

// begin starts the computation of answer g. It then sends finished answers in order until fewer
// than workers are computed or, after the last answer, until all are sent.
func (x *giving) begin(g int) error {
	done := make(chan computed, 1)
	x.begun = append(x.begun, done)
	x.group.Go(func() {
		source := x.source(g)
		defer source.Wipe()
		encoded, shares, err := x.answer(g, source)
		done <- computed{encoded, shares, err}
	})
	for len(x.begun) >= x.workers || g == x.answers-1 && len(x.begun) > 0 {
		first := <-x.begun[0]
		x.begun = x.begun[1:]
		if first.err != nil {
			return first.err
		}
		err := x.emit(first.answer, first.shares)
		clear(first.shares)
		if err != nil {
			return err
		}
	}
	return nil
}
