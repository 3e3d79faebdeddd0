package lodge_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
)

const (
	coordinatorIdentity = "spiffe://test/coordinator"
	partyIdentity       = "spiffe://test/party/p0"
	reservationID       = "0123456789abcdef"
)

// fake is a coordinator and a party controlled by a test.
type fake struct {
	tuplesv1.UnimplementedTuplesServiceServer

	mu       sync.Mutex
	failures []error // of the next calls
	keys     []string
	froms    []uint64
	tokens   []string // received with the reservations

	reservation *tuplesv1.Reservation
	tupleBytes  uint64
	data        []byte
	// send streams data[from*tupleBytes:]; a test may replace it.
	send func(call int, data []byte, stream tuplesv1.TuplesService_FetchServer) error
	// State of the stock.
	asOf *timestamppb.Timestamp
	away bool
}

// fakeStock is the coordinator's side of a fake.
type fakeStock struct {
	stockv1.UnimplementedStockServiceServer
	fake *fake
}

func (f *fake) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.failures) == 0 {
		return nil
	}
	err := f.failures[0]
	f.failures = f.failures[1:]
	return err
}

func (s fakeStock) Reserve(ctx context.Context, q *stockv1.ReserveRequest) (*stockv1.ReserveResponse, error) {
	f := s.fake
	f.mu.Lock()
	f.keys = append(f.keys, q.GetIdempotencyKey())
	f.tokens = append(f.tokens, strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ","))
	f.mu.Unlock()
	if err := f.failure(); err != nil {
		return nil, err
	}
	return &stockv1.ReserveResponse{Reservation: &tuplesv1.Reservation{Id: reservationID, Class: q.GetClass(), Count: q.GetCount(), Clients: q.GetClients(), Epoch: q.GetEpoch()}}, nil
}

func (f *fake) DrawMacKey(_ context.Context, q *tuplesv1.DrawMacKeyRequest) (*tuplesv1.DrawMacKeyResponse, error) {
	return &tuplesv1.DrawMacKeyResponse{Share: []byte{byte(q.GetPurpose()), 1}}, f.failure()
}

func (f *fake) Fetch(q *tuplesv1.FetchRequest, stream tuplesv1.TuplesService_FetchServer) error {
	f.mu.Lock()
	f.froms = append(f.froms, q.GetFrom())
	call := len(f.froms)
	f.mu.Unlock()
	if err := f.failure(); err != nil {
		return err
	}
	if q.GetFrom() >= f.reservation.GetCount() {
		return detailed(codes.InvalidArgument, lodge.Invalid)
	}
	if err := stream.Send(&tuplesv1.FetchResponse{Reservation: f.reservation, TupleBytes: f.tupleBytes}); err != nil {
		return err
	}
	return f.send(call, f.data[q.GetFrom()*f.tupleBytes:], stream)
}

// sendAll streams data in chunks of the given sizes, followed by the correct sum.
func sendAll(stream tuplesv1.TuplesService_FetchServer, data []byte, size int) error {
	sum := sha256.Sum256(data)
	for len(data) > 0 {
		n := min(size, len(data))
		if err := stream.Send(&tuplesv1.FetchResponse{Chunk: data[:n]}); err != nil {
			return err
		}
		data = data[n:]
	}
	return stream.Send(&tuplesv1.FetchResponse{Sha256: sum[:]})
}

func detailed(c codes.Code, code lodge.Code) error {
	s, err := status.New(c, "refused").WithDetails(&statusv1.ErrorDetail{Code: string(code), What: "refused", Next: "do better"})
	if err != nil {
		panic(err)
	}
	return s.Err()
}

// serve starts f, and writes a client configuration for it.
func serve(t testing.TB, f *fake) (config string) {
	t.Helper()
	dir := t.TempDir()
	ca, err := pki.NewAuthority("test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	issue := func(name, identity string) {
		cert, key, err := ca.Issue(pki.Leaf{Identity: identity, Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		write(name+".pem", cert)
		write(name+".key", key)
	}
	write("ca.pem", ca.PEM())
	issue("client", "spiffe://test/client")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	start := func(name, identity string) string {
		issue(name, identity)
		cert, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{cert}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots, MinVersion: tls.VersionTLS13,
		})))
		stockv1.RegisterStockServiceServer(s, fakeStock{fake: f})
		tuplesv1.RegisterTuplesServiceServer(s, f)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(s.Stop)
		return l.Addr().String()
	}
	write("client.yaml", []byte("name: client\ntenant: dev\nparams: S14-32\n"+
		"coordinator: {address: '"+start("coordinator", coordinatorIdentity)+"', identity: '"+coordinatorIdentity+"'}\n"+
		"parties:\n- {name: p0, address: '"+start("party", partyIdentity)+"', identity: '"+partyIdentity+"'}\n"+
		"- {name: p1, address: '127.0.0.1:1', identity: 'spiffe://test/party/p1'}\n"+
		"party: p0\ntls: {certificate: client.pem, key: client.key, ca: ca.pem}\n"))
	return filepath.Join(dir, "client.yaml")
}

func dial(t testing.TB, f *fake, change func(*lodge.Config)) *lodge.Client {
	t.Helper()
	config, err := lodge.Load(serve(t, f))
	if err != nil {
		t.Fatal(err)
	}
	config.Patience = 5 * time.Second
	if change != nil {
		change(&config)
	}
	c, err := lodge.Dial(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// triples returns a party with the given number of random triples over p128, sent in chunks of the
// given size.
func triples(count, chunk int) *fake {
	f := &fake{
		reservation: &tuplesv1.Reservation{
			Id: reservationID, Count: uint64(count), Epoch: 3, MacKeyId: "k", Digest: []byte{7},
			Class: &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_SCALAR, Params: "S14-32", Field: "p128"},
		},
		tupleBytes: 96, data: make([]byte, 96*count),
		send: func(_ int, data []byte, stream tuplesv1.TuplesService_FetchServer) error {
			return sendAll(stream, data, chunk)
		},
	}
	r := rand.NewChaCha8([32]byte{byte(count)})
	_, _ = r.Read(f.data)
	return f
}

func TestReserveRetriesUnderOneKey(t *testing.T) {
	f := &fake{failures: []error{
		status.Error(codes.Unavailable, "gone"), detailed(codes.ResourceExhausted, lodge.Busy), detailed(codes.ResourceExhausted, lodge.RateLimited),
	}}
	c := dial(t, f, nil)
	r, err := c.Reserve(t.Context(), lodge.Class{Kind: "matrix", Field: "p64", Rows: 2, Inner: 3, Columns: 4, NoSacrifice: true}, 5, lodge.For("client"), lodge.Epoch(9))
	if err != nil {
		t.Fatal(err)
	}
	want := lodge.Class{Kind: "matrix", Field: "p64", Params: "S14-32", Tenant: "dev", Rows: 2, Inner: 3, Columns: 4, NoSacrifice: true}
	if r.ID != reservationID || r.Class != want || r.Count != 5 || r.Epoch != 9 || !reflect.DeepEqual(r.Clients, []string{"client"}) {
		t.Errorf("got %+v", r)
	}
	if len(f.keys) != 4 || f.keys[0] == "" {
		t.Fatalf("keys of the attempts: %q", f.keys)
	}
	for _, k := range f.keys {
		if k != f.keys[0] {
			t.Errorf("keys of the attempts differ: %q", f.keys)
		}
	}
	if _, err := c.Reserve(t.Context(), lodge.Class{Kind: "bit", Field: "p64"}, 1); err != nil || f.keys[4] == f.keys[0] {
		t.Errorf("two reservations under one key: %v", err)
	}
}

func TestReserveWaitsForStock(t *testing.T) {
	empty := detailed(codes.ResourceExhausted, lodge.OutOfStock)
	f := &fake{failures: []error{empty, detailed(codes.DeadlineExceeded, lodge.TimedOut)}}
	c := dial(t, f, nil)
	if _, err := c.Reserve(t.Context(), lodge.Class{Kind: "bit", Field: "p64"}, 1, lodge.Wait(), lodge.IdempotencyKey("mine")); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f.keys, []string{"mine", "mine", "mine"}) {
		t.Errorf("keys %q", f.keys)
	}
}

// A token replaces the certificate, and is read again for every call.
func TestTokens(t *testing.T) {
	f := &fake{}
	path := filepath.Join(t.TempDir(), "token")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := dial(t, f, func(c *lodge.Config) {
		c.Coordinator.TokenFile, c.Party, c.TLS.Certificate, c.TLS.Key = path, "", "", ""
	})
	for _, want := range []string{"first", "second"} {
		write(want + "\n")
		if _, err := c.Reserve(t.Context(), lodge.Class{Kind: "bit", Field: "p64"}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(f.tokens, []string{"Bearer first", "Bearer second"}) {
		t.Errorf("headers %q", f.tokens)
	}
	for _, bad := range []string{"", "two words", "t\x00"} {
		write(bad)
		if _, err := c.Reserve(t.Context(), lodge.Class{Kind: "bit", Field: "p64"}, 1); !errors.Is(err, &lodge.Error{Code: lodge.Unauthenticated}) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	config, err := lodge.Load(serve(t, f))
	config.TLS.Certificate, config.Coordinator.TokenFile = "", path // but none for the party
	if _, err2 := lodge.Dial(config); err != nil || err2 == nil {
		t.Errorf("neither a certificate nor a token for the party: %v, %v", err, err2)
	}
}

func TestErrors(t *testing.T) {
	f := &fake{failures: []error{detailed(codes.ResourceExhausted, lodge.OutOfStock)}}
	c := dial(t, f, nil)
	_, err := c.Reserve(t.Context(), lodge.Class{Kind: "bit", Field: "p64"}, 1)
	var e *lodge.Error
	if !errors.As(err, &e) || !errors.Is(err, &lodge.Error{Code: lodge.OutOfStock}) || e.What != "refused" || e.Next != "do better" || e.Retry() {
		t.Errorf("got %#v", err)
	}
	if _, err := c.Reserve(t.Context(), lodge.Class{Kind: "tripel"}, 1); !errors.Is(err, &lodge.Error{Code: lodge.Invalid}) || len(f.keys) != 1 {
		t.Errorf("an unknown kind gives %v", err)
	}
	for range 100 {
		f.failures = append(f.failures, status.Error(codes.Unavailable, "gone"))
	}
	var ctx context.Context
	for patience := 300 * time.Millisecond; ; patience *= 2 { // until one attempt ends within it
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(t.Context(), patience)
		_, err := c.MACKeyShare(ctx, "k")
		cancel()
		if !errors.Is(err, &lodge.Error{Code: lodge.TimedOut}) {
			t.Fatalf("the end of patience gives %v", err)
		}
		if strings.Contains(err.Error(), "gone") {
			break
		}
		if patience > time.Minute {
			t.Fatalf("the cause of the failure is missing: %v", err)
		}
	}
	if _, err := c.MACKeyShare(ctx, "k"); !errors.As(err, &e) {
		t.Errorf("a cancelled context yields %v", err)
	}
}

// The client identifies a server by its certificate, not by its address.
func TestIdentityIsChecked(t *testing.T) {
	for name, change := range map[string]func(*lodge.Config){
		"another identity":  func(c *lodge.Config) { c.Parties[0].Identity = "spiffe://test/party/p1" },
		"another authority": func(c *lodge.Config) { c.Roots = x509.NewCertPool() },
		"another server":    func(c *lodge.Config) { c.Parties[0].Address = c.Coordinator.Address },
	} {
		c := dial(t, triples(1, 96), func(x *lodge.Config) { x.Patience = 100 * time.Millisecond; change(x) })
		if _, err := c.Fetch(t.Context(), reservationID); !errors.Is(err, &lodge.Error{Code: lodge.Unavailable}) || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFetch(t *testing.T) {
	f := triples(1000, 777)
	c := dial(t, f, nil)
	s, err := c.Fetch(t.Context(), reservationID)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(s)
	if err != nil || string(b) != string(f.data) || s.Size() != int64(len(b)) || s.Modulus.BitLen() != 128 || s.ElementBytes != 16 {
		t.Errorf("received %d of %d bytes, %v; %v", len(b), len(f.data), err, s)
	}
	if s, err = c.Fetch(t.Context(), reservationID); err != nil {
		t.Fatal(err)
	}
	n := 0
	for x := range s.Triples() {
		for i, e := range []lodge.Element{x.A, x.B, x.C, x.MACA, x.MACB, x.MACC} {
			if at := n*96 + i*16; string(e) != string(f.data[at:at+16]) {
				t.Fatalf("element %d of triple %d differs", i, n)
			}
		}
		n++
	}
	if n != 1000 || s.Err() != nil {
		t.Errorf("%d triples, %v", n, s.Err())
	}
	if got := (lodge.Element{1, 2}).Int(); got.Cmp(big.NewInt(513)) != 0 {
		t.Errorf("1, 2 is %v", got)
	}
	if s, err = c.Fetch(t.Context(), reservationID); err != nil {
		t.Fatal(err)
	}
	for range s.Squares() {
		t.Error("a triple is a square")
	}
	if !errors.Is(s.Err(), &lodge.Error{Code: lodge.Invalid}) {
		t.Errorf("squares of triples: %v", s.Err())
	}
}

// A stream that breaks anywhere, any number of times, yields the same bytes.
func TestFetchResumes(t *testing.T) {
	for name, broken := range map[string]error{
		"unavailable": status.Error(codes.Unavailable, "connection reset"), "timed out": detailed(codes.DeadlineExceeded, lodge.TimedOut),
		"no checksum": nil,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); resume(t, broken) })
	}
}

func resume(t *testing.T, broken error) {
	f := triples(50, 0)
	f.send = func(call int, data []byte, stream tuplesv1.TuplesService_FetchServer) error {
		if call > 8 {
			return sendAll(stream, data, 100)
		}
		return errors.Join(stream.Send(&tuplesv1.FetchResponse{Chunk: data[:min(len(data), 37*call)]}), broken)
	}
	if broken != nil {
		f.failures = []error{nil, broken, nil, broken, broken}
	}
	c := dial(t, f, nil)
	s, err := c.Fetch(t.Context(), reservationID)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(s); err != nil || string(b) != string(f.data) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if last := f.froms[len(f.froms)-1]; last == 0 {
		t.Errorf("began at %v", f.froms)
	}
}

// If only the checksum is missing, the last tuple is sent again.
func TestFetchResumesForTheChecksum(t *testing.T) {
	f := triples(3, 0)
	f.send = func(call int, data []byte, stream tuplesv1.TuplesService_FetchServer) error {
		if call > 1 {
			return sendAll(stream, data, 50)
		}
		return errors.Join(stream.Send(&tuplesv1.FetchResponse{Chunk: data}), status.Error(codes.Unavailable, "gone"))
	}
	s, err := dial(t, f, nil).Fetch(t.Context(), reservationID)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(s); err != nil || string(b) != string(f.data) || !reflect.DeepEqual(f.froms, []uint64{0, 2}) {
		t.Errorf("%d bytes, %v, from %v", len(b), err, f.froms)
	}
}

func TestFetchRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fake)
		want   lodge.Code
		opens  bool // the first message is valid
	}{
		"another reservation":  {func(f *fake) { f.reservation.Id = "x" }, lodge.BadShares, false},
		"an unknown field":     {func(f *fake) { f.reservation.Class.Field = "p127" }, lodge.BadShares, false},
		"tuples too short":     {func(f *fake) { f.tupleBytes = 95 }, lodge.BadShares, false},
		"an unknown kind":      {func(f *fake) { f.reservation.Class.Kind = jobv1.Kind_KIND_KEYS }, lodge.BadShares, false},
		"no tuples":            {func(f *fake) { f.reservation.Count = 0 }, lodge.Invalid, false},
		"what is gone":         {func(f *fake) { f.failures = []error{detailed(codes.NotFound, lodge.NotFound)} }, lodge.NotFound, false},
		"what another has":     {func(f *fake) { f.failures = []error{detailed(codes.FailedPrecondition, lodge.Delivered)} }, lodge.Delivered, false},
		"a byte that differs":  {func(f *fake) { f.send = flipped }, lodge.BadShares, true},
		"too much":             {func(f *fake) { f.data = append(f.data, 0) }, lodge.BadShares, true},
		"too little":           {func(f *fake) { f.data = f.data[:len(f.data)-1] }, lodge.BadShares, true},
		"an end of the lease":  {func(f *fake) { f.send = cut(detailed(codes.FailedPrecondition, lodge.Expired)) }, lodge.Expired, true},
		"other tuples later":   {func(f *fake) { f.send = other(f) }, lodge.BadShares, true},
		"a stream that stalls": {func(f *fake) { f.send = cut(status.Error(codes.Unavailable, "gone")) }, lodge.Unavailable, true},
	} {
		f := triples(9, 100)
		c.change(f)
		client := dial(t, f, func(c *lodge.Config) { c.Patience = 200 * time.Millisecond })
		s, err := client.Fetch(t.Context(), reservationID)
		if (err == nil) != c.opens {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err == nil {
			for range s.Triples() {
				continue
			}
			err = s.Err()
		}
		if !errors.Is(err, &lodge.Error{Code: c.want}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func flipped(_ int, data []byte, stream tuplesv1.TuplesService_FetchServer) error {
	sum := sha256.Sum256(data)
	sum[3] ^= 1
	return errors.Join(stream.Send(&tuplesv1.FetchResponse{Chunk: data}), stream.Send(&tuplesv1.FetchResponse{Sha256: sum[:]}))
}

// cut sends no shares.
func cut(err error) func(int, []byte, tuplesv1.TuplesService_FetchServer) error {
	return func(int, []byte, tuplesv1.TuplesService_FetchServer) error { return err }
}

// other breaks once, and then sends different tuples under the same id.
func other(f *fake) func(int, []byte, tuplesv1.TuplesService_FetchServer) error {
	return func(_ int, data []byte, stream tuplesv1.TuplesService_FetchServer) error {
		f.reservation.Digest = []byte{8}
		return errors.Join(stream.Send(&tuplesv1.FetchResponse{Chunk: data[:96]}), status.Error(codes.Unavailable, "gone"))
	}
}

func TestLoadRefuses(t *testing.T) {
	good, err := os.ReadFile(serve(t, &fake{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(string) string{
		"an unknown key":          func(s string) string { return s + "colour: red\n" },
		"a party that is nowhere": func(s string) string { return strings.Replace(s, "party: p0", "party: p7", 1) },
		"a second document":       func(s string) string { return s + "---\nname: x\n" },
		"no identity":             func(s string) string { return strings.Replace(s, "spiffe://test/party/p1", "", 1) },
		"nothing":                 func(string) string { return "" },
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(change(string(good))), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := lodge.Load(path); err == nil {
			t.Errorf("%s passes", name)
		}
	}
}

// Measures the transfer of shares over TLS on this machine, as bytes and as values, including both
// sides' checksums.
func BenchmarkFetch(b *testing.B) {
	f := triples(1<<19, 512<<10)
	c := dial(b, f, nil)
	fetch := func(b *testing.B, read func(*lodge.Shares) error) {
		b.SetBytes(int64(len(f.data)))
		for b.Loop() {
			s, err := c.Fetch(b.Context(), reservationID)
			if err == nil {
				err = read(s)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("bytes", func(b *testing.B) {
		buffer := make([]byte, 1<<20)
		fetch(b, func(s *lodge.Shares) error {
			_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, s, buffer)
			return err
		})
	})
	b.Run("values", func(b *testing.B) {
		fetch(b, func(s *lodge.Shares) error {
			for range s.Triples() {
				continue
			}
			return s.Err()
		})
	})
}
