package e2e

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/pki"
)

// evaluators are two evaluators of party 0, each in a process, with a separate certificate
// authority.
type evaluators struct {
	*cluster
	metrics string // address of party 0's metrics
}

// newEvaluators creates the evaluators and configures party 0 to compare their results.
func newEvaluators(c *cluster) *evaluators {
	GinkgoHelper()
	ca, err := pki.NewAuthority("party 0", time.Hour)
	Expect(err).NotTo(HaveOccurred())
	e := &evaluators{c, freeAddress()}
	section := "metrics_listen: " + e.metrics + "\nevaluators:\n  check: compare\n  tls: {ca: ../evaluators.pem}\n  processes:\n"
	Expect(os.WriteFile(filepath.Join(c.dir, "evaluators.pem"), ca.PEM(), 0o600)).To(Succeed())
	known, err := params.Lookup(set)
	Expect(err).NotTo(HaveOccurred())
	hash := known.Hash()
	for i, name := range []string{"e0", "e1"} {
		dir, identity, address := filepath.Join(c.dir, name), "spiffe://lodge/evaluator/"+name, freeAddress()
		cert, key, err := ca.Issue(pki.Leaf{Identity: identity, Hosts: []string{"127.0.0.1"}, Lifetime: time.Hour})
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Mkdir(dir, 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "tls.pem"), cert, 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "evaluator.yaml"), fmt.Appendf(nil, `name: %s
listen: %s
health_listen: %s
tls: {certificate: tls.pem, key: tls.key, ca: ../ca.pem}
party: {name: p0, identity: %s}
params: [{name: %s, hash: %s}]
max_memory: 1GiB
allow_insecure_params: true
`, name, address, freeAddress(), c.roster.Parties[0].Identity, set, hex.EncodeToString(hash[:])), 0o600)).To(Succeed())
		section += fmt.Sprintf("    - {name: %s, address: %q, identity: %s, domain: site-%d}\n", name, address, identity, i)
		Expect(run(20*time.Second, "config", "check", filepath.Join(dir, "evaluator.yaml"))).To(gexec.Exit(0))
	}
	c.edit("p0", func(s string) string { return s + section })
	Expect(run(20*time.Second, "config", "check", filepath.Join(c.dir, "p0", "party.yaml"))).To(gexec.Exit(0))
	return e
}

// serve starts an evaluator and waits until it is ready.
func (e *evaluators) serve(name string) {
	GinkgoHelper()
	file := filepath.Join(e.dir, name, "evaluator.yaml")
	e.procs[name] = start("evaluator", "--config", file)
	Eventually(func() int {
		return run(20*time.Second, "health", "--config", file).ExitCode()
	}, within).Should(BeZero())
}

// value returns a metric of party 0.
func (e *evaluators) value(series string) float64 {
	r, err := http.Get("http://" + e.metrics + "/metrics")
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	page, _ := io.ReadAll(r.Body)
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindSubmatch(page)
	if found == nil {
		return 0
	}
	v, _ := strconv.ParseFloat(string(found[1]), 64)
	return v
}

func (e *evaluators) up() float64 {
	return e.value(`lodge_evaluator_up{evaluator="e0"}`) + e.value(`lodge_evaluator_up{evaluator="e1"}`)
}

func (e *evaluators) computed(name string) float64 {
	return e.value(`lodge_evaluator_requests_total{evaluator="` + name + `",outcome="ok"}`)
}

var _ = Describe("a party with two evaluators", func() {
	It("makes tuples that the checker accepts, also when one is killed", func() {
		c := newCluster(3)
		e := newEvaluators(c)
		e.serve("e0")
		e.serve("e1")
		c.kill("p0")
		c.start("p0")
		Eventually(e.up, within).Should(BeNumerically("==", 2))

		demo := func() *gexec.Session {
			return start("demo", "--cluster", c.dir, "--kind", "matrix", "--dim", "8", "--json")
		}
		verified := func(session *gexec.Session) {
			GinkgoHelper()
			Eventually(session, 3*time.Minute).Should(gexec.Exit(0))
			var r map[string]any
			Expect(json.Unmarshal(session.Out.Contents(), &r)).To(Succeed())
			Expect(r["verified"]).To(And(Equal(r["tuples"]), BeNumerically(">", 0)))
		}
		verified(demo())
		before := e.computed("e0")
		Expect(before).To(BeNumerically(">", 0))
		Expect(e.computed("e1")).To(Equal(before))

		session := demo()
		Eventually(func() float64 { return e.computed("e0") }, 3*time.Minute, time.Millisecond).Should(BeNumerically(">", before))
		e.kill("e1")
		verified(session)
		Eventually(e.up, within).Should(BeNumerically("==", 1))
		verified(demo()) // party 0 computes locally: one evaluator is not enough
		Expect(e.value(`lodge_evaluator_local_total{reason="nobody"}`)).To(BeNumerically(">", 0))
		for _, name := range []string{"e0", "e1"} {
			Expect(e.value(`lodge_evaluator_excluded{evaluator="` + name + `"}`)).To(BeZero())
		}

		e.serve("e1")
		Eventually(e.up, within).Should(BeNumerically("==", 2))
		before = e.computed("e1")
		Eventually(func() float64 {
			verified(demo())
			return e.computed("e1")
		}, 5*time.Minute).Should(BeNumerically(">", before))
		Expect(e.procs["p0"].Err).To(gbytes.Say("evaluator is down"))
		e.procs["e0"].Terminate().Wait(within)
		Expect(e.procs["e0"]).To(gexec.Exit(0))
	})
})
