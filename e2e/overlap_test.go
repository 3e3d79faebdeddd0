package e2e

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/session/job"
)

var _ = Describe("two batches in flight", Ordered, func() {
	var c *cluster
	var epoch uint64
	BeforeAll(func() {
		c = newCluster(3)
		epoch = c.complete(keysJob()).GetEpoch()
		c.complete(triplesJob(epoch)) // makes the MAC key
	})

	// both submits two jobs and waits until both have reached this round or ended.
	both := func(round uint32) []string {
		GinkgoHelper()
		ids := []string{c.submit(triplesJob(epoch)), c.submit(triplesJob(epoch))}
		for _, id := range ids {
			c.reach(id, round)
		}
		return ids
	}

	// next asserts that batches can still be made, that no party has partial results, and that
	// completed batches exist at all parties, or are revoked with a MAC key whose check was
	// interrupted.
	next := func() {
		GinkgoHelper()
		last := c.complete(triplesJob(epoch)).GetBatchId()
		known := map[string]int{}
		for p, conn := range c.clients {
			r, err := tuplesv1.NewTuplesServiceClient(conn).ListBatches(context.Background(), &tuplesv1.ListBatchesRequest{Limit: 1000})
			Expect(err).NotTo(HaveOccurred())
			for _, b := range r.GetBatches() {
				Expect(b.GetState()).NotTo(Equal(tuplesv1.BatchState_BATCH_STATE_LOCKED), "party %d: %s", p, b.GetId())
				if b.GetState() == tuplesv1.BatchState_BATCH_STATE_AVAILABLE {
					known[b.GetId()]++
				}
			}
		}
		Expect(known[last]).To(Equal(len(c.clients)))
	}

	It("run at the same time", func() {
		ids := []string{c.submit(triplesJob(epoch)), c.submit(triplesJob(epoch))}
		together := false
		Eventually(func() bool {
			a, b := c.job(ids[0]), c.job(ids[1])
			running := func(s jobv1.JobState) bool {
				return s >= jobv1.JobState_JOB_STATE_GENERATING && s <= jobv1.JobState_JOB_STATE_VERIFYING
			}
			together = together || running(a.GetState()) && running(b.GetState())
			return job.Final(a.GetState()) && job.Final(b.GetState())
		}, within, time.Millisecond).Should(BeTrue())
		Expect(together).To(BeTrue(), "one began when the other was over")
		for _, id := range ids {
			Expect(c.end(id).GetState()).To(Equal(jobv1.JobState_JOB_STATE_COMPLETED))
		}
		next()
	})

	It("end clearly when a party is killed", func() {
		failed := 0
		for round := 2 + rand.Uint32N(6); round < 26; round += 8 {
			ids := both(round)
			victim := c.roster.Parties[rand.IntN(3)].Name
			c.kill(victim)
			c.start(victim)
			for _, id := range ids {
				j := c.end(id)
				if j.GetState() != jobv1.JobState_JOB_STATE_COMPLETED {
					failed++
					Expect(j.GetState()).To(BeElementOf(jobv1.JobState_JOB_STATE_FAILED, jobv1.JobState_JOB_STATE_TIMED_OUT))
					Expect(j.GetFailure().GetReason()).NotTo(BeEmpty())
				}
			}
			next()
		}
		Expect(failed).To(BeNumerically(">", 2), "the kills all came too late")
	})

	It("end clearly when the coordinator is killed", func() {
		failed := 0
		for _, round := range []uint32{rand.Uint32N(4), 8} {
			ids := both(round)
			third := c.submit(triplesJob(epoch))
			c.kill("coordinator")
			c.start("coordinator")
			for _, id := range ids {
				if j := c.end(id); j.GetState() != jobv1.JobState_JOB_STATE_COMPLETED {
					failed++
					Expect(j.GetFailure().GetReason()).To(ContainSubstring("restarted"))
				}
			}
			if j := c.end(third); j.GetState() != jobv1.JobState_JOB_STATE_COMPLETED { // the job had started
				Expect(j.GetFailure().GetReason()).To(ContainSubstring("restarted"))
			}
			next()
		}
		Expect(failed).To(BeNumerically(">", 1), "the kills all came too late")
	})

	It("run sequentially if a party accepts one at a time", func() {
		name := c.roster.Parties[1].Name
		c.kill(name)
		c.edit(name, func(s string) string { return strings.Replace(s, "max_concurrent: 2", "max_concurrent: 1", 1) })
		c.start(name)
		long := triplesJob(epoch)
		long.Count *= 32
		ends := func(ids ...string) {
			for i, id := range ids {
				j := c.end(id)
				Expect(j.GetState()).To(Equal(jobv1.JobState_JOB_STATE_COMPLETED), "%v", j.GetFailure())
				// One more job may be running if an earlier job was still activating.
				Expect(j.GetOrdinal()).To(And(BeNumerically(">=", min(i+1, 2)), BeNumerically("<=", i+1)), "attempts")
			}
		}
		ends(c.submit(long), c.submit(triplesJob(epoch))) // from now on this party is called first and refuses immediately
		first, second, third := c.submit(long), c.submit(triplesJob(epoch)), c.submit(triplesJob(epoch))
		Eventually(func() string { return c.job(second).GetReason() }, within, time.Millisecond).Should(
			HavePrefix("waiting for concurrent jobs: party 1 (p1) refuses: 1 sessions run already"))
		Expect(c.job(third).GetReason()).To(Equal("waiting for the jobs before it"))
		ends(first, second, third)
		next()
	})
})
