package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

var _ = Describe("a policy", func() {
	It("keeps stock between its marks while a client reserves, across kills of the coordinator", func() {
		const low, high, block, draw = 900, 1800, 508, 150 // a block of this set has 512 slots
		c := newCluster(2)
		epoch := c.complete(keysJob()).GetEpoch()
		service := stockv1.NewStockServiceClient(c.operator)
		class := &tuplesv1.Class{Tenant: devnet.Tenant, Kind: jobv1.Kind_KIND_SCALAR, Params: set, Field: "p128"}
		stock := func() *stockv1.Stock {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			r, err := service.GetStock(ctx, &stockv1.GetStockRequest{Epoch: epoch})
			if err != nil || len(r.GetStock()) != 1 {
				return nil
			}
			return r.GetStock()[0]
		}
		full := func(g Gomega) {
			x := stock()
			g.Expect(x).NotTo(BeNil())
			g.Expect(x.GetAvailable()).To(And(BeNumerically(">=", low), BeNumerically("<", high+block)), "%v", x)
			g.Expect(x.GetInProduction()).To(BeZero())
		}
		_, err := service.SetPolicy(context.Background(), &stockv1.SetPolicyRequest{Policy: &stockv1.Policy{Class: class, Low: low, High: high, Batch: block}})
		Expect(err).NotTo(HaveOccurred())
		Eventually(full, within, 20*time.Millisecond).Should(Succeed())

		var clients sync.WaitGroup
		taken, stop := uint64(0), make(chan struct{})
		clients.Go(func() {
			defer GinkgoRecover()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
				q := &stockv1.ReserveRequest{Class: class, Count: draw, IdempotencyKey: fmt.Sprint("e2e-", i)}
				Eventually(func() error { // retry with the same key during a restart
					ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
					defer cancel()
					_, err := service.Reserve(ctx, q)
					return err
				}, within, 20*time.Millisecond).Should(Succeed())
				taken += draw
			}
		})
		for range 2 {
			Eventually(func() uint64 { return stock().GetInProduction() }, within, 5*time.Millisecond).Should(BeNumerically(">", 0))
			c.kill("coordinator")
			c.start("coordinator")
		}
		Eventually(func() uint64 { // production continues to follow the policy
			if x := stock(); x.GetReserved() > high {
				return 1
			}
			return 0
		}, within, 50*time.Millisecond).Should(Equal(uint64(1)))
		close(stop)
		clients.Wait()
		Eventually(full, within, 20*time.Millisecond).Should(Succeed())
		Consistently(full, time.Second, 50*time.Millisecond).Should(Succeed())

		// No job ran twice, and all tuples came from these jobs.
		x := stock()
		// A kill may leave an unknown reservation at the parties until its lease ends. A kill in
		// the middle of a MAC check burns the key and all its tuples, which are lost (reserved
		// tuples when their lease ends).
		Expect(x.GetReserved()).To(BeNumerically("<=", taken+2*draw), "%v", x)
		if x.GetLost() == 0 {
			Expect(x.GetReserved()).To(BeNumerically(">=", taken), "%v", x)
		}
		r, err := c.jobs().ListJobs(context.Background(), &coordinatorv1.ListJobsRequest{Limit: 1000})
		Expect(err).NotTo(HaveOccurred())
		made, lost := uint64(0), 0
		for _, j := range r.GetJobs() {
			switch {
			case j.GetSubmittedBy() != "stock":
			case j.GetState() == jobv1.JobState_JOB_STATE_COMPLETED:
				made += j.GetParties()[0].GetStatus().GetCount()
			default:
				Expect(j.GetFailure().GetReason()).To(ContainSubstring("restarted"))
				lost++
			}
		}
		all := x.GetAvailable() + x.GetReserved() + x.GetConsumed() + x.GetLost()
		Expect(all).To(BeNumerically("<=", made), "%v", x)
		if x.GetLost() == 0 {
			Expect(all).To(Equal(made), "%v", x)
		}
		Expect(lost).To(BeNumerically("<=", 2*2), "more jobs ended with the kills than ran")
	})
})
