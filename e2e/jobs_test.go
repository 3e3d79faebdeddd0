package e2e

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

// jobRecord has the fields of a job's JSON that these specs use.
type jobRecord struct {
	ID, State, Kind, Batch string
	Epoch, Made            uint64
	Failure                struct {
		Outcome, Reason string
		Suspects        []uint32
	}
	Parties []struct {
		Name, State string
		Reachable   bool
	}
}

var _ = Describe("lodge jobs", Ordered, func() {
	var c *cluster
	BeforeAll(func() { c = newCluster(3) })

	with := func(args ...string) []string { return append([]string{"jobs", "--cluster", c.dir}, args...) }
	// decoded runs lodge jobs, decodes its JSON and checks the exit code.
	decoded := func(out any, code int, args ...string) *gexec.Session {
		GinkgoHelper()
		session := run(within, append(with("--json"), args...)...)
		Expect(session).To(gexec.Exit(code))
		Expect(json.Unmarshal(session.Out.Contents(), out)).To(Succeed())
		return session
	}
	scalar := func(more ...string) []string {
		return append([]string{"submit", "--kind", "scalar", "--params", set, "--epoch", "1", "--count", "4000"}, more...)
	}

	It("makes keys and triples, and shows them", func() {
		session := run(within, with("submit", "--kind", "keys", "--params", set, "--dim", "16", "--wait")...)
		Expect(session).To(gexec.Exit(0))
		Expect(session.Out).To(gbytes.Say(`state +completed`))
		Expect(session.Out).To(gbytes.Say(`epoch +1`))
		Expect(session.Err).To(gbytes.Say(`keys: completed`))

		id := text(run(within, with(scalar("--timeout", "2m", "--idempotency-key", "first")...)...))
		Expect(text(run(within, with(scalar("--timeout", "2m", "--idempotency-key", "first")...)...))).To(Equal(id))
		Expect(run(within, with("watch", id)...)).To(gexec.Exit(0))
		var j jobRecord
		decoded(&j, 0, "show", id)
		Expect(j.State).To(Equal("completed"))
		Expect(j.Made).To(BeNumerically(">=", 4000))
		Expect(j.Batch).NotTo(BeEmpty())
		Expect(j.Parties).To(HaveLen(3))

		session = run(within, with("submit", "--kind", "matrix", "--params", set, "--epoch", "1", "--shape", "5x6x3", "--dim", "16", "--wait")...)
		Expect(session).To(gexec.Exit(0))
		Expect(session.Out).To(gbytes.Say(`shape +5 x 6 x 3`))

		lines := strings.Split(text(run(within, with("list")...)), "\n")
		Expect(lines).To(HaveLen(4))
		Expect(lines[0]).To(MatchRegexp(`^ID +KIND +FIELD +STATE +AGE +PROGRESS +REASON$`))
		Expect(lines[1]).To(MatchRegexp(`matrix +p128 +completed`))
		Expect(lines[2]).To(HavePrefix(id))
		Expect(lines[3]).To(MatchRegexp(`keys +- +completed .* epoch 1 `))
	})

	It("cancels a running job without leaving partial results", func() {
		id := text(run(within, with(scalar()...)...))
		c.reach(id, 4)
		Expect(run(within, with("cancel", id, "--dry-run")...)).To(gexec.Exit(0))
		Expect(run(within, with("cancel", id, "--reason", "not needed")...)).To(gexec.Exit(0))
		session := run(within, with("watch", id)...)
		Expect(session).To(gexec.Exit(1))
		Expect(session.Err).To(gbytes.Say("\nlodge: cancelled: job " + id + ": cancelled: not needed .*\n$"))
		session = run(within, with("cancel", id)...)
		Expect(session).To(gexec.Exit(1))
		Expect(session.Err).To(gbytes.Say("^lodge: conflict: "))
		Expect(run(within, with(scalar("--wait")...)...)).To(gexec.Exit(0))
	})

	It("fails if the job fails, and names the killed party", func() {
		watching := start(with("--json", "watch", text(run(within, with(scalar()...)...)))...)
		Eventually(watching.Out, within).Should(gbytes.Say(`"state":"generating"`))
		c.kill("p1")
		c.start("p1")
		Eventually(watching, within).Should(gexec.Exit(1))
		Expect(watching.Err).To(gbytes.Say(`^lodge: (timeout|abort|peer_abort): job .*party 1 \(p1\).*\n$`))
		lines := strings.Split(text(watching), "\n")
		var j jobRecord
		Expect(json.Unmarshal([]byte(lines[len(lines)-1]), &j)).To(Succeed())
		Expect(j.State).To(Equal("failed"))
		Expect(j.Failure.Suspects).To(ContainElement(uint32(1)))
		session := run(within, with("show", j.ID)...)
		Expect(session).To(gexec.Exit(0))
		Expect(session.Out).To(gbytes.Say(`outcome: .*party 1 \(p1\)`))
		Expect(session.Out).To(gbytes.Say(`suspects, .*: party 1 \(p1\)`))
		Expect(session.Out).To(gbytes.Say(`PARTY +NAME +STATE`))
	})

	It("continues to watch after the coordinator restarts", func() {
		watching := start(with("--json", "watch", text(run(within, with(scalar()...)...)))...)
		Eventually(watching.Out, within).Should(gbytes.Say(`"state":"generating"`))
		c.kill("coordinator")
		c.start("coordinator")
		Eventually(watching, within).Should(gexec.Exit())
		lines := strings.Split(text(watching), "\n")
		var j jobRecord
		Expect(json.Unmarshal([]byte(lines[len(lines)-1]), &j)).To(Succeed())
		if j.State != "completed" { // the kill came in time
			Expect(j.State).To(Equal("failed"))
			Expect(watching).To(gexec.Exit(1))
			Expect(watching.Err).To(gbytes.Say("restarted"))
		}
		Expect(run(within, with(scalar("--wait")...)...)).To(gexec.Exit(0))
	})

	It("reports in one line the error and the next step", func() {
		for want, args := range map[string][]string{
			`not_found: no job "j0" .*lodge jobs list`:  with("show", "j0"),
			`policy_refused: .*pin the set`:             with("submit", "--kind", "keys", "--params", "S14-99"),
			`not_found: no epoch .*lodge jobs submit.*`: with("submit", "--kind", "scalar"),
			`forbidden: .*`:                        with("list", "--identity", c.dir+"/clients/app.pem"),
			`not_found: .*--cluster`:               {"jobs", "list", "--cluster", "nowhere"},
			`invalid_request: required flag.*kind`: with("submit"),
		} {
			session := run(10*time.Second, args...)
			code := 1
			if strings.HasPrefix(want, "invalid_request") {
				code = 2
			}
			Expect(session).To(gexec.Exit(code))
			Expect(session.Out.Contents()).To(BeEmpty())
			Expect(session.Err).To(gbytes.Say("^lodge: " + want + ".*\n$"))
		}
		c.kill("coordinator")
		session := run(10*time.Second, with("list")...)
		Expect(session).To(gexec.Exit(1))
		Expect(session.Err).To(gbytes.Say("^lodge: unavailable: .*see that the coordinator runs and listens at " + c.roster.Coordinator.Address + ".*\n$"))
	})
})

// text returns a command's output without the last line break.
func text(session *gexec.Session) string {
	return strings.TrimSuffix(string(session.Out.Contents()), "\n")
}
