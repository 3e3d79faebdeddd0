package linear

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/linear"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
)

const testSet = "insecure-V6-32"

// hostile is a party that accepts everything and responds as a test specifies.
type hostile struct {
	linearv1.UnimplementedLinearServiceServer
	multiply []*linearv1.MultiplyResponse
	ask      []*linearv1.AskResponse
	answer   []*linearv1.AnswerResponse
}

// script receives the whole stream and sends the scripted responses.
func script[In, Out any](recv func() (In, error), send func(Out) error, list []Out) error {
	for {
		_, err := recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	for _, m := range list {
		if err := send(m); err != nil {
			return err
		}
	}
	return nil
}

func (h *hostile) Multiply(s linearv1.LinearService_MultiplyServer) error {
	return script(s.Recv, s.Send, h.multiply)
}
func (h *hostile) Ask(s linearv1.LinearService_AskServer) error {
	for _, m := range h.ask { // the client closes its side when it has everything
		if err := s.Send(m); err != nil {
			return err
		}
	}
	return nil
}
func (h *hostile) Answer(s linearv1.LinearService_AnswerServer) error {
	return script(s.Recv, s.Send, h.answer)
}

// client returns a client of a hostile party.
func (h *hostile) client(t *testing.T) *Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	linearv1.RegisterLinearServiceServer(s, h)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	c := New("p0", conn)
	t.Cleanup(func() { c.Close() })
	return c
}

// refused checks that the error blames the party's response and gives the reason.
func refused(t *testing.T, name string, err error, why string) {
	t.Helper()
	var e *lodge.Error
	if !errors.As(err, &e) || e.Code != lodge.BadShares || !strings.Contains(e.What, why) {
		t.Errorf("%s: %v, want %q", name, err, why)
	}
}

// A party's response to encrypted matrices is checked against the plan and the key.
func TestHostileProducts(t *testing.T) {
	p := &Product{Set: "insecure-P6-17", Rows: 9, Inner: 9, Cols: 9, Left: make([]int64, 81), Right: make([]int64, 81), MaxLeft: 3, MaxRight: 3}
	plan, _, err := p.Plan()
	if err != nil {
		t.Fatal(err)
	}
	size := plan.AnswerSize()
	terms := func(change func(*linearv1.Terms)) *linearv1.MultiplyResponse {
		x := &linearv1.Terms{Security: "passive", Answers: uint32(plan.Answers()), AnswerBytes: uint64(size)}
		change(x)
		return &linearv1.MultiplyResponse{Terms: x}
	}
	good := terms(func(*linearv1.Terms) {})
	for _, c := range []struct {
		name, why string
		send      []*linearv1.MultiplyResponse
	}{
		{"no terms", "it plans", []*linearv1.MultiplyResponse{{}}},
		{"another security", "it plans", []*linearv1.MultiplyResponse{terms(func(x *linearv1.Terms) { x.Security = "active" })}},
		{"another number of answers", "it plans", []*linearv1.MultiplyResponse{terms(func(x *linearv1.Terms) { x.Answers++ })}},
		{"answers of another size", "it plans", []*linearv1.MultiplyResponse{terms(func(x *linearv1.Terms) { x.AnswerBytes++ })}},
		{"no answers", "its answers end after 0", []*linearv1.MultiplyResponse{good}},
		{"half an answer", "its answers end after 0", []*linearv1.MultiplyResponse{good, {Chunk: make([]byte, size/2)}}},
		{"an answer of another key", "of another key", []*linearv1.MultiplyResponse{good, {Chunk: make([]byte, size)}}},
	} {
		got, err := (&hostile{multiply: c.send}).client(t).Multiply(t.Context(), p)
		refused(t, c.name, err, c.why)
		if got != nil {
			t.Errorf("%s: returned a result", c.name)
		}
	}
}

// A party's response to either end of a product on shares is checked against the plan.
func TestHostileRuns(t *testing.T) {
	v := &Vector{Ends: Ends{Run: NewRun(), With: "other", Set: testSet}, Rows: 100, Cols: 3}
	s, err := linear.Find(testSet)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.PlanVector(v.Rows, v.Cols, linear.Cheapest, 0)
	if err != nil {
		t.Fatal(err)
	}
	terms := &linearv1.Terms{Security: "passive", Answers: uint32(plan.Answers), AnswerBytes: uint64(plan.AnswerSize())}
	shares := make([]byte, 4*v.Rows) // of residues of 32 bits
	ask := func(list ...*linearv1.AskResponse) error {
		got, err := (&hostile{ask: list}).client(t).AskVector(t.Context(), v, make([]uint64, v.Cols))
		if got != nil {
			t.Error("the asking end returned a result")
		}
		return err
	}
	answer := func(list ...*linearv1.AnswerResponse) (*Shares, error) {
		return (&hostile{answer: list}).client(t).AnswerVector(t.Context(), v, nil, func(_ int, into []uint64) error { clear(into); return nil })
	}
	refused(t, "ask: no terms", ask(&linearv1.AskResponse{}), "it plans")
	refused(t, "ask: nothing", ask(&linearv1.AskResponse{Terms: terms}), "before the run is complete")
	refused(t, "ask: complete without answers", ask(&linearv1.AskResponse{Terms: terms}, &linearv1.AskResponse{Complete: true}), "end after 0")
	refused(t, "ask: an answer of another key", ask(&linearv1.AskResponse{Terms: terms}, &linearv1.AskResponse{Chunk: make([]byte, plan.AnswerSize())}), "of another key")

	first := &linearv1.AnswerResponse{Terms: terms}
	all := &linearv1.AnswerResponse{Chunk: shares, Complete: true}
	if got, err := answer(first, all); err != nil || len(got.Entries) != v.Rows {
		t.Errorf("shares as they must be: %v", err)
	}
	above := make([]byte, len(shares))
	for i := range 4 {
		above[i] = 0xff
	}
	for _, c := range []struct {
		name, why string
		send      []*linearv1.AnswerResponse
	}{
		{"no terms", "it plans", []*linearv1.AnswerResponse{{}}},
		{"cut short", "before the run is complete", []*linearv1.AnswerResponse{first, {Chunk: shares[:8]}}},
		{"not complete", "before the run is complete", []*linearv1.AnswerResponse{first, {Chunk: shares}}},
		{"complete too early", "end after", []*linearv1.AnswerResponse{first, {Chunk: shares[:8], Complete: true}}},
		{"more shares", "more answers than expected", []*linearv1.AnswerResponse{first, {Chunk: append(shares[:len(shares):len(shares)], 0), Complete: true}}},
		{"more after the end", "more after the end", []*linearv1.AnswerResponse{first, all, {Chunk: []byte{0}}}},
		{"no residues", "", []*linearv1.AnswerResponse{first, {Chunk: above, Complete: true}}},
	} {
		got, err := answer(c.send...)
		refused(t, "answer: "+c.name, err, c.why)
		if got != nil {
			t.Errorf("answer: %s: returned a result", c.name)
		}
	}
}

// The caller's input is checked before anything is sent.
func TestInputsAreChecked(t *testing.T) {
	c := (&hostile{}).client(t)
	ends := Ends{Run: NewRun(), With: "other", Set: testSet}
	zeros := func(_ int, into []uint64) error { clear(into); return nil }
	for name, err := range map[string]error{
		"set":          second(c.AskVector(t.Context(), &Vector{Ends: Ends{Set: "V0"}, Rows: 1, Cols: 1}, []uint64{0})),
		"no rows":      second(c.AskVector(t.Context(), &Vector{Ends: ends, Cols: 1}, []uint64{0})),
		"short share":  second(c.AskVector(t.Context(), &Vector{Ends: ends, Rows: 1, Cols: 2}, []uint64{0})),
		"no residue":   second(c.AskVector(t.Context(), &Vector{Ends: ends, Rows: 1, Cols: 1}, []uint64{1 << 32})),
		"batch":        second(c.AskBatch(t.Context(), &Batch{Ends: ends}, nil)),
		"matrices":     second(c.AskBatch(t.Context(), &Batch{Ends: ends, Rows: 2, Cols: 1, Count: 1, Outputs: 1}, []uint64{0})),
		"answer: rows": second(c.AnswerVector(t.Context(), &Vector{Ends: ends, Cols: 1}, nil, zeros)),
		"answer: long": second(c.AnswerVector(t.Context(), &Vector{Ends: ends, Rows: 1, Cols: 1}, []uint64{0, 0}, zeros)),
		"vectors":      second(c.AnswerBatch(t.Context(), &Batch{Ends: ends, Rows: 1, Cols: 1, Count: 1, Outputs: 2}, nil, []uint64{0})),
	} {
		if e := (*lodge.Error)(nil); !errors.As(err, &e) || e.Code != lodge.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Dial(lodge.Config{}, "p9"); lodge.FromError(err).Code != lodge.Invalid {
		t.Errorf("no such party: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.AskVector(ctx, &Vector{Ends: ends, Rows: 1, Cols: 1}, []uint64{0}); lodge.FromError(err).Code != lodge.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
