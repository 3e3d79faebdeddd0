package threshold_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	client "github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
	"github.com/lodge-mpc/lodge/services/session/job"
)

const set = "insecure-L8-50"

// world is a cluster in this process, with real sockets, stores and certificates.
type world struct {
	testing.TB
	net      *devnet.Cluster
	operator coordinatorv1.CoordinatorServiceClient
	app      *client.Client
	running  map[int]func() // stops a party
}

// newWorld starts n parties. change may modify their configurations. Additional parameter sets may
// be pinned.
func newWorld(t testing.TB, n int, change func(i int, f *config.PartyFile), more ...string) *world {
	t.Helper()
	return newWorldOf(t, devnet.Options{Parties: n, Params: append([]string{set}, more...), Dev: true, Insecure: true, MaxMemory: 2 << 30}, change)
}

// newWorldOf starts the parties of a cluster.
func newWorldOf(t testing.TB, o devnet.Options, change func(i int, f *config.PartyFile)) *world {
	t.Helper()
	n := o.Parties
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, net: net, running: map[int]func(){}}
	f, err := config.LoadCoordinator(net.Coordinator)
	if err != nil {
		t.Fatal(err)
	}
	w.run(func(ctx context.Context) error { return coordinator.Run(ctx, f, "test", quiet()) })
	for i := range n {
		w.start(i, change)
	}
	credentials, err := net.Credentials(devnet.Operator)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Dial(net.Roster.Coordinator.Address, net.Roster.Coordinator.Identity, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	w.operator, w.app = coordinatorv1.NewCoordinatorServiceClient(conn), w.as(devnet.App)
	return w
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// run runs a process until the test ends or stop is called.
func (w *world) run(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(stop)
	return stop
}

// start starts a party.
func (w *world) start(i int, change func(i int, f *config.PartyFile)) {
	w.Helper()
	f, err := config.LoadParty(w.net.Parties[i])
	if err != nil {
		w.Fatal(err)
	}
	f.StopAfter = config.Duration(100 * time.Millisecond)
	if change != nil {
		change(i, f)
	}
	w.running[i] = w.run(func(ctx context.Context) error { return party.Run(ctx, f, "test", quiet()) })
}

// as returns a client of all parties.
func (w *world) as(name string) *client.Client {
	w.Helper()
	c, err := lodge.Load(filepath.Join(w.net.Dir, "clients", name+".yaml"))
	if err != nil {
		w.Fatal(err)
	}
	x, err := client.Dial(c)
	if err != nil {
		w.Fatal(err)
	}
	x.Patience = 20 * time.Second
	w.Cleanup(func() { x.Close() })
	return x
}

// submit runs a job to its end.
func (w *world) submit(q *coordinatorv1.JobRequest) *coordinatorv1.Job {
	w.Helper()
	if q.Timeout = durationpb.New(5 * time.Minute); q.GetPurpose() == jobv1.Purpose_PURPOSE_UNSPECIFIED {
		q.Purpose = jobv1.Purpose_PURPOSE_THRESHOLD
	}
	r, err := w.operator.SubmitJob(w.Context(), &coordinatorv1.SubmitJobRequest{Job: q}, grpc.WaitForReady(true))
	if err != nil {
		w.Fatal(err)
	}
	for {
		j, err := w.operator.GetJob(w.Context(), &coordinatorv1.GetJobRequest{Id: r.GetJob().GetId()})
		if err != nil {
			w.Fatal(err)
		}
		if job.Final(j.GetJob().GetState()) {
			return j.GetJob()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// complete runs a job that must complete.
func (w *world) complete(q *coordinatorv1.JobRequest) *coordinatorv1.Job {
	w.Helper()
	j := w.submit(q)
	if j.GetState() != jobv1.JobState_JOB_STATE_COMPLETED {
		w.Fatalf("%s: %v", j.GetState(), j.GetFailure())
	}
	return j
}

// keys makes keys and returns their epoch.
func (w *world) keys(threshold uint32) uint64 {
	w.Helper()
	return w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: set, Threshold: threshold}).GetEpoch()
}

// masks makes masks for a quorum.
func (w *world) masks(epoch, n uint64, form string, quorum ...uint32) *coordinatorv1.Job {
	w.Helper()
	return w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_MASKS, Epoch: epoch, Count: n, Group: quorum, Form: job.MaskForms[form]})
}

// key returns a key and its public key, for encryption.
func (w *world) key(epoch uint64) (*client.Key, *lwe.PublicKey) {
	w.Helper()
	k, err := w.app.Key(w.Context(), epoch)
	if err != nil {
		w.Fatal(err)
	}
	public, err := w.app.PublicKey(w.Context(), k)
	if err != nil {
		w.Fatal(err)
	}
	return k, public
}

// encrypt returns one ring ciphertext.
func (w *world) encrypt(k *client.Key, public *lwe.PublicKey, messages ...uint64) *lwe.Ring {
	w.Helper()
	list, err := client.Encrypt(k, public, messages, lwe.Plain)
	if err != nil {
		w.Fatal(err)
	}
	return list[0]
}

// quorums returns all quorums of size k among n.
func quorums(n, k int) (all [][]uint32) {
	var next func(from int, have []uint32)
	next = func(from int, have []uint32) {
		if len(have) == k {
			all = append(all, append([]uint32(nil), have...))
			return
		}
		for p := from; p < n; p++ {
			next(p+1, append(have, uint32(p)))
		}
	}
	next(0, nil)
	return all
}

// raw sends a request only to one party of the quorum 0, 1, with a header that change may modify.
func (w *world) raw(ctx context.Context, party int, k *client.Key, c *lwe.Ring, change func(*thresholdv1.DecryptHeader)) ([]byte, error) {
	w.Helper()
	return w.rawBytes(ctx, party, k, c, change, nil)
}

// rawBytes is raw with the given bytes instead of the ciphertext, if not nil.
func (w *world) rawBytes(ctx context.Context, party int, k *client.Key, c *lwe.Ring, change func(*thresholdv1.DecryptHeader), send []byte) ([]byte, error) {
	w.Helper()
	encoded := k.Scheme().AppendRing(nil, c)
	sum := decrypt.CiphertextsDigest(encoded, len(encoded))
	if send == nil {
		send = encoded
	}
	return w.rawOf(ctx, party, k, send, func(h *thresholdv1.DecryptHeader) {
		h.CiphertextsDigest = sum[:]
		if change != nil {
			change(h)
		}
	})
}

// rawOf sends a request for the first coefficient of one ciphertext to one party of the quorum 0,
// 1.
func (w *world) rawOf(ctx context.Context, party int, k *client.Key, send []byte, change func(*thresholdv1.DecryptHeader)) ([]byte, error) {
	w.Helper()
	conn := w.connect(devnet.App, party)
	defer conn.Close()
	sum := decrypt.CiphertextsDigest(send, len(send))
	id := make([]byte, 16)
	rand.Read(id)
	h := &thresholdv1.DecryptHeader{
		RequestId: id, Epoch: k.Epoch, KeysDigest: k.Digest[:], Quorum: []uint32{0, 1}, Form: thresholdv1.CiphertextForm_CIPHERTEXT_FORM_RING,
		Count: 1, Coefficients: 1, CiphertextsDigest: sum[:],
	}
	change(h)
	if k.BGV() != nil && len(h.GetCiphertextsDigest()) == 32 { // this requires provenance by the attester
		key, err := w.net.AttesterKey()
		if err != nil {
			return nil, err
		}
		q := decrypt.Question{
			Epoch: h.GetEpoch(), Keys: k.Digest, BGV: true, Flooding: h.GetFlooding(), Each: int(h.GetCoefficients()),
			Ciphertexts: [32]byte(h.GetCiphertextsDigest()),
		}
		if q.Flooding {
			q.Each = k.BGV().Lattigo.N()
		}
		h.Provenance = &thresholdv1.Provenance{Attester: devnet.Attester, Circuit: "test", Signature: ed25519.Sign(key, q.Statement("test"))}
	}
	stream, err := thresholdv1.NewThresholdServiceClient(conn).Decrypt(ctx, grpc.WaitForReady(true))
	if err != nil {
		return nil, err
	}
	_ = stream.Send(&thresholdv1.DecryptRequest{Header: h}) // Recv returns the error
	_ = stream.Send(&thresholdv1.DecryptRequest{Ciphertexts: send})
	_ = stream.CloseSend()
	m, err := stream.Recv()
	return m.GetChunk(), err
}

// connect connects to a party as a client.
func (w *world) connect(client string, party int) *grpc.ClientConn {
	w.Helper()
	f, err := lodge.Load(filepath.Join(w.net.Dir, "clients", client+".yaml"))
	if err != nil {
		w.Fatal(err)
	}
	conn, err := f.Connect(f.Parties[party])
	if err != nil {
		w.Fatal(err)
	}
	return conn
}

// scheme returns the scheme of the set.
func (w *world) scheme() *lwe.Scheme {
	w.Helper()
	found, err := lwe.Lookup(set)
	if err != nil {
		w.Fatal(err)
	}
	s, err := lwe.New(found)
	if err != nil {
		w.Fatal(err)
	}
	return s
}
