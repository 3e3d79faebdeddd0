package linear_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	client "github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/sample"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
)

// Parameter sets of the tests.
const (
	products = "insecure-P6-17"
	vectors  = "insecure-V6-32"
)

// world is a party in this process, with a real socket, store and certificates, and its clients.
type world struct {
	testing.TB
	net *devnet.Cluster
}

// newWorld starts the first of two parties. change, if not nil, may modify its configuration.
// Unproved inputs are accepted, because most tests send them.
func newWorld(t testing.TB, change func(f *config.PartyFile)) *world {
	t.Helper()
	w := &world{TB: t, net: cluster(t)}
	t.Cleanup(w.start(func(f *config.PartyFile) {
		f.AllowUnprovedLinear = true
		if change != nil {
			change(f)
		}
	}))
	return w
}

// cluster writes the files of two parties and their clients.
func cluster(t testing.TB) *devnet.Cluster {
	t.Helper()
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true, MaxMemory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// start starts the party on its store and returns a function that stops it.
func (w *world) start(change func(f *config.PartyFile)) (stop func()) {
	w.Helper()
	f, err := config.LoadParty(w.net.Parties[0])
	if err != nil {
		w.Fatal(err)
	}
	f.StopAfter = config.Duration(100 * time.Millisecond)
	change(f)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- party.Run(ctx, f, "test", slog.New(slog.NewTextHandler(io.Discard, nil))) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	}
}

// connect connects to the party as one of its clients.
func (w *world) connect(name string) *grpc.ClientConn {
	w.Helper()
	c, err := lodge.Load(filepath.Join(w.net.Dir, "clients", name+".yaml"))
	if err != nil {
		w.Fatal(err)
	}
	conn, err := c.Connect(c.Parties[0])
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	for { // wait until it serves
		if state := conn.GetState(); state.String() == "READY" {
			return conn
		}
		conn.Connect()
		ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
		conn.WaitForStateChange(ctx, conn.GetState())
		cancel()
	}
}

// as returns a client of the party.
func (w *world) as(name string) *client.Client { return client.New("p0", w.connect(name)) }

// entries returns random integers of at most the given magnitude.
func entries(n int, most int64) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = rand.Int64N(2*most+1) - most
	}
	return v
}

// residues returns random residues modulo T.
func residues(n int, t uint64) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = rand.Uint64N(t)
	}
	return v
}

// set returns the parameter set with the given name.
func set(t testing.TB, name string) *linear.Scheme {
	t.Helper()
	s, err := linear.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// times returns a product of integer matrices, row by row.
func times(a, b []int64, rows, inner, cols int) []int64 {
	out := make([]int64, rows*cols)
	for i := range rows {
		for j := range cols {
			for k := range inner {
				out[i*cols+j] += a[i*inner+k] * b[k*cols+j]
			}
		}
	}
	return out
}

// refused fails the test unless the error has the given code.
func refused(t testing.TB, name string, err error, want rpc.Code) {
	t.Helper()
	if !errors.Is(rpc.FromError(err), &rpc.Error{Code: want}) {
		t.Errorf("%s: %v, want %s", name, err, want)
	}
}

// code returns the code of an error of the Go client.
func code(err error) lodge.Code {
	if err == nil {
		return ""
	}
	return lodge.FromError(err).Code
}

// both runs the two ends of a product on shares concurrently.
func both(ask, answer func() (*client.Shares, error)) (asked, answered *client.Shares, askErr, answerErr error) {
	var group sync.WaitGroup
	group.Go(func() { asked, askErr = ask() })
	answered, answerErr = answer()
	group.Wait()
	return asked, answered, askErr, answerErr
}

// raw sends messages as Multiply does. It returns the terms, the received bytes and the error.
func raw(ctx context.Context, conn *grpc.ClientConn, h *linearv1.MultiplyHeader, chunks ...[]byte) ([]byte, error) {
	stream, err := linearv1.NewLinearServiceClient(conn).Multiply(ctx)
	if err != nil {
		return nil, err
	}
	_ = stream.Send(&linearv1.MultiplyRequest{Header: h}) // Recv returns the error
	for _, c := range chunks {
		_ = stream.Send(&linearv1.MultiplyRequest{Chunk: c})
	}
	_ = stream.CloseSend()
	var all []byte
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m.GetChunk()...)
	}
}

// through returns a client whose connections are cut the given number of times, each after the
// given number of bytes from the party.
func (w *world) through(name string, cuts int, after int64) *client.Client {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { l.Close() })
	target := w.net.Roster.Parties[0].Address
	w.connect(name) // this waits until the party serves
	go func() {
		for i := 0; ; i++ {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); out.Close() }()
			go func() {
				if i < cuts {
					_, _ = io.CopyN(in, out, after)
				} else {
					_, _ = io.Copy(in, out)
				}
				in.Close()
				out.Close()
			}()
		}
	}()
	c, err := lodge.Load(filepath.Join(w.net.Dir, "clients", name+".yaml"))
	if err != nil {
		w.Fatal(err)
	}
	c.Parties[0].Address = l.Addr().String()
	conn, err := c.Connect(c.Parties[0])
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	return client.New("p0", conn)
}

// asking returns an asking end, built by the test, that has sent its input. Its side of the stream
// stays open.
func asking(ctx context.Context, t testing.TB, conn *grpc.ClientConn, h *linearv1.RunHeader) (linearv1.LinearService_AskClient, error) {
	t.Helper()
	return askingWith(ctx, t, conn, h, func(all []byte) []byte { return all })
}

// askingWith sends the input after change has modified it.
func askingWith(
	ctx context.Context, t testing.TB, conn *grpc.ClientConn, h *linearv1.RunHeader, change func(all []byte) []byte,
) (linearv1.LinearService_AskClient, error) {
	t.Helper()
	s := set(t, h.GetSet())
	source, err := sample.Draw(crand.Reader, "test")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.PlanVector(int(h.GetVector().GetRows()), int(h.GetVector().GetCols()), linear.Cheapest, 0)
	if err != nil {
		t.Fatal(err)
	}
	secret, public := s.Generate(false, source.Sub("keys"))
	in, err := plan.Encrypt(secret, make([]uint64, plan.Cols), 1, source.Sub("input"))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := linearv1.NewLinearServiceClient(conn).Ask(ctx)
	if err != nil {
		return nil, err
	}
	all := append(public.Encode(), in.Header()...)
	for i := range in.Len() {
		all = in.AppendCiphertext(all, i)
	}
	for i := range in.ProofFrames() {
		all = append(all, in.ProofFrame(i)...)
	}
	_ = stream.Send(&linearv1.AskRequest{Header: h}) // Recv returns the error
	_ = stream.Send(&linearv1.AskRequest{Chunk: change(all)})
	_, err = stream.Recv()
	return stream, err
}

// header returns the header of a run with a matrix of 3 x 3.
func header(with string) *linearv1.RunHeader {
	s, err := linear.Lookup(vectors)
	if err != nil {
		panic(err)
	}
	hash, run := s.Hash(), client.NewRun()
	return &linearv1.RunHeader{Run: run[:], Set: vectors, SetHash: hash[:], With: with, Shape: &linearv1.RunHeader_Vector{Vector: &linearv1.VectorShape{Rows: 3, Cols: 3}}}
}

// waiting starts an end that waits for the other end until ctx ends.
func (w *world) waiting(ctx context.Context, conn *grpc.ClientConn) {
	w.Helper()
	if _, err := asking(ctx, w, conn, header(devnet.ClientName(0))); err != nil {
		w.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readAll(t testing.TB, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
