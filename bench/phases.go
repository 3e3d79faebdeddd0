package bench

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Snapshot maps the series of a process to their values at one time. Its keys are names with labels
// in Prometheus' text format.
type Snapshot map[string]float64

// ParseMetrics reads Prometheus' text format.
func ParseMetrics(r io.Reader) (Snapshot, error) {
	s := Snapshot{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			return nil, fmt.Errorf("bench: no value in the metric %q", line)
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("bench: metric %q: %w", line, err)
		}
		s[line[:at]] = v
	}
	return s, lines.Err()
}

// Since returns the difference to an earlier snapshot of the same process.
func (s Snapshot) Since(before Snapshot) Snapshot {
	d := Snapshot{}
	for k, v := range s {
		d[k] = v - before[k]
	}
	return d
}

// Phase is a part of a batch of triples.
type Phase struct{ Name, What string }

// Phases are all parts; a party's time in a batch is their sum. A round's step belongs to the
// message that it waited for.
var Phases = []Phase{
	{"sample", "sampling, encryption, messages of decryption"},
	{"prove", "responses of proofs"},
	{"evaluate", "evaluation"},
	{"decrypt", "decryption"},
	{"check", "sacrifice and MAC check"},
	{"mackey", "MAC key"},
	{"other", "other rounds"},
	{"transport", "waiting and transport, with checks of proofs and results as they arrive"},
}

// phaseOf is the phase of a round by its label.
func phaseOf(round string) string {
	rest, triple := strings.CutPrefix(round, "triple/")
	switch {
	case round == "local":
		return "sample"
	case strings.HasPrefix(round, "mackey/") || rest == "mackey":
		return "mackey"
	case triple && strings.HasPrefix(rest, "statement/"):
		return "prove"
	case triple && (rest == "ciphertexts" || strings.HasPrefix(rest, "evaluated")):
		return "evaluate"
	case triple && (rest == "share" || strings.HasPrefix(rest, "share/")):
		return "decrypt"
	case triple && (rest == "mac" || strings.HasPrefix(rest, "mac/") || strings.HasPrefix(rest, "sacrifice")):
		return "check"
	}
	return "other"
}

// Shares returns the share of each phase in the wall time of a party's rounds of the triples
// protocol, in percent. Its input is the difference of two snapshots.
func Shares(counted Snapshot) map[string]float64 {
	const compute, wall = `lodge_round_compute_seconds_sum{protocol="triples",round="`, `lodge_round_duration_seconds_sum{protocol="triples",round="`
	seconds, total, steps := map[string]float64{}, 0.0, 0.0
	for series, v := range counted {
		if round, ok := strings.CutPrefix(series, compute); ok {
			seconds[phaseOf(strings.TrimSuffix(round, `"}`))] += v
			steps += v
		} else if strings.HasPrefix(series, wall) {
			total += v
		}
	}
	seconds["transport"] = max(0, total-steps)
	shares := map[string]float64{}
	for _, p := range Phases {
		shares[p.Name] = 0
		if total > 0 {
			shares[p.Name] = 100 * seconds[p.Name] / total
		}
	}
	return shares
}
