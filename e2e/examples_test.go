package e2e

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

// examples lists the programs in clients/python/examples, in the order in which they run. Programs
// of all parties run once for each.
var examples = []struct {
	name string
	all  bool
	says string
}{
	{"shares.py", false, "<1000 scalar tuples over p128"},
	{"threshold.py", false, "sums: [5, 8, 5]"},
	{"multikey.py", false, "bits: [0, 1] opened by parties [(0, 1)]"},
	{"linear.py", false, "product: [-3.875, 13.5]"},
	{"online.py", true, "mean: 190.0, variance: 2866.67"},
	{"auction.py", true, "pieces sold of each lot: [10, 6, 12, 6]\nthe auction earns: 4840"},
	{"hospitals.py", true, "dot product: 921862, correlation: -0.833"},
	{"convolution.py", true, "features: (4, 6, 6) strongest edge of each kernel: [45, 30, 30, 30]"},
	{"logistic.py", true, "benign with probability: [0.0, 0.93, 1.0, 1.0] for patients 18 to 21"},
	{"vote.py", false, "accepted by 3 parties [(0, 1, 2)]"},
	{"open.py", false, "c = ab: True\nthe MACs are right: True"}, // retires the keys
}

// runExamples runs every example against `lodge dev` with the sets for tests, as printed.
func runExamples(python string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	cluster := filepath.Join(dir, "lodge-dev")
	session := start("dev", "--dir", cluster, "--params", set+","+bgvSet+","+thresholdSet, "--multikey", multikeySet)
	Eventually(session.Out, 2*time.Minute).Should(gbytes.Say("All keys are made"))
	for _, command := range []string{"health", "status", "stock"} {
		Expect(run(time.Minute, command, "--cluster", cluster)).To(gexec.Exit(0))
	}
	files, err := filepath.Glob(filepath.Join("..", "clients", "python", "examples", "*.py"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).To(HaveLen(len(examples)))
	for _, e := range examples {
		program, err := filepath.Abs(filepath.Join("..", "clients", "python", "examples", e.name))
		Expect(err).NotTo(HaveOccurred())
		programs := [][]string{{python, "-B", program}}
		if e.all {
			programs = nil
			for party := range 3 {
				programs = append(programs, []string{python, "-B", program, strconv.Itoa(party)})
			}
		}
		var wg sync.WaitGroup
		for _, args := range programs {
			wg.Go(func() {
				defer GinkgoRecover()
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				Expect(err).NotTo(HaveOccurred(), string(out))
				Expect(string(out)).To(ContainSubstring(e.says), e.name)
			})
		}
		wg.Wait()
	}
	Eventually(session.Interrupt(), 20*time.Second).Should(gexec.Exit(0))
}
