package bench

import (
	"math"
	"strings"
	"testing"
)

const page = `# HELP lodge_round_compute_seconds Time of a round's own step.
# TYPE lodge_round_compute_seconds histogram
lodge_round_compute_seconds_bucket{protocol="triples",round="local",le="0.001"} 1
lodge_round_compute_seconds_sum{protocol="keygen",round="keygen/agree"} 100
lodge_round_compute_seconds_sum{protocol="triples",round="local"} 3
lodge_round_compute_seconds_sum{protocol="triples",round="triple/ciphertexts"} 5
lodge_round_compute_seconds_sum{protocol="triples",round="triple/mac/z/open"} 1
lodge_round_duration_seconds_sum{protocol="triples",round="local"} 3
lodge_round_duration_seconds_sum{protocol="triples",round="triple/ciphertexts"} 6
lodge_round_duration_seconds_sum{protocol="triples",round="triple/mac/z/open"} 2
process_cpu_seconds_total 12.5
`

func TestShares(t *testing.T) {
	after, err := ParseMetrics(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	before := Snapshot{`lodge_round_compute_seconds_sum{protocol="triples",round="local"}`: 1,
		`lodge_round_duration_seconds_sum{protocol="triples",round="local"}`: 1, "process_cpu_seconds_total": 2}
	d := after.Since(before)
	if d["process_cpu_seconds_total"] != 10.5 {
		t.Errorf("%v CPU-seconds", d["process_cpu_seconds_total"])
	}
	got, sum := Shares(d), 0.0
	for name, want := range map[string]float64{"sample": 20, "evaluate": 50, "check": 10, "transport": 20, "prove": 0} {
		if math.Abs(got[name]-want) > 1e-9 {
			t.Errorf("%s: %v %%, want %v", name, got[name], want)
		}
	}
	for _, v := range got {
		sum += v
	}
	if math.Abs(sum-100) > 1e-9 || len(got) != len(Phases) {
		t.Errorf("%v: %v %%", got, sum)
	}
	for _, v := range Shares(Snapshot{}) {
		if v != 0 {
			t.Error("a share of nothing")
		}
	}
}

func TestPhaseOf(t *testing.T) {
	for round, want := range map[string]string{
		"local": "sample", "mackey/response": "mackey", "triple/mackey": "mackey", "triple/statement/open": "prove", "triple/ciphertexts": "evaluate",
		"triple/share": "decrypt", "triple/mac/z/commit": "check", "triple/sacrifice/coin/open": "check", "triple/sacrifice": "check", "prelude/nonce": "other", "triple": "other", "echo": "other",
	} {
		if got := phaseOf(round); got != want {
			t.Errorf("%s belongs to %s, want %s", round, got, want)
		}
	}
}

func TestParseMetricsRefuses(t *testing.T) {
	for _, bad := range []string{"lodge_jobs", "lodge_jobs x"} {
		if _, err := ParseMetrics(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
