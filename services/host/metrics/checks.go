package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Classes of checks that can name a peer.
const (
	classForm       = "form" // violations of the message format: length, order, number
	classSignature  = "signature"
	classEcho       = "echo"
	classCommitment = "commitment"
	classProof      = "proof"
	classOther      = "other"
)

var checkClasses = []string{classForm, classSignature, classEcho, classCommitment, classProof, classOther}

// classOf returns the class of a check, by its name.
func classOf(check string) string {
	switch check {
	case "shape", "size", "duplicate":
		return classForm
	case classSignature, classEcho, classCommitment:
		return check
	}
	if strings.HasPrefix(check, "popk-") || strings.HasPrefix(check, "keygen-") {
		return classProof
	}
	return classOther
}

// Kinds of proofs that are counted.
const (
	ProofPlaintexts = "plaintexts" // a peer's proof of plaintext knowledge
	ProofKeys       = "keys"       // a peer's proof that its shares of keys are well formed
	ProofClient     = "client"     // a client's proof
)

// checks holds the counters of verifications.
type checks struct {
	proofs       *prometheus.CounterVec
	mac          *prometheus.CounterVec
	evidenceLost prometheus.Counter
}

func newChecks(r *register) *checks {
	c := &checks{
		proofs: r.counter(Party, "lodge_proofs_checked_total",
			"Proofs that were verified: of peers about `plaintexts` and `keys`, and of a `client`. The outcome is `ok` or `refused`.", "proof", "outcome"),
		mac: r.counter(Party, "lodge_mac_check_failures_total",
			"Checks of MACs that failed: `offline`, before anything was released, which drops the batch, or `online`, as a client reports, which burns a MAC key.", "phase"),
		evidenceLost: r.count(Party, "lodge_evidence_lost_total", "Sessions that could not keep all data that evidence of a cheat may need."),
	}
	for _, proof := range []string{ProofPlaintexts, ProofKeys, ProofClient} {
		c.proofs.WithLabelValues(proof, "ok")
		c.proofs.WithLabelValues(proof, "refused")
	}
	c.mac.WithLabelValues("offline")
	c.mac.WithLabelValues("online")
	return c
}

// Proofs counts n proofs that were verified.
func (m *Metrics) Proofs(proof string, ok bool, n int) {
	if m == nil || n == 0 {
		return
	}
	outcome := "ok"
	if !ok {
		outcome = "refused"
	}
	m.checks.proofs.WithLabelValues(proof, outcome).Add(float64(n))
}

// MACCheckFailed counts a MAC check that failed at this party, or in an online phase according to a
// client's report.
func (m *Metrics) MACCheckFailed(online bool) {
	switch {
	case m == nil:
	case online:
		m.checks.mac.WithLabelValues("online").Inc()
	default:
		m.checks.mac.WithLabelValues("offline").Inc()
	}
}

// EvidenceLost counts a session that could not keep all data that evidence may need.
func (m *Metrics) EvidenceLost() {
	if m != nil {
		m.checks.evidenceLost.Inc()
	}
}

// conduct holds the metrics of a party's record of its peers' cheats.
type conduct struct {
	proven, excluded, unnamed, stopped prometheus.Gauge
	failures, offers                   *prometheus.CounterVec
}

func newConduct(r *register) *conduct {
	gauge := func(name, help string) prometheus.Gauge { return r.gauge(Party, name, help).WithLabelValues() }
	return &conduct{
		proven:   gauge("lodge_accusations", "Accusations of parties of the roster that are proved and not pardoned."),
		excluded: gauge("lodge_excluded_parties", "Parties of the roster that accusations exclude."),
		unnamed:  gauge("lodge_unnamed_failures", "Failures without a named party that count towards stopping generation."),
		stopped:  gauge("lodge_generation_stopped", "1 while failures without a named party stop generation, else 0."),
		failures: r.counter(Party, "lodge_unnamed_failures_total", "Sessions that failed because an unidentified party cheated.", "check"),
		offers:   r.counter(Party, "lodge_accusations_offered_total", "Files of evidence that peers offered.", "outcome"),
	}
}

// Conduct sets the number of proved accusations, of excluded parties and of failures that count,
// and whether these stop generation.
func (m *Metrics) Conduct(proven, excluded, unnamed int, stopped bool) {
	if m == nil {
		return
	}
	m.conduct.proven.Set(float64(proven))
	m.conduct.excluded.Set(float64(excluded))
	m.conduct.unnamed.Set(float64(unnamed))
	m.conduct.stopped.Set(truth(stopped))
}

// UnnamedChecks initialises the counters of these checks to 0.
func (m *Metrics) UnnamedChecks(checks ...string) {
	if m == nil {
		return
	}
	for _, check := range checks {
		m.conduct.failures.WithLabelValues(check)
	}
}

// UnnamedFailure counts a session by the check that failed.
func (m *Metrics) UnnamedFailure(check string) {
	if m != nil {
		m.conduct.failures.WithLabelValues(check).Inc()
	}
}

// Offer counts a file that a peer offered: "proven", "known" or an error code.
func (m *Metrics) Offer(outcome string) {
	if m != nil {
		m.conduct.offers.WithLabelValues(outcome).Inc()
	}
}
