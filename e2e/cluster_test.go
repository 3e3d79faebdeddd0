package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// set is a parameter set whose rounds are long enough to be interrupted and short enough for many
// jobs.
const set = "insecure-11"

// within is the maximum time until a job ends after a process has stopped or hangs. It includes the
// limits below.
const within = 60 * time.Second

// cluster is a coordinator and parties, each in a separate process.
type cluster struct {
	dir      string
	roster   *config.Roster
	procs    map[string]*gexec.Session
	operator *grpc.ClientConn
	clients  []*grpc.ClientConn
}

// newCluster creates and starts a cluster of n parties with short limits. The arguments pin
// additional parameter sets.
func newCluster(n int, more ...string) *cluster {
	GinkgoHelper()
	return newClusterWith(n, nil, more...)
}

// newClusterWith is like newCluster, with additional flags for `lodge init`.
func newClusterWith(n int, flags []string, more ...string) *cluster {
	GinkgoHelper()
	c := &cluster{dir: filepath.Join(GinkgoT().TempDir(), "cluster"), procs: map[string]*gexec.Session{}}
	Expect(run(20*time.Second, append([]string{"init", c.dir, "--parties", strconv.Itoa(n), "--port", "0", "--dev",
		"--allow-insecure-params", "--params", strings.Join(append([]string{set}, more...), ",")}, flags...)...)).To(gexec.Exit(0))
	DeferCleanup(func() { // at the end of the container, not of the spec that restarted a process
		for _, p := range c.procs {
			p.Kill().Wait(10 * time.Second)
		}
	})
	var err error
	c.roster, err = config.LoadRoster(filepath.Join(c.dir, "roster.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, m := range c.roster.Parties {
		c.edit(m.Name, func(s string) string { return s + "limits:\n  idle: 2s\n  compute: 3s\n" })
	}
	c.operator = c.dial(devnet.Operator, c.roster.Coordinator.Address, c.roster.Coordinator.Identity)
	for i, m := range c.roster.Parties {
		c.clients = append(c.clients, c.dial(devnet.ClientName(i), m.Address, m.Identity))
	}
	c.start("coordinator")
	for _, m := range c.roster.Parties {
		c.start(m.Name)
	}
	return c
}

// edit modifies a party's configuration.
func (c *cluster) edit(party string, change func(string) string) {
	GinkgoHelper()
	path := filepath.Join(c.dir, party, "party.yaml")
	b, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	s := string(b)
	if at := strings.Index(s, "limits:"); at >= 0 && !strings.Contains(s, "idle: 2s") {
		end := at + strings.IndexByte(s[at:], '\n') + 1
		for strings.HasPrefix(s[end:], " ") {
			end += strings.IndexByte(s[end:], '\n') + 1
		}
		s = s[:at] + s[end:]
	}
	Expect(os.WriteFile(path, []byte(change(s)), 0o600)).To(Succeed())
}

func (c *cluster) dial(client, address, identity string) *grpc.ClientConn {
	GinkgoHelper()
	credentials, err := (&devnet.Cluster{Dir: c.dir}).Credentials(client)
	Expect(err).NotTo(HaveOccurred())
	conn, err := rpc.Dial(address, identity, credentials)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	return conn
}

// launch starts a process without waiting for it.
func (c *cluster) launch(name string) *gexec.Session {
	GinkgoHelper()
	args := []string{"party", "--config", filepath.Join(c.dir, name, "party.yaml")}
	if name == "coordinator" {
		args = []string{"coordinator", "--config", filepath.Join(c.dir, name, "coordinator.yaml"), "--set", "party_timeout=15s"}
	}
	cmd := exec.Command(binary, args...)
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	c.procs[name] = session
	return session
}

// start starts a process and waits until it serves.
func (c *cluster) start(name string) {
	GinkgoHelper()
	c.launch(name)
	conn := c.operator
	for i, m := range c.roster.Parties {
		if m.Name == name {
			conn = c.clients[i]
		}
	}
	Eventually(func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		return err == nil && r.GetStatus() == healthpb.HealthCheckResponse_SERVING
	}, 20*time.Second, 50*time.Millisecond).Should(BeTrue(), name+" does not serve")
}

// kill ends a process abruptly, like a power failure.
func (c *cluster) kill(name string) {
	GinkgoHelper()
	c.procs[name].Kill().Wait(10 * time.Second)
}

func (c *cluster) signal(name string, s syscall.Signal) { c.procs[name].Signal(s) }

func (c *cluster) jobs() coordinatorv1.CoordinatorServiceClient {
	return coordinatorv1.NewCoordinatorServiceClient(c.operator)
}

// submit queues a job.
func (c *cluster) submit(q *coordinatorv1.JobRequest) string {
	GinkgoHelper()
	if q.Params == "" && q.Purpose != jobv1.Purpose_PURPOSE_THRESHOLD {
		q.Params = set
	}
	if q.Timeout == nil {
		q.Timeout = durationpb.New(5 * time.Minute)
	}
	if q.Purpose == jobv1.Purpose_PURPOSE_UNSPECIFIED {
		q.Purpose = jobv1.Purpose_PURPOSE_TRIPLES
	}
	r, err := c.jobs().SubmitJob(context.Background(), &coordinatorv1.SubmitJobRequest{Job: q})
	Expect(err).NotTo(HaveOccurred())
	return r.GetJob().GetId()
}

func keysJob() *coordinatorv1.JobRequest {
	return &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS}
}

func triplesJob(epoch uint64) *coordinatorv1.JobRequest {
	return &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_SCALAR, Field: "p128", Dim: 1, Count: 4000, Epoch: epoch, Tenant: devnet.Tenant}
}

func (c *cluster) job(id string) *coordinatorv1.Job {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r, err := c.jobs().GetJob(ctx, &coordinatorv1.GetJobRequest{Id: id})
	if err != nil {
		return nil
	}
	return r.GetJob()
}

// end waits for a job to end.
func (c *cluster) end(id string) *coordinatorv1.Job {
	GinkgoHelper()
	var j *coordinatorv1.Job
	Eventually(func() bool {
		j = c.job(id)
		return j != nil && job.Final(j.GetState())
	}, within, 20*time.Millisecond).Should(BeTrue(), "the job does not end")
	return j
}

// complete runs a job and fails the test unless it completes.
func (c *cluster) complete(q *coordinatorv1.JobRequest) *coordinatorv1.Job {
	GinkgoHelper()
	j := c.end(c.submit(q))
	Expect(j.GetState()).To(Equal(jobv1.JobState_JOB_STATE_COMPLETED), "%v", j.GetFailure())
	return j
}

// reach waits until a party's session of the job has reached this round, or the job has ended.
func (c *cluster) reach(id string, round uint32) {
	GinkgoHelper()
	Eventually(func() bool {
		j := c.job(id)
		if job.Final(j.GetState()) {
			return true
		}
		for _, p := range j.GetParties() {
			g := p.GetStatus().GetProgress()
			if g != nil && g.GetRoundIndex() >= round {
				return true
			}
		}
		return false
	}, within, time.Millisecond).Should(BeTrue())
}

// strike kills a party in a round of a job and returns the ended job. The party restarts
// immediately, as under a supervisor, or only after the job has ended.
func (c *cluster) strike(q *coordinatorv1.JobRequest, round uint32, victim string, atOnce bool) *coordinatorv1.Job {
	GinkgoHelper()
	By(fmt.Sprintf("killing %s in round %d of %s, back at once: %t", victim, round, job.KindName(q.GetKind()), atOnce))
	id := c.submit(q)
	c.reach(id, round)
	c.kill(victim)
	if atOnce {
		c.start(victim)
		return c.end(id)
	}
	defer c.start(victim)
	return c.end(id)
}

// strikes kills a random party in each of n jobs, in a random round of the nth part of the job's
// rounds. One victim stays down until its job has ended; the others restart immediately and have
// forgotten the session. It returns the number of failed jobs.
func (c *cluster) strikes(q func() *coordinatorv1.JobRequest, rounds, n uint32) (failed int) {
	GinkgoHelper()
	random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), uint64(rounds)))
	away := random.Uint32N(n / 2) // early, so that the job is still running
	for i := range n {
		round := (i*rounds + random.Uint32N(rounds)) / n
		j := c.strike(q(), round, c.roster.Parties[random.IntN(len(c.roster.Parties))].Name, i != away)
		if j.GetState() == jobv1.JobState_JOB_STATE_COMPLETED {
			continue // the strike came too late
		}
		failed++
		// Peers wait for the restarted process to start the session. On a busy machine they may
		// time out.
		Expect(j.GetState()).To(BeElementOf(jobv1.JobState_JOB_STATE_FAILED, jobv1.JobState_JOB_STATE_TIMED_OUT))
		Expect(j.GetFailure().GetReason()).NotTo(BeEmpty())
		Expect(j.GetFailure().GetSuspects()).NotTo(BeEmpty(), "%v", j.GetFailure())
	}
	return failed
}

// hit repeats a strike until it comes in time, that is, until the returned job has not completed.
func (c *cluster) hit(strike func() *coordinatorv1.Job) *coordinatorv1.Job {
	GinkgoHelper()
	for range 8 {
		if j := strike(); j.GetState() != jobv1.JobState_JOB_STATE_COMPLETED {
			return j
		}
	}
	Fail("eight strikes came too late")
	return nil
}

// batches counts the batches of the parties by state.
func (c *cluster) batches(party int) map[tuplesv1.BatchState]int {
	GinkgoHelper()
	r, err := tuplesv1.NewTuplesServiceClient(c.clients[party]).ListBatches(context.Background(), &tuplesv1.ListBatchesRequest{})
	Expect(err).NotTo(HaveOccurred())
	count := map[tuplesv1.BatchState]int{}
	for _, b := range r.GetBatches() {
		count[b.GetState()]++
	}
	return count
}

// reserve reserves all tuples of a job for the first client at each party and returns the
// reservation's id.
func (c *cluster) reserve(j *coordinatorv1.Job) string {
	GinkgoHelper()
	r, err := stockv1.NewStockServiceClient(c.operator).Reserve(context.Background(), &stockv1.ReserveRequest{
		Class: lodge.ClassOf(j.GetRequest()), Count: j.GetParties()[0].GetStatus().GetCount(), Epoch: j.GetEpoch(), Wait: true,
	})
	Expect(err).NotTo(HaveOccurred())
	return r.GetReservation().GetId()
}
