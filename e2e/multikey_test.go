package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

var _ = Describe("processes that are killed while multi-key keys are made and used", Ordered, func() {
	ctx := context.Background()
	var c *cluster
	var app *mkclient.Client
	var pinned *multikey.Context
	var at []*mkclient.Party // each party, called by its own client
	BeforeAll(func() {
		c = newClusterWith(3, []string{"--multikey", multikeySet})
		f, err := lodge.Load(filepath.Join(c.dir, "clients", devnet.App+".yaml"))
		Expect(err).NotTo(HaveOccurred())
		app, err = mkclient.Dial(f)
		Expect(err).NotTo(HaveOccurred())
		app.Threshold.Patience = 10 * time.Second
		DeferCleanup(app.Close)
		pinned, err = multikey.ContextOf(c.roster.Multikey)
		Expect(err).NotTo(HaveOccurred())
		for _, conn := range c.clients {
			at = append(at, mkclient.At(conn, pinned.Scheme))
		}
	})

	// makeKeys requests keys from a party under a request id, and retries while the party restarts.
	makeKeys := func(party int, request []byte) *multikeyv1.MultikeyKeys {
		GinkgoHelper()
		var m *multikeyv1.MakeKeysResponse
		Eventually(func() (err error) {
			m, err = multikeyv1.NewKeysServiceClient(c.clients[party]).MakeKeys(ctx, &multikeyv1.MakeKeysRequest{RequestId: request})
			return err
		}, within, 50*time.Millisecond).Should(Succeed())
		return m.GetKeys()
	}
	drawn := func() []byte {
		b := make([]byte, 16)
		rand.Read(b)
		return b
	}
	// spread waits until every party has the current keys of all parties that have keys.
	spread := func(owners int) {
		GinkgoHelper()
		for i, p := range at {
			Eventually(func() (present int) {
				list, err := p.Published(ctx)
				if err != nil {
					return -1
				}
				for _, k := range list {
					if k.GetPresent() {
						present++
					}
				}
				return present
			}, 2*within, 100*time.Millisecond).Should(Equal(owners), "party %d", i)
		}
	}
	encrypt := func(party int, bits ...bool) mkclient.Group {
		GinkgoHelper()
		f, err := lodge.Load(filepath.Join(c.dir, "clients", devnet.ClientName(party)+".yaml"))
		Expect(err).NotTo(HaveOccurred())
		own, err := mkclient.Dial(f)
		Expect(err).NotTo(HaveOccurred())
		defer own.Close()
		b, err := own.Encrypt(ctx, pinned.Scheme, party, 0, bits)
		Expect(err).NotTo(HaveOccurred())
		return mkclient.Group{Batch: b}
	}

	It("makes keys once per request, whenever the party is killed, and all parties receive them", func() {
		took := 200 * time.Millisecond
		for i := range 6 {
			request, over := drawn(), make(chan struct{})
			go func() {
				defer close(over)
				began := time.Now()
				_, err := multikeyv1.NewKeysServiceClient(c.clients[0]).MakeKeys(ctx, &multikeyv1.MakeKeysRequest{RequestId: request})
				if err == nil && i == 0 {
					took = time.Since(began)
				}
			}()
			if i == 0 { // killed after making the keys, before or after announcing them
				<-over
			} else {
				time.Sleep(mathrand.N(took))
			}
			c.kill("p0")
			<-over
			c.start("p0")
			k := makeKeys(0, request)
			Expect(k.GetVersion()).To(Equal(uint64(i+1)), "a request has made keys twice, or a version is lost")
			Expect(makeKeys(0, request).GetKey()).To(Equal(k.GetKey()))
		}
		makeKeys(1, drawn())
		makeKeys(2, drawn())
		spread(3)
	})

	It("forgets an evaluation when its party restarts, reports this, and computes it again on request", func() {
		const numbers, width = 16, 16
		var x, y []bool
		for i := range numbers * width { // 0 to 15, and the even numbers up to 30: eight numbers are in both sets
			number, bit := i/width, i%width
			x = append(x, (number>>bit)&1 == 1)
			y = append(y, ((2*number)>>bit)&1 == 1)
		}
		q := &mkclient.Request{Netlist: circuit.Intersection(numbers, numbers, width), Inputs: []mkclient.Group{encrypt(0, x...), encrypt(1, y...)}}
		_, err := at[2].Submit(ctx, q)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (uint64, error) {
			jobs, err := at[2].Jobs(ctx)
			if err != nil || len(jobs) == 0 {
				return 0, err
			}
			Expect(jobs[0].GetEnded()).To(BeNil(), "the evaluation was over too soon")
			return jobs[0].GetDone(), nil
		}, within, 10*time.Millisecond).Should(BeNumerically(">", 0))
		c.kill("p2")
		c.start("p2")
		_, err = at[2].Await(ctx, q.ID, nil)
		e := (*lodge.Error)(nil)
		Expect(errors.As(err, &e)).To(BeTrue(), "%v", err)
		Expect(string(e.Code)).To(Equal("not_found"))
		Expect(e.Next).NotTo(BeEmpty())
		var groups []mkclient.Group
		Eventually(func() error { // until p2 has read the other parties' keys again
			groups, _, err = at[2].Evaluate(ctx, q, nil)
			return err
		}, within, 100*time.Millisecond).Should(Succeed())
		epoch := c.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Params: multikeySet, Threshold: 1}).GetEpoch()
		c.complete(&coordinatorv1.JobRequest{
			Kind: jobv1.Kind_KIND_MASKS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Params: multikeySet, Epoch: epoch, Count: 4000, Group: []uint32{0, 1},
			Form: jobv1.MaskForm_MASK_FORM_EXACT,
		})
		out, err := app.Decrypt(ctx, &mkclient.Decryption{Ciphertexts: mkclient.Ciphertexts(groups)})
		Expect(err).NotTo(HaveOccurred())
		n := 0
		for i, b := range out.Bits {
			if b {
				n |= 1 << i
			}
		}
		Expect(n).To(Equal(numbers / 2))
	})

	It("decrypts after a kill in the middle, returns the same bytes again, and never reuses a mask", func() {
		free := func() (epoch, masks uint64) {
			GinkgoHelper()
			list, _, err := app.Threshold.Keys(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(list).To(HaveLen(1))
			Expect(list[0].Masks).To(HaveLen(1))
			return list[0].Epoch, list[0].Masks[0].Free
		}
		epoch, before := free()
		took := time.Duration(0)
		for i := range 6 {
			bits := make([]bool, 100)
			for k := range bits {
				bits[k] = mathrand.N(2) == 1
			}
			under := mkclient.Ciphertexts([]mkclient.Group{encrypt(0, bits[:50]...), encrypt(1, bits[50:]...)})
			q := &mkclient.Decryption{Ciphertexts: under, Epoch: epoch}
			began, over := time.Now(), make(chan *mkclient.Decrypted, 1)
			go func() {
				out, _ := app.Decrypt(ctx, q)
				over <- out
			}()
			victim := c.roster.Parties[i%2].Name
			var early *mkclient.Decrypted
			if i == 0 { // killed after the response
				early = <-over
				took = time.Since(began)
				Expect(early).NotTo(BeNil())
				c.kill(victim)
			} else {
				time.Sleep(mathrand.N(took))
				c.kill(victim)
				early = <-over
			}
			c.start(victim)
			var out *mkclient.Decrypted
			Eventually(func() (err error) {
				out, err = app.Decrypt(ctx, q)
				return err
			}, within, 100*time.Millisecond).Should(Succeed())
			Expect(out.Bits).To(Equal(bits))
			again, err := app.Decrypt(ctx, q)
			Expect(err).NotTo(HaveOccurred())
			for part := range out.Answers {
				Expect(again.Answers[part].Parts).To(Equal(out.Answers[part].Parts), "a repeat gives other bytes")
				if early != nil {
					Expect(out.Answers[part].Parts).To(Equal(early.Answers[part].Parts), "a repeat after a kill gives other bytes")
				}
			}
			_, now := free()
			Expect(now+uint64(len(bits))).To(BeNumerically("<=", before), "masks that were spent are there again")
			before = now
		}
		for _, m := range c.roster.Parties {
			c.terminate(m.Name)
			Expect(run(20*time.Second, "store", "check", "--deep", "--config", filepath.Join(c.dir, m.Name, "party.yaml"))).To(gexec.Exit(0))
		}
	})
})
