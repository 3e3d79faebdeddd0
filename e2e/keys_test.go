package e2e

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
)

// headerBytes is the size of the header of an object's file, which holds the object's key,
// encrypted under the store's key.
const headerBytes = 128

var _ = Describe("keys that are rotated and destroyed while processes are killed", Ordered, func() {
	var c *cluster
	var epoch, successor uint64
	headers := map[string][]byte{} // headers of p0's files of the first epoch

	rotation := func() *coordinatorv1.Rotation {
		r, err := c.jobs().ListEpochs(context.Background(), &coordinatorv1.ListEpochsRequest{})
		if err != nil || len(r.GetEpochs()) == 0 {
			return nil
		}
		return r.GetEpochs()[0].GetRotation()
	}
	// files calls f with the contents of every file in a directory tree of p0.
	files := func(dir string, f func(path string, b []byte)) {
		GinkgoHelper()
		Expect(filepath.WalkDir(filepath.Join(c.dir, "p0", dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				f(path, read(path))
			}
			return err
		})).To(Succeed())
	}

	BeforeAll(func() {
		c = newCluster(2)
		epoch = c.complete(keysJob()).GetEpoch()
		c.complete(triplesJob(epoch))
		c.kill("p0")
		files("vault/objects", func(path string, b []byte) {
			if len(b) >= headerBytes && bytes.HasPrefix(b, []byte("lodge object v1\n")) {
				headers[filepath.Base(path)] = b[16:headerBytes]
			}
		})
		Expect(len(headers)).To(BeNumerically(">=", 4), "of the secret, the public keys, the MAC key and the shares")
		c.start("p0")
	})

	It("replaces an epoch, although the coordinator is killed in the middle", func() {
		command := start("keys", "rotate", "1", "--dim", "16", "--security", "proved", "--cluster", c.dir)
		Eventually(rotation, within).ShouldNot(BeNil())
		c.reach(rotation().GetJobId(), 2)
		c.kill("coordinator")
		c.start("coordinator")
		Eventually(command, within).Should(gexec.Exit(0))
		Eventually(func() coordinatorv1.RotationState { return rotation().GetState() }, within).Should(
			Equal(coordinatorv1.RotationState_ROTATION_STATE_COMPLETED))
		successor = rotation().GetSuccessor()
		Expect(successor).To(BeNumerically(">", epoch))
		Expect(run(within, "keys", "rotate", "1", "--dim", "16", "--security", "proved", "--cluster", c.dir)).To(gexec.Exit(0))
		Expect(rotation().GetSuccessor()).To(Equal(successor), "it was replaced twice")
		Expect(run(within, "jobs", "submit", "--kind", "scalar", "--params", set, "--epoch", "1", "--cluster", c.dir)).NotTo(gexec.Exit(0))
		c.complete(triplesJob(successor))
	})

	It("erases a destroyed epoch completely, even if the party is killed in the middle", func() {
		command := start("keys", "destroy", "1", "--yes", "--cluster", c.dir)
		c.kill("p0")
		Eventually(command, within).Should(gexec.Exit())
		c.start("p0")
		Expect(run(within, "keys", "destroy", "1", "--yes", "--cluster", c.dir)).To(gexec.Exit(0))
		c.kill("p0")
		for _, dir := range []string{"vault", "audit"} {
			files(dir, func(path string, b []byte) {
				for name, header := range headers {
					Expect(bytes.Contains(b, header)).To(BeFalse(), "%s has the key of %s", path, name)
				}
			})
		}
		for name := range headers {
			_, err := os.Stat(filepath.Join(c.dir, "p0", "vault", "objects", name))
			Expect(err).To(MatchError(os.ErrNotExist), name)
		}
		c.start("p0")
		c.complete(triplesJob(successor))
	})
})
