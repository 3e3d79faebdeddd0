package tuples

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const parties = 3

// net3 is three parties on loopback sockets with TLS, whose coordinator is the test. Each has a
// batch "b" of 100 tuples of tenant t, under the MAC key "mac" of epoch 1.
type net3 struct {
	t     *testing.T
	ca    *pki.Authority
	caPEM string
	dir   string
	keys  []ed25519.PublicKey
	nodes [parties]*node
}

// node is one party, with the changes that a test makes to it.
type node struct {
	index   int
	dir     string
	signer  ed25519.PrivateKey
	cert    *rpc.Credentials
	address string
	offset  atomic.Int64 // of its clock
	lies    lies

	vault   *vault.Vault
	service *Service
	stop    func()
}

// lies replace the responses of a party to its peers, where they are set.
type lies struct {
	mu          sync.Mutex
	acknowledge func(*tuplesv1.AcknowledgeRequest) (*tuplesv1.AcknowledgeResponse, error)
	confirm     func(*tuplesv1.ConfirmRequest) (*tuplesv1.ConfirmResponse, error)
}

// liar is a service that may lie.
type liar struct {
	*Service
	lies *lies
}

func (l *liar) Acknowledge(ctx context.Context, r *tuplesv1.AcknowledgeRequest) (*tuplesv1.AcknowledgeResponse, error) {
	l.lies.mu.Lock()
	lie := l.lies.acknowledge
	l.lies.mu.Unlock()
	if lie != nil {
		return lie(r)
	}
	return l.Service.Acknowledge(ctx, r)
}

func (l *liar) Confirm(ctx context.Context, r *tuplesv1.ConfirmRequest) (*tuplesv1.ConfirmResponse, error) {
	l.lies.mu.Lock()
	lie := l.lies.confirm
	l.lies.mu.Unlock()
	if lie != nil {
		return lie(r)
	}
	return l.Service.Confirm(ctx, r)
}

func (x *node) lie(acknowledge func(*tuplesv1.AcknowledgeRequest) (*tuplesv1.AcknowledgeResponse, error),
	confirm func(*tuplesv1.ConfirmRequest) (*tuplesv1.ConfirmResponse, error)) {
	x.lies.mu.Lock()
	defer x.lies.mu.Unlock()
	x.lies.acknowledge, x.lies.confirm = acknowledge, confirm
}

func (x *node) now() time.Time { return time.Now().Add(time.Duration(x.offset.Load())) }

func identityOf(name string) string { return "spiffe://lodge/" + name }

// whose are the callers that every party knows.
var whose = map[string]rpc.Principal{
	"coordinator": {Role: rpc.Coordinator, Name: "coordinator", Party: -1},
	"alice":       {Role: rpc.Client, Name: "alice", Party: -1, Tenants: []string{"t"}, Permissions: everything},
	"bob":         {Role: rpc.Client, Name: "bob", Party: -1, Tenants: []string{"t"}, Permissions: everything},
	"eve":         {Role: rpc.Client, Name: "eve", Party: -1, Tenants: []string{"other"}, Permissions: everything},
	"weak": {Role: rpc.Client, Name: "weak", Party: -1, Tenants: []string{"t"}, Kinds: []string{"square"},
		Permissions: []string{config.PermFetch, config.PermMACKey, config.PermStatus}},
	"poor": {Role: rpc.Client, Name: "poor", Party: -1, Tenants: []string{"t"}, Permissions: everything},
}

var everything = []string{config.PermFetch, config.PermStatus, config.PermMACKey, config.PermRetire}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refusal fails the test unless err has the code.
func refusal(t testing.TB, err error, code rpc.Code) {
	t.Helper()
	if e := rpc.FromError(err); e == nil || e.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func newNet(t *testing.T) *net3 {
	t.Helper()
	t.Parallel()
	ca, err := pki.NewAuthority("test", time.Hour)
	must(t, err)
	n := &net3{t: t, ca: ca, dir: t.TempDir()}
	n.caPEM = filepath.Join(n.dir, "ca.pem")
	must(t, writeFile(n.caPEM, ca.PEM()))
	listeners := make([]net.Listener, parties)
	for i := range parties {
		public, private, err := ed25519.GenerateKey(nil)
		must(t, err)
		n.keys = append(n.keys, public)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		listeners[i] = l
		n.nodes[i] = &node{index: i, dir: filepath.Join(n.dir, fmt.Sprint(i)), signer: private, address: l.Addr().String(),
			cert: n.credentials(fmt.Sprintf("p%d", i))}
	}
	for i, x := range n.nodes {
		n.start(x, listeners[i])
		x.fill(t, "b", 100, 32)
	}
	t.Cleanup(func() {
		for _, x := range n.nodes {
			x.stop()
		}
	})
	return n
}

func (n *net3) credentials(name string) *rpc.Credentials {
	n.t.Helper()
	cert, key, err := n.ca.Issue(pki.Leaf{Identity: identityOf(name), Lifetime: time.Hour})
	must(n.t, err)
	files := rpc.Files{Certificate: filepath.Join(n.dir, name+".pem"), Key: filepath.Join(n.dir, name+".key"), CA: n.caPEM}
	must(n.t, writeFile(files.Certificate, cert))
	must(n.t, writeFile(files.Key, key))
	c, err := rpc.LoadCredentials(files)
	must(n.t, err)
	return c
}

// start starts a party; without a listener at its old address.
func (n *net3) start(x *node, l net.Listener) {
	n.t.Helper()
	var err error
	if l == nil {
		l, err = net.Listen("tcp", x.address)
		must(n.t, err)
	}
	s, err := store.OpenDir(x.dir)
	must(n.t, err)
	x.vault, err = vault.OpenAt(s, &seal.Key{}, x.now)
	must(n.t, err)
	directory := rpc.NewDirectory()
	for name, p := range whose {
		must(n.t, directory.Add(identityOf(name), p))
	}
	peers := &Peers{Self: x.index, Keys: n.keys, Signer: x.signer, Vault: x.vault, Log: slog.New(slog.DiscardHandler)}
	var conns []*grpc.ClientConn
	for j := range parties {
		name := fmt.Sprintf("p%d", j)
		conn, err := rpc.Dial(n.nodes[j].address, identityOf(name), x.cert)
		must(n.t, err)
		conns = append(conns, conn)
		peers.List = append(peers.List, rpc.PeerConn{Name: name, Conn: conn})
		if j != x.index {
			must(n.t, directory.Add(identityOf(name), rpc.Principal{Role: rpc.Peer, Name: name, Party: j}))
		}
	}
	server, err := rpc.NewServer(rpc.Options{Credentials: x.cert, Directory: directory, Rules: Rules})
	must(n.t, err)
	limits := map[string]quota.Limits{"poor": {Tuples: map[string]uint64{"scalar": 5}}}
	x.service = New(Config{Vault: x.vault, Log: slog.New(slog.DiscardHandler), Peers: peers, Quota: quota.NewBook(limits, x.now),
		MACKeyShare: func(k vaultkeys.MACKey) ([]byte, error) { return x.macShare(k) },
		MayRetire: func(ctx context.Context, epoch uint64) error {
			tenants, err := x.vault.Tenants(epoch)
			if err != nil {
				return err
			}
			caller, _ := rpc.Caller(ctx)
			return caller.CheckShared("the epoch", tenants)
		},
		Retire: func(_ context.Context, epoch uint64, reason string) (int, error) {
			return x.vault.RetireEpoch(epoch, reason)
		}})
	tuplesv1.RegisterTuplesServiceServer(server, &liar{x.service, &x.lies})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		x.service.Run(ctx)
	}()
	go server.Serve(l)
	server.SetReady(true)
	x.stop = sync.OnceFunc(func() {
		cancel()
		done, finish := context.WithCancel(context.Background())
		finish()
		server.Stop(done)
		<-ran
		for _, c := range conns {
			c.Close()
		}
		must(n.t, x.vault.Close())
	})
}

func (x *node) macShare(k vaultkeys.MACKey) ([]byte, error) {
	r, err := x.vault.OpenMACKey(k.ID)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// share is a tuple's shares at a party.
func (x *node) share(batch string, tuple, size uint64) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", x.index, batch, tuple))
	return bytes.Repeat(sum[:], int(size/32))
}

// fill stores and activates a batch.
func (x *node) fill(t testing.TB, id string, count, size uint64) {
	t.Helper()
	var fresh *vaultkeys.NewMACKey
	if _, err := x.vault.Epoch(1); errors.Is(err, vaulterr.ErrNotFound) {
		e, err := x.vault.NewEpoch(vaultkeys.Epoch{ID: 1, Purpose: "triples"})
		must(t, err)
		must(t, e.Commit())
		must(t, x.vault.ActivateEpoch(1))
		fresh = &vaultkeys.NewMACKey{MACKey: vaultkeys.MACKey{ID: "mac", Epoch: 1, Params: "params", Field: "p128", Tenant: "t"}, Secret: []byte("key share")}
	}
	w, err := x.vault.NewBatch(stock.Batch{ID: id, Epoch: 1, MACKey: "mac", Params: "params", Field: "p128", Kind: "scalar", Dim: 1, Count: count,
		Tenant: "t", Digest: sha256.Sum256([]byte(id)), TupleBytes: size})
	must(t, err)
	for i := range count {
		_, err := w.Write(x.share(id, i, size))
		must(t, err)
	}
	must(t, w.Commit(fresh))
	must(t, x.vault.ActivateBatch(id))
}

// as is a caller's connection to a party.
func (n *net3) as(name string, party int) tuplesv1.TuplesServiceClient {
	n.t.Helper()
	conn, err := rpc.Dial(n.nodes[party].address, identityOf(fmt.Sprintf("p%d", party)), n.credentials(name))
	must(n.t, err)
	n.t.Cleanup(func() { conn.Close() })
	return tuplesv1.NewTuplesServiceClient(conn)
}

func (n *net3) context(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	n.t.Cleanup(cancel)
	return ctx
}

// reservation of count tuples of batch b from first on.
func reservation(id string, first, count uint64) *tuplesv1.Reservation {
	return &tuplesv1.Reservation{Id: id, Epoch: 1, MacKeyId: "mac", Owner: "alice", Lease: timestamppb.New(time.Now().Add(time.Hour)),
		Class:  &tuplesv1.Class{Tenant: "t", Kind: jobv1.Kind_KIND_SCALAR, Params: "params", Field: "p128"},
		Ranges: []*tuplesv1.Range{{BatchId: "b", First: first, Count: count}}}
}

// propose puts a reservation to parties.
func (n *net3) propose(r *tuplesv1.Reservation, to ...int) {
	n.t.Helper()
	for _, i := range to {
		out, err := n.as("coordinator", i).Propose(n.context(5*time.Second), &tuplesv1.ProposeRequest{Reservations: []*tuplesv1.Reservation{r}})
		must(n.t, err)
		if o := out.GetOutcomes()[0]; o.GetCode() != "" {
			n.t.Fatalf("party %d: %v", i, o)
		}
	}
}

// fetch gives the share data.
func fetch(ctx context.Context, c tuplesv1.TuplesServiceClient, id string, from uint64) (data []byte, err error) {
	s, err := c.Fetch(ctx, &tuplesv1.FetchRequest{ReservationId: id, From: from})
	if err != nil {
		return nil, err
	}
	for {
		r, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return data, errors.New("the stream ends without a checksum")
		}
		if err != nil {
			return data, err
		}
		data = append(data, r.GetChunk()...)
		if sum := r.GetSha256(); sum != nil {
			if want := sha256.Sum256(data); !bytes.Equal(sum, want[:]) {
				return data, errors.New("the checksum is wrong")
			}
			return data, nil
		}
	}
}

// shares of tuples of a batch at the party.
func (x *node) shares(batch string, first, count, size uint64) (all []byte) {
	for i := range count {
		all = append(all, x.share(batch, first+i, size)...)
	}
	return all
}
