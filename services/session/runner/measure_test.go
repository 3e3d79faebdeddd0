package runner

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/host/metrics"
)

// The proofs that a round wants are counted, each once.
func TestProofsAmong(t *testing.T) {
	wants := []round.Want{
		{Name: "triple/ciphertexts"}, {Name: "triple/response"}, {Name: "triple/response", From: 1}, {Name: "keygen/proofs"}, {Name: "keygen/agree"},
	}
	if got := proofsAmong(wants); !maps.Equal(got, map[string]int{metrics.ProofPlaintexts: 2, metrics.ProofKeys: 1}) {
		t.Error(got)
	}
}

// A failure is counted by the party that it blames and by the failed check; a failure without blame
// is not counted.
func TestCount(t *testing.T) {
	for _, c := range []struct {
		failure Failure
		want    []string // series that are 1
	}{
		{Failure{Outcome: Blamed, Party: 1, Check: popk.CheckBound}, []string{
			`lodge_blames_total{class="proof",peer="bob"}`, `lodge_proofs_checked_total{outcome="refused",proof="plaintexts"}`}},
		{Failure{Outcome: Blamed, Party: 1, Check: round.CheckShape}, []string{`lodge_blames_total{class="form",peer="bob"}`}},
		{Failure{Outcome: Blamed, Party: 1, Check: "keygen-equation"}, []string{
			`lodge_blames_total{class="proof",peer="bob"}`, `lodge_proofs_checked_total{outcome="refused",proof="keys"}`}},
		{Failure{Outcome: Aborted, Check: maccheck.CheckMAC}, []string{`lodge_mac_check_failures_total{phase="offline"}`}},
		{Failure{Outcome: Timeout, Cause: errors.New("slow")}, nil},
		{Failure{Outcome: Blamed, Party: 7, Check: round.CheckShape}, nil},
	} {
		m := metrics.New("test", metrics.Party)
		Options{Names: []string{"alice", "bob"}, Metrics: m}.count(&c.failure)
		found := map[string]bool{}
		all, err := m.Registry().Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			for _, x := range f.GetMetric() {
				var labels []string
				for _, l := range x.GetLabel() {
					labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
				}
				if x.GetCounter().GetValue() == 1 && strings.HasPrefix(f.GetName(), "lodge_") {
					found[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = true
				}
			}
		}
		want := map[string]bool{}
		for _, s := range c.want {
			want[s] = true
		}
		if !maps.Equal(found, want) {
			t.Errorf("%+v counts as %v", c.failure, found)
		}
	}
}
