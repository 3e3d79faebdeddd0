package byzantine

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

const (
	set = "insecure-6"
	// within bounds every wait of the tests; nothing takes nearly as long.
	within = 3 * time.Minute
)

// lodge is the program of the honest parties, which is built once.
var lodge string

// runTests builds lodge, with the kernels of these tests, and runs the tests.
func runTests(m *testing.M) (status int, err error) {
	dir, err := os.MkdirTemp("", "byzantine")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	lodge = filepath.Join(dir, "lodge")
	args := []string{"build", "-o", lodge}
	if own, ok := debug.ReadBuildInfo(); ok {
		for _, s := range own.Settings {
			if s.Key == "-tags" && s.Value != "" {
				args = append(args, "-tags", s.Value)
			}
		}
	}
	if out, err := exec.Command("go", append(args, "github.com/lodge-mpc/lodge/cmd/lodge")...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s%w", out, err)
	}
	return m.Run(), nil
}

// cluster runs parties as separate processes; the last one cheats on request. The test acts as the
// coordinator.
type cluster struct {
	t       testing.TB
	files   *devnet.Cluster
	conns   []*grpc.ClientConn // as the coordinator
	logs    []*lockedBuffer
	procs   []*exec.Cmd
	orders  io.Writer
	answers *bufio.Scanner

	jobs    int
	tenants int
	epoch   uint64
	next    uint64 // epoch
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

// newCluster starts n parties, which stop with the test.
func newCluster(t testing.TB, n int) *cluster {
	t.Helper()
	files, err := devnet.Write(filepath.Join(t.TempDir(), "net"), devnet.Options{Parties: n, Params: []string{set},
		Dev: true, Insecure: true})
	must(t, err)
	c := &cluster{t: t, files: files, logs: make([]*lockedBuffer, n), procs: make([]*exec.Cmd, n)}
	t.Cleanup(func() {
		for _, p := range c.procs {
			if p != nil {
				_ = p.Process.Kill()
				_ = p.Wait() // killed
			}
		}
	})
	credentials, err := rpc.LoadCredentials(rpc.Files{
		Certificate: filepath.Join(files.Dir, "coordinator", "tls.pem"), Key: filepath.Join(files.Dir, "coordinator",
			"tls.key"), CA: filepath.Join(files.Dir, "ca.pem"),
	})
	must(t, err)
	for i, path := range files.Parties {
		c.allowMuch(path)
		c.start(i)
		m := files.Roster.Parties[i]
		conn, err := rpc.Dial(m.Address, m.Identity, credentials)
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		c.conns = append(c.conns, conn)
	}
	for i := range c.conns {
		c.ready(i)
	}
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	c.t.Cleanup(cancel)
	return ctx
}

func tenant(i int) string { return "tenant-" + strconv.Itoa(i) }

// allowMuch lets a party run as many sessions as the table takes, and wait for a peer no longer
// than it must.
func (c *cluster) allowMuch(path string) {
	c.t.Helper()
	b, err := os.ReadFile(path)
	must(c.t, err)
	var f map[string]any
	must(c.t, yaml.Unmarshal(b, &f))
	tenants := []string{devnet.Tenant}
	for i := range 300 {
		tenants = append(tenants, tenant(i))
	}
	policy := f["policy"].(map[string]any)
	policy["jobs_per_hour"], policy["tenants"] = 1_000_000, tenants
	f["accusations"] = map[string]any{"max_unnamed_failures": 100, "on_proven_cheat": "report"}
	f["limits"] = map[string]any{"idle": "5s", "compute": "10s"}
	b, err = yaml.Marshal(f)
	must(c.t, err)
	must(c.t, os.WriteFile(path, b, 0o600))
}

// start starts party i: the last one runs this test binary.
func (c *cluster) start(i int) {
	c.t.Helper()
	cmd := exec.Command(lodge, "party", "--config", c.files.Parties[i])
	if i == len(c.files.Parties)-1 {
		cmd = exec.Command(os.Args[0], "-cheat", "-", "-config", c.files.Parties[i])
		in, err := cmd.StdinPipe()
		must(c.t, err)
		out, err := cmd.StdoutPipe()
		must(c.t, err)
		c.orders, c.answers = in, bufio.NewScanner(out)
	}
	c.logs[i], c.procs[i] = new(lockedBuffer), cmd
	cmd.Stderr = c.logs[i]
	must(c.t, cmd.Start())
}

// ready waits until party i answers. A first call may still go to the process that was killed
// before.
func (c *cluster) ready(i int) {
	c.t.Helper()
	ctx, client := c.context(), statusv1.NewStatusServiceClient(c.conns[i])
	for {
		_, err := client.GetStatus(ctx, &statusv1.GetStatusRequest{}, grpc.WaitForReady(true))
		if err == nil {
			return
		}
		if status.Code(err) != codes.Unavailable {
			c.t.Fatalf("party %d: %v\n%s", i, err, c.logs[i])
		}
	}
}

// order tells the last party what to do, and gives what of its cheat before has not taken place.
func (c *cluster) order(text string) (missed []string) {
	c.t.Helper()
	_, err := fmt.Fprintln(c.orders, text)
	must(c.t, err)
	if !c.answers.Scan() {
		c.t.Fatalf("no answer to %q: %s", text, c.logs[len(c.logs)-1])
	}
	words := strings.Fields(c.answers.Text())
	if len(words) == 0 || words[0] != "ok" {
		c.t.Fatalf("%q: %s", text, c.answers.Text())
	}
	return words[1:]
}

// spec is of a new session of this kind.
func (c *cluster) spec(in cheattest.Kind) *jobv1.SessionSpec {
	c.t.Helper()
	c.jobs++
	known, err := params.Lookup(set)
	must(c.t, err)
	hash, roster := known.Hash(), c.files.Roster.Hash()
	s := &jobv1.SessionSpec{
		Ref: job.Ref{JobID: fmt.Sprintf("j%d", c.jobs), Ordinal: 1}.Proto(), ProtocolVersion: job.ProtocolVersion,
		Protocol: jobv1.Protocol_PROTOCOL_TRIPLES,
		Params:   set, ParamsHash: hash[:], RosterHash: roster[:], Kind: jobv1.Kind_KIND_SCALAR, Epoch: c.epoch,
		Purpose:  jobv1.Purpose_PURPOSE_TRIPLES,
		Deadline: timestamppb.New(time.Now().Add(within)), Field: fieldName, Count: 40, Dim: 1, Tenant: devnet.Tenant,
	}
	switch in {
	case cheattest.Keys:
		c.next++
		s.Protocol, s.Kind, s.Dim, s.Epoch, s.Field, s.Count, s.Tenant = jobv1.Protocol_PROTOCOL_KEYGEN,
			jobv1.Kind_KIND_KEYS, 4, c.next, "", 0, ""
	case cheattest.First:
		s.Tenant = tenant(c.tenants)
		c.tenants++
	case cheattest.Matrices:
		s.Kind, s.Dim, s.Shape, s.Count = jobv1.Kind_KIND_MATRIX, 4, &jobv1.Shape{Rows: 4, Inner: 3, Columns: 4}, 1
	case cheattest.Convolutions:
		s.Kind, s.Dim, s.Count = jobv1.Kind_KIND_CONVOLUTION, 4, 1
		s.Shape = &jobv1.Shape{Convolution: &jobv1.Convolution{
			Channels: 1, Height: 3, Width: 3, Outputs: 3, KernelHeight: 2, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1, PaddingHeight: 1,
		}}
	case cheattest.Bits:
		s.Kind = jobv1.Kind_KIND_BIT
	case cheattest.Inputs:
		s.Kind, s.InputParty = jobv1.Kind_KIND_INPUT, uint32(len(c.conns)-1)
	}
	return s
}

// begin starts a session at party i.
func (c *cluster) begin(i int, s *jobv1.SessionSpec) error {
	q := &jobv1.StartRequest{Spec: s}
	var err error
	if s.GetProtocol() == jobv1.Protocol_PROTOCOL_KEYGEN {
		_, err = keygenv1.NewKeygenServiceClient(c.conns[i]).Start(c.context(), q)
	} else {
		_, err = triplesv1.NewTriplesServiceClient(c.conns[i]).Start(c.context(), q)
	}
	return err
}

// await waits until party i has a result, or has ended without one.
func (c *cluster) await(i int, s *jobv1.SessionSpec) *jobv1.SessionStatus {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	stream, err := triplesv1.NewTriplesServiceClient(c.conns[i]).Watch(ctx, &jobv1.WatchRequest{Ref: s.GetRef()})
	must(c.t, err)
	for {
		r, err := stream.Recv()
		if err != nil {
			c.t.Fatalf("party %d: %v\n%s", i, err, c.logs[i])
		}
		if r.GetStatus().GetState() >= jobv1.JobState_JOB_STATE_ACTIVATING {
			return r.GetStatus()
		}
	}
}

func (c *cluster) cancel(i int, s *jobv1.SessionSpec) {
	c.t.Helper()
	_, err := triplesv1.NewTriplesServiceClient(c.conns[i]).Cancel(c.context(), &jobv1.CancelRequest{Ref: s.GetRef(),
		Reason: "test"})
	must(c.t, err)
}

// run starts a session everywhere and waits for the first parties' ends.
func (c *cluster) run(s *jobv1.SessionSpec, first int) []*jobv1.SessionStatus {
	c.t.Helper()
	for i := range c.conns {
		if err := c.begin(i, s); err != nil {
			c.t.Fatalf("party %d: %v", i, err)
		}
	}
	var ends []*jobv1.SessionStatus
	for i := range first {
		ends = append(ends, c.await(i, s))
	}
	return ends
}

// complete runs a session that must succeed and activates its result everywhere.
func (c *cluster) complete(s *jobv1.SessionSpec) {
	c.t.Helper()
	for i, st := range c.run(s, len(c.conns)) {
		if st.GetState() != jobv1.JobState_JOB_STATE_ACTIVATING {
			c.t.Fatalf("party %d: %v\n%s", i, st, c.logs)
		}
		_, err := triplesv1.NewTriplesServiceClient(c.conns[i]).Activate(c.context(),
			&jobv1.ActivateRequest{Ref: s.GetRef(), Digest: st.GetDigest()})
		must(c.t, err)
	}
}

// macKey returns the record of a MAC key at party i, or nil if there is none. With an empty id it
// returns the active MAC key of the cluster's epoch and of devnet.Tenant.
func (c *cluster) macKey(i int, id string) *tuplesv1.MacKey {
	c.t.Helper()
	r, err := tuplesv1.NewTuplesServiceClient(c.conns[i]).ListMacKeys(c.context(), &tuplesv1.ListMacKeysRequest{})
	must(c.t, err)
	for _, k := range r.GetKeys() {
		active := k.GetTenant() == devnet.Tenant && k.GetEpoch() == c.epoch && k.GetState() == tuplesv1.MacKeyState_MAC_KEY_STATE_ACTIVE
		if k.GetId() == id || id == "" && active {
			return k
		}
	}
	return nil
}

// has reports whether party i holds something of a session's batch.
func (c *cluster) has(i int, s *jobv1.SessionSpec) bool {
	c.t.Helper()
	r, err := tuplesv1.NewTuplesServiceClient(c.conns[i]).ListBatches(c.context(), &tuplesv1.ListBatchesRequest{})
	must(c.t, err)
	for _, b := range r.GetBatches() {
		if strings.HasPrefix(b.GetId(), s.GetRef().GetJobId()+"-") && b.GetState() != tuplesv1.BatchState_BATCH_STATE_REVOKED {
			return true
		}
	}
	return false
}
