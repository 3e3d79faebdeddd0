package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/offline/keyring"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// This test searches all output of the processes for all secrets that a party or client can name,
// after work that succeeds and work that fails in every way that a client can cause. Values that a
// session draws and wipes (masks, seeds, witnesses) are unknown outside the session, so the test
// cannot search for them; their types do not print.
var _ = Describe("the secrets of processes", Ordered, func() {
	var c *cluster
	var secrets *canaries
	outputs := map[string][]byte{} // by source
	metrics := map[string]string{} // address by process
	add := func(from string, b []byte) { outputs[from] = append(append(outputs[from], b...), '\n') }

	BeforeAll(func() {
		c = newCluster(2)
		secrets = newCanaries()
		for _, m := range c.roster.Parties {
			metrics[m.Name] = freeAddress()
			c.edit(m.Name, func(s string) string { return s + "metrics_listen: " + metrics[m.Name] + "\n" })
			c.kill(m.Name)
			c.start(m.Name)
		}
		c.kill("p1") // one party logs in JSON
		var err error
		c.procs["p1"], err = gexec.Start(exec.Command(binary, "party", "--log-json", "--set", "log_level=debug", "--config", filepath.Join(c.dir, "p1", "party.yaml")), GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() int { return run(within, "status", "--cluster", c.dir).ExitCode() }, within).Should(Equal(0))
	})

	It("are in no core dump", func() {
		for name, p := range c.procs {
			limits := read(fmt.Sprintf("/proc/%d/limits", p.Command.Process.Pid))
			Expect(string(limits)).To(MatchRegexp(`(?m)^Max core file size +0 +0 `), name)
			Expect(p.Err.Contents()).NotTo(ContainSubstring("core dumps could not be disabled"), name)
		}
	})

	It("are created, and used in successful and failing work", func() {
		epoch := c.complete(keysJob()).GetEpoch()
		q := keysJob()
		q.Purpose = jobv1.Purpose_PURPOSE_DECRYPTION
		forClients := c.complete(q).GetEpoch()
		j := c.complete(triplesJob(epoch))
		absent := triplesJob(99)
		absent.Params, absent.Purpose = set, jobv1.Purpose_PURPOSE_TRIPLES
		_, err := c.jobs().SubmitJob(context.Background(), &coordinatorv1.SubmitJobRequest{Job: absent})
		Expect(err).To(HaveOccurred())
		add("errors", fmt.Append(nil, err))
		reserved, half := c.reserve(c.complete(triplesJob(epoch))), c.reserve(j)
		for i, conn := range c.clients {
			tuples := tuplesv1.NewTuplesServiceClient(conn)
			for _, id := range []string{reserved, reserved, half, "nothing"} {
				stream, err := tuples.Fetch(context.Background(), &tuplesv1.FetchRequest{ReservationId: id})
				Expect(err).NotTo(HaveOccurred())
				var r *tuplesv1.FetchResponse
				for r, err = stream.Recv(); err == nil; r, err = stream.Recv() {
					secrets.plant("shares of tuples", r.GetChunk())
					if k := r.GetReservation().GetMacKeyId(); k != "" {
						for _, purpose := range []tuplesv1.Purpose{tuplesv1.Purpose_PURPOSE_ONLINE, tuplesv1.Purpose_PURPOSE_UNSPECIFIED} {
							drawn, err := tuples.DrawMacKey(context.Background(), &tuplesv1.DrawMacKeyRequest{MacKeyId: k, Purpose: purpose})
							secrets.plant("share of the MAC key", drawn.GetShare())
							add("errors", fmt.Append(nil, err))
						}
					}
				}
				if err != io.EOF {
					add("errors", fmt.Append(nil, err))
				}
			}
			_, err := tuples.DrawMacKey(context.Background(), &tuplesv1.DrawMacKeyRequest{MacKeyId: fmt.Sprint("mac-", i)})
			add("errors", fmt.Append(nil, err))
		}

		values := make([]byte, 16*512) // 2048/4 slots of p128
		rand.Read(values)
		secrets.plant("values that a client proves", values)
		for i := range 512 {
			values[16*i+15] &= 0x7f // below the modulus
		}
		secrets.plant("values that a client proves", values)
		m := c.roster.Parties[1]
		client := popkv1.NewPopkServiceClient(c.dial(devnet.App, m.Address, m.Identity))
		tooLarge := append(append([]byte{}, values[:len(values)-16]...), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"...)
		for _, given := range [][]byte{values, values[1:], tooLarge, append(values[:len(values):len(values)], values...), nil} {
			stream, err := client.Prove(context.Background())
			Expect(err).NotTo(HaveOccurred())
			_ = stream.Send(&popkv1.ProveRequest{Header: &popkv1.ProofHeader{Epoch: forClients, Field: "p128", Ciphertexts: 1}, Values: given}) // Recv returns the error
			_ = stream.CloseSend()
			for err == nil {
				_, err = stream.Recv()
			}
			add("errors", fmt.Append(nil, err))
		}
		Expect(string(outputs["errors"])).To(ContainSubstring("EOF"), "no proof was made")
		Expect(strings.Count(string(outputs["errors"]), "rpc error")).To(BeNumerically(">", 8))

		id := c.submit(triplesJob(epoch)) // a job that a party leaves in the middle
		c.reach(id, 3)
		c.kill("p1")
		c.end(id)
		outputs["p1, before it was killed"] = append(c.procs["p1"].Out.Contents(), c.procs["p1"].Err.Contents()...)
		c.start("p1")
	})

	It("are not in any output", func() {
		for name, address := range metrics {
			r, err := http.Get("http://" + address + "/metrics")
			Expect(err).NotTo(HaveOccurred())
			defer r.Body.Close()
			page, err := io.ReadAll(r.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(page)).To(ContainSubstring("lodge_"))
			add("metrics of "+name, page)
		}
		for _, command := range []string{
			"status", "doctor", "stock", "jobs list", "reservations list", "batches list --party p0", "batches list --party p1",
			"mac-keys list --party p0", "keys list --party p0", "fetch nothing --party p0",
		} {
			for _, format := range [][]string{{}, {"--json"}} {
				session := run(within, append(append(strings.Fields(command), "--cluster", c.dir), format...)...)
				add("lodge "+command, append(session.Out.Contents(), session.Err.Contents()...))
			}
		}
		for _, conn := range []string{"p0", "p1"} {
			session := run(within, "audit", "show", filepath.Join(c.dir, conn, "audit"))
			Expect(session).To(gexec.Exit(0))
			add("lodge audit show", session.Out.Contents())
		}
		// A stack trace contains the arguments of function calls.
		for name, p := range c.procs {
			p.Signal(syscall.SIGQUIT)
			Eventually(p, within).Should(gexec.Exit())
			all := append(p.Out.Contents(), p.Err.Contents()...)
			Expect(string(all)).To(ContainSubstring("goroutine "))
			add("log and stack of "+name, all)
		}
		for _, name := range []string{"p0", "p1"} {
			session := run(within, "store", "stats", "--config", filepath.Join(c.dir, name, "party.yaml"), "--json")
			add("lodge store", append(session.Out.Contents(), session.Err.Contents()...))
			backup := filepath.Join(GinkgoT().TempDir(), "backup")
			Expect(run(within, "store", "backup", "--out", backup, "--config", filepath.Join(c.dir, name, "party.yaml"))).To(gexec.Exit(0))
			add("backup", read(backup))
		}
		for _, dir := range []string{"coordinator/data", "p0/vault", "p0/audit", "p1/vault", "p1/audit"} {
			Expect(filepath.WalkDir(filepath.Join(c.dir, dir), func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					add(dir, read(path))
				}
				return err
			})).To(Succeed())
			Expect(len(outputs[dir])).To(BeNumerically(">", 100), dir)
		}
		for _, name := range []string{"p0", "p1"} {
			plantKeys(secrets, filepath.Join(c.dir, name))
		}
		for from, b := range outputs {
			Expect(secrets.search(b)).To(BeEmpty(), from)
		}
		// Control: the search finds one secret of each kind in a log.
		samples := secrets.samples()
		Expect(samples).To(HaveLen(8))
		for sort, secret := range samples {
			line := fmt.Sprintf("time=now level=INFO msg=\"session complete\" of=%x\n", secret)
			log := outputs["log and stack of p0"]
			leaking := append(slices.Clone(log[:min(len(log), 1<<16)]), line...)
			Expect(secrets.search(leaking)).To(ContainElement(HavePrefix(sort)))
		}
	})
})

// freeAddress returns an address that was unused a moment ago.
func freeAddress() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer l.Close()
	return l.Addr().String()
}

// plantKeys adds the secrets in the files of a stopped party: its private keys, the key of its
// store, and its shares of secret keys and of MAC keys.
func plantKeys(secrets *canaries, dir string) {
	GinkgoHelper()
	for _, name := range []string{"signing.key", "tls.key"} {
		block, _ := pem.Decode(read(filepath.Join(dir, name)))
		Expect(block).NotTo(BeNil())
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		switch k := key.(type) {
		case ed25519.PrivateKey:
			secrets.plant(name, k.Seed())
		case *ecdsa.PrivateKey:
			scalar, err := k.Bytes()
			Expect(err).NotTo(HaveOccurred())
			secrets.plant(name, scalar)
		default:
			Fail(fmt.Sprintf("a key of type %T", key))
		}
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(read(filepath.Join(dir, "vault.key")))))
	Expect(err).NotTo(HaveOccurred())
	secrets.plant("key of the store", raw)

	key, err := seal.LoadKey(filepath.Join(dir, "vault.key"))
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	v, err := vault.OpenPlace(ctx, seal.Place{Dir: filepath.Join(dir, "vault")}, key)
	Expect(err).NotTo(HaveOccurred())
	defer v.Close()
	epochs, err := v.Epochs()
	Expect(err).NotTo(HaveOccurred())
	Expect(epochs).To(HaveLen(2))
	ring := keyring.New(v, 1, true)
	for _, e := range epochs {
		in, err := v.OpenEpochSecret(e.ID)
		Expect(err).NotTo(HaveOccurred())
		stored, err := io.ReadAll(in)
		Expect(err).NotTo(HaveOccurred())
		secrets.piecewise("share of a secret key", stored, coefficientWindow)
		keys, err := ring.Load(e.ID, e.Purpose)
		Expect(err).NotTo(HaveOccurred())
		for _, residues := range keys.Secret.C {
			for _, w := range residues {
				secrets.word("share of a secret key, transformed", w)
			}
		}
		keys.Release()
	}
	list, err := v.MACKeys()
	Expect(err).NotTo(HaveOccurred())
	for _, k := range list {
		in, err := v.OpenMACKey(k.ID)
		if err != nil {
			continue // it was burnt by the failed session
		}
		share := make([]byte, 16)
		_, err = io.ReadFull(in, share)
		Expect(err).NotTo(HaveOccurred())
		secrets.plant("share of the MAC key", share)
	}
}
