package e2e

import (
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/lodge-mpc/lodge/services/host/traces/tracestest"
)

var _ = Describe("traces", func() {
	It("have the spans of all processes for a job", func() {
		collector, err := tracestest.Start()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(collector.Stop)
		for name, value := range map[string]string{"ENDPOINT": collector.Address, "PLAINTEXT": "true"} {
			Expect(os.Setenv("LODGE_CONFIG_TRACING_"+name, value)).To(Succeed())
			DeferCleanup(os.Unsetenv, "LODGE_CONFIG_TRACING_"+name)
		}
		c := newCluster(2)
		j := c.complete(keysJob())
		traced := func() map[string]string { // the parents of the job's spans, by process and name
			spans, of := collector.Spans(), map[string]string{}
			name := map[string]string{}
			for _, s := range spans {
				name[string(s.GetSpanId())] = s.Process + " " + s.GetName()
			}
			var trace string
			for _, s := range spans {
				if s.Process == "coordinator" && s.Attribute("lodge.job") == j.GetId() {
					trace = string(s.GetTraceId())
				}
			}
			for _, s := range spans {
				if string(s.GetTraceId()) == trace {
					of[s.Process+" "+s.GetName()] = name[string(s.GetParentSpanId())]
				}
			}
			return of
		}
		Eventually(traced, 30*time.Second).Should(And(
			HaveKeyWithValue("coordinator job keys", ""),
			HaveKeyWithValue("p0 session keygen", "coordinator job keys"),
			HaveKeyWithValue("p1 session keygen", "coordinator job keys"),
			HaveKeyWithValue(MatchRegexp("^p0 round "), "p0 session keygen"),
			HaveKeyWithValue(MatchRegexp("^p1 round "), "p1 session keygen")))
	})
})
