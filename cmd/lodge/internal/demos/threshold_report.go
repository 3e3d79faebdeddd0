package demos

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/engine/lwe"
	ddec "github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
)

// ThresholdReport is the outcome of `lodge demo decrypt`.
type ThresholdReport struct {
	Parties          int      `json:"parties"`
	Quorum           int      `json:"quorum_size"`
	Params           string   `json:"params"`
	SecurityBits     float64  `json:"security_bits"` // against classical attacks; 0 for insecure sets
	QuantumBits      float64  `json:"quantum_security_bits"`
	KeygenSecurity   string   `json:"keygen_security"`
	Values           int      `json:"values"`
	Correct          int      `json:"correct"` // of 2*Values results
	KeygenSeconds    float64  `json:"keygen_seconds"`
	KeygenSentBytes  uint64   `json:"keygen_sent_bytes_per_party"`
	Quorums          int      `json:"quorums"`
	Masks            int      `json:"masks_per_quorum"`
	MasksSeconds     float64  `json:"masks_seconds"`
	MasksSentBytes   float64  `json:"sent_bytes_per_mask"` // by all parties of a quorum, for a mask that is kept
	KeyBytes         uint64   `json:"key_bytes"`
	FetchSeconds     float64  `json:"fetch_seconds"`
	CiphertextBytes  int      `json:"ciphertext_bytes"` // of all inputs
	Operations       int      `json:"operations"`       // bootstraps
	ComputeSeconds   float64  `json:"compute_seconds"`
	Killed           string   `json:"killed"`
	Used             []string `json:"quorum"`
	AllUpSeconds     float64  `json:"decrypt_seconds_all_up"`
	DecryptSeconds   float64  `json:"decrypt_seconds"` // after a party was killed
	RequestBytes     int      `json:"request_bytes_per_party"`
	AnswerBytes      int      `json:"answer_bytes_per_party"`
	Failure          float64  `json:"failure_probability"`
	PaperFailure     float64  `json:"paper_form_failure_probability"`
	PaperAnswerBytes int      `json:"paper_form_answer_bytes_per_party"`
	TotalSeconds     float64  `json:"total_seconds"`
}

// describe records the properties of the keys.
func (r *ThresholdReport) describe(k *threshold.Key) {
	s := k.Scheme()
	if !s.Insecure {
		bits := s.Security()
		least := bits.Ring.Min(bits.Switch)
		r.SecurityBits, r.QuantumBits = least.Classical, least.Quantum
	}
	r.KeygenSecurity, r.KeyBytes = k.Security, k.KeyBytes
	if p, err := ddec.ParamsOf(s, k.Threshold, true); err == nil {
		noise := s.NoiseOf(len(k.Holders), k.Threshold)
		r.PaperFailure = ddec.FailureProbability(p.Kind, p.Modulus, p.Parties, noise.Bootstrapped())
		r.PaperAnswerBytes = ddec.MaxAnswer(p, 2*r.Values)
	}
}

// encryptValues encrypts random values as a client, and returns one LWE ciphertext for each.
func encryptValues(r *ThresholdReport, k *threshold.Key, keys *lwe.Keys) (inputs []*lwe.LWE, values []uint64, err error) {
	s := k.Scheme()
	values = make([]uint64, r.Values)
	for i := range values {
		values[i] = rand.Uint64N(s.P)
	}
	public, err := s.PublicKey(keys)
	if err != nil {
		return nil, nil, err
	}
	rings, err := threshold.Encrypt(k, public, values, lwe.Padded)
	if err != nil {
		return nil, nil, err
	}
	r.CiphertextBytes = len(rings) * s.RingSize()
	inputs, err = threshold.NewFile(k, rings, len(values), lwe.Padded).Extract()
	return inputs, values, err
}

// tables returns the tables of m^2 mod P and of the parity of m.
func tables(s *lwe.Scheme) (square, parity *lwe.Table, err error) {
	squares, odd := make([]uint64, s.P), make([]uint64, s.P)
	for m := range s.P {
		squares[m], odd[m] = m*m%s.P, m%2
	}
	if square, err = s.NewTable(squares, lwe.Plain); err != nil {
		return nil, nil, err
	}
	parity, err = s.NewTable(odd, lwe.Boolean)
	return square, parity, err
}

// plaintexts returns the expected results. A bit decrypts to P/8 or -P/8.
func plaintexts(s *lwe.Scheme, values []uint64) (want []uint64) {
	for _, v := range values {
		want = append(want, v*v%s.P)
	}
	for i, v := range values {
		if v%2 == 1 && values[(i+1)%len(values)]%2 == 1 {
			want = append(want, s.P/8)
		} else {
			want = append(want, s.P-s.P/8)
		}
	}
	return want
}

// Print writes the report for people.
func (r *ThresholdReport) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, `
A client computed on %d encrypted values with %s, party %s was killed, and %s decrypted: any %d of %d do.
Security: %s; honest majority at key generation, at most %d of the %d at decryption, all following the protocol.

  right               %10d of %d   squares, and whether two neighbours are odd
  key generation      %10.1f s   %s sent by each party; security of the set: %s
  masks               %10.1f s   %d for each of %d quorums, %s of traffic for each
  keys to compute     %10.1f s   %s fetched
  computing           %10.1f s   %d look-ups and gates, at the client
  decryption          %10.3f s   %d messages, by %d of %d parties that are up
  and after a kill    %10.3f s   finding out that %s is down is part of it
  request, answer     %10s     to each party, and %s from each
  failure probability %10.0g     exact masks; the paper's form would have %.1e, and answers of %s
  in all              %10.1f s
`, r.Values, r.Params, r.Killed, strings.Join(r.Used, " and "), r.Quorum, r.Parties, r.KeygenSecurity, r.Quorum-1, r.Quorum, r.Correct, 2*r.Values,
		r.KeygenSeconds, amount(r.KeygenSentBytes), security(r.SecurityBits, r.QuantumBits), r.MasksSeconds, r.Masks, r.Quorums, terminal.Amount(r.MasksSentBytes),
		r.FetchSeconds, amount(r.KeyBytes), r.ComputeSeconds, r.Operations, r.AllUpSeconds, 2*r.Values, r.Quorum, r.Parties, r.DecryptSeconds, r.Killed,
		amount(r.RequestBytes), amount(r.AnswerBytes), r.Failure, r.PaperFailure, amount(r.PaperAnswerBytes), r.TotalSeconds)
	return err
}

func amount[T int | uint64](bytes T) string { return terminal.Amount(float64(bytes)) }

// security formats the estimated security of a set. Insecure sets have 0 bits.
func security(classical, quantum float64) string {
	if classical == 0 {
		return "none, a set for tests"
	}
	return fmt.Sprintf("%.1f bits (quantum: %.1f), by estimate", classical, quantum)
}
