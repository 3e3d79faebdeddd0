package e2e

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	decryptionv1 "github.com/lodge-mpc/lodge/proto/lodge/decryption/v1"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

var _ = Describe("the demonstration", func() {
	It("makes triples that the checker accepts, and exports them", func() {
		out := filepath.Join(GinkgoT().TempDir(), "shares")
		session := run(2*time.Minute, "demo", "--params", "insecure-8", "--count", "100", "--json", "--out", out)
		Expect(session).To(gexec.Exit(0))
		var r map[string]any
		Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
		Expect(r).To(HaveKeyWithValue("keygen_security", "proved"))
		Expect(r["verified"]).To(Equal(r["tuples"]))
		for _, key := range []string{"parties", "kind", "field", "params", "dim", "keygen_seconds", "generate_seconds", "tuples_per_second",
			"sent_bytes_per_tuple_per_party", "peak_rss_bytes", "statistical_security_bits", "rounds"} {
			Expect(r).To(HaveKey(key))
		}
		batches, err := filepath.Glob(filepath.Join(out, "*"))
		Expect(err).NotTo(HaveOccurred())
		Expect(batches).To(HaveLen(1))
		Expect(run(time.Minute, "verify", batches[0])).To(gexec.Exit(0))
		files, err := filepath.Glob(filepath.Join(out, "*", "party-1", "tuples.bin"))
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(1))
		b, err := os.ReadFile(files[0])
		Expect(err).NotTo(HaveOccurred())
		b[len(b)/2] ^= 1
		Expect(os.WriteFile(files[0], b, 0o600)).To(Succeed())
		Expect(run(time.Minute, "verify", batches[0])).To(gexec.Exit(3))
	})

	It("makes matrix triples of a shape that fills no whole blocks", func() {
		session := run(2*time.Minute, "demo", "--params", "insecure-8", "--parties", "2", "--kind", "matrix", "--dim", "5x6x3", "--json")
		Expect(session).To(gexec.Exit(0))
		var r map[string]any
		Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
		Expect(r["verified"]).To(Equal(r["tuples"]))
	})

	It("makes convolution triples", func() {
		session := run(2*time.Minute, "demo", "--params", "insecure-8", "--parties", "3", "--kind", "convolution", "--dim", "2x5x4", "--kernel", "3x3x2",
			"--stride", "2x1", "--padding", "1", "--json")
		Expect(session).To(gexec.Exit(0))
		var r map[string]any
		Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
		Expect(r["verified"]).To(And(Equal(r["tuples"]), BeNumerically(">=", 1)))
		Expect(r["dim"]).To(Equal("2x5x4 by 3x3x2, stride 2x1, padding 1x1"))
	})

	It("makes tuples of every kind", func() {
		for _, kind := range []string{"square", "random", "bit", "inverse", "input"} {
			session := run(2*time.Minute, "demo", "--params", "insecure-8", "--parties", "2", "--count", "100", "--kind", kind, "--json")
			Expect(session).To(gexec.Exit(0), kind)
			var r map[string]any
			Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
			Expect(r["kind"]).To(Equal(kind))
			Expect(r["verified"]).To(And(Equal(r["tuples"]), BeNumerically(">=", 100)))
		}
	})

	It("makes input masks of any party", func() {
		for party := range 3 {
			session := run(2*time.Minute, "demo", "--params", "insecure-8", "--parties", "3", "--count", "100", "--kind", "input",
				"--input-party", strconv.Itoa(party), "--json")
			Expect(session).To(gexec.Exit(0), "party %d", party)
			var r map[string]any
			Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
			Expect(r["input_party"]).To(BeNumerically("==", party))
			Expect(r["verified"]).To(And(Equal(r["tuples"]), BeNumerically(">=", 100)))
		}
	})

	It("reports errors", func() {
		session := run(20*time.Second, "demo", "--params", "S14-33")
		Expect(session).To(gexec.Exit(2))
		Expect(session.Err).To(gbytes.Say("S14-33"))
	})
})

var _ = Describe("processes that fail", Ordered, func() {
	var c *cluster
	var epoch uint64
	completed := 0

	BeforeAll(func() {
		c = newCluster(3)
		epoch = c.complete(keysJob()).GetEpoch()
		c.complete(triplesJob(epoch))
		completed = 1
	})

	// next asserts that another job succeeds and leaves no partial results.
	next := func() {
		GinkgoHelper()
		c.complete(triplesJob(epoch))
		completed++
		for p := range c.clients {
			count := c.batches(p)
			Expect(count[tuplesv1.BatchState_BATCH_STATE_LOCKED]).To(BeZero(), "party %d holds locked batches", p)
		}
	}

	It("ends a job clearly when a party is killed in any round", func() {
		killed := c.strikes(func() *coordinatorv1.JobRequest { return triplesJob(epoch) }, 32, 5)
		Expect(killed).To(BeNumerically(">", 2), "the kills all came too late")
		next()
	})

	It("ends a job clearly when the coordinator is killed, and goes on after", func() {
		j := c.hit(func() *coordinatorv1.Job {
			id := c.submit(triplesJob(epoch))
			c.reach(id, 8)
			c.kill("coordinator")
			c.start("coordinator")
			return c.end(id)
		})
		Expect(j.GetState()).To(Equal(jobv1.JobState_JOB_STATE_FAILED))
		Expect(j.GetFailure().GetReason()).To(ContainSubstring("restarted"))
		next()
	})

	It("identifies a peer that hangs, within its deadline", func() {
		var took time.Duration
		j := c.hit(func() *coordinatorv1.Job {
			id := c.submit(triplesJob(epoch))
			c.reach(id, 4)
			c.signal("p2", syscall.SIGSTOP)
			began := time.Now()
			j := c.end(id)
			took = time.Since(began)
			c.signal("p2", syscall.SIGCONT)
			return j
		})
		Expect(took).To(BeNumerically("<", 45*time.Second))
		Expect(j.GetFailure().GetSuspects()).To(Equal([]uint32{2}), "%v", j.GetFailure())
		next()
	})

	It("refuses a peer whose certificate is another authority's", func() {
		cert := filepath.Join(c.dir, "p1", "tls.pem")
		key := filepath.Join(c.dir, "p1", "tls.key")
		oldCert, oldKey := read(cert), read(key)
		ca, err := pki.NewAuthority("somebody else", time.Hour)
		Expect(err).NotTo(HaveOccurred())
		newCert, newKey, err := ca.Issue(pki.Leaf{Identity: c.roster.Parties[1].Identity, Hosts: []string{"127.0.0.1"}, Lifetime: time.Hour})
		Expect(err).NotTo(HaveOccurred())
		c.kill("p1")
		Expect(os.WriteFile(cert, newCert, 0o600)).To(Succeed())
		Expect(os.WriteFile(key, newKey, 0o600)).To(Succeed())
		c.launch("p1")
		q := triplesJob(epoch)
		q.Timeout = durationpb.New(5 * time.Second) // otherwise the coordinator waits longer
		j := c.end(c.submit(q))
		Expect(j.GetState()).To(Equal(jobv1.JobState_JOB_STATE_FAILED))
		Expect(j.GetFailure().GetReason()).To(ContainSubstring("party 1"))
		c.kill("p1")
		Expect(os.WriteFile(cert, oldCert, 0o600)).To(Succeed())
		Expect(os.WriteFile(key, oldKey, 0o600)).To(Succeed())
		c.start("p1")
		next()
	})

	It("does not start with another parameter hash", func() {
		path := filepath.Join(c.dir, "p1", "party.yaml")
		good := string(read(path))
		at := strings.Index(good, "hash: ") + len("hash: ")
		flipped := "0"
		if good[at] == '0' {
			flipped = "1"
		}
		c.kill("p1")
		Expect(os.WriteFile(path, []byte(good[:at]+flipped+good[at+1:]), 0o600)).To(Succeed())
		session := c.launch("p1")
		Eventually(session, 10*time.Second).Should(gexec.Exit(1))
		Expect(session.Err).To(gbytes.Say("is pinned"))
		Expect(os.WriteFile(path, []byte(good), 0o600)).To(Succeed())
		c.start("p1")
		next()
	})

	It("refuses an oversized frame and stays up", func() {
		credentials, err := rpc.LoadCredentials(rpc.Files{
			Certificate: filepath.Join(c.dir, "p1", "tls.pem"), Key: filepath.Join(c.dir, "p1", "tls.key"), CA: filepath.Join(c.dir, "ca.pem"),
		})
		Expect(err).NotTo(HaveOccurred())
		m := c.roster.Parties[0]
		conn, err := rpc.Dial(m.Address, m.Identity, credentials)
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		careless := grpc.MaxCallSendMsgSize(64 << 20) // like a peer with modified code
		stream, err := exchangev1.NewExchangeServiceClient(conn).Exchange(ctx, careless)
		Expect(err).NotTo(HaveOccurred())
		frame := &exchangev1.Frame{Start: &exchangev1.Start{Name: "x", Frames: 1}, Data: make([]byte, 32<<20)}
		_ = stream.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: frame}})
		_, err = stream.Recv()
		Expect(status.Code(err)).To(Equal(codes.ResourceExhausted), "%v", err)
		Expect(err.Error()).NotTo(ContainSubstring("trying to send"), "the request never reached the party")
		next()
	})

	It("delivers tuples to one client, once, and keeps secrets from the coordinator", func() {
		j := c.complete(triplesJob(epoch))
		secrets, planted := newCanaries(), 0
		reserved := c.reserve(j)
		for _, conn := range c.clients {
			tuples := tuplesv1.NewTuplesServiceClient(conn)
			stream, err := tuples.Fetch(context.Background(), &tuplesv1.FetchRequest{ReservationId: reserved})
			Expect(err).NotTo(HaveOccurred())
			for {
				r, err := stream.Recv()
				if err != nil {
					break
				}
				if k := r.GetReservation().GetMacKeyId(); k != "" {
					drawn, err := tuples.DrawMacKey(context.Background(), &tuplesv1.DrawMacKeyRequest{MacKeyId: k, Purpose: tuplesv1.Purpose_PURPOSE_ONLINE})
					Expect(err).NotTo(HaveOccurred())
					secrets.plant("share of the MAC key", drawn.GetShare())
				}
				secrets.plant("shares of tuples", r.GetChunk())
				planted += len(r.GetChunk()) / 16
			}
		}
		Expect(planted).To(BeNumerically(">", 1000))
		c.kill("coordinator") // so that all data is on disk
		haystack := append(c.procs["coordinator"].Out.Contents(), c.procs["coordinator"].Err.Contents()...)
		haystack = append(haystack, c.toldToTheCoordinator(j)...)
		Expect(filepath.Walk(filepath.Join(c.dir, "coordinator"), func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				haystack = append(haystack, read(path)...)
			}
			return err
		})).To(Succeed())
		Expect(len(haystack)).To(BeNumerically(">", 1000))
		Expect(secrets.search(haystack)).To(BeEmpty(), "in the coordinator's files, logs and messages")
		c.start("coordinator")
		next()
	})
})

func read(path string) []byte {
	GinkgoHelper()
	b, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	return b
}

// multikeySet is a set for multi-key ciphertexts with fast key generation.
const multikeySet = "insecure-M8-32"

var _ = Describe("decryption for a client", func() {
	It("returns the values that the client encrypted", func() {
		session := run(2*time.Minute, "demo", "decrypt", "--all", "--params", "insecure-8", "--parties", "2", "--json")
		Expect(session).To(gexec.Exit(0))
		var r map[string]any
		Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
		Expect(r["correct"]).To(Equal(r["values"]))
		Expect(r).To(HaveKeyWithValue("repeat_gives_same_bytes", true))
	})

	It("returns the client's results from two of three parties when the third is killed", func() {
		session := run(2*time.Minute, "demo", "decrypt", "--params", thresholdSet, "--values", "5", "--json")
		Expect(session).To(gexec.Exit(0))
		var r struct {
			Correct int
			Killed  string
			Quorum  []string
		}
		Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
		Expect(r.Correct).To(Equal(10))
		Expect(r.Quorum).To(HaveLen(2))
		Expect(r.Quorum).NotTo(ContainElement(r.Killed))
	})

	It("multiplies on shares and under encryption with the correct results", func() {
		session := run(5*time.Minute, "demo", "linear", "--json")
		Expect(session).To(gexec.Exit(0))
		var r struct {
			Security string
			Correct  bool
			Layers   []struct{ Name string }
		}
		Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
		Expect(r.Correct).To(BeTrue())
		Expect(r.Security).To(Equal("passive_evaluator"))
		Expect(r.Layers).To(HaveLen(3))
	})

	It("evaluates an auction on bids under the parties' own keys, and continues after one party is killed", func() {
		session := run(2*time.Minute, "demo", "multikey", "--params", multikeySet, "--json")
		Expect(session).To(gexec.Exit(0))
		type auction struct {
			Correct    bool
			Decryptors []string
		}
		var r struct {
			Killed  string
			Code    string `json:"refused_code"`
			Refused string
			All     auction `json:"auction"`
			Others  auction `json:"auction_of_the_others"`
		}
		Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
		Expect(r.All.Correct && r.Others.Correct).To(BeTrue())
		Expect(r.All.Decryptors).To(Equal([]string{"p0", "p1", "p2", "p3"}))
		Expect(r.Others.Decryptors).To(Equal([]string{"p0", "p1", "p2"}))
		Expect(r.Code).To(Equal("unavailable"))
		Expect(r.Refused).To(ContainSubstring("no answer of " + r.Killed))
	})

	It("refuses keys that were made for triples, and clients without permission", func() {
		c := newCluster(2)
		epoch := c.complete(keysJob()).GetEpoch()
		m := c.roster.Parties[0]
		ask := func(client string) error {
			conn := c.dial(client, m.Address, m.Identity)
			stream, err := decryptionv1.NewDecryptionServiceClient(conn).DecryptShare(context.Background())
			Expect(err).NotTo(HaveOccurred())
			_ = stream.Send(&decryptionv1.DecryptShareRequest{Header: &decryptionv1.DecryptShareHeader{Epoch: epoch, Field: "p128", Quorum: []uint32{0, 1}}}) // Recv returns the error
			_, err = stream.Recv()
			return rpc.FromError(err)
		}
		Expect(ask(devnet.App)).To(MatchError(&rpc.Error{Code: rpc.KeyPurpose}))
		Expect(ask(devnet.ClientName(0))).To(MatchError(&rpc.Error{Code: rpc.Forbidden}))
	})
})

var _ = Describe("proofs of plaintext knowledge", func() {
	It("runs a joint proof, and proves and verifies for a client", func() {
		c := newCluster(2)
		q := keysJob()
		q.Purpose = jobv1.Purpose_PURPOSE_DECRYPTION
		epoch := c.complete(q).GetEpoch()
		c.complete(&coordinatorv1.JobRequest{
			Kind: jobv1.Kind_KIND_PROOF, Field: "p128", Dim: 1, Count: 3, Epoch: epoch, Tenant: devnet.Tenant, Purpose: jobv1.Purpose_PURPOSE_DECRYPTION,
		})
		m := c.roster.Parties[1]
		client := popkv1.NewPopkServiceClient(c.dial(devnet.App, m.Address, m.Identity))
		header := &popkv1.ProofHeader{Epoch: epoch, Field: "p128", Context: []byte("e2e"), Ciphertexts: 1}
		prove := func(values []byte) (ciphertexts, proof []byte, err error) {
			stream, err := client.Prove(context.Background())
			Expect(err).NotTo(HaveOccurred())
			_ = stream.Send(&popkv1.ProveRequest{Header: header, Values: values}) // Recv returns the error
			Expect(stream.CloseSend()).To(Succeed())
			for {
				r, err := stream.Recv()
				if err == io.EOF {
					return ciphertexts, proof, nil
				}
				if err != nil {
					return nil, nil, rpc.FromError(err)
				}
				ciphertexts, proof = append(ciphertexts, r.GetCiphertexts()...), append(proof, r.GetProof()...)
			}
		}
		verify := func(ciphertexts, proof []byte) *popkv1.VerifyResponse {
			stream, err := client.Verify(context.Background())
			Expect(err).NotTo(HaveOccurred())
			_ = stream.Send(&popkv1.VerifyRequest{Header: header}) // Recv returns the error
			for at := 0; at < len(ciphertexts); at += 1 << 20 {
				_ = stream.Send(&popkv1.VerifyRequest{Ciphertexts: ciphertexts[at:min(at+1<<20, len(ciphertexts))]}) // Recv returns the error
			}
			for at := 0; at < len(proof); at += 1 << 20 {
				_ = stream.Send(&popkv1.VerifyRequest{Proof: proof[at:min(at+1<<20, len(proof))]}) // Recv returns the error
			}
			r, err := stream.CloseAndRecv()
			Expect(err).NotTo(HaveOccurred())
			return r
		}
		values := make([]byte, 16*512) // 2048/4 slots of p128
		values[0], values[16] = 7, 9
		ciphertexts, proof, err := prove(values)
		Expect(err).NotTo(HaveOccurred())
		Expect(verify(ciphertexts, proof).GetAccepted()).To(BeTrue())
		proof[len(proof)/2] ^= 1
		answer := verify(ciphertexts, proof)
		Expect(answer.GetAccepted()).To(BeFalse())
		Expect(answer.GetCheck()).NotTo(BeEmpty())
		_, _, err = prove(values[1:])
		Expect(err).To(MatchError(&rpc.Error{Code: rpc.Invalid}))
		for i := range 16 {
			values[i] = 0xff
		}
		_, _, err = prove(values)
		Expect(err).To(MatchError(&rpc.Error{Code: rpc.Invalid}), "a value above the modulus was accepted")
	})
})

// toldToTheCoordinator returns the bytes of all responses about a job that the parties send to the
// coordinator's certificate.
func (c *cluster) toldToTheCoordinator(j *coordinatorv1.Job) (all []byte) {
	GinkgoHelper()
	credentials, err := rpc.LoadCredentials(rpc.Files{
		Certificate: filepath.Join(c.dir, "coordinator", "tls.pem"), Key: filepath.Join(c.dir, "coordinator", "tls.key"), CA: filepath.Join(c.dir, "ca.pem"),
	})
	Expect(err).NotTo(HaveOccurred())
	add := func(m proto.Message, err error) {
		GinkgoHelper()
		Expect(err).NotTo(HaveOccurred())
		b, err := proto.Marshal(m)
		Expect(err).NotTo(HaveOccurred())
		all = append(all, b...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for _, m := range c.roster.Parties {
		conn, err := rpc.Dial(m.Address, m.Identity, credentials)
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		triples, ref := triplesv1.NewTriplesServiceClient(conn), &jobv1.SessionRef{JobId: j.GetId(), Ordinal: j.GetOrdinal()}
		st, err := triples.GetStatus(ctx, &jobv1.GetStatusRequest{Ref: ref})
		add(st, err)
		stream, err := triples.Watch(ctx, &jobv1.WatchRequest{Ref: ref})
		Expect(err).NotTo(HaveOccurred())
		for r, err := stream.Recv(); err == nil; r, err = stream.Recv() {
			add(r, nil)
		}
		batches, err := tuplesv1.NewTuplesServiceClient(conn).ListBatches(ctx, &tuplesv1.ListBatchesRequest{})
		add(batches, err)
		reservations, err := tuplesv1.NewTuplesServiceClient(conn).ListReservations(ctx, &tuplesv1.ListReservationsRequest{})
		add(reservations, err)
		epochs, err := keygenv1.NewKeygenServiceClient(conn).ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
		add(epochs, err)
	}
	return all
}
