package coordinator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// fakeSession is a session without computation.
type fakeSession struct {
	party   *fakeParty
	spec    *jobv1.SessionSpec
	status  *jobv1.SessionStatus
	changed chan struct{}
}

// fakeParty implements the services of a party without an engine.
type fakeParty struct {
	index    int
	address  string
	identity string
	server   *rpc.Server

	mu       sync.Mutex
	sessions map[string]*fakeSession
	epochs   []*keygenv1.Epoch
	batches  []*tuplesv1.Batch
	reserved map[string]tuplesv1.ReservationState
	specs    []*jobv1.SessionSpec
	// Hooks of the test; nil selects the correct behaviour.
	onStart    func(*jobv1.SessionSpec) error
	onRun      func(*fakeSession)
	onActivate func() error
	onEstimate func(*jobv1.SessionSpec) (*triplesv1.EstimateResponse, error)
	onDrain    func() error
}

func name(ref *jobv1.SessionRef) string {
	return fmt.Sprintf("%s-%d", ref.GetJobId(), ref.GetOrdinal())
}

func (p *fakeParty) start(spec *jobv1.SessionSpec) (*jobv1.SessionStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.onStart != nil {
		if err := p.onStart(spec); err != nil {
			return nil, err
		}
	}
	p.specs = append(p.specs, spec)
	s := &fakeSession{party: p, spec: spec, changed: make(chan struct{}), status: &jobv1.SessionStatus{Ref: spec.GetRef(), State: preparing}}
	p.sessions[name(spec.GetRef())] = s
	run := p.onRun
	if run == nil {
		run = (*fakeSession).succeed
	}
	go run(s)
	return s.status, nil
}

// set changes the session's status.
func (s *fakeSession) set(change func(*jobv1.SessionStatus)) {
	s.party.mu.Lock()
	defer s.party.mu.Unlock()
	s.setLocked(change)
}

func (s *fakeSession) setLocked(change func(*jobv1.SessionStatus)) {
	if job.Final(s.status.GetState()) {
		return
	}
	s.status = proto.CloneOf(s.status)
	change(s.status)
	close(s.changed)
	s.changed = make(chan struct{})
}

// waits puts the session into a round in which it waits for the given parties.
func (s *fakeSession) waits(round uint32, whom ...uint32) {
	s.set(func(st *jobv1.SessionStatus) {
		st.State = jobv1.JobState_JOB_STATE_GENERATING
		st.Progress = &jobv1.Progress{Round: "open", RoundIndex: round, WaitingFor: whom, Since: now()}
	})
}

// fails ends the session with a failure.
func (s *fakeSession) fails(f *jobv1.Failure) {
	s.set(func(st *jobv1.SessionStatus) {
		st.State, st.Failure = failed, f
		if f.GetOutcome() == outcomeTimeout {
			st.State = timedOut
		}
	})
}

// succeed passes through all states and stores a locked result.
func (s *fakeSession) succeed() {
	s.waits(1, 1)
	s.set(func(st *jobv1.SessionStatus) { st.State = jobv1.JobState_JOB_STATE_VERIFYING })
	s.store(job.Digest(s.spec))
}

func (s *fakeSession) store(digest [32]byte) {
	s.set(func(st *jobv1.SessionStatus) {
		p, id := s.party, name(s.spec.GetRef())
		st.State, st.Digest, st.Epoch, st.Count = activating, digest[:], s.spec.GetEpoch(), s.spec.GetCount()
		if s.spec.GetKind() == jobv1.Kind_KIND_KEYS {
			st.KeygenSecurity = proved
			if s.spec.GetParams() == unproved {
				st.KeygenSecurity = "passive"
			}
			p.epochs = append(p.epochs, &keygenv1.Epoch{Epoch: st.Epoch, State: keygenv1.EpochState_EPOCH_STATE_LOCKED, Session: id,
				Params: s.spec.GetParams(), Purpose: s.spec.GetPurpose(), Dim: s.spec.GetDim(), KeygenSecurity: st.GetKeygenSecurity(),
				Standing: keygenv1.RosterStanding_ROSTER_STANDING_SAME})
			return
		}
		st.BatchId = id
		spec, count := s.spec, estimateOf(s.spec).GetTuples()
		st.Count = count
		p.batches = append(p.batches, &tuplesv1.Batch{
			Id: id, State: tuplesv1.BatchState_BATCH_STATE_LOCKED, Epoch: st.Epoch, MacKeyId: "mac", Digest: digest[:], TupleBytes: 96,
			Class: &tuplesv1.Class{Tenant: spec.GetTenant(), Kind: spec.GetKind(), Params: spec.GetParams(), Field: spec.GetField(),
				Shape: spec.GetShape(), InputParty: spec.GetInputParty()},
			Count: count, Free: []*tuplesv1.Span{{Count: count}},
		})
	})
}

func (p *fakeParty) find(ref *jobv1.SessionRef) (*fakeSession, error) {
	if s, ok := p.sessions[name(ref)]; ok {
		return s, nil
	}
	return nil, rpc.Errorf(rpc.NotFound, "", "no session %s", name(ref))
}

func (p *fakeParty) watch(ctx context.Context, ref *jobv1.SessionRef, send func(*jobv1.SessionStatus) error) error {
	for {
		p.mu.Lock()
		s, err := p.find(ref)
		if err != nil {
			p.mu.Unlock()
			return err
		}
		st, changed := s.status, s.changed
		p.mu.Unlock()
		if err := send(st); err != nil || job.Final(st.GetState()) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *fakeParty) end(ref *jobv1.SessionRef, digest []byte, state jobv1.JobState) (*jobv1.SessionStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if state == completed && p.onActivate != nil {
		if err := p.onActivate(); err != nil {
			return nil, err
		}
	}
	s, err := p.find(ref)
	if err != nil {
		return nil, err
	}
	if state == completed && (s.status.GetState() < activating || string(digest) != string(s.status.GetDigest())) {
		return nil, rpc.Errorf(rpc.Conflict, "", "another digest, or %s", s.status.GetState())
	}
	id := name(ref)
	for _, e := range p.epochs {
		if e.Session == id && state == completed {
			e.State = keygenv1.EpochState_EPOCH_STATE_ACTIVE
		}
	}
	for _, b := range p.batches {
		if b.Id == id && state == completed {
			b.State = tuplesv1.BatchState_BATCH_STATE_AVAILABLE
		}
	}
	if state == cancelled {
		p.epochs = slices.DeleteFunc(p.epochs, func(e *keygenv1.Epoch) bool { return e.Session == id })
		p.batches = slices.DeleteFunc(p.batches, func(b *tuplesv1.Batch) bool { return b.Id == id })
	}
	s.setLocked(func(st *jobv1.SessionStatus) { st.State = state })
	return s.status, nil
}

// fakeSessions implements the calls that all services of a fake party share.
type fakeSessions struct{ p *fakeParty }

func (f fakeSessions) Start(_ context.Context, r *jobv1.StartRequest) (*jobv1.StartResponse, error) {
	st, err := f.p.start(r.GetSpec())
	return &jobv1.StartResponse{Status: st}, err
}

func (f fakeSessions) GetStatus(context.Context, *jobv1.GetStatusRequest) (*jobv1.GetStatusResponse, error) {
	return nil, rpc.Errorf(rpc.NotFound, "", "no session")
}

func (f fakeSessions) Watch(r *jobv1.WatchRequest, stream grpc.ServerStreamingServer[jobv1.WatchResponse]) error {
	return f.p.watch(stream.Context(), r.GetRef(), func(st *jobv1.SessionStatus) error { return stream.Send(&jobv1.WatchResponse{Status: st}) })
}

func (f fakeSessions) Cancel(_ context.Context, r *jobv1.CancelRequest) (*jobv1.CancelResponse, error) {
	st, err := f.p.end(r.GetRef(), nil, cancelled)
	return &jobv1.CancelResponse{Status: st}, err
}

func (f fakeSessions) Activate(_ context.Context, r *jobv1.ActivateRequest) (*jobv1.ActivateResponse, error) {
	st, err := f.p.end(r.GetRef(), r.GetDigest(), completed)
	return &jobv1.ActivateResponse{Status: st}, err
}

type fakeKeygen struct {
	keygenv1.UnsafeKeygenServiceServer
	fakeSessions
}

func (f fakeKeygen) GetPublicKey(*keygenv1.GetPublicKeyRequest, keygenv1.KeygenService_GetPublicKeyServer) error {
	return rpc.Errorf(rpc.NotFound, "", "no key")
}

func (f fakeKeygen) RetireEpoch(context.Context, *keygenv1.RetireEpochRequest) (*keygenv1.RetireEpochResponse, error) {
	return nil, rpc.Errorf(rpc.NotFound, "", "no epoch")
}

// DrainEpoch drains an epoch of the fake party; the successor must exist.
func (f fakeKeygen) DrainEpoch(_ context.Context, r *keygenv1.DrainEpochRequest) (*keygenv1.DrainEpochResponse, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	if f.p.onDrain != nil {
		if err := f.p.onDrain(); err != nil {
			return nil, err
		}
	}
	var old, next *keygenv1.Epoch
	for _, e := range f.p.epochs {
		switch e.GetEpoch() {
		case r.GetEpoch():
			old = e
		case r.GetSuccessor():
			next = e
		}
	}
	switch {
	case old == nil:
		return nil, rpc.Errorf(rpc.NotFound, "", "no epoch %d", r.GetEpoch())
	case next.GetState() != keygenv1.EpochState_EPOCH_STATE_ACTIVE:
		return nil, rpc.Errorf(rpc.Invalid, "", "epoch %d is %s", r.GetSuccessor(), next.GetState())
	}
	old.State, old.Successor = keygenv1.EpochState_EPOCH_STATE_DRAINING, r.GetSuccessor()
	return &keygenv1.DrainEpochResponse{Epoch: proto.CloneOf(old)}, nil
}

func (f fakeKeygen) ListEpochs(context.Context, *keygenv1.ListEpochsRequest) (*keygenv1.ListEpochsResponse, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	out := &keygenv1.ListEpochsResponse{}
	for _, e := range f.p.epochs {
		out.Epochs = append(out.Epochs, proto.CloneOf(e))
	}
	return out, nil
}

type fakeTriples struct {
	triplesv1.UnsafeTriplesServiceServer
	fakeSessions
}

type fakeTuples struct {
	tuplesv1.UnimplementedTuplesServiceServer
	p *fakeParty
}

// ListBatches returns pages of one batch, so that callers must follow the page tokens.
func (f fakeTuples) ListBatches(_ context.Context, r *tuplesv1.ListBatchesRequest) (*tuplesv1.ListBatchesResponse, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	out := &tuplesv1.ListBatchesResponse{}
	for _, b := range f.p.batches {
		if len(r.GetStates()) > 0 && !slices.Contains(r.GetStates(), b.GetState()) {
			continue
		}
		if b.GetId() > r.GetAfter() && len(out.Batches) == 1 {
			out.Next = out.Batches[0].GetId()
			break
		}
		if b.GetId() > r.GetAfter() {
			out.Batches = append(out.Batches, proto.CloneOf(b))
		}
	}
	return out, nil
}

// fakeNet is a coordinator with fake parties over real TLS.
type fakeNet struct {
	*testing.T
	ca      *pki.Authority
	dir     string
	parties []*fakeParty
	file    *config.CoordinatorFile
	client  coordinatorv1.CoordinatorServiceClient
	address string
	running *Coordinator
	stop    func() // stops the coordinator as SIGTERM does, and waits
}

// unproved is a parameter set whose keys are not proved.
const unproved = "S13-8"

const coordinatorIdentity = "spiffe://lodge/coordinator"

func newNet(t *testing.T, n int) *fakeNet {
	t.Helper()
	ca, err := pki.NewAuthority("fake", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeNet{T: t, ca: ca, dir: t.TempDir()}
	f.write("ca.pem", ca.PEM())
	roster := &config.Roster{Coordinator: config.Coordinator{Identity: coordinatorIdentity}}
	for i := range n {
		_, public, err := pki.NewSigningKey()
		if err != nil {
			t.Fatal(err)
		}
		p := &fakeParty{index: i, identity: fmt.Sprintf("spiffe://lodge/party/p%d", i), sessions: map[string]*fakeSession{},
			reserved: map[string]tuplesv1.ReservationState{}}
		l := f.listen("127.0.0.1:0")
		p.address = l.Addr().String()
		f.serve(p, l)
		f.parties = append(f.parties, p)
		roster.Parties = append(roster.Parties, config.Member{ID: i, Name: fmt.Sprintf("p%d", i), Address: p.address, Identity: p.identity, SigningKey: public})
		t.Cleanup(func() { f.kill(i) })
	}
	f.leaf("coordinator", coordinatorIdentity)
	client := func(name string, permissions ...string) config.Client {
		return config.Client{Name: name, Identity: "spiffe://lodge/client/" + name, Permissions: permissions, Tenants: []string{"dev"}}
	}
	keeper := client("keeper", config.PermStatus, config.PermPolicy, config.PermReserve)
	stranger := client("stranger", config.PermStatus, config.PermSubmit, config.PermPolicy, config.PermReserve)
	stranger.Tenants = []string{"others"}
	rotator := client("rotator", config.PermStatus, config.PermSubmit, config.PermPolicy)
	rotator.Tenants = append(rotator.Tenants, stranger.Tenants...) // a rotation changes an epoch of all tenants
	submitter := client("submitter", config.PermStatus, config.PermSubmit)
	submitter.Tenants = rotator.Tenants
	f.file = &config.CoordinatorFile{
		Roster: roster, DataDir: filepath.Join(f.dir, "data"), JobTimeout: config.Duration(20 * time.Second), MaxConcurrent: 2,
		TLS:     config.TLS{Certificate: f.path("coordinator.pem"), Key: f.path("coordinator.key"), CA: f.path("ca.pem")},
		Clients: []config.Client{client("operator", config.PermStatus, config.PermSubmit), client("other", config.PermStatus, config.PermSubmit), client("viewer", config.PermStatus), rotator, submitter, keeper, stranger},
		Stock:   config.StockLimits{MaxBytesPerParty: 1 << 40, MaxJobMemory: 1 << 40, MaxJobs: 2},
		Params: []config.ParamsPin{{Name: "S14-32", Hash: fmt.Sprintf("%x", sha256.Sum256([]byte("set")))},
			{Name: unproved, Hash: fmt.Sprintf("%x", sha256.Sum256([]byte("other set")))}},
	}
	f.begin()
	return f
}

func (f *fakeNet) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fakeNet) write(name string, content []byte) {
	f.Helper()
	if err := os.WriteFile(f.path(name), content, 0o600); err != nil {
		f.Fatal(err)
	}
}

// leaf writes a certificate and returns credentials that use it.
func (f *fakeNet) leaf(base, identity string) *rpc.Credentials {
	f.Helper()
	cert, key, err := f.ca.Issue(pki.Leaf{Identity: identity, Lifetime: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	f.write(base+".pem", cert)
	f.write(base+".key", key)
	c, err := rpc.LoadCredentials(rpc.Files{Certificate: f.path(base + ".pem"), Key: f.path(base + ".key"), CA: f.path("ca.pem")})
	if err != nil {
		f.Fatal(err)
	}
	return c
}

func (f *fakeNet) listen(address string) net.Listener {
	f.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		f.Fatal(err)
	}
	return l
}

// serve starts a party.
func (f *fakeNet) serve(p *fakeParty, l net.Listener) {
	f.Helper()
	d := rpc.NewDirectory()
	if err := d.Add(coordinatorIdentity, rpc.Principal{Role: rpc.Coordinator, Name: "coordinator", Party: -1}); err != nil {
		f.Fatal(err)
	}
	rules := rpc.Rules{}
	for _, s := range []grpc.ServiceDesc{keygenv1.KeygenService_ServiceDesc, triplesv1.TriplesService_ServiceDesc, tuplesv1.TuplesService_ServiceDesc} {
		for _, m := range s.Methods {
			rules["/"+s.ServiceName+"/"+m.MethodName] = rpc.Allow(rpc.Coordinator)
		}
		for _, m := range s.Streams {
			rules["/"+s.ServiceName+"/"+m.StreamName] = rpc.Allow(rpc.Coordinator)
		}
	}
	server, err := rpc.NewServer(rpc.Options{Credentials: f.leaf(fmt.Sprint("p", p.index), p.identity), Directory: d, Rules: rules})
	if err != nil {
		f.Fatal(err)
	}
	p.server = server
	keygenv1.RegisterKeygenServiceServer(server, fakeKeygen{fakeSessions: fakeSessions{p}})
	triplesv1.RegisterTriplesServiceServer(server, fakeTriples{fakeSessions: fakeSessions{p}})
	tuplesv1.RegisterTuplesServiceServer(server, fakeTuples{p: p})
	server.SetReady(true)
	go server.Serve(l)
}

// kill stops a party immediately; restart starts it again without its sessions.
func (f *fakeNet) kill(i int) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.parties[i].server.Stop(ctx)
}

func (f *fakeNet) restart(i int) {
	f.Helper()
	p := f.parties[i]
	p.mu.Lock()
	p.sessions = map[string]*fakeSession{}
	p.mu.Unlock()
	f.serve(p, f.listen(p.address))
}

// begin starts the coordinator, which stops with the test.
func (f *fakeNet) begin() {
	f.Helper()
	c, err := open(f.file, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		f.Fatal(err)
	}
	c.timing = timing{
		call: 5 * time.Second, away: max(time.Second, time.Duration(f.file.PartyTimeout)), grace: 300 * time.Millisecond, late: 600 * time.Millisecond,
		stop: time.Second, retry: 10 * time.Millisecond, slow: 50 * time.Millisecond,
	}
	l := f.listen("127.0.0.1:0")
	f.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- c.serve(ctx, l)
		c.close()
	}()
	f.running = c
	f.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				f.Error(err)
			}
		case <-time.After(30 * time.Second):
			f.Error("the coordinator does not stop")
		}
	})
	f.Cleanup(func() { f.stop() })
	f.client = f.dial("operator")
}

func (f *fakeNet) dial(client string) coordinatorv1.CoordinatorServiceClient {
	f.Helper()
	return coordinatorv1.NewCoordinatorServiceClient(f.conn(client))
}

func (f *fakeNet) conn(client string) *grpc.ClientConn {
	f.Helper()
	conn, err := rpc.Dial(f.address, coordinatorIdentity, f.leaf(client, "spiffe://lodge/client/"+client))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { conn.Close() })
	return conn
}
