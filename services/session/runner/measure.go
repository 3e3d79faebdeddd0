package runner

import (
	"strings"

	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/host/metrics"
)

// proofsAmong counts the peers' proofs among the messages of a round; a successful step has
// verified them. A proof of plaintext knowledge ends with its response, and keygen has one message
// with all proofs about a peer's shares.
func proofsAmong(wants []round.Want) map[string]int {
	found := map[string]int{}
	for _, w := range wants {
		switch {
		case w.Name == "keygen/proofs":
			found[metrics.ProofKeys]++
		case strings.HasSuffix(w.Name, "/response"):
			found[metrics.ProofPlaintexts]++
		}
	}
	return found
}

// count counts whom a session's failure names, and which checks failed.
func (o Options) count(f *Failure) {
	switch f.Outcome {
	case Blamed:
		if f.Party >= 0 && int(f.Party) < len(o.Names) {
			o.Metrics.Blamed(o.Names[f.Party], f.Check)
		}
		switch {
		case strings.HasPrefix(f.Check, "popk-"):
			o.Metrics.Proofs(metrics.ProofPlaintexts, false, 1)
		case strings.HasPrefix(f.Check, "keygen-"):
			o.Metrics.Proofs(metrics.ProofKeys, false, 1)
		}
	case Aborted:
		if f.Check == maccheck.CheckMAC || f.Check == maccheck.CheckZero || f.Check == maccheck.CheckSacrifice {
			o.Metrics.Count(metrics.MACCheckFailures, 1, "offline")
		}
	}
}
