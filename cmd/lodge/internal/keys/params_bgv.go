package keys

import (
	"encoding/hex"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/bgvdecrypt"
)

// bgvSummary is the JSON form of a set for threshold keys of BGV and BFV.
type bgvSummary struct {
	Name           string           `json:"name"`
	Threshold      bool             `json:"threshold"` // always true
	Scheme         string           `json:"scheme"`
	Default        bool             `json:"default"` // of the scheme
	LogN           int              `json:"log_n"`
	Levels         int              `json:"levels"`
	LogQP          float64          `json:"log_qp"`
	T              uint64           `json:"t"` // plaintext modulus
	Security       cli.SecurityBits `json:"security_bits"`
	KeygenSecurity string           `json:"keygen_security"`
	LogNoise       int              `json:"log_noise"`
	Flooding       bool             `json:"flooding"`
	FloodLevel     int              `json:"flood_level"`
	LogDecryptions int              `json:"log_decryptions"`
	Sizes          thresholdSizes   `json:"bytes"` // keys without rotations
	Insecure       bool             `json:"insecure"`
	Hash           string           `json:"hash"`
}

func summarizeBGV(set *bgv.Set) (*bgvSummary, error) {
	s, err := bgv.New(set)
	if err != nil {
		return nil, err
	}
	hash := set.Hash()
	return &bgvSummary{
		Name: set.Name, Threshold: true, Scheme: "bgv", Default: set.Name == bgv.Default, LogN: set.LogN, Levels: len(set.Q),
		LogQP: math.Round(100*set.LogQP()) / 100, T: set.T, Security: bgvSecurity(set), KeygenSecurity: "passive", LogNoise: set.LogNoise,
		Flooding: set.FloodLevel >= 0, FloodLevel: set.FloodLevel, LogDecryptions: set.LogDecryptions, Insecure: set.Insecure,
		Hash: hex.EncodeToString(hash[:]), Sizes: thresholdSizes{
			PublicKey: s.ChunkSize(), Evaluation: uint64(bgv.HeaderSize(0) + s.Samples(0)*s.ChunkSize()), BGV: s.CiphertextSize(s.MaxLevel()),
		},
	}, nil
}

func printBGVSets(w io.Writer, list []*bgvSummary) error {
	return cli.PrintTable(w, "", "SET\tN\tLOG QP\tLEVELS\tMESSAGES MODULO\tSECURITY\tFLOODING\tPUBLIC KEYS\tCIPHERTEXT", list, func(s *bgvSummary) []any {
		flooding := "none"
		if s.Flooding {
			flooding = fmt.Sprintf("2^%d, from level %d", s.LogDecryptions, s.FloodLevel)
		}
		return []any{cli.MarkedName(s.Name, s.Default, ""), fmt.Sprintf("2^%d", s.LogN), fmt.Sprintf("%.1f", s.LogQP), s.Levels, s.T,
			s.Security.Column(s.Insecure), flooding, cli.Size(float64(s.Sizes.Evaluation)), cli.Size(float64(s.Sizes.BGV))}
	})
}

// bgvUse describes the decryption by quorums of one size.
type bgvUse struct {
	Holders    int `json:"holders"`
	Threshold  int `json:"threshold"`
	AnswerBits int `json:"answer_bits"` // bits of a coefficient, with masks
	// LogDistance is log2 of the statistical distance of all ciphertexts that may be flooded; 0
	// without flooding.
	LogDistance float64 `json:"log_distance,omitempty"`
	FloodBytes  int     `json:"flood_bytes,omitempty"` // bytes of an answer for a ciphertext
	// MaxNoise maps the way of decryption to log2 of the largest noise that it allows at the level
	// of a fresh ciphertext.
	MaxNoise float64 `json:"log_noise_masks"`
}

type bgvDetail struct {
	bgvSummary
	Uses []bgvUse `json:"uses"`
}

// showBGVSet prints a BGV set.
func showBGVSet(cmd *cobra.Command, set *bgv.Set) error {
	s, err := bgv.New(set)
	if err != nil {
		return err
	}
	summary, err := summarizeBGV(set)
	if err != nil {
		return err
	}
	d := bgvDetail{bgvSummary: *summary}
	for _, n := range []int{3, 5, 8, 16} {
		t := (n - 1) / 2
		p, err := bgvdecrypt.Params(s, t)
		if err != nil {
			continue
		}
		u := bgvUse{Holders: n, Threshold: t, AnswerBits: p.Kind.LogEta, MaxNoise: float64(s.MaxNoise(s.MaxLevel(), 0, n).BitLen() - 1)}
		if f, err := bgvdecrypt.NewFlooding(s, t+1); err == nil {
			distance, _ := f.Distance().Float64()
			u.LogDistance, u.FloodBytes = math.Log2(distance), f.AnswerSize()
		}
		d.Uses = append(d.Uses, u)
	}
	w := cmd.OutOrStdout()
	if cli.JSON(cmd) {
		return cli.WriteJSON(w, d)
	}
	if err := printBGVSets(w, []*bgvSummary{summary}); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n"+
		"noise     below 2^%d when a ciphertext is decrypted\n"+
		"keys      passive: key generation is secure against parties that follow it\n"+
		"hash      %s\n"+
		"\n",
		set.LogNoise, summary.Hash)
	return cli.PrintTable(w, "", "HOLDERS\tQUORUM\tBITS OF AN ANSWER UNDER MASKS\tNOISE OF A FRESH LEVEL\tFLOODING HIDES UP TO\tFLOODED ANSWER", d.Uses, func(u bgvUse) []any {
		hides, size := "-", "-"
		if u.FloodBytes > 0 {
			hides, size = fmt.Sprintf("2^%.1f", u.LogDistance), cli.Size(float64(u.FloodBytes))
		}
		return []any{u.Holders, u.Threshold + 1, u.AnswerBits, fmt.Sprintf("2^%.0f", u.MaxNoise), hides, size}
	})
}
