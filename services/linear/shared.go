package linear

import (
	"fmt"
	"iter"
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
	kind   string
	scheme *linear.Scheme
	vector *linear.VectorPlan // or
	batch  *linear.BatchPlan
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
		return &shared{kind: metrics.LinearVector, scheme: scheme, vector: plan}, refusal(err)
	case *linearv1.RunHeader_Batch:
		b := x.Batch
		rows, cols, count, outputs := uint64(b.GetRows()), uint64(b.GetCols()), uint64(b.GetCount()), uint64(b.GetOutputs())
		if max(rows, cols, count, outputs) > linear.MaxEntries || count*cols > maxHeld || max(count*cols*max(rows, outputs), outputs*rows) > maxHeld {
			return nil, tooLarge("matrices, vectors or results", maxHeld)
		}
		plan, err := scheme.PlanBatch(int(rows), int(cols), int(count), int(outputs))
		return &shared{kind: metrics.LinearBatch, scheme: scheme, batch: plan}, refusal(err)
	}
	return nil, rpc.Errorf(rpc.Invalid, "give the shape of a matrix, or of a batch", "no shape")
}

var packings = map[linearv1.Packing]linear.Packing{
	linearv1.Packing_PACKING_UNSPECIFIED: linear.Cheapest,
	linearv1.Packing_PACKING_FORWARD:     linear.Forward,
	linearv1.Packing_PACKING_DOUBLE:      linear.Double,
	linearv1.Packing_PACKING_TILED:       linear.Tiled,
}

// String describes the shape of the product.
func (x *shared) String() string {
	if x.vector != nil {
		return fmt.Sprintf("a matrix of %d x %d times a shared vector", x.vector.Rows, x.vector.Cols)
	}
	return fmt.Sprintf("%d shared matrices of %d x %d times vectors of %d outputs", x.batch.Count, x.batch.Rows, x.batch.Cols, x.batch.Outputs)
}

// security returns the security level of the product.
func (x *shared) security() string {
	if x.scheme.HasProof() {
		return passiveEvaluator
	}
	return passive
}

// terms returns the terms that follow from set and shape.
func (x *shared) terms() *linearv1.Terms {
	t := &linearv1.Terms{Security: x.security()}
	if x.vector != nil {
		t.Answers, t.AnswerBytes, t.LogDistance = uint32(x.vector.Answers), uint64(x.vector.AnswerSize()), x.vector.Distance()
	} else {
		t.Answers, t.AnswerBytes, t.LogDistance = uint32(x.batch.Answers), uint64(x.batch.AnswerSize()), x.batch.Distance()
	}
	return t
}

// ciphertexts returns the number of the key owner's ciphertexts and the size of its upload in
// bytes.
func (x *shared) ciphertexts() (count int, bytes uint64) {
	if x.vector != nil {
		return x.vector.Blocks, uint64(x.scheme.PublicKeySize(false) + x.vector.UpBytes())
	}
	return x.batch.Inputs, uint64(x.scheme.PublicKeySize(false) + x.batch.UpBytes())
}

// askRoom returns the memory of the key owner's end in bytes.
func (x *shared) askRoom() uint64 {
	count, _ := x.ciphertexts()
	return 2*rpc.MaxMessage + keyRoom(x.scheme, false) + 2*uint64(count)*polynomial(x.scheme) + uint64(x.scheme.ProofMemory())
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

// answerRoom returns the memory of the matrix owner's end in bytes: the rows of the answers that
// are computed concurrently and of the one being received, or the whole batch; its shares; and the
// memory for computing answers.
func (x *shared) answerRoom(workers int) uint64 {
	room := 2*rpc.MaxMessage + uint64(workers)*perAnswer*polynomial(x.scheme)
	if p := x.vector; p != nil {
		return room + 8*uint64(p.Cols)*(uint64(workers)*uint64(p.PerAnswer)+3) + 16*uint64(workers)*uint64(p.PerAnswer)
	}
	p := x.batch
	columns := uint64(p.Count) * uint64(p.Cols)
	return room + 8*(columns*uint64(p.Outputs+p.Rows)+3*uint64(p.Cols+x.scheme.N()))
}

// answerBytes returns the size of the matrix owner's upload in bytes.
func (x *shared) answerBytes() uint64 {
	if p := x.vector; p != nil {
		return uint64(x.residues(p.Cols)) * uint64(p.Rows+1)
	}
	p := x.batch
	return uint64(x.residues(p.Cols)) * uint64(p.Count) * uint64(p.Rows+p.Outputs)
}

// evaluators holds the evaluator of a run, which exists once the key owner has sent its input.
type evaluators struct {
	vector *linear.VectorEvaluator // or
	batch  *linear.BatchEvaluator
}

// accept validates the key owner's input and returns the evaluator.
func (x *shared) accept(key *linear.PublicKey, in *linear.Inputs) (e evaluators, err error) {
	if x.vector != nil {
		e.vector, err = x.vector.Evaluator(key, in)
	} else {
		e.batch, err = x.batch.Evaluator(key, in)
	}
	return e, refusal(err)
}

// giving processes the matrix owner's upload and computes the answers.
type giving struct {
	*shared
	with evaluators
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
// as its rows are complete.
func (x *giving) parts() iter.Seq[part] {
	if x.vector != nil {
		return x.vectorParts
	}
	return x.batchParts
}

func (x *giving) vectorParts(yield func(part) bool) {
	p := x.vector
	share, room := make([]uint64, p.Cols), make([][]uint64, x.workers)
	defer func() {
		x.end()
		clear(share)
		for _, rows := range room {
			clear(rows)
		}
	}()
	size := x.residues(p.Cols)
	if !yield(part{size, func(b []byte) error { return x.decode(share, b) }}) {
		return
	}
	for g := range p.Answers {
		from, to := p.RowsOf(g)
		at := &room[g%x.workers] // the previous answer that used these rows has been sent
		if *at == nil {
			*at = make([]uint64, p.PerAnswer*p.Cols)
		}
		rows := *at
		for i := range to - from {
			take := func(b []byte) error {
				if err := x.decode(rows[i*p.Cols:(i+1)*p.Cols], b); err != nil || i+1 < to-from {
					return err
				}
				return x.begin(g, p.Answers, func(source *sample.Source) ([]byte, []uint64, error) {
					return x.with.vector.Answer(g, rows[:(to-from)*p.Cols], share, source)
				})
			}
			if !yield(part{size, take}) {
				return
			}
		}
	}
}

func (x *giving) batchParts(yield func(part) bool) {
	p := x.batch
	matrices, vectors := make([]uint64, p.Count*p.Rows*p.Cols), make([]uint64, p.Outputs*p.Count*p.Cols)
	defer func() {
		x.end()
		clear(matrices)
		clear(vectors)
	}()
	size := x.residues(p.Cols)
	for i := range p.Count * p.Rows {
		if !yield(part{size, func(b []byte) error { return x.decode(matrices[i*p.Cols:(i+1)*p.Cols], b) }}) {
			return
		}
	}
	for i := range p.Outputs * p.Count {
		take := func(b []byte) error {
			if err := x.decode(vectors[i*p.Cols:(i+1)*p.Cols], b); err != nil || i+1 < p.Outputs*p.Count {
				return err
			}
			for g := range p.Answers {
				err := x.begin(g, p.Answers, func(source *sample.Source) ([]byte, []uint64, error) {
					return x.with.batch.Answer(g, vectors, matrices, source)
				})
				if err != nil {
					return err
				}
			}
			return nil
		}
		if !yield(part{size, take}) {
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
func (x *giving) begin(g, answers int, answer func(*sample.Source) ([]byte, []uint64, error)) error {
	done := make(chan computed, 1)
	x.begun = append(x.begun, done)
	x.group.Go(func() {
		source := x.source(g)
		defer source.Wipe()
		encoded, shares, err := answer(source)
		done <- computed{encoded, shares, err}
	})
	for len(x.begun) >= x.workers || g == answers-1 && len(x.begun) > 0 {
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
