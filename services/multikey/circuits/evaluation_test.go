package circuits

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	"github.com/lodge-mpc/lodge/engine/sample"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	service "github.com/lodge-mpc/lodge/services/multikey"
)

// shelf holds the keys of a registry, and the reasons why some must not be used.
type shelf struct {
	mu     sync.Mutex
	keys   map[multikey.KeyID]*multikey.Keys
	denied map[multikey.KeyID]*rpc.Error
}

func (s *shelf) Usable(id multikey.KeyID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.denied[id]; err != nil {
		return err
	}
	if s.keys[id] == nil {
		return rpc.Errorf(rpc.UnknownKey, "", "keys %x", id[:4])
	}
	return nil
}

func (s *shelf) Load(_ context.Context, id multikey.KeyID) (*multikey.Keys, error) {
	if err := s.Usable(id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[id], nil
}

func (s *shelf) deny(id multikey.KeyID, err *rpc.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied[id] = err
}

// world is a service and the keys of some parties.
type world struct {
	t       testing.TB
	c       *service.Context
	s       *Service
	shelf   *shelf
	secrets []*multikey.Secret
	client  multikeyv1.EvaluationServiceClient
	clock   time.Time
	mu      sync.Mutex
}

type asClient struct {
	grpc.ServerStream
	ctx context.Context
}

func (a asClient) Context() context.Context { return a.ctx }

// named returns a context whose metadata contains the caller's name.
func named(ctx context.Context) context.Context {
	m, _ := metadata.FromIncomingContext(ctx)
	return rpc.WithCaller(ctx, rpc.Principal{Role: rpc.Client, Name: m.Get("client")[0]})
}

func newWorld(t testing.TB, parties int, edit func(l *config.MultikeyService)) *world {
	t.Helper()
	c, err := service.ContextOf(&config.Multikey{Set: "insecure-M8-32", Seed: config.StandardSeed})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, c: c, shelf: &shelf{keys: map[multikey.KeyID]*multikey.Keys{}, denied: map[multikey.KeyID]*rpc.Error{}}, clock: time.Unix(1e9, 0)}
	for i := range parties {
		secret, keys := c.Generate(uint32(i), sample.NewSource(make([]byte, 32)).Sub("party", uint64(i)), 2)
		w.secrets = append(w.secrets, secret)
		w.shelf.keys[keys.ID()] = keys
	}
	limits := config.MultikeyService{
		MaxKeysMemory: 1 << 30, MaxMemory: 64 << 20, MaxResults: 1 << 20, KeepResults: config.Duration(time.Hour), MaxPerClient: 2, MaxBootstraps: 1000,
	}
	if edit != nil {
		edit(&limits)
	}
	w.s = New(Config{Context: c, Keys: w.shelf, Limits: limits, Workers: 2, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.clock
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(
		grpc.UnaryInterceptor(func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			return h(named(ctx), m)
		}),
		grpc.StreamInterceptor(func(s any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			return h(s, asClient{stream, named(stream.Context())})
		}))
	multikeyv1.RegisterEvaluationServiceServer(server, w.s)
	go server.Serve(l) //nolint:errcheck // ends with Stop
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
	})
	w.client = multikeyv1.NewEvaluationServiceClient(conn)
	return w
}

// run runs the service's jobs until the test ends or stop is called.
func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.s.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) ctx(client string) context.Context {
	return metadata.AppendToOutgoingContext(w.t.Context(), "client", client)
}

// request is a client's request.
type request struct {
	header *multikeyv1.EvaluationHeader
	text   []byte
	inputs []byte
}

// request returns a request with numbers of some parties as inputs of a netlist, one batch each.
func (w *world) request(n *circuit.Netlist, owners []int, values ...int) *request {
	set, crs := w.c.Hash(), w.c.CRS()
	r := &request{text: n.Append(nil), header: &multikeyv1.EvaluationHeader{RequestId: make([]byte, 16), ParamsHash: set[:], CrsDigest: crs[:]}}
	rand.Read(r.header.RequestId)
	r.header.NetlistBytes = uint64(len(r.text))
	for i, v := range values {
		bits := make([]bool, n.Inputs[i])
		for j := range bits {
			bits[j] = v>>j&1 == 1
		}
		source, err := sample.Draw(rand.Reader, "test")
		if err != nil {
			w.t.Fatal(err)
		}
		b := w.secrets[owners[i]].Encrypt(bits, source)
		r.inputs = w.c.AppendBatch(r.inputs, b)
		r.header.Inputs = append(r.header.Inputs, &multikeyv1.InputGroup{
			Form: multikeyv1.InputForm_INPUT_FORM_BATCH, Count: uint32(len(bits)), Keys: [][]byte{b.Key[:]},
		})
	}
	return r
}

func (w *world) submit(client string, r *request) (*multikeyv1.EvaluationJob, error) {
	stream, err := w.client.Submit(w.ctx(client))
	if err != nil {
		return nil, err
	}
	// Send only reports that the server has ended the stream; CloseAndRecv returns the reason.
	_ = stream.Send(&multikeyv1.SubmitRequest{Header: r.header})
	for body := slices.Concat(r.text, r.inputs); len(body) > 0; {
		n := min(len(body), 1000)
		if stream.Send(&multikeyv1.SubmitRequest{Chunk: body[:n]}) != nil {
			break
		}
		body = body[n:]
	}
	m, err := stream.CloseAndRecv()
	return m.GetJob(), err
}

func (w *world) estimate(r *request) (*multikeyv1.EvaluationCost, error) {
	stream, err := w.client.Estimate(w.ctx("c"))
	if err != nil {
		return nil, err
	}
	_ = stream.Send(&multikeyv1.EstimateRequest{Header: r.header})
	_ = stream.Send(&multikeyv1.EstimateRequest{Chunk: r.text})
	m, err := stream.CloseAndRecv()
	return m.GetCost(), err
}

// await watches a job until it ends.
func (w *world) await(client string, id []byte) *multikeyv1.EvaluationJob {
	w.t.Helper()
	stream, err := w.client.WatchJob(w.ctx(client), &multikeyv1.WatchJobRequest{RequestId: id})
	if err != nil {
		w.t.Fatal(err)
	}
	var last *multikeyv1.EvaluationJob
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return last
		}
		if err != nil {
			w.t.Fatal(err)
		}
		last = m.GetJob()
	}
}

// fetch returns a result from the given byte on.
func (w *world) fetch(client string, digest []byte, offset uint64) ([]byte, *multikeyv1.GetResultResponse, error) {
	stream, err := w.client.GetResult(w.ctx(client), &multikeyv1.GetResultRequest{ResultDigest: digest, Offset: offset})
	if err != nil {
		return nil, nil, err
	}
	head, err := stream.Recv()
	if err != nil {
		return nil, nil, err
	}
	var b []byte
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return b, head, nil
		}
		if err != nil {
			return nil, nil, err
		}
		b = append(b, m.GetChunk()...)
	}
}

// decrypt decrypts the ciphertexts of a result and checks its digest.
func (w *world) decrypt(j *multikeyv1.EvaluationJob, b []byte) (bits []bool) {
	w.t.Helper()
	h := sha256.New()
	for _, g := range j.GetResults() {
		size := w.c.CiphertextSize(len(g.GetKeys()))
		for range g.GetCount() {
			sum := sha256.Sum256(b[:size])
			h.Write(sum[:])
			c, err := w.c.DecodeCiphertext(b[:size])
			if err != nil {
				w.t.Fatal(err)
			}
			bit, err := multikey.Decrypt(c, w.secrets...)
			if err != nil {
				w.t.Fatal(err)
			}
			bits, b = append(bits, bit), b[size:]
		}
	}
	if len(b) > 0 || !bytes.Equal(h.Sum(nil), j.GetResultDigest()) {
		w.t.Error("the result does not match its digest")
	}
	return bits
}

func number(bits []bool) (x int) {
	for i, b := range bits {
		if b {
			x |= 1 << i
		}
	}
	return x
}

func code(err error) rpc.Code {
	if err == nil {
		return ""
	}
	return rpc.FromError(err).Code
}

// A client lets the party compute a sum of numbers of two parties, watches the job, fetches the
// result, combines it with a third party's number, and gets the correct bits.
func TestEvaluation(t *testing.T) {
	w := newWorld(t, 3, nil)
	w.run()
	r := w.request(circuit.Adder(4), []int{0, 1}, 11, 7)
	cost, err := w.estimate(r)
	if err != nil {
		t.Fatal(err)
	}
	if cost.GetRotationSeconds() <= 0 || cost.GetSeconds() < cost.GetRotationSeconds() || cost.GetRotations() <= cost.GetBootstraps() || cost.GetBootstrapsOfParties()[1] == 0 {
		t.Errorf("the estimate is %v", cost)
	}
	j, err := w.submit("c", r)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.submit("c", r); err != nil || !bytes.Equal(again.GetRequestId(), j.GetRequestId()) {
		t.Errorf("the repeated request: %v", err)
	}
	j = w.await("c", r.header.GetRequestId())
	if j.GetState() != done || j.GetDone() != j.GetCost().GetGates() || j.GetCost().GetBootstraps() != cost.GetBootstraps() {
		t.Fatalf("the job is %v", j)
	}
	if again, err := w.estimate(r); err != nil || again.GetRotationSeconds() == cost.GetRotationSeconds() {
		t.Errorf("the service did not learn from an evaluation: %v, %v", again, err)
	}
	b, head, err := w.fetch("c", j.GetResultDigest(), 0)
	if err != nil || head.GetBytes() != cost.GetResultBytes() {
		t.Fatalf("%v, %d bytes", err, head.GetBytes())
	}
	if got := number(w.decrypt(j, b)); got != 18 {
		t.Errorf("11 + 7 = %d", got)
	}
	if rest, _, err := w.fetch("c", j.GetResultDigest(), 100); err != nil || !bytes.Equal(rest, b[100:]) {
		t.Errorf("from byte 100 on: %v", err)
	}
	next := w.request(circuit.Comparator(5), nil)
	third := w.request(circuit.Adder(5), []int{2}, 19)
	next.header.Inputs = append(slices.Clone(j.GetResults()), third.header.GetInputs()...)
	next.inputs = slices.Concat(b, third.inputs)
	if _, err := w.submit("c", next); err != nil {
		t.Fatal(err)
	}
	if j = w.await("c", next.header.GetRequestId()); j.GetState() != done || len(j.GetResults()) != 1 || len(j.GetResults()[0].GetKeys()) != 3 {
		t.Fatalf("the second job is %v", j)
	}
	if b, _, err = w.fetch("c", j.GetResultDigest(), 0); err != nil {
		t.Fatal(err)
	}
	if got := w.decrypt(j, b); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("18 and 19 compare as %v", got)
	}
	list, err := w.client.ListJobs(w.ctx("c"), &multikeyv1.ListJobsRequest{})
	if err != nil || len(list.GetJobs()) != 2 || !bytes.Equal(list.GetJobs()[0].GetRequestId(), next.header.GetRequestId()) {
		t.Errorf("the list has %d jobs: %v", len(list.GetJobs()), err)
	}
}

// Clients cannot see or fetch the jobs and results of other clients.
func TestOthersJobs(t *testing.T) {
	w := newWorld(t, 2, nil)
	w.run()
	r := w.request(circuit.Adder(1), []int{0, 1}, 1, 1)
	if _, err := w.submit("c", r); err != nil {
		t.Fatal(err)
	}
	j := w.await("c", r.header.GetRequestId())
	if _, _, err := w.fetch("d", j.GetResultDigest(), 0); code(err) != rpc.NotFound {
		t.Errorf("another client's result: %v", err)
	}
	if _, err := w.client.GetJob(w.ctx("d"), &multikeyv1.GetJobRequest{RequestId: r.header.GetRequestId()}); code(err) != rpc.NotFound {
		t.Errorf("another client's job: %v", err)
	}
	if _, err := w.client.CancelJob(w.ctx("d"), &multikeyv1.CancelJobRequest{RequestId: r.header.GetRequestId()}); code(err) != rpc.NotFound {
		t.Errorf("cancelling another client's job: %v", err)
	}
	if list, err := w.client.ListJobs(w.ctx("d"), &multikeyv1.ListJobsRequest{}); err != nil || len(list.GetJobs()) != 0 {
		t.Errorf("a list of another client's jobs: %v, %v", list, err)
	}
	if _, _, err := w.fetch("c", j.GetResultDigest(), 1<<40); code(err) != rpc.Invalid {
		t.Errorf("beyond the end: %v", err)
	}
	w.mu.Lock()
	w.clock = w.clock.Add(2 * time.Hour)
	w.mu.Unlock()
	if _, _, err := w.fetch("c", j.GetResultDigest(), 0); code(err) != rpc.NotFound {
		t.Errorf("an expired result: %v", err)
	}
}

// Waiting and running jobs end when they are cancelled, and release their resources.
func TestCancel(t *testing.T) {
	w := newWorld(t, 2, nil)
	r, second, third := w.request(circuit.Adder(60), []int{0, 1}, 1, 1), w.request(circuit.Adder(1), []int{0, 1}, 1, 1), w.request(circuit.Adder(1), []int{0, 1}, 1, 1)
	for _, x := range []*request{r, second} {
		if _, err := w.submit("c", x); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.submit("c", third); code(err) != rpc.Busy {
		t.Errorf("a third job: %v", err)
	}
	if _, err := w.submit("d", third); err != nil {
		t.Errorf("another client's first job: %v", err)
	}
	m, err := w.client.CancelJob(w.ctx("c"), &multikeyv1.CancelJobRequest{RequestId: second.header.GetRequestId()})
	if err != nil || m.GetJob().GetState() != cancelled {
		t.Errorf("cancelling a waiting job: %v, %v", m.GetJob(), err)
	}
	if w.s.choose().client != "c" {
		t.Error("the first job did not start first")
	}
	stop := w.run()
	if m, err = w.client.CancelJob(w.ctx("c"), &multikeyv1.CancelJobRequest{RequestId: r.header.GetRequestId()}); err != nil || m.GetJob().GetState() != cancelled {
		t.Errorf("cancelling a running job: %v, %v", m.GetJob(), err)
	}
	if j := w.await("d", third.header.GetRequestId()); j.GetState() != done {
		t.Errorf("the other client's job: %v", j)
	}
	stop()
	if _, ok := w.s.keys.claim(nil); !ok {
		t.Error("keys are still in use")
	}
	for _, x := range w.s.keys.entries {
		if x.users != 0 {
			t.Error("keys are still in use")
		}
	}
}

// Keys that were revoked between submission and start are not used; a job waits while memory is not
// available.
func TestKeysOfJobs(t *testing.T) {
	w := newWorld(t, 3, nil)
	w.s.keys.most = 2
	id := w.secrets[1].ID()
	r := w.request(circuit.Adder(1), []int{0, 1}, 1, 1)
	if _, err := w.submit("c", r); err != nil {
		t.Fatal(err)
	}
	w.shelf.deny(id, rpc.Errorf(rpc.RetiredKey, "", "revoked"))
	w.run()
	if j := w.await("c", r.header.GetRequestId()); j.GetState() != failed || j.GetCode() != string(rpc.RetiredKey) {
		t.Errorf("under revoked keys: %v", j)
	}
	if _, err := w.submit("c", w.request(circuit.Adder(1), []int{0, 1}, 1, 1)); code(err) != rpc.RetiredKey {
		t.Errorf("a new job under revoked keys: %v", err)
	}
	w.shelf.deny(id, nil)
	var ids [][]byte
	for _, owners := range [][]int{{0, 1}, {1, 2}, {2, 0}} {
		r := w.request(circuit.Adder(2), owners, 3, 2)
		if _, err := w.submit("client"+string(rune('a'+owners[0])), r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.header.GetRequestId())
	}
	for i, id := range ids {
		if j := w.await("client"+string(rune('a'+i)), id); j.GetState() != done {
			t.Errorf("%d: %v", i, j)
		}
	}
	w.s.keys.most = 1
	r = w.request(circuit.Adder(1), []int{0, 1}, 1, 1)
	if _, err := w.submit("c", r); err != nil {
		t.Fatal(err)
	}
	if j := w.await("c", r.header.GetRequestId()); j.GetState() != failed || j.GetCode() != string(rpc.TooLarge) {
		t.Errorf("without memory for its keys: %v", j)
	}
}

// Old results are evicted for new ones.
func TestResultsAreBounded(t *testing.T) {
	r := results{limit: 10, keep: time.Hour}
	now := time.Unix(0, 0)
	for i := range byte(4) {
		r.put("c", &result{digest: [32]byte{i}, bytes: make([]byte, 4)}, now)
	}
	for i := range byte(4) {
		digest := [32]byte{i}
		if got := r.get("c", digest[:], now) != nil; got != (i >= 2) {
			t.Errorf("result %d is kept: %v", i, got)
		}
	}
	if r.used != 8 {
		t.Errorf("%d bytes are used", r.used)
	}
	// A client with many results does not displace those of a client with few, and the result of a
	// new client is kept.
	r.put("d", &result{digest: [32]byte{10}, bytes: make([]byte, 2)}, now)
	for i := byte(11); i < 20; i++ {
		r.put("c", &result{digest: [32]byte{i}, bytes: make([]byte, 4)}, now)
	}
	last := [32]byte{19}
	few := [32]byte{10}
	if r.get("c", last[:], now) == nil || r.get("d", few[:], now) == nil || len(r.list) != 3 || r.used != 10 {
		t.Errorf("%d results of %d bytes are kept", len(r.list), r.used)
	}
	r.put("e", &result{digest: [32]byte{20}, bytes: make([]byte, 10)}, now)
	if len(r.list) != 1 || r.used != 10 {
		t.Errorf("%d results of %d bytes next to a client that fills the memory", len(r.list), r.used)
	}
	for range maxKept + 1 {
		r.put("e", &result{bytes: make([]byte, 0)}, now)
	}
	if len(r.list) != maxKept {
		t.Errorf("%d small results are kept", len(r.list))
	}
	if r.get("e", make([]byte, 32), now.Add(2*time.Hour)); len(r.list) != 0 || r.used != 0 {
		t.Errorf("%d results of %d bytes after their expiry", len(r.list), r.used)
	}
}
