package linear

import (
	"context"
	"errors"
	"io"
	"math/bits"
	"time"

	"github.com/lodge-mpc/lodge/engine/linear"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
)

// Product is a product of two integer matrices of the caller, for [Client.Multiply].
type Product struct {
	// Set names the parameter set; empty means the default for products.
	Set               string
	Rows, Inner, Cols int     // Rows x Inner times Inner x Cols
	Left, Right       []int64 // row by row
	// MaxLeft and MaxRight bound the magnitudes of the entries. The party learns them. 0 means the
	// smallest sufficient 2^k - 1.
	MaxLeft, MaxRight uint64
	Method            linear.Method
	// Progress, unless nil, is called with the number of bytes sent and of answers received.
	Progress func(Progress)
}

// Progress describes the progress of a product.
type Progress struct {
	Sent, ToSend    uint64 // bytes
	Answers, Expect int
}

// Result is the result of [Client.Multiply].
type Result struct {
	Entries []int64 // Rows x Cols, row by row
	// Up and Down are the bytes in each direction, including those of failed attempts; Attempts is
	// the number of attempts.
	Up, Down    uint64
	Attempts    int
	LogDistance float64
}

// bound returns the smallest 2^k - 1 that no entry exceeds in magnitude.
func bound(entries []int64) uint64 {
	most := uint64(0)
	for _, x := range entries {
		sign := x >> 63
		most = max(most, uint64((x^sign)-sign))
	}
	return 1<<bits.Len64(most) - 1
}

// Plan returns the plan that both this client and the party compute.
func (p *Product) Plan() (*linear.ProductPlan, *linear.Scheme, error) {
	scheme, err := find(p.Set, linear.DefaultProduct)
	if err != nil {
		return nil, nil, err
	}
	shape := linear.ProductShape{Rows: p.Rows, Inner: p.Inner, Cols: p.Cols, MaxLeft: p.MaxLeft, MaxRight: p.MaxRight, Method: p.Method}
	if shape.MaxLeft == 0 {
		shape.MaxLeft = bound(p.Left)
	}
	if shape.MaxRight == 0 {
		shape.MaxRight = bound(p.Right)
	}
	plan, err := scheme.PlanProduct(shape)
	return plan, scheme, ofEngine(err)
}

// multiplication is the state of a running product.
type multiplication struct {
	*Client
	*Product
	plan        *linear.ProductPlan
	scheme      *linear.Scheme
	secret      *linear.SecretKey
	public      *linear.PublicKey
	left, right *linear.Inputs
	done        int // answers
	*Result
}

// Multiply has the party multiply two matrices that it sees only encrypted. It retries after
// temporary errors, and requests only the missing answers again.
func (c *Client) Multiply(ctx context.Context, p *Product) (*Result, error) {
	m := &multiplication{Client: c, Product: p, Result: &Result{Entries: make([]int64, max(0, p.Rows*p.Cols))}}
	var err error
	if m.plan, m.scheme, err = p.Plan(); err != nil {
		return nil, err
	}
	source, err := draw("linear client product")
	if err != nil {
		return nil, err
	}
	defer source.Wipe()
	keys, left, right := source.Sub("keys"), source.Sub("left"), source.Sub("right")
	defer keys.Wipe()
	defer left.Wipe()
	defer right.Wipe()
	m.secret, m.public = m.scheme.Generate(true, keys)
	defer m.secret.Wipe()
	if m.left, err = m.plan.EncryptLeft(m.secret, p.Left, c.workers(), left); err != nil {
		return nil, ofEngine(err)
	}
	if m.right, err = m.plan.EncryptRight(m.secret, p.Right, c.workers(), right); err != nil {
		return nil, ofEngine(err)
	}
	patience := c.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	for until := time.Now().Add(patience); ; {
		m.Attempts++
		before := m.done
		err := m.attempt(ctx)
		if err == nil {
			return m.Result, nil
		}
		if m.done > before {
			until = time.Now().Add(patience)
		}
		if err := again(ctx, err, until); err != nil {
			return nil, err
		}
	}
}

// attempt sends everything and receives the missing answers.
func (m *multiplication) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := m.calls.Multiply(ctx)
	if err != nil {
		return m.failed(err)
	}
	method := map[linear.Method]linearv1.ProductMethod{
		linear.First: linearv1.ProductMethod_PRODUCT_METHOD_FIRST, linear.Second: linearv1.ProductMethod_PRODUCT_METHOD_SECOND,
	}[m.plan.Method]
	hash := m.scheme.Hash()
	up := &upload{send: func(chunk []byte) error { return stream.Send(&linearv1.MultiplyRequest{Chunk: chunk}) }}
	up.report = func(sent uint64) { m.tell(sent) }
	err = stream.Send(&linearv1.MultiplyRequest{Header: &linearv1.MultiplyHeader{
		Set: m.scheme.Name, SetHash: hash[:], Rows: uint32(m.Rows), Inner: uint32(m.Inner), Cols: uint32(m.Cols),
		MaxLeft: m.plan.MaxLeft, MaxRight: m.plan.MaxRight, Method: method, First: uint32(m.done),
	}})
	if err == nil {
		_, err = up.Write(m.public.Encode())
	}
	if err == nil {
		err = up.inputs(m.left)
	}
	if err == nil {
		err = up.inputs(m.right)
	}
	if err == nil {
		err = up.flush()
	}
	m.Up += up.sent
	if err := ignore(err); err != nil {
		return m.failed(err)
	}
	_ = stream.CloseSend()
	return m.receive(stream, up.sent)
}

func (m *multiplication) tell(sent uint64) {
	if m.Progress != nil {
		all := uint64(m.scheme.PublicKeySize(true) + m.plan.UpBytes())
		m.Progress(Progress{Sent: sent, ToSend: all, Answers: m.done, Expect: m.plan.Answers()})
	}
}

// receive receives terms and answers.
func (m *multiplication) receive(stream linearv1.LinearService_MultiplyClient, sent uint64) error {
	first, err := stream.Recv()
	if err != nil {
		return m.failed(err)
	}
	if err := m.checkTerms(first.GetTerms(), passive, m.plan.Answers(), m.plan.AnswerSize()); err != nil {
		return err
	}
	m.LogDistance = first.GetTerms().GetLogDistance()
	answers := &pieces{size: func(int) int { return m.plan.AnswerSize() }, i: m.done, most: m.plan.Answers()}
	answers.take = func(i int, b []byte) error {
		if err := m.plan.Open(m.secret, i, b, m.Entries); err != nil {
			return err
		}
		m.done++
		m.tell(sent)
		return nil
	}
	for {
		r, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && m.done == m.plan.Answers():
			return nil
		case errors.Is(err, io.EOF):
			return m.bad("its answers end after %d of %d", m.done, m.plan.Answers())
		case err != nil && m.done == m.plan.Answers():
			return nil // all answers have arrived; only the end of the stream is lost
		case err != nil:
			return m.failed(err)
		}
		m.Down += uint64(len(r.GetChunk()))
		if err := answers.add(r.GetChunk()); err != nil {
			return m.bad("%v", err)
		}
	}
}
