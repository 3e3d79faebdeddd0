package e2e

import (
	"context"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// library connects like a client program of a party, with the files that `lodge init` wrote.
func (c *cluster) library(name string) *lodge.Client {
	GinkgoHelper()
	config, err := lodge.Load(filepath.Join(c.dir, "clients", name+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	client, err := lodge.Dial(config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(client.Close)
	return client
}

var _ = Describe("the Go client", Ordered, func() {
	var c *cluster
	var clients []*lodge.Client
	var ctx context.Context
	class := lodge.Class{Kind: "scalar", Field: "p128"}
	BeforeAll(func() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), 3*time.Minute)
		DeferCleanup(cancel)
		c = newCluster(2)
		c.complete(triplesJob(c.complete(keysJob()).GetEpoch()))
		clients = []*lodge.Client{c.library(devnet.ClientName(0)), c.library(devnet.ClientName(1))}
	})

	It("draws shares that are triples under the MAC key", func() {
		r, err := clients[0].Reserve(ctx, class, 100, lodge.Wait(), lodge.For(devnet.ClientName(0), devnet.ClientName(1)))
		Expect(err).NotTo(HaveOccurred())
		key, sums, p := new(big.Int), make([][6]*big.Int, r.Count), new(big.Int)
		for _, client := range clients {
			share, err := client.MACKeyShare(ctx, r.MACKeyID)
			Expect(err).NotTo(HaveOccurred())
			key.Add(key, share.Int())
			s, err := client.Fetch(ctx, r.ID)
			Expect(err).NotTo(HaveOccurred())
			p = s.Modulus
			i := 0
			for t := range s.Triples() {
				for j, e := range []lodge.Element{t.A, t.B, t.C, t.MACA, t.MACB, t.MACC} {
					if sums[i][j] == nil {
						sums[i][j] = new(big.Int)
					}
					sums[i][j].Add(sums[i][j], e.Int())
				}
				i++
			}
			Expect(s.Err()).NotTo(HaveOccurred())
			Expect(i).To(Equal(100))
		}
		equal := func(x, y *big.Int) {
			GinkgoHelper()
			Expect(new(big.Int).Mod(x, p)).To(Equal(new(big.Int).Mod(y, p)))
		}
		for _, t := range sums {
			equal(new(big.Int).Mul(t[0], t[1]), t[2])
			for j := range 3 {
				equal(new(big.Int).Mul(key, t[j]), t[3+j])
			}
		}
	})

	It("continues where the party was killed", func() {
		r, err := clients[1].Reserve(ctx, class, 3000, lodge.Wait())
		Expect(err).NotTo(HaveOccurred())
		s, err := clients[0].Fetch(ctx, r.ID)
		Expect(err).NotTo(HaveOccurred())
		first := make([]byte, 1000)
		_, err = io.ReadFull(s, first)
		Expect(err).NotTo(HaveOccurred())
		c.kill("p0")
		back := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(back)
			time.Sleep(300 * time.Millisecond)
			c.start("p0")
		}()
		rest, err := io.ReadAll(s)
		Expect(err).NotTo(HaveOccurred())
		Eventually(back, within).Should(BeClosed())
		again, err := clients[0].Fetch(ctx, r.ID)
		Expect(err).NotTo(HaveOccurred())
		all, err := io.ReadAll(again)
		Expect(err).NotTo(HaveOccurred())
		Expect(int64(len(all))).To(Equal(again.Size()))
		Expect(append(first, rest...)).To(Equal(all))

		Expect(c.library(devnet.ClientName(1)).Fetch(ctx, r.ID)).NotTo(BeNil()) // from the other party
		returned, err := clients[1].Release(ctx, r.ID)
		Expect(err).NotTo(HaveOccurred())
		Expect(returned).To(BeFalse(), "shares that were drawn are in stock again")
		_, err = clients[0].Fetch(ctx, r.ID)
		Expect(err).To(HaveOccurred())
	})

	It("is as short as its example", func() {
		source, err := os.ReadFile(filepath.Join("..", "clients", "go", "lodge", "example_test.go"))
		Expect(err).NotTo(HaveOccurred())
		dir := GinkgoT().TempDir()
		program := strings.NewReplacer("package lodge_test", "package main", "func Example()", "func main()", "1000", "500").Replace(string(source))
		Expect(os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600)).To(Succeed())
		built, err := exec.Command("go", "build", "-o", filepath.Join(dir, "example"), filepath.Join(dir, "main.go")).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(built))
		Expect(os.Symlink(c.dir, filepath.Join(dir, "lodge-dev"))).To(Succeed())
		cmd := exec.Command(filepath.Join(dir, "example"))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(regexp.MustCompile(`(?m)^\d+ \d+ \d+$`).FindAll(out, -1)).To(HaveLen(500))
	})

	It("burns the key of a check that failed", func() {
		r, err := clients[0].Reserve(ctx, class, 1)
		Expect(err).NotTo(HaveOccurred())
		n, err := clients[0].ReportFailedCheck(ctx, r.MACKeyID, "a test")
		Expect(err).NotTo(HaveOccurred())
		Expect(n).To(BeNumerically(">", 0))
		_, err = clients[0].Fetch(ctx, r.ID)
		Expect(err).To(MatchError(&lodge.Error{Code: lodge.Burnt}), fmt.Sprint(err))
		_, err = clients[0].MACKeyShare(ctx, r.MACKeyID)
		Expect(err).To(MatchError(&lodge.Error{Code: lodge.Burnt}))
		_, err = clients[1].PoolMACKeyShare(ctx, r.MACKeyID)
		Expect(err).NotTo(HaveOccurred())
		_, err = clients[1].MACKeyShare(ctx, r.MACKeyID)
		Expect(err).To(MatchError(&lodge.Error{Code: lodge.Burnt}))
	})
})
