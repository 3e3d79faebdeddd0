package linear

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/parallel"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// maxEntries bounds the number of entries of a factor and of a product of encrypted matrices.
const maxEntries = 1 << 26

// product is a product of two encrypted matrices that is being received or computed.
type product struct {
	scheme      *linear.Scheme
	plan        *linear.ProductPlan
	first       int // first answer to send
	key         *linear.PublicKey
	left, right *linear.Inputs
	call        *job.Call
	*intake
}

// Multiply implements the service.
func (s *Service) Multiply(stream linearv1.LinearService_MultiplyServer) error {
	err := s.multiply(stream)
	s.Metrics.Count(metrics.LinearProducts, 1, metrics.LinearOutsourced, outcome(err))
	return err
}

// outcome returns the metric label for the outcome of a product.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return string(rpc.FromError(err).Code)
}

func (s *Service) multiply(stream linearv1.LinearService_MultiplyServer) error {
	caller, _ := rpc.Caller(stream.Context())
	p, err := upload(stream.Recv, func(m *linearv1.MultiplyRequest) (*product, error) {
		p, err := s.openProduct(m.GetHeader())
		if err == nil {
			p.call, err = s.admit(caller.Name, p.room(s.Workers))
		}
		return p, err
	}, func(p *product, m *linearv1.MultiplyRequest) error { return p.add(m.GetChunk()) })
	if p != nil {
		defer p.call.Release()
		defer p.close()
	}
	if err != nil {
		return err
	}
	if err := p.whole(); err != nil {
		return err
	}
	terms := &linearv1.Terms{Security: passive, Answers: uint32(p.plan.Answers()), AnswerBytes: uint64(p.plan.AnswerSize()), LogDistance: p.plan.Distance()}
	if err := stream.Send(&linearv1.MultiplyResponse{Terms: terms}); err != nil {
		return err
	}
	return s.answers(stream.Context(), p, func(chunk []byte) error {
		return stream.Send(&linearv1.MultiplyResponse{Chunk: chunk})
	})
}

// admit reserves one of a client's concurrent calls, and memory for its upload.
func (s *Service) admit(client string, room uint64) (*job.Call, error) {
	call, err := s.Gate.AdmitCall(client, room)
	if err != nil {
		return nil, err
	}
	//lodge:check linearservice/places [swap=call.Compute()=>nil] [run=TestPlacesAndMemory] clients'
	//  calls hold any amount of resources
	if err = call.Compute(); err == nil {
		err = s.rates.take(client, s.Policy.ProductsPerHour, time.Now())
	}
	if err != nil {
		call.Release()
		return nil, err
	}
	return call, nil
}

// openProduct validates a header and plans the product.
func (s *Service) openProduct(h *linearv1.MultiplyHeader) (*product, error) {
	if h == nil {
		return nil, rpc.NoHeader
	}
	scheme, err := s.scheme(h.GetSet(), h.GetSetHash())
	if err != nil {
		return nil, err
	}
	rows, inner, cols := uint64(h.GetRows()), uint64(h.GetInner()), uint64(h.GetCols())
	//lodge:check linearservice/factor-size [run=TestMultiplyRefuses] a product of any size is
	//  planned
	if max(rows*inner, inner*cols, rows*cols) > maxEntries {
		return nil, rpc.Errorf(rpc.TooLarge, "multiply blocks of the matrices", "a product of %d x %d by %d; factors have at most %d entries", rows, inner, cols, maxEntries)
	}
	method, known := map[linearv1.ProductMethod]linear.Method{
		linearv1.ProductMethod_PRODUCT_METHOD_UNSPECIFIED: linear.FewestBytes,
		linearv1.ProductMethod_PRODUCT_METHOD_FIRST:       linear.First,
		linearv1.ProductMethod_PRODUCT_METHOD_SECOND:      linear.Second,
	}[h.GetMethod()]
	if !known {
		return nil, rpc.Errorf(rpc.Invalid, "", "method %d", h.GetMethod())
	}
	p := &product{scheme: scheme, first: int(h.GetFirst())}
	p.plan, err = scheme.PlanProduct(linear.ProductShape{
		Rows: int(rows), Inner: int(inner), Cols: int(cols), MaxLeft: h.GetMaxLeft(), MaxRight: h.GetMaxRight(), Method: method,
	})
	if err != nil {
		return nil, refusal(err)
	}
	//lodge:check linearservice/first [run=TestMultiplyRefuses] an answer outside the product is
	//  requested
	if p.first >= p.plan.Answers() {
		return nil, rpc.Errorf(rpc.Invalid, "", "answer %d of %d", p.first, p.plan.Answers())
	}
	p.intake = intakeOf(p.parts(), uint64(scheme.PublicKeySize(true)+p.plan.UpBytes()))
	return p, nil
}

// parts returns the parts of the upload: the key and the factors.
func (p *product) parts() iter.Seq[part] {
	return func(yield func(part) bool) {
		if !yield(part{p.scheme.PublicKeySize(true), func(b []byte) (err error) {
			p.key, err = p.scheme.DecodePublicKey(b)
			return err
		}}) {
			return
		}
		key := func() *linear.PublicKey { return p.key }
		_ = inputs(yield, p.scheme, key, p.plan.Lefts(), &p.left) && inputs(yield, p.scheme, key, p.plan.Rights(), &p.right)
	}
}

// inputs yields the parts of count ciphertexts under a key that was received earlier: their header,
// their proof if the set has one, and the ciphertexts.
func inputs(yield func(part) bool, scheme *linear.Scheme, key func() *linear.PublicKey, count int, into **linear.Inputs) bool {
	if !yield(part{linear.InputsHeaderSize, func(b []byte) (err error) {
		*into, err = key().ReceiveInputs(b, count)
		return err
	}}) {
		return false
	}
	for i := range count {
		if !yield(part{scheme.CiphertextSize(), func(b []byte) error { return (*into).Put(i, b) }}) {
			return false
		}
	}
	for i := range scheme.ProofFrames(count) {
		if !yield(part{scheme.ProofFrameSize(i), func(b []byte) error { return (*into).PutProof(i, b) }}) {
			return false
		}
	}
	return true
}

// polynomial returns the memory of a polynomial modulo Q, in bytes.
func polynomial(s *linear.Scheme) uint64 { return uint64(8 * s.N() * len(s.Q)) }

// perAnswer is the number of polynomials in memory while an answer is computed.
const perAnswer = 12

func keyRoom(s *linear.Scheme, products bool) uint64 {
	samples := 1
	if products {
		samples += len(s.Q)
	}
	return 2*uint64(samples)*polynomial(s) + uint64(s.PublicKeySize(products))
}

// room returns the memory of the product in bytes: the key, both halves of each ciphertext, those
// of the right factor twice, and the answers that are computed concurrently.
func (p *product) room(workers int) uint64 {
	halves := 2*uint64(p.plan.Lefts()) + 4*uint64(p.plan.Rights())
	return 2*rpc.MaxMessage + keyRoom(p.scheme, true) + (halves+uint64(workers)*perAnswer)*polynomial(p.scheme)
}

// answers computes the requested answers, several concurrently, and sends them in order.
func (s *Service) answers(ctx context.Context, p *product, f func([]byte) error) error {
	e, err := p.plan.Evaluator(p.key, p.left, p.right)
	if err != nil {
		return refusal(err)
	}
	p.left, p.right = nil, nil
	source, err := session.Source("linear product", p.digest())
	if err != nil {
		return err
	}
	defer source.Wipe()
	for g := p.first; g < p.plan.Answers(); g += s.Workers {
		list := make([][]byte, min(s.Workers, p.plan.Answers()-g))
		err := parallel.Try(ctx, s.Workers, len(list), func(i int) (err error) {
			own := source.Sub("linear answer", uint64(g+i))
			defer own.Wipe()
			list[i], err = e.Answer(g+i, own)
			return err
		})
		if err != nil {
			return err
		}
		for _, answer := range list {
			for chunk := range slices.Chunk(answer, maxChunk) {
				if err := f(chunk); err != nil {
					return err
				}
			}
		}
		s.Metrics.Count(metrics.LinearAnswers, len(list), metrics.LinearOutsourced)
	}
	return nil
}

func (p *product) digest() []byte {
	d := p.key.Digest()
	return d[:]
}
