package linear_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/sample"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// Products of every shape and method equal the products of the plaintexts.
func TestMultiply(t *testing.T) {
	w := newWorld(t, nil)
	c := w.as(devnet.App)
	for _, x := range []struct {
		rows, inner, cols int
		method            linear.Method
	}{{1, 1, 1, 0}, {3, 5, 2, 0}, {7, 9, 11, linear.First}, {20, 3, 17, linear.Second}, {64, 64, 64, 0}} {
		a, b := entries(x.rows*x.inner, 7), entries(x.inner*x.cols, 15)
		reports := 0
		got, err := c.Multiply(t.Context(), &client.Product{
			Set: products, Rows: x.rows, Inner: x.inner, Cols: x.cols, Left: a, Right: b, MaxLeft: 7, MaxRight: 15, Method: x.method,
			Progress: func(client.Progress) { reports++ },
		})
		if err != nil {
			t.Fatalf("%+v: %v", x, err)
		}
		if !slices.Equal(got.Entries, times(a, b, x.rows, x.inner, x.cols)) {
			t.Errorf("%+v: wrong product", x)
		}
		if reports == 0 || got.Up == 0 || got.Down == 0 || got.Attempts != 1 || got.LogDistance > linear.LogDistance {
			t.Errorf("%+v: %d reports, %d up, %d down, %d attempts, distance 2^%f", x, reports, got.Up, got.Down, got.Attempts, got.LogDistance)
		}
	}
}

// A party that allows only secure sets computes a product under one.
func TestMultiplySecurely(t *testing.T) {
	w := newWorld(t, func(f *config.PartyFile) { f.AllowInsecureParams = false; f.Policy.Params = f.Policy.Params[:0] })
	a, b := entries(16*16, 1023), entries(16*16, 1023)
	got, err := w.as(devnet.App).Multiply(t.Context(), &client.Product{Rows: 16, Inner: 16, Cols: 16, Left: a, Right: b})
	if err != nil || !slices.Equal(got.Entries, times(a, b, 16, 16, 16)) {
		t.Errorf("wrong product: %v", err)
	}
	_, err = w.as(devnet.App).Multiply(t.Context(), &client.Product{Set: products, Rows: 1, Inner: 1, Cols: 1, Left: []int64{1}, Right: []int64{1}, MaxLeft: 150, MaxRight: 150})
	if e := lodge.FromError(err); code(err) != lodge.PolicyRefused {
		t.Errorf("an insecure set: %v", e)
	}
}

// upload is a client's upload, built by the test.
type upload struct {
	header      *linearv1.MultiplyHeader
	plan        *linear.ProductPlan
	secret      *linear.SecretKey
	key         []byte
	left, right []byte
	scheme      *linear.Scheme
}

func newUpload(t *testing.T) *upload {
	t.Helper()
	s := set(t, products)
	hash := s.Hash()
	u := &upload{scheme: s, header: &linearv1.MultiplyHeader{Set: s.Name, SetHash: hash[:], Rows: 9, Inner: 9, Cols: 9, MaxLeft: 3, MaxRight: 3}}
	var err error
	if u.plan, err = s.PlanProduct(linear.ProductShape{Rows: 9, Inner: 9, Cols: 9, MaxLeft: 3, MaxRight: 3}); err != nil {
		t.Fatal(err)
	}
	source, err := sample.Draw(rand.Reader, "test")
	if err != nil {
		t.Fatal(err)
	}
	secret, public := s.Generate(true, source.Sub("keys"))
	left, err := u.plan.EncryptLeft(secret, entries(81, 3), 1, source.Sub("left"))
	if err != nil {
		t.Fatal(err)
	}
	right, err := u.plan.EncryptRight(secret, entries(81, 3), 1, source.Sub("right"))
	if err != nil {
		t.Fatal(err)
	}
	encode := func(in *linear.Inputs) []byte {
		b := in.Header()
		for i := range in.Len() {
			b = in.AppendCiphertext(b, i)
		}
		return b
	}
	u.secret, u.key, u.left, u.right = secret, public.Encode(), encode(left), encode(right)
	return u
}

// all returns the bytes that follow the header.
func (u *upload) all() []byte { return slices.Concat(u.key, u.left, u.right) }

// Uploads may be split arbitrarily. The party sends only the requested answers, with fresh masks
// each time.
func TestAnswersAreFresh(t *testing.T) {
	w := newWorld(t, nil)
	conn, u := w.connect(devnet.App), newUpload(t)
	if u.plan.Answers() < 2 {
		t.Fatalf("%d answers", u.plan.Answers())
	}
	open := func(first int, answers []byte) []int64 {
		t.Helper()
		out := make([]int64, 81)
		for g := first; g < u.plan.Answers(); g++ {
			size := u.plan.AnswerSize()
			if err := u.plan.Open(u.secret, g, answers[:size], out); err != nil {
				t.Fatal(err)
			}
			answers = answers[size:]
		}
		if len(answers) != 0 {
			t.Errorf("%d bytes more", len(answers))
		}
		return out
	}
	whole, err := raw(t.Context(), conn, u.header, u.all())
	if err != nil {
		t.Fatal(err)
	}
	want := open(0, whole)
	var slivers [][]byte
	for b := range slices.Chunk(u.all(), 997) {
		slivers = append(slivers, b)
	}
	again, err := raw(t.Context(), conn, u.header, slivers...)
	if err != nil || !slices.Equal(open(0, again), want) {
		t.Errorf("in tiny chunks: %v", err)
	}
	if bytes.Equal(again, whole) {
		t.Error("two answers to one request are the same: their masks are not fresh")
	}
	u.header.First = 1
	rest, err := raw(t.Context(), conn, u.header, u.all())
	if err != nil || !slices.Equal(open(1, rest)[9*u.plan.TileCols:], want[9*u.plan.TileCols:]) && len(rest) != len(whole)-u.plan.AnswerSize() {
		t.Errorf("the remaining answers: %d bytes, %v", len(rest), err)
	}
}

// Each kind of invalid request is rejected with its code.
func TestMultiplyRefuses(t *testing.T) {
	w := newWorld(t, nil)
	conn := w.connect(devnet.App)
	flip := func(b []byte, at int) []byte {
		b = slices.Clone(b)
		b[at] ^= 0xff
		return b
	}
	for _, c := range []struct {
		name   string
		want   rpc.Code
		change func(u *upload) [][]byte
	}{
		{"no header", rpc.Invalid, func(u *upload) [][]byte { u.header = nil; return nil }},
		{"unknown set", rpc.NotFound, func(u *upload) [][]byte { u.header.Set = "P0"; return nil }},
		{"set of another hash", rpc.PinMismatch, func(u *upload) [][]byte { u.header.SetHash = flip(u.header.SetHash, 0); return nil }},
		{"set without a hash", rpc.PinMismatch, func(u *upload) [][]byte { u.header.SetHash = nil; return nil }},
		{"no rows", rpc.Invalid, func(u *upload) [][]byte { u.header.Rows = 0; return nil }},
		{"no columns", rpc.Invalid, func(u *upload) [][]byte { u.header.Cols = 0; return nil }},
		{"large factor", rpc.TooLarge, func(u *upload) [][]byte { u.header.Rows, u.header.Inner = 1<<31, 1<<31; return nil }},
		{"long factor", rpc.Invalid, func(u *upload) [][]byte { u.header.Rows, u.header.Inner, u.header.Cols = 1<<26, 1, 1; return nil }},
		{"large entries", rpc.Invalid, func(u *upload) [][]byte { u.header.MaxLeft = 1 << 40; return nil }},
		{"unknown method", rpc.Invalid, func(u *upload) [][]byte { u.header.Method = 3; return nil }},
		{"answer that does not exist", rpc.Invalid, func(u *upload) [][]byte { u.header.First = uint32(u.plan.Answers()); return [][]byte{u.all()} }},
		{"memory", rpc.PolicyRefused, func(u *upload) [][]byte {
			u.header.Rows, u.header.Inner, u.header.Cols, u.header.MaxLeft = 8000, 8000, 1, 1
			return nil
		}},
		{"nothing", rpc.Invalid, func(*upload) [][]byte { return nil }},
		{"cut short", rpc.Invalid, func(u *upload) [][]byte { return [][]byte{u.all()[:len(u.all())-1]} }},
		{"one byte more", rpc.TooLarge, func(u *upload) [][]byte { return [][]byte{u.all(), {0}} }},
		{"large chunk", rpc.TooLarge, func(*upload) [][]byte { return [][]byte{make([]byte, 1<<20+1)} }},
		{"key of another set", rpc.Foreign, func(u *upload) [][]byte { return [][]byte{flip(u.all(), 0)} }},
		{"malformed key", rpc.BadCiphertext, func(u *upload) [][]byte {
			b := u.all()
			for i := 64; i < 128; i++ {
				b[i] = 0xff
			}
			return [][]byte{b}
		}},
		{"ciphertexts of another key", rpc.Foreign, func(u *upload) [][]byte { return [][]byte{u.key, newUpload(t).left, u.right} }},
		{"ciphertexts of another set", rpc.Foreign, func(u *upload) [][]byte { return [][]byte{u.key, flip(u.left, 1), u.right} }},
		{"malformed ciphertext", rpc.BadCiphertext, func(u *upload) [][]byte {
			for i := range 64 {
				u.right[linear.InputsHeaderSize+i] = 0xff
			}
			return [][]byte{u.all()}
		}},
	} {
		u := newUpload(t)
		chunks := c.change(u)
		_, err := raw(t.Context(), conn, u.header, chunks...)
		refused(t, c.name, err, c.want)
	}
	if u := newUpload(t); u != nil {
		if _, err := raw(t.Context(), conn, u.header, u.all()); err != nil {
			t.Errorf("after all rejected requests: %v", err)
		}
	}
}

// By default, a party rejects products that are only passively secure.
func TestPassiveIsRefused(t *testing.T) {
	w := newWorld(t, func(f *config.PartyFile) { f.AllowPassiveLinear = false })
	u := newUpload(t)
	_, err := raw(t.Context(), w.connect(devnet.App), u.header, u.all())
	refused(t, "multiply", err, rpc.PolicyRefused)
	v := &client.Vector{Ends: client.Ends{Run: client.NewRun(), With: devnet.ClientName(0), Set: vectors}, Rows: 1, Cols: 1}
	if _, err := w.as(devnet.App).AskVector(t.Context(), v, []uint64{1}); code(err) != lodge.PolicyRefused {
		t.Errorf("ask: %v", err)
	}
	if _, err := w.as(devnet.App).AnswerVector(t.Context(), v, nil, func(int, []uint64) error { return nil }); code(err) != lodge.PolicyRefused {
		t.Errorf("answer: %v", err)
	}
}

// Clients without the permission, and clients that have reached their limit, are rejected.
func TestWhoMayMultiply(t *testing.T) {
	w := newWorld(t, func(f *config.PartyFile) { f.Linear.ProductsPerHour = 2 })
	u := newUpload(t)
	_, err := raw(t.Context(), w.connect(devnet.Operator), u.header, u.all())
	refused(t, "without the permission", err, rpc.Forbidden)
	conn := w.connect(devnet.App)
	for i := range 2 {
		if _, err := raw(t.Context(), conn, u.header, u.all()); err != nil {
			t.Errorf("product %d: %v", i, err)
		}
	}
	_, err = raw(t.Context(), conn, u.header, u.all())
	refused(t, "the third", err, rpc.RateLimited)
	if e := rpc.FromError(err); e.Retry <= 0 || e.Retry > time.Hour {
		t.Errorf("try again in %s", e.Retry)
	}
	if _, err := raw(t.Context(), w.connect(devnet.ClientName(0)), u.header, u.all()); err != nil {
		t.Errorf("another client: %v", err)
	}
}

// A client has at most two concurrent calls, and the calls of all clients share a quarter of the
// memory. Both are released when calls end.
func TestPlacesAndMemory(t *testing.T) {
	w := newWorld(t, func(f *config.PartyFile) { f.Policy.MaxMemory = 80 << 20 })
	conn, other, u := w.connect(devnet.App), w.connect(devnet.ClientName(0)), newUpload(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		w.waiting(ctx, conn)
	}
	_, err := raw(t.Context(), conn, u.header, u.all())
	refused(t, "a third", err, rpc.Busy)
	_, err = raw(t.Context(), other, u.header, u.all())
	refused(t, "another client's", err, rpc.Busy)
	if !strings.Contains(err.Error(), "calls hold about") {
		t.Errorf("not rejected for lack of memory: %v", err)
	}
	cancel()
	for {
		if _, err = raw(t.Context(), conn, u.header, u.all()); err == nil {
			break
		}
		refused(t, "while calls end", err, rpc.Busy)
	}
}

// If the connection breaks, the client repeats the product only for the missing answers.
func TestMultiplyGoesOn(t *testing.T) {
	w := newWorld(t, nil)
	c := w.through(devnet.App, 1, 30_000)
	a, b := entries(64*64, 7), entries(64*64, 7)
	got, err := c.Multiply(t.Context(), &client.Product{Set: products, Rows: 64, Inner: 64, Cols: 64, Left: a, Right: b, MaxLeft: 7, MaxRight: 7})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Entries, times(a, b, 64, 64, 64)) {
		t.Error("another product")
	}
	if got.Attempts != 2 || got.Down < 30_000 {
		t.Errorf("%d attempts, %d bytes down", got.Attempts, got.Down)
	}
}

// A permanent failure is reported with its reason and not retried.
func TestMultiplyGivesUp(t *testing.T) {
	w := newWorld(t, func(f *config.PartyFile) { f.Linear.ProductsPerHour = 1 })
	c := w.as(devnet.App)
	p := &client.Product{Set: products, Rows: 2, Inner: 2, Cols: 2, Left: entries(4, 1), Right: entries(4, 1), MaxLeft: 1, MaxRight: 1}
	if _, err := c.Multiply(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	c.Patience = time.Millisecond
	if _, err := c.Multiply(t.Context(), p); code(err) != lodge.RateLimited {
		t.Errorf("beyond the limit: %v", err)
	}
	for name, change := range map[string]func(p *client.Product){
		"a set":           func(p *client.Product) { p.Set = "P0" },
		"no rows":         func(p *client.Product) { p.Rows = 0 },
		"entries missing": func(p *client.Product) { p.Left = p.Left[:3] },
		"entries large":   func(p *client.Product) { p.Right = []int64{2, 0, 0, 0} },
		"sums large":      func(p *client.Product) { p.MaxLeft, p.MaxRight = 1<<20, 1<<20 },
	} {
		q := *p
		change(&q)
		if _, err := c.Multiply(t.Context(), &q); code(err) != lodge.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
