package linear_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	client "github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/linear"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// matrixClient is the client that answers.
var matrixClient = devnet.ClientName(0)

// ends returns the two ends of a run, for the asking and the answering client.
func ends() (ask, answer client.Ends) {
	run := client.NewRun()
	return client.Ends{Run: run, With: matrixClient, Set: vectors}, client.Ends{Run: run, With: devnet.App, Set: vectors}
}

// opened returns the sums of shares.
func opened(t *testing.T, a, b *client.Shares) []uint64 {
	t.Helper()
	if a.T != b.T || len(a.Entries) != len(b.Entries) || a.LogDistance != b.LogDistance || a.LogDistance > linear.LogDistance {
		t.Fatalf("shares of %d and %d entries, distances %f and %f", len(a.Entries), len(b.Entries), a.LogDistance, b.LogDistance)
	}
	sum := make([]uint64, len(a.Entries))
	for i := range sum {
		sum[i] = (a.Entries[i] + b.Entries[i]) % a.T
	}
	return sum
}

// inner returns the inner product of residues, for T below 2^32.
func inner(a, b []uint64, t uint64) (sum uint64) {
	for i := range a {
		sum = (sum + a[i]*b[i]%t) % t
	}
	return sum
}

// Shares of a matrix times a shared vector add up to the product, for every order of joining and
// every packing.
func TestVector(t *testing.T) {
	w := newWorld(t, nil)
	asks, answers, modulus := w.as(devnet.App), w.as(matrixClient), set(t, vectors).T
	for i, c := range []struct {
		rows, cols int
		packing    linear.Packing
		slots      int
		alone      bool // only the asking client has the vector
	}{{1, 1, 0, 0, false}, {7, 5, 0, 0, false}, {40, 200, linear.Double, 4, false}, {40, 30, linear.Forward, 0, true}, {300, 129, linear.Tiled, 0, false}} {
		m, v1, v2 := residues(c.rows*c.cols, modulus), residues(c.cols, modulus), residues(c.cols, modulus)
		if c.alone {
			v2 = nil
		}
		askEnds, answerEnds := ends()
		shape := client.Vector{Rows: c.rows, Cols: c.cols, Packing: c.packing, Slots: c.slots}
		first := make(chan struct{})
		ask := func() (*client.Shares, error) {
			v := shape
			v.Ends = askEnds
			if i%2 == 1 { // the other end joins first
				<-first
			}
			return asks.AskVector(t.Context(), &v, v1)
		}
		answer := func() (*client.Shares, error) {
			v := shape
			v.Ends = answerEnds
			close(first)
			return answers.AnswerVector(t.Context(), &v, v2, func(row int, into []uint64) error {
				copy(into, m[row*c.cols:])
				return nil
			})
		}
		a, b, askErr, answerErr := both(ask, answer)
		if askErr != nil || answerErr != nil {
			t.Fatalf("%+v: %v, %v", c, askErr, answerErr)
		}
		v := slices.Clone(v1)
		for i := range v2 {
			v[i] = (v[i] + v2[i]) % modulus
		}
		for row, got := range opened(t, a, b) {
			if want := inner(m[row*c.cols:][:c.cols], v, modulus); got != want {
				t.Fatalf("%+v: row %d is %d, want %d", c, row, got, want)
			}
		}
		if a.Up == 0 || a.Down == 0 || b.Up == 0 || b.Down == 0 {
			t.Errorf("%+v: bytes %+v %+v", c, a.Up, b.Up)
		}
	}
}

// Shares of sums over a batch add up to the sums.
func TestBatch(t *testing.T) {
	w := newWorld(t, nil)
	asks, answers, modulus := w.as(devnet.App), w.as(matrixClient), set(t, vectors).T
	for _, c := range []struct {
		rows, cols, count, outputs int
		alone                      bool
	}{{1, 1, 1, 1, false}, {9, 4, 3, 2, false}, {100, 3, 2, 5, false}, {5, 2, 4, 40, true}} {
		size := c.rows * c.cols
		m1, m2, v := residues(c.count*size, modulus), residues(c.count*size, modulus), residues(c.outputs*c.count*c.cols, modulus)
		if c.alone {
			m2 = nil
		}
		askEnds, answerEnds := ends()
		a, b, askErr, answerErr := both(func() (*client.Shares, error) {
			return asks.AskBatch(t.Context(), &client.Batch{Ends: askEnds, Rows: c.rows, Cols: c.cols, Count: c.count, Outputs: c.outputs}, m1)
		}, func() (*client.Shares, error) {
			return answers.AnswerBatch(t.Context(), &client.Batch{Ends: answerEnds, Rows: c.rows, Cols: c.cols, Count: c.count, Outputs: c.outputs}, m2, v)
		})
		if askErr != nil || answerErr != nil {
			t.Fatalf("%+v: %v, %v", c, askErr, answerErr)
		}
		m := slices.Clone(m1)
		for i := range m2 {
			m[i] = (m[i] + m2[i]) % modulus
		}
		for i, got := range opened(t, a, b) {
			o, row, want := i/c.rows, i%c.rows, uint64(0)
			for k := range c.count {
				want = (want + inner(m[k*size+row*c.cols:][:c.cols], v[(o*c.count+k)*c.cols:][:c.cols], modulus)) % modulus
			}
			if got != want {
				t.Fatalf("%+v: output %d, row %d is %d, want %d", c, o, row, got, want)
			}
		}
	}
}

// The party's log shows the owner of a matrix for whom the matrix was used, and the statistical
// distance that was spent.
func TestProductsAreInTheLog(t *testing.T) {
	var dir string
	w := newWorld(t, func(f *config.PartyFile) { dir = f.AuditDir })
	askEnds, answerEnds := ends()
	_, _, askErr, answerErr := both(func() (*client.Shares, error) {
		return w.as(devnet.App).AskVector(t.Context(), &client.Vector{Ends: askEnds, Rows: 2, Cols: 3}, make([]uint64, 3))
	}, func() (*client.Shares, error) {
		return w.as(matrixClient).AnswerVector(t.Context(), &client.Vector{Ends: answerEnds, Rows: 2, Cols: 3}, nil, zeros)
	})
	if askErr != nil || answerErr != nil {
		t.Fatal(askErr, answerErr)
	}
	found := 0
	for _, line := range logged(t, dir) {
		if strings.Contains(line, string(audit.Multiplied)) {
			found++
			for _, want := range []string{matrixClient, "2 x 3", "client app", "distance 2^-"} {
				if !strings.Contains(line, want) {
					t.Errorf("%s does not contain %q", line, want)
				}
			}
		}
	}
	if found != 1 {
		t.Errorf("%d entries", found)
	}
}

// zeros yields the rows of a zero matrix.
func zeros(_ int, into []uint64) error { clear(into); return nil }

// A run that fails at one end soon fails at the other with the reason.
func TestRunsFailWhole(t *testing.T) {
	w := newWorld(t, func(f *config.PartyFile) { f.Linear.Wait = config.Duration(time.Second) }) // one end may leave before the other joins
	asks, answers := w.as(devnet.App), w.as(matrixClient)
	mine := errors.New("the matrix cannot be read")
	for name, c := range map[string]struct {
		row  func(row int, into []uint64) error
		want lodge.Code // the code at the answering end
	}{
		"a matrix that ends early": {func(row int, into []uint64) error {
			if row == 150 {
				return mine
			}
			return zeros(row, into)
		}, lodge.Internal},
		"an entry that is not a residue": {func(row int, into []uint64) error {
			into[0] = 1 << 32
			return nil
		}, lodge.Invalid},
	} {
		askEnds, answerEnds := ends()
		asked, answered, askErr, answerErr := both(func() (*client.Shares, error) {
			return asks.AskVector(t.Context(), &client.Vector{Ends: askEnds, Rows: 200, Cols: 60}, make([]uint64, 60))
		}, func() (*client.Shares, error) {
			return answers.AnswerVector(t.Context(), &client.Vector{Ends: answerEnds, Rows: 200, Cols: 60}, nil, c.row)
		})
		if asked != nil || answered != nil || code(askErr) != lodge.Unavailable || code(answerErr) != c.want {
			t.Errorf("%s: %v; %v", name, askErr, answerErr)
		}
	}
}

// The connection of the asking end breaks while the answers arrive.
func TestABrokenRun(t *testing.T) {
	w := newWorld(t, nil)
	answers := w.as(matrixClient)
	askEnds, answerEnds := ends()
	broken := w.through(devnet.App, 1000, 20_000)
	_, _, askErr, answerErr := both(func() (*client.Shares, error) {
		return broken.AskVector(t.Context(), &client.Vector{Ends: askEnds, Rows: 3000, Cols: 60}, make([]uint64, 60))
	}, func() (*client.Shares, error) {
		return answers.AnswerVector(t.Context(), &client.Vector{Ends: answerEnds, Rows: 3000, Cols: 60}, nil, zeros)
	})
	if code(askErr) != lodge.Unavailable || code(answerErr) != lodge.Unavailable || !strings.Contains(fmt.Sprint(answerErr), "owner of the key, client app, has failed") {
		t.Errorf("a broken connection: %v; %v", askErr, answerErr)
	}
}

// An end fails if its other end does not join.
func TestAnEndAlone(t *testing.T) {
	w := newWorld(t, func(f *config.PartyFile) { f.Linear.Wait = config.Duration(time.Millisecond) })
	askEnds, answerEnds := ends()
	_, err := w.as(devnet.App).AskVector(t.Context(), &client.Vector{Ends: askEnds, Rows: 2, Cols: 2}, []uint64{1, 2})
	if code(err) != lodge.Unavailable || !strings.Contains(err.Error(), "did not come") {
		t.Errorf("ask: %v", err)
	}
	_, err = w.as(matrixClient).AnswerVector(t.Context(), &client.Vector{Ends: answerEnds, Rows: 2, Cols: 2}, nil, zeros)
	if code(err) != lodge.Unavailable || !strings.Contains(err.Error(), "did not come") {
		t.Errorf("answer: %v", err)
	}
}

// answering sends the requests of an answering end that the test built.
func answering(ctx context.Context, conn *grpc.ClientConn, h *linearv1.RunHeader, chunks ...[]byte) error {
	stream, err := linearv1.NewLinearServiceClient(conn).Answer(ctx)
	if err != nil {
		return err
	}
	_ = stream.Send(&linearv1.AnswerRequest{Header: h}) // Recv returns the error
	for _, c := range chunks {
		_ = stream.Send(&linearv1.AnswerRequest{Chunk: c})
	}
	_ = stream.CloseSend()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.GetComplete() {
			return nil
		}
	}
}

// lines returns rows of packed residues.
func lines(t *testing.T, n int) []byte {
	t.Helper()
	var b []byte
	for range n {
		b = codec.AppendPoly(b, [][]uint64{{1, 2, 3}}, []uint64{set(t, vectors).T})
	}
	return b
}

// Each kind of invalid request is rejected at both ends with its code.
func TestRunsRefuse(t *testing.T) {
	w := newWorld(t, nil)
	app, other := w.connect(devnet.App), w.connect(matrixClient)
	for name, c := range map[string]struct {
		want   rpc.Code
		change func(h *linearv1.RunHeader)
	}{
		"short id":            {rpc.Invalid, func(h *linearv1.RunHeader) { h.Run = h.GetRun()[:15] }},
		"nobody":              {rpc.Invalid, func(h *linearv1.RunHeader) { h.With = "" }},
		"unknown set":         {rpc.NotFound, func(h *linearv1.RunHeader) { h.Set = "V0" }},
		"set of another hash": {rpc.PinMismatch, func(h *linearv1.RunHeader) { h.SetHash = make([]byte, 32) }},
		"no shape":            {rpc.Invalid, func(h *linearv1.RunHeader) { h.Shape = nil }},
		"no rows":             {rpc.Invalid, func(h *linearv1.RunHeader) { h.GetVector().Rows = 0 }},
		"packing":             {rpc.Invalid, func(h *linearv1.RunHeader) { h.GetVector().Packing = 9 }},
		"slots":               {rpc.Invalid, func(h *linearv1.RunHeader) { h.GetVector().Packing, h.GetVector().Slots = 2, 3 }},
		"large matrix":        {rpc.TooLarge, func(h *linearv1.RunHeader) { h.GetVector().Rows, h.GetVector().Cols = 1<<31, 1<<31 }},
		"memory":              {rpc.PolicyRefused, func(h *linearv1.RunHeader) { h.GetVector().Rows, h.GetVector().Cols = 1, 1<<24 }},
		"large batch": {rpc.TooLarge, func(h *linearv1.RunHeader) {
			h.Shape = &linearv1.RunHeader_Batch{Batch: &linearv1.BatchShape{Rows: 1 << 24, Cols: 1 << 24, Count: 1 << 24, Outputs: 1 << 24}}
		}},
		"endless batch": {rpc.TooLarge, func(h *linearv1.RunHeader) {
			h.Shape = &linearv1.RunHeader_Batch{Batch: &linearv1.BatchShape{Rows: 1 << 31, Cols: 1 << 31, Count: 1 << 31, Outputs: 1 << 31}}
		}},
		"empty batch": {rpc.Invalid, func(h *linearv1.RunHeader) { h.Shape = &linearv1.RunHeader_Batch{Batch: &linearv1.BatchShape{}} }},
	} {
		h := header(matrixClient)
		c.change(h)
		stream, err := linearv1.NewLinearServiceClient(app).Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&linearv1.AskRequest{Header: h})
		_, err = stream.Recv()
		refused(t, "ask: "+name, err, c.want)
		refused(t, "answer: "+name, answering(t.Context(), other, h), c.want)
	}
	bad := lines(t, 4)
	for i := range bad[:12] {
		bad[i] = 0xff
	}
	for _, c := range []struct {
		name string
		want rpc.Code
		send []byte
	}{
		{"invalid residue", rpc.Invalid, bad}, {"cut short", rpc.Invalid, lines(t, 4)[:40]}, {"nothing", rpc.Invalid, nil}, {"too much", rpc.TooLarge, lines(t, 5)},
	} {
		h := header(matrixClient)
		stream, err := asking(t.Context(), t, app, h)
		if err != nil {
			t.Fatal(err)
		}
		from := header(devnet.App)
		from.Run = h.GetRun()
		err = answering(t.Context(), other, from, c.send)
		refused(t, c.name, err, c.want)
		if c.name == "invalid residue" && !strings.Contains(err.Error(), "invalid residues modulo") {
			t.Errorf("not rejected for its encoding: %v", err)
		}
		err = nil
		for err == nil {
			_, err = stream.Recv()
		}
		refused(t, c.name+", at the other end", err, rpc.Unavailable)
	}
	// The asking end's upload is truncated, or belongs to another key.
	stream, err := linearv1.NewLinearServiceClient(app).Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&linearv1.AskRequest{Header: header(matrixClient), Chunk: []byte{1}})
	_ = stream.CloseSend()
	_, err = stream.Recv()
	refused(t, "a truncated input", err, rpc.Invalid)
}

// Both ends must request the same product, each may join once, and no client can take another
// client's end.
func TestEndsMustFit(t *testing.T) {
	w := newWorld(t, nil)
	app, other := w.connect(devnet.App), w.connect(matrixClient)
	for name, change := range map[string]func(h *linearv1.RunHeader){
		"rows":    func(h *linearv1.RunHeader) { h.GetVector().Rows = 4 },
		"packing": func(h *linearv1.RunHeader) { h.GetVector().Packing = linearv1.Packing_PACKING_TILED },
		"batch": func(h *linearv1.RunHeader) {
			h.Shape = &linearv1.RunHeader_Batch{Batch: &linearv1.BatchShape{Rows: 3, Cols: 3, Count: 1, Outputs: 1}}
		},
	} {
		h := header(matrixClient)
		stream, err := asking(t.Context(), t, app, h)
		if err != nil {
			t.Fatal(err)
		}
		from := header(devnet.App)
		from.Run = h.GetRun()
		change(from)
		refused(t, name, answering(t.Context(), other, from), rpc.Conflict)
		_, err = stream.Recv()
		refused(t, name+", at the other end", err, rpc.Conflict)
	}
	// Another client that knows the id of a run cannot take an end of it: the client joins a
	// different run.
	h := header(matrixClient)
	stranger := header(devnet.App)
	stranger.Run = h.GetRun()
	if _, err := asking(t.Context(), t, other, stranger); err != nil {
		t.Fatal(err)
	}
	stream, err := asking(t.Context(), t, app, h)
	if err != nil {
		t.Fatalf("with a stranger's run: %v", err)
	}
	if _, err := asking(t.Context(), t, app, h); err != nil {
		refused(t, "an end that joins twice", err, rpc.Conflict)
	} else {
		t.Error("an end joined twice")
	}
	from := header(devnet.App)
	from.Run = h.GetRun()
	_ = stream.CloseSend()
	if err := answering(t.Context(), other, from, lines(t, 4)); err != nil {
		t.Errorf("the named client: %v", err)
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("the asking end: %v", err)
	}
}

// The answering end receives completion only after the asking end has confirmed that it has all
// answers, and not if the asking end sends anything else.
func TestTheOtherEndHasEverything(t *testing.T) {
	w := newWorld(t, nil)
	h := header(matrixClient)
	stream, err := asking(t.Context(), t, w.connect(devnet.App), h)
	if err != nil {
		t.Fatal(err)
	}
	from := header(devnet.App)
	from.Run = h.GetRun()
	answered := make(chan error, 1)
	go func() { answered <- answering(t.Context(), w.connect(matrixClient), from, lines(t, 4)) }()
	for {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetComplete() {
			break
		}
	}
	select {
	case err := <-answered:
		t.Errorf("the answering end finished too early: %v", err)
	default:
	}
	_ = stream.Send(&linearv1.AskRequest{})
	_, err = stream.Recv()
	refused(t, "more than the input", err, rpc.TooLarge)
	refused(t, "the other end", <-answered, rpc.Unavailable)
}

// logged returns the lines of a party's log.
func logged(t *testing.T, dir string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all = append(all, strings.Split(string(read(t, f)), "\n")...)
	}
	return all
}
