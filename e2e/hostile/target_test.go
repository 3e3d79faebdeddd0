package hostile

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
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

	"github.com/lodge-mpc/lodge/engine/params"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/rpc/rpctest"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

var buildLodge = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "lodge")
	args := []string{"build", "-o", path}
	if own, ok := debug.ReadBuildInfo(); ok { // with the same kernels as these tests
		for _, s := range own.Settings {
			if s.Key == "-tags" && s.Value != "" {
				args = append(args, "-tags", s.Value)
			}
		}
	}
	out, err := exec.Command("go", append(args, "github.com/lodge-mpc/lodge/cmd/lodge")...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// target is a process under attack.
type target struct {
	t        *testing.T
	name     string
	identity string // of the process
	address  string
	health   string
	cluster  *devnet.Cluster
	pid      int
	exited   chan struct{} // closed when the process has exited
	log      *bytes.Buffer // read it only after exit

	unary, denied, stream string // methods to attack; the attacker has permission for unary at most
}

// targets starts a party, a coordinator and an evaluator of the party. Client `app` can call the
// first two but has no permissions. The evaluator does not know it; their certificates come from
// the same authority.
func targets(t *testing.T) []*target {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	lodge, err := buildLodge()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-6"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	party, coordinator := cluster.Roster.Parties[0], cluster.Roster.Coordinator
	const report, share = "/lodge.tuples.v1.TuplesService/ReportFailedCheck", "/lodge.decryption.v1.DecryptionService/DecryptShare"
	list := []*target{
		{name: "party", identity: party.Identity, address: party.Address, unary: getStatus, denied: report, stream: share},
		{name: "coordinator", identity: coordinator.Identity, address: coordinator.Address, unary: getStatus, denied: report, stream: share},
		{name: "evaluator", unary: getCapacity, denied: "/lodge.evaluator.v1.EvaluatorService/Rotate", stream: "/lodge.evaluator.v1.EvaluatorService/Evaluate"},
	}
	files := []string{cluster.Parties[0], cluster.Coordinator, list[2].evaluator(t, cluster)}
	for i, file := range files {
		x := list[i]
		x.t, x.cluster, x.exited, x.log = t, cluster, make(chan struct{}), new(bytes.Buffer)
		if x.health == "" {
			x.health = disarm(t, file)
		}
		cmd := exec.Command(lodge, x.name, "--config", file)
		cmd.Stdout, cmd.Stderr = x.log, x.log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		x.pid = cmd.Process.Pid
		go func() {
			defer close(x.exited)
			_ = cmd.Wait() // it was killed
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it may have exited already
			<-x.exited
			if t.Failed() {
				t.Logf("%s: %s", x.name, x.log)
			}
		})
	}
	for _, x := range list {
		x.serves("at the start")
	}
	return list
}

// evaluator writes the configuration of an evaluator that serves the first party, with a
// certificate of its own authority. It returns the file's path.
func (x *target) evaluator(t *testing.T, cluster *devnet.Cluster) string {
	t.Helper()
	ca, err := pki.NewAuthority("evaluators", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	x.identity, x.address, x.health = "spiffe://lodge/evaluator/e0", freeAddress(t), freeAddress(t)
	cert, key, err := ca.Issue(pki.Leaf{Identity: x.identity, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	set, err := params.Lookup("insecure-6")
	if err != nil {
		t.Fatal(err)
	}
	dir, hash := filepath.Join(cluster.Dir, "e0"), set.Hash()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := fmt.Appendf(nil, `name: e0
listen: %s
health_listen: %s
tls: {certificate: tls.pem, key: tls.key, ca: ../ca.pem}
party: {name: p0, identity: %s}
params: [{name: %s, hash: %x}]
max_memory: 1GiB
allow_insecure_params: true
`, x.address, x.health, cluster.Roster.Parties[0].Identity, set.Name, hash)
	for name, b := range map[string][]byte{"ca.pem": ca.PEM(), "tls.pem": cert, "tls.key": key, "evaluator.yaml": file} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "evaluator.yaml")
}

// credentials returns those of a client of the cluster, or at the evaluator of the party that it
// serves.
func (x *target) credentials(client string) *rpc.Credentials {
	x.t.Helper()
	dir, ca := "clients", "ca.pem"
	if x.name == "evaluator" {
		ca = filepath.Join("e0", "ca.pem")
		if client == devnet.Operator {
			dir, client = "p0", "tls"
		}
	}
	c, err := rpc.LoadCredentials(rpc.Files{
		Certificate: filepath.Join(x.cluster.Dir, dir, client+".pem"), Key: filepath.Join(x.cluster.Dir, dir, client+".key"), CA: filepath.Join(x.cluster.Dir, ca),
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return c
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// disarm removes all permissions of client `app` and enables the process's probes. It returns the
// address of the probes.
func disarm(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f map[string]any
	if err := yaml.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	clients := []any{map[string]any{"name": devnet.App, "identity": "spiffe://lodge/app", "permissions": []string{}}}
	for _, c := range f["clients"].([]any) {
		if c.(map[string]any)["name"] != devnet.App {
			clients = append(clients, c)
		}
	}
	f["clients"] = clients
	health := freeAddress(t)
	f["health_listen"] = health
	if b, err = yaml.Marshal(f); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return health
}

// tls returns the TLS configuration of a client of the cluster.
func (x *target) tls(client string) *tls.Config {
	x.t.Helper()
	return x.credentials(client).Client(x.identity)
}

func (x *target) dial(client string) *rpctest.Conn {
	x.t.Helper()
	conn, err := rpctest.Dial(x.t.Context(), x.address, x.tls(client))
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { conn.Close() })
	return conn
}

// serves checks that the process still responds to another client.
func (x *target) serves(when string) {
	x.t.Helper()
	conn, err := rpc.Dial(x.address, x.identity, x.credentials(devnet.Operator))
	if err != nil {
		x.t.Fatal(err)
	}
	defer conn.Close()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(x.t.Context(), 5*time.Second)
		if x.unary == getCapacity {
			_, err = evaluatorv1.NewEvaluatorServiceClient(conn).GetCapacity(ctx, &evaluatorv1.GetCapacityRequest{})
		} else {
			_, err = statusv1.NewStatusServiceClient(conn).GetStatus(ctx, &statusv1.GetStatusRequest{})
		}
		cancel()
		select {
		case <-x.exited:
			x.t.Fatalf("%s: the %s has ended", when, x.name)
		default:
		}
		if err == nil {
			return
		}
		if when != "at the start" || time.Now().After(end) {
			x.t.Fatalf("%s: the %s does not serve another client: %v", when, x.name, err)
		}
	}
}

// memory returns the current and the peak resident set of the process in bytes.
func (x *target) memory() (now, peak int64) {
	x.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", x.pid))
	if err != nil {
		x.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "VmRSS:" && fields[0] != "VmHWM:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			x.t.Fatal(err)
		}
		if fields[0] == "VmRSS:" {
			now = kib << 10
		} else {
			peak = kib << 10
		}
	}
	return now, peak
}
