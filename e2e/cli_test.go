package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

var _ = Describe("the command line", func() {
	It("prints its help and exits with 0", func() {
		session := run(10*time.Second, "--help")
		Expect(session).To(gexec.Exit(0))
		Expect(session.Out).To(gbytes.Say("verify"))
	})

	DescribeTable("rejects with one line and an exit code", func(code int, want string, args ...string) {
		session := run(10*time.Second, args...)
		Expect(session).To(gexec.Exit(code))
		Expect(session.Out.Contents()).To(BeEmpty())
		Expect(session.Err).To(gbytes.Say("^lodge: .*" + want))
	},
		Entry("an unknown command", 2, `unknown command "nonsense"`, "nonsense"),
		Entry("an unknown flag", 2, "unknown flag", "verify", "--nonsense"),
		Entry("missing shares", 1, "no such file", "verify", "nowhere"),
	)
})
