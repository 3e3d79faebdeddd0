package party

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

const (
	set       = "insecure-8"
	completed = jobv1.JobState_JOB_STATE_COMPLETED
	forKeys   = jobv1.Purpose_PURPOSE_TRIPLES
)

// network is three parties in this process, on real sockets with real TLS. The test is their
// coordinator.
type network struct {
	t       *testing.T
	cluster *devnet.Cluster
	nodes   []*node
	jobs    int
}

// node is one party.
type node struct {
	file  *config.PartyFile
	party *party
	log   *lockedBuffer
	stop  func()
	// connections as the coordinator, as the party's own client, and as the client of all parties
	coordinator, client, app *grpc.ClientConn
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newNetwork starts the parties; edit changes a party's configuration, if set.
func newNetwork(t *testing.T, edit func(i int, f *config.PartyFile)) *network {
	t.Helper()
	cluster, err := devnet.Write(filepath.Join(t.TempDir(), "net"), devnet.Options{Parties: 3, Params: []string{set}, Dev: true, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	n := &network{t: t, cluster: cluster}
	for i, path := range cluster.Parties {
		f, err := config.LoadParty(path)
		if err != nil {
			t.Fatal(err)
		}
		f.Limits.Idle, f.Limits.Compute = config.Duration(3*time.Second), config.Duration(5*time.Second)
		if edit != nil {
			edit(i, f)
		}
		m := f.Roster.Parties[i]
		x := &node{file: f, log: new(lockedBuffer)}
		x.coordinator = n.dial(m, rpc.Files{
			Certificate: filepath.Join(cluster.Dir, "coordinator", "tls.pem"), Key: filepath.Join(cluster.Dir, "coordinator", "tls.key"),
			CA: filepath.Join(cluster.Dir, "ca.pem"),
		})
		x.client, x.app = n.dialAs(m, devnet.ClientName(i)), n.dialAs(m, devnet.App)
		n.nodes = append(n.nodes, x)
		n.start(i)
	}
	t.Cleanup(func() {
		for _, x := range n.nodes {
			x.stop()
		}
	})
	return n
}

func (n *network) dialAs(m config.Member, client string) *grpc.ClientConn {
	return n.dial(m, rpc.Files{
		Certificate: filepath.Join(n.cluster.Dir, "clients", client+".pem"), Key: filepath.Join(n.cluster.Dir, "clients", client+".key"),
		CA: filepath.Join(n.cluster.Dir, "ca.pem"),
	})
}

func (n *network) dial(m config.Member, files rpc.Files) *grpc.ClientConn {
	n.t.Helper()
	credentials, err := rpc.LoadCredentials(files)
	if err != nil {
		n.t.Fatal(err)
	}
	conn, err := rpc.Dial(m.Address, m.Identity, credentials)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	return conn
}

// start starts party i, again perhaps.
func (n *network) start(i int) {
	n.t.Helper()
	x := n.nodes[i]
	p, err := newParty(x.file, "test", slog.New(slog.NewTextHandler(x.log, nil)))
	if err != nil {
		n.t.Fatal(err)
	}
	x.party = p
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.serve(ctx); err != nil {
			n.t.Errorf("party %d: %v", i, err)
		}
	}()
	x.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		p.close()
	})
	for _, conn := range []*grpc.ClientConn{x.coordinator, x.client, x.app} {
		probe, wait := statusv1.NewStatusServiceClient(conn), n.context()
		for {
			_, err := probe.GetStatus(wait, &statusv1.GetStatusRequest{}, grpc.WaitForReady(true))
			if err == nil {
				break
			}
			if status.Code(err) != codes.Unavailable { // a first call may still go to the party that ran before
				n.t.Fatal(err)
			}
		}
	}
}

func (n *network) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	n.t.Cleanup(cancel)
	return ctx
}

// spec returns a spec for a new job that every party accepts.
func (n *network) spec(kind jobv1.Kind, epoch uint64) *jobv1.SessionSpec {
	n.jobs++
	roster := n.cluster.Roster.Hash()
	hash, _ := config.Pin(n.nodes[0].file.Policy.Params, set)
	s := &jobv1.SessionSpec{
		Ref: job.Ref{JobID: "j" + string(rune('a'+n.jobs)), Ordinal: 1}.Proto(), ProtocolVersion: job.ProtocolVersion,
		Params: set, ParamsHash: hash[:], RosterHash: roster[:], Kind: kind, Epoch: epoch, Purpose: forKeys,
		Deadline: timestamppb.New(time.Now().Add(2 * time.Minute)),
	}
	switch kind {
	case jobv1.Kind_KIND_KEYS:
		s.Protocol, s.Dim = jobv1.Protocol_PROTOCOL_KEYGEN, 4
		return s
	case jobv1.Kind_KIND_PROOF:
		s.Protocol, s.Dim = jobv1.Protocol_PROTOCOL_POPK, 1
	case jobv1.Kind_KIND_SCALAR:
		s.Protocol, s.Dim = jobv1.Protocol_PROTOCOL_TRIPLES, 1
	case jobv1.Kind_KIND_MATRIX:
		s.Protocol, s.Dim, s.Shape = jobv1.Protocol_PROTOCOL_TRIPLES, 4, &jobv1.Shape{Rows: 5, Inner: 6, Columns: 3}
	case jobv1.Kind_KIND_CONVOLUTION:
		s.Protocol, s.Dim, s.Shape = jobv1.Protocol_PROTOCOL_TRIPLES, 4, &jobv1.Shape{Convolution: &jobv1.Convolution{
			Channels: 2, Height: 4, Width: 3, Outputs: 3, KernelHeight: 3, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1, PaddingHeight: 1,
		}}
	}
	s.Field, s.Count, s.Tenant = "p128", 2, devnet.Tenant
	return s
}

// begin starts a session at a party.
func (x *node) begin(ctx context.Context, s *jobv1.SessionSpec) (*jobv1.SessionStatus, error) {
	switch s.GetProtocol() {
	case jobv1.Protocol_PROTOCOL_KEYGEN:
		r, err := keygenv1.NewKeygenServiceClient(x.coordinator).Start(ctx, &jobv1.StartRequest{Spec: s})
		return r.GetStatus(), err
	case jobv1.Protocol_PROTOCOL_POPK:
		r, err := popkv1.NewPopkServiceClient(x.coordinator).Start(ctx, &jobv1.StartRequest{Spec: s})
		return r.GetStatus(), err
	}
	r, err := triplesv1.NewTriplesServiceClient(x.coordinator).Start(ctx, &jobv1.StartRequest{Spec: s})
	return r.GetStatus(), err
}

// await watches a session until it has a result or has ended without one. Any service finds any
// session.
func (x *node) await(ctx context.Context, ref *jobv1.SessionRef) (*jobv1.SessionStatus, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := triplesv1.NewTriplesServiceClient(x.coordinator).Watch(ctx, &jobv1.WatchRequest{Ref: ref})
	if err != nil {
		return nil, err
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if r.GetStatus().GetState() >= jobv1.JobState_JOB_STATE_ACTIVATING {
			return r.GetStatus(), nil
		}
	}
}

func (x *node) activate(ctx context.Context, ref *jobv1.SessionRef, digest []byte) (*jobv1.SessionStatus, error) {
	r, err := triplesv1.NewTriplesServiceClient(x.coordinator).Activate(ctx, &jobv1.ActivateRequest{Ref: ref, Digest: digest})
	return r.GetStatus(), err
}

// run runs a session at all parties to its result or its end.
func (n *network) run(s *jobv1.SessionSpec) []*jobv1.SessionStatus {
	n.t.Helper()
	ctx := n.context()
	for i, x := range n.nodes {
		if _, err := x.begin(ctx, s); err != nil {
			n.t.Fatalf("party %d: %v", i, err)
		}
	}
	out := make([]*jobv1.SessionStatus, len(n.nodes))
	for i, x := range n.nodes {
		var err error
		if out[i], err = x.await(ctx, s.GetRef()); err != nil {
			n.t.Fatalf("party %d: %v", i, err)
		}
	}
	return out
}

// complete runs a session that must succeed and activates its result everywhere.
func (n *network) complete(s *jobv1.SessionSpec) *jobv1.SessionStatus {
	n.t.Helper()
	all := n.run(s)
	for i, st := range all {
		if st.GetState() != jobv1.JobState_JOB_STATE_ACTIVATING || !bytes.Equal(st.GetDigest(), all[0].GetDigest()) {
			n.t.Fatalf("party %d: %v", i, st)
		}
	}
	for i, x := range n.nodes {
		st, err := x.activate(n.context(), s.GetRef(), all[0].GetDigest())
		if err != nil || st.GetState() != completed {
			n.t.Fatalf("party %d: %v, %v", i, st, err)
		}
	}
	return all[0]
}

// keys makes an epoch.
func (n *network) keys(epoch uint64, purpose jobv1.Purpose) {
	n.t.Helper()
	s := n.spec(jobv1.Kind_KIND_KEYS, epoch)
	s.Purpose = purpose
	n.complete(s)
}

// reserve holds all tuples of a batch at all parties, for whoever comes first, and gives the
// reservation's id.
func (n *network) reserve(batch string) string {
	n.t.Helper()
	r := n.proposal(batch)
	for i, x := range n.nodes {
		if err := x.propose(n, r); err != nil {
			n.t.Fatalf("party %d: %v", i, err)
		}
	}
	return r.GetId()
}

// proposal is of all tuples of a batch, as party 0 knows it.
func (n *network) proposal(batch string) *tuplesv1.Reservation {
	n.t.Helper()
	list, err := tuplesv1.NewTuplesServiceClient(n.nodes[0].coordinator).ListBatches(n.context(), &tuplesv1.ListBatchesRequest{})
	if err != nil {
		n.t.Fatal(err)
	}
	for _, b := range list.GetBatches() {
		if b.GetId() == batch {
			return &tuplesv1.Reservation{
				Id: "r-" + batch, Class: b.GetClass(), Epoch: b.GetEpoch(), MacKeyId: b.GetMacKeyId(), Owner: "owner",
				Ranges: []*tuplesv1.Range{{BatchId: batch, Count: b.GetCount()}}, Lease: timestamppb.New(time.Now().Add(time.Hour)),
			}
		}
	}
	n.t.Fatalf("party 0 has no batch %s", batch)
	return nil
}

// propose asks one party to record a reservation.
func (x *node) propose(n *network, r *tuplesv1.Reservation) error {
	out, err := tuplesv1.NewTuplesServiceClient(x.coordinator).Propose(n.context(), &tuplesv1.ProposeRequest{Reservations: []*tuplesv1.Reservation{r}})
	if o := out.GetOutcomes(); err == nil && o[0].GetCode() != "" {
		return rpc.Errorf(rpc.Code(o[0].GetCode()), "", "%s", o[0].GetWhat())
	}
	return err
}

// fetch draws a reservation: the share data and the MAC-key share, if asked for.
func fetch(ctx context.Context, conn *grpc.ClientConn, reservation string, withKey bool) (data, key []byte, err error) {
	client := tuplesv1.NewTuplesServiceClient(conn)
	stream, err := client.Fetch(ctx, &tuplesv1.FetchRequest{ReservationId: reservation})
	if err != nil {
		return nil, nil, err
	}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return data, key, nil
		}
		if err != nil {
			return nil, nil, err
		}
		data = append(data, r.GetChunk()...)
		if k := r.GetReservation().GetMacKeyId(); k != "" && withKey {
			drawn, err := client.DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: k, Purpose: tuplesv1.Purpose_PURPOSE_ONLINE})
			if err != nil {
				return nil, nil, err
			}
			key = drawn.GetShare()
		}
	}
}

// refused fails the test unless err has the code.
func refused(t *testing.T, err error, code rpc.Code) {
	t.Helper()
	if e := rpc.FromError(err); e == nil || e.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}
