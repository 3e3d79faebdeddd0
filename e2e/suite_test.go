// Package e2e tests the lodge binary from outside: real processes, real sockets, exit codes and what a user reads.
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

// binary is the lodge that all specs run, built once.
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
	t.Logf("left out %d of %d long ones: %s", len(left), len(long), strings.Join(left, "; "))
	RunSpecs(t, "End to end", suite, reporter)
}

// long are the containers that take a minute or more, mostly because peers of a process that is killed must wait before
// they give it up. They run with -long alone, as `make crashes` does.
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

// tagsOf are the build tags of a program. lodge is built with those of its tests, which choose the kernels.
func tagsOf(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			return s.Value
		}
	}
	return ""
}

// start runs lodge with these arguments in a directory of its own; the process is gone when the spec ends.
func start(args ...string) *gexec.Session {
	GinkgoHelper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = GinkgoT().TempDir()
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait(10 * time.Second) })
	return session
}

// run runs lodge to its end.
func run(limit time.Duration, args ...string) *gexec.Session {
	GinkgoHelper()
	session := start(args...)
	Eventually(session, limit).Should(gexec.Exit())
	return session
}
