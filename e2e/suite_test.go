// Package e2e tests the lodge binary from outside: real processes, real sockets, exit codes and
// output.
package e2e

import (
	"debug/buildinfo"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/lodge-mpc/lodge/engine/longtest"
)

// binary is the path of the lodge binary that all specs run. It is built once.
var binary string

func TestEndToEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	left := longtest.Left(t, long...)
	for _, name := range left {
		suite.SkipStrings = append(suite.SkipStrings, "^End to end "+regexp.QuoteMeta(name)+"|^"+regexp.QuoteMeta(name))
	}
	t.Logf("skipped %d of %d long containers: %s", len(left), len(long), strings.Join(left, "; "))
	RunSpecs(t, "End to end", suite, reporter)
}

// long lists the containers that take a minute or more, mostly because the peers of a killed
// process wait until they time out. They run only with -long, as in `make crashes`.
var long = []string{
	"processes that are killed during key generation",
	"keys that are rotated and destroyed while processes are killed",
	"reservations while processes are killed",
	"processes that are killed while threshold keys are made and used",
	"processes that are killed while multi-key keys are made and used",
	"a rolling upgrade to another version of the protocol",
}

var _ = SynchronizedBeforeSuite(func() []byte {
	own, ok := debug.ReadBuildInfo()
	Expect(ok).To(BeTrue())
	var args []string
	if tags := tagsOf(own); tags != "" {
		args = append(args, "-tags", tags)
	}
	path, err := gexec.Build("github.com/lodge-mpc/lodge/cmd/lodge", args...)
	Expect(err).NotTo(HaveOccurred())
	built, err := buildinfo.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(tagsOf(built)).To(Equal(tagsOf(own)))
	return []byte(path)
}, func(path []byte) {
	binary = string(path)
})

var _ = SynchronizedAfterSuite(func() { gexec.KillAndWait() }, gexec.CleanupBuildArtifacts)

// tagsOf returns the build tags of a program. lodge is built with the tags of its tests, which
// select the kernels.
func tagsOf(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			return s.Value
		}
	}
	return ""
}

// start runs lodge with these arguments in a new directory. The process is killed when the spec
// ends.
func start(args ...string) *gexec.Session {
	GinkgoHelper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = GinkgoT().TempDir()
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(10 * time.Second) })
	return session
}

// run runs lodge and waits until it exits.
func run(limit time.Duration, args ...string) *gexec.Session {
	GinkgoHelper()
	session := start(args...)
	Eventually(session, limit).Should(gexec.Exit())
	return session
}
