package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

// terminate stops a process gracefully and waits until it exits without an error.
func (c *cluster) terminate(name string) {
	GinkgoHelper()
	Eventually(c.procs[name].Terminate(), 40*time.Second).Should(gexec.Exit(0))
}

var _ = Describe("processes that are told to stop", Ordered, func() {
	var c *cluster
	var epoch uint64

	BeforeAll(func() {
		c = newCluster(2)
		epoch = c.complete(keysJob()).GetEpoch()
		c.complete(triplesJob(epoch))
	})

	for _, name := range []string{"p1", "coordinator"} {
		It("lets the jobs that run end: "+name, func() {
			Eventually(func() []byte {
				id, p := c.submit(triplesJob(epoch)), c.procs[name]
				c.reach(id, 4)
				c.terminate(name)
				if name == "coordinator" {
					c.start(name)
				}
				j := c.end(id)
				Expect(j.GetState()).To(Equal(jobv1.JobState_JOB_STATE_COMPLETED), "%v", j.GetFailure())
				if name != "coordinator" {
					c.start(name)
				}
				return p.Err.Contents()
			}, 5*within).Should(MatchRegexp("msg=stopping (sessions|jobs)=1 "), "the signals all came too late")
			c.complete(triplesJob(epoch))
		})
	}

	It("ends them after their grace period, and the next job succeeds", func() {
		c.edit("p1", func(s string) string { return s + "stop_after: 1ms\n" })
		c.terminate("p1")
		c.start("p1")
		j := c.hit(func() *coordinatorv1.Job {
			id := c.submit(triplesJob(epoch))
			c.reach(id, 4)
			c.terminate("p1")
			c.start("p1")
			return c.end(id)
		})
		Expect(j.GetFailure().GetReason()).NotTo(BeEmpty())
		c.complete(triplesJob(epoch))
	})
})

// versioned builds lodge as a later release with another version of the protocol.
func versioned() string {
	GinkgoHelper()
	root, err := filepath.Abs("..")
	Expect(err).NotTo(HaveOccurred())
	place := filepath.Join(root, "services", "session", "job", "spec.go")
	b, err := os.ReadFile(place)
	Expect(err).NotTo(HaveOccurred())
	later := strings.Replace(string(b), "const ProtocolVersion = ", "const ProtocolVersion = 1000 + ", 1)
	Expect(later).NotTo(Equal(string(b)))
	dir := GinkgoT().TempDir()
	file, overlay := filepath.Join(dir, "spec.go"), filepath.Join(dir, "overlay.json")
	Expect(os.WriteFile(file, []byte(later), 0o600)).To(Succeed())
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{place: file}})
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(overlay, text, 0o600)).To(Succeed())
	path, err := gexec.Build("github.com/lodge-mpc/lodge/cmd/lodge", "-overlay", overlay)
	Expect(err).NotTo(HaveOccurred())
	return path
}

var _ = Describe("a rolling upgrade to another version of the protocol", Ordered, func() {
	It("refuses jobs while versions are mixed, says so, and loses nothing on the way there and back", func() {
		earlier, later := binary, versioned()
		DeferCleanup(func() { binary = earlier })
		c := newCluster(2)
		epoch := c.complete(keysJob()).GetEpoch()
		c.complete(triplesJob(epoch))
		change := func(name, to string) {
			GinkgoHelper()
			c.terminate(name)
			binary = to
			c.start(name)
			binary = earlier
		}
		for _, to := range []string{later, earlier} {
			change("p0", to)
			j := c.end(c.submit(triplesJob(epoch)))
			Expect(j.GetState()).To(Equal(jobv1.JobState_JOB_STATE_FAILED))
			Expect(j.GetFailure().GetReason()).To(MatchRegexp(`protocol version \d+ asked, \d+ spoken here`))
			doctor := run(time.Minute, "doctor", "--cluster", c.dir)
			Expect(doctor).To(gexec.Exit())
			Expect(string(doctor.Out.Contents())).To(ContainSubstring("run builds with the same protocol version everywhere"))
			change("coordinator", to)
			j = c.end(c.submit(triplesJob(epoch))) // now refused by the other party
			Expect(j.GetFailure().GetReason()).To(ContainSubstring("protocol version"))
			change("p1", to)
			c.complete(triplesJob(epoch))
		}
		for p := range c.clients {
			Expect(c.batches(p)).To(HaveLen(1), "only batches that are available")
		}
	})
})
