package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/lwe"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// thresholdSet is a set for threshold keys with fast key generation.
const thresholdSet = "insecure-L8-50"

var _ = Describe("processes that are killed while threshold keys are made and used", Ordered, func() {
	var c *cluster
	var client *threshold.Client
	BeforeAll(func() {
		c = newCluster(3, thresholdSet)
		f, err := lodge.Load(filepath.Join(c.dir, "clients", devnet.App+".yaml"))
		Expect(err).NotTo(HaveOccurred())
		client, err = threshold.Dial(f)
		Expect(err).NotTo(HaveOccurred())
		client.Patience = 10 * time.Second
		DeferCleanup(client.Close)
	})

	keys := func() *coordinatorv1.JobRequest {
		return &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Params: thresholdSet}
	}
	masks := func(epoch, count uint64, quorum ...uint32) *coordinatorv1.JobRequest {
		return &coordinatorv1.JobRequest{
			Kind: jobv1.Kind_KIND_MASKS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Epoch: epoch, Count: count, Group: quorum, Form: jobv1.MaskForm_MASK_FORM_EXACT,
		}
	}
	quorums := [][]uint32{{0, 1}, {0, 2}, {1, 2}}

	// works asserts that keys can still be made and used.
	works := func() (*threshold.Key, *lwe.PublicKey) {
		GinkgoHelper()
		epoch := c.complete(keys()).GetEpoch()
		for _, q := range quorums {
			c.complete(masks(epoch, 5000, q...))
		}
		k, err := client.Key(context.Background(), epoch)
		Expect(err).NotTo(HaveOccurred())
		public, err := client.PublicKey(context.Background(), k)
		Expect(err).NotTo(HaveOccurred())
		Expect(k.Masks).To(HaveLen(3))
		return k, public
	}

	It("ends key generation clearly when a party is killed in any round", func() {
		Expect(c.strikes(keys, 20, 3)).To(BeNumerically(">", 0), "the kills all came too late")
		works()
	})

	It("ends the making of masks clearly, and stores them at all parties of the quorum or at none", func() {
		k, _ := works()
		failed := 0
		for round := uint32(0); round < 6; round += 2 {
			q := quorums[round%3]
			if j := c.strike(masks(k.Epoch, 60000, q...), round, c.roster.Parties[q[round%2]].Name, true); j.GetState() != jobv1.JobState_JOB_STATE_COMPLETED {
				Expect(j.GetFailure().GetReason()).NotTo(BeEmpty())
				failed++
			}
		}
		Expect(failed).To(BeNumerically(">", 0), "the kills all came too late")
		c.complete(masks(k.Epoch, 10, 0, 1)) // it removes locked leftovers
		Eventually(func() int {
			list, _, err := client.Keys(context.Background())
			Expect(err).NotTo(HaveOccurred())
			for _, x := range list {
				if x.Epoch == k.Epoch {
					return len(x.Up)
				}
			}
			return 0
		}, 20*time.Second).Should(Equal(3))
	})

	It("ends the making of new shares clearly when a party is killed, and the old ones serve on", func() {
		k, public := works()
		message := []uint64{3, 14}
		list, err := threshold.Encrypt(k, public, message, lwe.Plain)
		Expect(err).NotTo(HaveOccurred())
		decrypts := func(epoch uint64) {
			GinkgoHelper()
			now, err := client.Key(context.Background(), epoch)
			Expect(err).NotTo(HaveOccurred())
			Expect(now.Digest).To(Equal(k.Digest))
			out, err := client.Decrypt(context.Background(), now, &threshold.Request{Ring: list, Coefficients: 2})
			Expect(err).NotTo(HaveOccurred())
			Expect(out.Messages).To(Equal(message))
		}
		reshare := func() *coordinatorv1.JobRequest {
			return &coordinatorv1.JobRequest{
				Kind: jobv1.Kind_KIND_RESHARE, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, FromEpoch: k.Epoch, Threshold: 1, Group: []uint32{0, 1, 2},
			}
		}
		for i, m := range c.roster.Parties {
			j := c.hit(func() *coordinatorv1.Job { return c.strike(reshare(), uint32(i), m.Name, true) })
			Expect(j.GetFailure().GetReason()).NotTo(BeEmpty())
			decrypts(k.Epoch)
		}
		renewed := c.complete(reshare()).GetEpoch()
		for _, q := range quorums {
			c.complete(masks(renewed, 10, q...))
		}
		decrypts(renewed)
	})

	It("continues to decrypt while parties are killed one after another", func() {
		k, public := works()
		ctx, stop := context.WithTimeout(context.Background(), within)
		defer stop()
		var killing sync.WaitGroup
		done := make(chan struct{})
		var decrypted atomic.Uint64
		killing.Go(func() {
			defer GinkgoRecover()
			defer close(done)
			for _, m := range c.roster.Parties {
				c.kill(m.Name)
				before := decrypted.Load()
				Eventually(decrypted.Load, within).Should(BeNumerically(">", before+2), "no decryptions without %s", m.Name)
				c.start(m.Name)
			}
		})
		for over := false; !over; {
			select {
			case <-done:
				over = true
			default:
			}
			message := decrypted.Load() % 16
			list, err := threshold.Encrypt(k, public, []uint64{message, 15 - message}, lwe.Plain)
			Expect(err).NotTo(HaveOccurred())
			r := &threshold.Request{Ring: list, Coefficients: 2}
			var out *threshold.Result
			Eventually(func() (err error) { // two of the three parties may be down for a moment
				now, err := client.Key(ctx, k.Epoch)
				if err == nil {
					out, err = client.Decrypt(ctx, now, r)
				}
				return err
			}, within, 50*time.Millisecond).Should(Succeed())
			Expect(out.Messages).To(Equal([]uint64{message, 15 - message}))
			again := *r
			again.Quorum = out.Quorum
			if over {
				same, err := client.Decrypt(ctx, k, &again)
				Expect(err).NotTo(HaveOccurred())
				Expect(slices.EqualFunc(same.Answers.Parts, out.Answers.Parts, slices.Equal)).To(BeTrue(), "a repeat gives other bytes")
			}
			decrypted.Add(1)
		}
		killing.Wait()
		for _, m := range c.roster.Parties {
			c.terminate(m.Name)
			Expect(run(20*time.Second, "store", "check", "--deep", "--config", filepath.Join(c.dir, m.Name, "party.yaml"))).To(gexec.Exit(0))
		}
	})
})
