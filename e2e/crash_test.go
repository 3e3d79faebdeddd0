package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	decryptionv1 "github.com/lodge-mpc/lodge/proto/lodge/decryption/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

var _ = Describe("processes that are killed during key generation", Ordered, func() {
	var c *cluster
	BeforeAll(func() { c = newCluster(3) })

	// big is a job whose keys are large enough to interrupt its rounds.
	big := func() *coordinatorv1.JobRequest {
		q := keysJob()
		q.Dim = 16
		return q
	}

	// next asserts that keys can still be made and used, and that no partial results remain.
	next := func() {
		GinkgoHelper()
		made := c.complete(keysJob()).GetEpoch()
		var active [][]uint64
		for p, conn := range c.clients {
			r, err := keygenv1.NewKeygenServiceClient(conn).ListEpochs(context.Background(), &keygenv1.ListEpochsRequest{})
			Expect(err).NotTo(HaveOccurred())
			var list []uint64
			for _, e := range r.GetEpochs() {
				Expect(e.GetState()).NotTo(Equal(keygenv1.EpochState_EPOCH_STATE_LOCKED), "party %d: epoch %d", p, e.GetEpoch())
				if e.GetState() == keygenv1.EpochState_EPOCH_STATE_ACTIVE {
					list = append(list, e.GetEpoch())
				}
			}
			slices.Sort(list)
			active = append(active, list)
			Expect(list).To(Equal(active[0]), "parties 0 and %d have other epochs", p)
			Expect(list).To(ContainElement(made))
			Eventually(func() ([]string, error) {
				return filepath.Glob(filepath.Join(c.dir, c.roster.Parties[p].Name, "vault", "objects", "tmp-*"))
			}, 5*time.Second).Should(BeEmpty())
		}
		c.complete(triplesJob(made))
	}

	It("ends the job clearly when a party is killed in any round", func() {
		Expect(c.strikes(big, 16, 4)).To(BeNumerically(">", 1), "the kills all came too late")
		next()
	})

	It("ends the job clearly when the coordinator is killed, and goes on after", func() {
		failed := 0
		for round := rand.Uint32N(4); round < 16; round += 4 {
			id := c.submit(big())
			c.reach(id, round)
			c.kill("coordinator")
			c.start("coordinator")
			if j := c.end(id); j.GetState() != jobv1.JobState_JOB_STATE_COMPLETED {
				Expect(j.GetFailure().GetReason()).To(ContainSubstring("restarted"))
				failed++
			}
		}
		Expect(failed).To(BeNumerically(">", 0), "the kills all came too late")
		next()
	})
})

// fetch draws a reservation. If it fails, it also returns the bytes received before the error.
func fetch(ctx context.Context, conn *grpc.ClientConn, reservation string) (data []byte, err error) {
	stream, err := tuplesv1.NewTuplesServiceClient(conn).Fetch(ctx, &tuplesv1.FetchRequest{ReservationId: reservation})
	for err == nil {
		var r *tuplesv1.FetchResponse
		if r, err = stream.Recv(); err == nil {
			data = append(data, r.GetChunk()...)
		}
	}
	if errors.Is(err, io.EOF) {
		return data, nil
	}
	return data, rpc.FromError(err)
}

var _ = Describe("tuples across a crash", Ordered, func() {
	var c *cluster
	var epoch uint64
	var owner, other *grpc.ClientConn // two clients of party 0 that are allowed to draw
	BeforeAll(func() {
		c = newCluster(2)
		c.kill("p0")
		c.edit("p0", func(s string) string { return strings.Replace(s, "- decrypt", "- decrypt\n        - fetch", 1) })
		c.start("p0")
		epoch = c.complete(keysJob()).GetEpoch()
		m := c.roster.Parties[0]
		owner, other = c.clients[0], c.dial(devnet.App, m.Address, m.Identity)
	})

	It("belong to the client that had drawn some when the party was killed, and to no other", func() {
		reserved := c.reserve(c.complete(triplesJob(epoch)))
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		stream, err := tuplesv1.NewTuplesServiceClient(owner).Fetch(ctx, &tuplesv1.FetchRequest{ReservationId: reserved})
		Expect(err).NotTo(HaveOccurred())
		head, err := stream.Recv()
		Expect(err).NotTo(HaveOccurred())
		size := head.GetReservation().GetCount() * head.GetTupleBytes()
		Expect(size).To(BeNumerically(">", 3<<16), "the shares are on their way before the client reads on")
		c.kill("p0")
		var part []byte
		for err == nil {
			var r *tuplesv1.FetchResponse
			if r, err = stream.Recv(); err == nil {
				part = append(part, r.GetChunk()...)
			}
		}
		Expect(err).NotTo(MatchError(io.EOF), "the process was killed too late")
		c.start("p0")

		data, err := fetch(ctx, other, reserved)
		Expect(err).To(MatchError(&rpc.Error{Code: rpc.Delivered}))
		Expect(data).To(BeEmpty())
		Expect(c.batches(0)).To(Equal(map[tuplesv1.BatchState]int{tuplesv1.BatchState_BATCH_STATE_AVAILABLE: 1})) // the tombstone is written when the lease ends
		all, err := fetch(ctx, owner, reserved)
		Expect(err).NotTo(HaveOccurred())
		Expect(uint64(len(all))).To(Equal(size))
		Expect(bytes.HasPrefix(all, part)).To(BeTrue(), "the same client gets other bytes than before")

		later, err := fetch(ctx, owner, c.reserve(c.complete(triplesJob(epoch))))
		Expect(err).NotTo(HaveOccurred())
		const tuple = 6 * 16 // bytes: a, b, c and their MACs
		seen := map[string]bool{}
		for t := range slices.Chunk(slices.Concat(all, later), tuple) {
			Expect(seen[string(t)]).To(BeFalse(), "a tuple is in two batches")
			seen[string(t)] = true
		}
	})

	It("never go to two clients that race for them while the party is killed", func() {
		type answer struct {
			data []byte
			err  error
		}
		for range 4 {
			reserved := c.reserve(c.complete(triplesJob(epoch)))
			race := func(meanwhile func()) (answers []answer) {
				ctx, cancel := context.WithTimeout(context.Background(), within)
				defer cancel()
				var pending []chan answer
				for _, conn := range []*grpc.ClientConn{owner, other} {
					ch := make(chan answer, 1)
					pending = append(pending, ch)
					go func() {
						data, err := fetch(ctx, conn, reserved)
						ch <- answer{data, err}
					}()
				}
				meanwhile()
				return []answer{<-pending[0], <-pending[1]}
			}
			before := race(func() {
				time.Sleep(rand.N(4 * time.Millisecond))
				c.kill("p0")
			})
			c.start("p0")
			after := race(func() {})
			winner := 0
			if after[1].err == nil {
				winner = 1
			}
			Expect(after[winner].err).NotTo(HaveOccurred())
			Expect(after[1-winner].err).To(MatchError(&rpc.Error{Code: rpc.Delivered}))
			Expect(after[1-winner].data).To(BeEmpty())
			Expect(before[1-winner].data).To(BeEmpty(), "the loser had some before")
			Expect(bytes.HasPrefix(after[winner].data, before[winner].data)).To(BeTrue())
		}
	})
})

var _ = Describe("answered decryptions across a crash", func() {
	It("are the same bytes for the same ciphertext, whenever the party is killed", func() {
		c := newCluster(2)
		q := keysJob()
		q.Purpose = jobv1.Purpose_PURPOSE_DECRYPTION
		epoch := c.complete(q).GetEpoch()
		conns := []*grpc.ClientConn{}
		for _, m := range c.roster.Parties {
			conns = append(conns, c.dial(devnet.App, m.Address, m.Identity))
		}
		header := &decryptionv1.DecryptShareHeader{Epoch: epoch, Field: "p128", Context: []byte("e2e"), Quorum: []uint32{0, 1}}
		took := time.Duration(0)
		for i := range 5 {
			ciphertext, proof := prove(conns[1], epoch, header.GetContext())
			asked := time.Now()
			pending := make(chan []byte, 1)
			go func() {
				answer, _, _ := decryptShare(conns[0], header, ciphertext, proof)
				pending <- answer
			}()
			var early []byte
			if i == 0 { // killed after the response
				early = <-pending
				took = time.Since(asked)
				Expect(early).NotTo(BeEmpty())
				c.kill("p0")
			} else {
				time.Sleep(took/4 + rand.N(took))
				c.kill("p0")
				early = <-pending
			}
			c.start("p0")
			answer, digest, err := decryptShare(conns[0], header, ciphertext, proof)
			Expect(err).NotTo(HaveOccurred())
			if len(early) > 0 {
				Expect(answer).To(Equal(early), "another flood for the same ciphertext")
			}
			c.kill("p0")
			c.start("p0")
			again, _, err := decryptShare(conns[0], header, ciphertext, proof)
			Expect(err).NotTo(HaveOccurred())
			Expect(bytes.Equal(again, answer)).To(BeTrue(), "another flood for the same ciphertext")
			r, err := decryptionv1.NewDecryptionServiceClient(conns[0]).GetDecryption(context.Background(),
				&decryptionv1.GetDecryptionRequest{Epoch: epoch, CiphertextDigest: digest, Quorum: header.GetQuorum()})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.GetAnswered() && r.GetToCaller()).To(BeTrue())
		}
	})
})

// prove makes a party encrypt some values for the client at conn and prove knowledge of the values.
func prove(conn *grpc.ClientConn, epoch uint64, about []byte) (ciphertext, proof []byte) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	stream, err := popkv1.NewPopkServiceClient(conn).Prove(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(stream.Send(&popkv1.ProveRequest{
		Header: &popkv1.ProofHeader{Epoch: epoch, Field: "p128", Context: about, Ciphertexts: 1}, Values: make([]byte, 16*512), // 2048/4 slots of p128
	})).To(Succeed())
	Expect(stream.CloseSend()).To(Succeed())
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return ciphertext, proof
		}
		Expect(err).NotTo(HaveOccurred())
		ciphertext, proof = append(ciphertext, r.GetCiphertexts()...), append(proof, r.GetProof()...)
	}
}

// decryptShare requests a party's share; digest names the ciphertext in the party's ledger.
func decryptShare(conn *grpc.ClientConn, h *decryptionv1.DecryptShareHeader, ciphertext, proof []byte) (answer, digest []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	stream, err := decryptionv1.NewDecryptionServiceClient(conn).DecryptShare(ctx)
	if err != nil {
		return nil, nil, err
	}
	_ = stream.Send(&decryptionv1.DecryptShareRequest{Header: h, Ciphertext: ciphertext}) // Recv returns the error
	for piece := range slices.Chunk(proof, 1<<20) {
		_ = stream.Send(&decryptionv1.DecryptShareRequest{Proof: piece})
	}
	_ = stream.CloseSend()
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return answer, digest, nil
		}
		if err != nil {
			return nil, nil, rpc.FromError(err)
		}
		answer, digest = append(answer, r.GetChunk()...), append(digest, r.GetCiphertextDigest()...)
	}
}

var _ = Describe("a MAC check that fails", func() {
	It("drops the batch, counts the failure across crashes, and retires the MAC key after three in a row", func() {
		c := newCluster(3)
		epoch := c.complete(keysJob()).GetEpoch()
		c.complete(triplesJob(epoch))
		lease := time.Now().Add(time.Hour)
		for i, m := range c.roster.Parties {
			c.kill(m.Name)
			c.plant(m.Name, epoch, lease, i == 1)
			c.start(m.Name)
		}
		submit := func(key string) *coordinatorv1.Job {
			failing := &coordinatorv1.SubmitJobRequest{Job: triplesJob(epoch), IdempotencyKey: key}
			failing.Job.Params, failing.Job.Purpose = set, jobv1.Purpose_PURPOSE_TRIPLES
			r, err := c.jobs().SubmitJob(context.Background(), failing)
			Expect(err).NotTo(HaveOccurred())
			return c.end(r.GetJob().GetId())
		}
		fails := func(key string) *coordinatorv1.Job {
			GinkgoHelper()
			j := submit(key)
			Expect(j.GetState()).To(Equal(jobv1.JobState_JOB_STATE_FAILED))
			Expect(j.GetFailure().GetCheck()).To(Equal("mac"), "%v", j.GetFailure())
			return j
		}
		// has asserts the state of the planted MAC key at every party.
		has := func(state tuplesv1.MacKeyState, failed uint32) {
			GinkgoHelper()
			for p, conn := range c.clients {
				r, err := tuplesv1.NewTuplesServiceClient(conn).ListMacKeys(context.Background(), &tuplesv1.ListMacKeysRequest{})
				Expect(err).NotTo(HaveOccurred())
				found := false
				for _, k := range r.GetKeys() {
					if k.GetId() == plantedKey {
						found = true
						Expect(k.GetState()).To(Equal(state), "party %d: %v", p, k)
						Expect(k.GetFailedChecks()).To(Equal(failed), "party %d: %v", p, k)
					}
				}
				Expect(found).To(BeTrue(), "party %d", p)
			}
		}
		j := fails("once")
		Expect(submit("once").GetId()).To(Equal(j.GetId()), "the same submission has run again")
		has(tuplesv1.MacKeyState_MAC_KEY_STATE_ACTIVE, 1)
		for _, m := range c.roster.Parties {
			c.kill(m.Name)
			c.start(m.Name)
		}
		has(tuplesv1.MacKeyState_MAC_KEY_STATE_ACTIVE, 1)
		fails("twice")
		fails("three times")
		has(tuplesv1.MacKeyState_MAC_KEY_STATE_RETIRED, 3)
		for _, conn := range c.clients { // released tuples stay valid
			_, err := fetch(context.Background(), conn, planted)
			Expect(err).NotTo(HaveOccurred())
		}
	})
})

const planted, plantedKey = "planted-1", "mac-planted"

// plant stores, at a stopped party, its MAC key under another name, with a reserved batch, and with
// a wrong share if the party is to cheat.
func (c *cluster) plant(party string, epoch uint64, lease time.Time, cheats bool) {
	GinkgoHelper()
	key, err := seal.LoadKey(filepath.Join(c.dir, party, "vault.key"))
	Expect(err).NotTo(HaveOccurred())
	v, err := vault.Open(filepath.Join(c.dir, party, "vault"), key)
	Expect(err).NotTo(HaveOccurred())
	defer v.Close()
	k, err := v.FindMACKey(epoch, "p128", devnet.Tenant)
	Expect(err).NotTo(HaveOccurred())
	in, err := v.OpenMACKey(k.ID)
	Expect(err).NotTo(HaveOccurred())
	defer in.Close()
	secret, err := io.ReadAll(in)
	Expect(err).NotTo(HaveOccurred())
	if cheats {
		secret[0] ^= 1
	}
	w, err := v.NewBatch(stock.Batch{ID: planted, Epoch: epoch, MACKey: plantedKey, Params: set, Field: "p128", Kind: "scalar", Tenant: devnet.Tenant,
		Count: 1, TupleBytes: 1})
	Expect(err).NotTo(HaveOccurred())
	_, err = w.Write([]byte{0})
	Expect(err).NotTo(HaveOccurred())
	old := k.ID
	k.ID = plantedKey
	Expect(w.Commit(&keys.NewMACKey{MACKey: k, Secret: secret})).To(Succeed())
	Expect(v.ActivateBatch(planted)).To(Succeed())
	_, err = v.BurnMACKey(old, "replaced")
	Expect(err).NotTo(HaveOccurred())
	b, err := v.Batch(planted)
	Expect(err).NotTo(HaveOccurred())
	_, err = v.Reserve(stock.Reservation{ID: planted, Class: b.Class(), Epoch: epoch, MACKey: plantedKey, Owner: "test", Lease: lease,
		Ranges: []stock.Range{{Batch: planted, Span: stock.Span{Count: 1}}}})
	Expect(err).NotTo(HaveOccurred())
}
