package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

// bgvSet is a set for BGV keys with fast key generation.
const bgvSet = "insecure-B5-17"

// pip installs the Python client into a new virtual environment and returns its interpreter.
// Without a package index or a package cache, the spec is skipped.
func pip(dir string) (python string) {
	GinkgoHelper()
	source := filepath.Join(dir, "source")
	Expect(os.CopyFS(source, os.DirFS(filepath.Join("..", "clients", "python")))).To(Succeed())
	out, err := exec.Command("python3", "-m", "venv", filepath.Join(dir, "venv")).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	python = filepath.Join(dir, "venv", "bin", "python")
	out, err = exec.Command(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", source+"[sealed,examples]").CombinedOutput()
	if sign := offline(string(out)); err != nil && sign != "" {
		Skip("no package index for pip: " + sign)
	}
	Expect(err).NotTo(HaveOccurred(), string(out))
	return python
}

// offline returns the part of pip's output which shows that pip cannot reach a package index.
func offline(output string) string {
	for _, sign := range []string{"Temporary failure in name resolution", "NewConnectionError", "ConnectTimeoutError", "No matching distribution found"} {
		if strings.Contains(output, sign) {
			return sign
		}
	}
	return ""
}

var _ = Describe("the Python client", func() {
	It("is installed with pip, and passes its tests against a cluster", func() {
		dir := GinkgoT().TempDir()
		installed := make(chan string, 1)
		go func() { // concurrently with the jobs below
			defer GinkgoRecover()
			defer close(installed)
			installed <- pip(dir)
		}()
		c := newClusterWith(3, []string{"--multikey", multikeySet}, thresholdSet, bgvSet)
		for _, party := range []string{"p0", "p1"} {
			Expect(run(time.Minute, "mk", "keys", "make", "--party", party, "--cluster", c.dir)).To(gexec.Exit(0))
		}
		group := c.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Params: multikeySet}).GetEpoch()
		bgv := c.complete(&coordinatorv1.JobRequest{
			Kind: jobv1.Kind_KIND_KEYS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Params: bgvSet, Galois: []uint32{5, 63},
		}).GetEpoch()
		threshold := c.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Params: thresholdSet}).GetEpoch()
		for _, quorum := range [][]uint32{{0, 1}, {0, 2}, {1, 2}} {
			for _, epoch := range []uint64{bgv, threshold, group} {
				c.complete(&coordinatorv1.JobRequest{
					Kind: jobv1.Kind_KIND_MASKS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Epoch: epoch, Count: 2000, Group: quorum, Form: jobv1.MaskForm_MASK_FORM_EXACT,
				})
			}
		}
		keys := keysJob()
		keys.Dim = 4
		epoch := c.complete(keys).GetEpoch()
		p64 := triplesJob(epoch)
		p64.Field = "p64"
		c.complete(p64)
		for range 2 { // the tests of lodge_mpc.online take triples, too
			c.complete(triplesJob(epoch))
		}
		matrix := triplesJob(epoch)
		matrix.Kind, matrix.Dim, matrix.Count, matrix.Shape = jobv1.Kind_KIND_MATRIX, 4, 2, &jobv1.Shape{Rows: 3, Inner: 2, Columns: 4}
		c.complete(matrix)
		convolution := triplesJob(epoch)
		convolution.Kind, convolution.Dim, convolution.Count = jobv1.Kind_KIND_CONVOLUTION, 4, 2
		convolution.Shape = &jobv1.Shape{Convolution: &jobv1.Convolution{
			Channels: 2, Height: 4, Width: 3, Outputs: 3, KernelHeight: 3, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1, PaddingHeight: 1,
		}}
		c.complete(convolution)
		for _, kind := range []jobv1.Kind{jobv1.Kind_KIND_SQUARE, jobv1.Kind_KIND_BIT} {
			q := triplesJob(epoch)
			q.Kind, q.Count = kind, 100
			c.complete(q)
		}
		for party := range uint32(3) {
			q := triplesJob(epoch)
			q.Kind, q.Count, q.InputParty = jobv1.Kind_KIND_INPUT, 400, party
			c.complete(q)
		}
		python, ok := <-installed
		if !ok {
			return // skipped or failed, as already reported
		}
		runExamples(python)

		tests, err := filepath.Abs(filepath.Join("..", "clients", "python", "tests"))
		Expect(err).NotTo(HaveOccurred())
		cmd := exec.Command(python, "-B", "-W", "error::DeprecationWarning:lodge_mpc", "-m", "unittest", "discover", "--verbose", "--start-directory", tests)
		cmd.Dir = dir // outside the source tree, to test the installed package
		cmd.Env = append(os.Environ(), "LODGE_CLUSTER="+c.dir)
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		GinkgoWriter.Write(out)
	})
})
