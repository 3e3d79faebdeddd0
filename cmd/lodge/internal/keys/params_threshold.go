package keys

import (
	"encoding/hex"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvdecrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
)

// thresholdSummary is the JSON form of a set for threshold keys.
type thresholdSummary struct {
	Name           string           `json:"name"`
	Threshold      bool             `json:"threshold"` // always true
	Default        bool             `json:"default"`
	LogN           int              `json:"log_n"`
	Q              string           `json:"q"`
	LogQ           float64          `json:"log_q"`
	P              uint64           `json:"p"` // messages are from 0 to p-1
	Dim            int              `json:"dim"`
	Security       cli.SecurityBits `json:"security_bits"`
	Lookup         float64          `json:"log_lookup_failure"`  // of sums of results, for any number of holders
	Successor      string           `json:"successor,omitempty"` // of a legacy set
	KeygenSecurity string           `json:"keygen_security"`
	Sizes          thresholdSizes   `json:"bytes"`
	Insecure       bool             `json:"insecure"`
	Hash           string           `json:"hash"`
}

func summarizeThreshold(set *lwe.Set) (*thresholdSummary, error) {
	s, err := lwe.New(set)
	if err != nil {
		return nil, err
	}
	hash := set.Hash()
	r := &thresholdSummary{
		Name: set.Name, Threshold: true, Default: set.Name == lwe.Default, LogN: set.LogN, Q: fmt.Sprint(set.Q), LogQ: math.Round(100*math.Log2(float64(set.Q))) / 100,
		P: set.P, Dim: set.Dim, Security: cli.ThresholdSecurity(set), Lookup: math.Round(10*set.LookupFailure()) / 10, Successor: set.Successor, KeygenSecurity: "passive", Insecure: set.Insecure,
		Hash: hex.EncodeToString(hash[:]), Sizes: thresholdSizes{PublicKey: s.ChunkSize(0), Evaluation: lwe.HeaderSize, LWE: s.LWESize(), Ring: s.RingSize()},
	}
	for i := range s.Chunks() {
		r.Sizes.Evaluation += uint64(s.ChunkSize(i))
	}
	return r, nil
}

func printThresholdSets(w io.Writer, list []*thresholdSummary) error {
	return cli.PrintTable(w, "", "SET\tN\tLOG Q\tMESSAGES\tDIMENSION\tSECURITY\tA LOOK-UP FAILS\tPUBLIC KEYS\tCIPHERTEXT\tRING CIPHERTEXT", list, func(s *thresholdSummary) []any {
		return []any{cli.MarkedName(s.Name, s.Default, s.Successor), fmt.Sprintf("2^%d", s.LogN), fmt.Sprintf("%.1f", s.LogQ),
			fmt.Sprintf("0..%d", s.P-1), s.Dim, s.Security.Column(s.Insecure), fmt.Sprintf("2^%.0f", s.Lookup),
			cli.Size(float64(s.Sizes.Evaluation)), cli.Size(float64(s.Sizes.LWE)), cli.Size(float64(s.Sizes.Ring))}
	})
}

// noiseRecord describes the noise and the decryption of a set for one number of parties.
type noiseRecord struct {
	Holders   int          `json:"holders"`
	Threshold int          `json:"threshold"`
	Lookup    float64      `json:"lookup_failure_log2"`
	Gate      float64      `json:"gate_failure_log2"`
	Forms     []formRecord `json:"forms"`
}

type thresholdSetDetail struct {
	thresholdSummary
	Noise []noiseRecord `json:"noise"`
}

// formsOf returns the forms of masks that a set supports.
func formsOf(s *lwe.Scheme, holders, threshold int) (list []formRecord) {
	noise := s.NoiseOf(holders, threshold)
	for _, form := range cli.MaskForms {
		p, err := decrypt.ParamsOf(s, threshold, form == "paper")
		if err != nil {
			continue
		}
		f := formRecord{Form: form, NoiseBound: decrypt.MaxNoise(p.Kind, p.Modulus, p.Parties) / float64(p.Modulus), AnswerBits: p.Kind.LogEta}
		if form == "paper" {
			f.FailureProbability = decrypt.FailureProbability(p.Kind, p.Modulus, p.Parties, noise.Bootstrapped())
		}
		list = append(list, f)
	}
	return list
}

// bgvSecurity returns the estimated security of a BGV set.
func bgvSecurity(s *bgv.Set) cli.SecurityBits {
	if s.Insecure {
		return cli.SecurityBits{}
	}
	return cli.SecurityOf(s.Security(), s.Security())
}

// bgvForms returns the forms of masks of a BGV set.
func bgvForms(s *bgv.Scheme, threshold int) []formRecord {
	p, err := bgvdecrypt.Params(s, threshold)
	if err != nil {
		return nil
	}
	return []formRecord{{Form: "exact", NoiseBound: decrypt.MaxNoise(p.Kind, p.Modulus, p.Parties) / float64(p.Modulus), AnswerBits: p.Kind.LogEta}}
}

// showThresholdSet prints a set for threshold keys.
func showThresholdSet(cmd *cobra.Command, set *lwe.Set) error {
	s, err := lwe.New(set)
	if err != nil {
		return err
	}
	summary, err := summarizeThreshold(set)
	if err != nil {
		return err
	}
	d := thresholdSetDetail{thresholdSummary: *summary}
	for _, n := range []int{3, 5, 8, 16} {
		t := (n - 1) / 2
		noise := set.NoiseOf(n, t)
		d.Noise = append(d.Noise, noiseRecord{n, t, noise.LookupFailure(noise.Bootstrapped()), noise.GateFailure(noise.Bootstrapped()), formsOf(s, n, t)})
	}
	w := cmd.OutOrStdout()
	if cli.JSON(cmd) {
		return cli.WriteJSON(w, d)
	}
	if err := printThresholdSets(w, []*thresholdSummary{summary}); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nmodulus   %d\nsecurity  %.1f bits of the ring secret, %.1f of the other, against classical attacks; %.1f against quantum ones\n%s"+
		"keys      passive: key generation is secure against parties that follow it\nhash      %s\n\n",
		set.Q, summary.Security.Ring, summary.Security.Switch, summary.Security.Quantum, cli.LegacyLine(set.CheckNewKeys()), summary.Hash)
	t := cli.NewTable(w)
	fmt.Fprintln(t, "HOLDERS\tQUORUM\tA LOOK-UP FAILS\tA GATE FAILS\tMASKS\tA DECRYPTION FAILS\tBITS OF AN ANSWER")
	for _, x := range d.Noise {
		for _, f := range x.Forms {
			failure := "never"
			if f.FailureProbability > 0 {
				failure = fmt.Sprintf("%.1e", f.FailureProbability)
			}
			fmt.Fprintf(t, "%d\t%d\t2^%.0f\t2^%.0f\t%s\t%s\t%d\n", x.Holders, x.Threshold+1, x.Lookup, x.Gate, f.Form, failure, f.AnswerBits)
		}
	}
	return t.Flush()
}
