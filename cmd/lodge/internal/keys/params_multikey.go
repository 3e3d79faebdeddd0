package keys

import (
	"encoding/hex"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/mkdecrypt"
)

// multikeySummary is the JSON form of a set for multi-key ciphertexts.
type multikeySummary struct {
	Name      string           `json:"name"`
	Threshold bool             `json:"threshold"`
	Scheme    string           `json:"scheme"`
	Default   bool             `json:"default"`
	Parties   int              `json:"parties"` // in one ciphertext
	LogN      int              `json:"log_n"`
	Dim       int              `json:"dimension"`
	Security  cli.SecurityBits `json:"security"`
	KeyBytes  int              `json:"key_bytes"`        // published keys
	Gate      float64          `json:"log_gate_failure"` // of operands with one key each that are results of multiplexers
	Insecure  bool             `json:"insecure"`
	Successor string           `json:"successor,omitempty"` // of a legacy set
	Hash      string           `json:"hash"`
	Quorums   []multikeyUse    `json:"quorums"` // not supported: its noise is too large for decryption
}

// multikeyUse describes the decryption by a quorum.
type multikeyUse struct {
	Parties    int     `json:"parties"`
	AnswerBits int     `json:"answer_bits"`       // bits from each party for one message
	LogFailure float64 `json:"log_failure"`       // for a result of a multiplexer
	NoiseBound float64 `json:"noise_bound"`       // largest noise without failure, as a fraction of the modulus
	Ciphertext int     `json:"bytes_of_one_each"` // of a ciphertext with one key of each party
}

func summarizeMultikey(set *multikey.Set) (*multikeySummary, error) {
	s, err := multikey.New(set, multikey.StandardSeed())
	if err != nil {
		return nil, err
	}
	hash := set.Hash()
	r := &multikeySummary{
		Name: set.Name, Threshold: true, Scheme: "multikey", Default: set.Name == multikey.Default, Parties: set.Parties, LogN: set.LogN, Dim: set.Dim,
		Security: multikeySecurity(set), Successor: set.Successor, KeyBytes: s.KeySize(),
		Gate: math.Round(10*set.Noise(set.Parties).WorstFailure()) / 10, Insecure: set.Insecure, Hash: hex.EncodeToString(hash[:]), Quorums: []multikeyUse{},
	}
	for n := 2; n <= set.Parties; n++ {
		p, err := mkdecrypt.Params(set, n, n)
		if err != nil {
			return r, nil //nolint:nilerr // none of this set
		}
		r.Quorums = append(r.Quorums, multikeyUse{
			Parties: n, AnswerBits: p.Kind.LogEta, LogFailure: math.Round(10*mkdecrypt.Failure(set, p)) / 10,
			NoiseBound: decrypt.MaxNoise(p.Kind, p.Modulus, n) / float64(p.Modulus), Ciphertext: s.CiphertextSize(n),
		})
	}
	return r, nil
}

// multikeySecurity returns the estimated security of a set for multi-key ciphertexts. It is zero
// for test sets.
func multikeySecurity(s *multikey.Set) cli.SecurityBits {
	if s.LogN < 11 {
		return cli.SecurityBits{}
	}
	bits := s.Security()
	return cli.SecurityOf(bits.Ring, bits.LWE)
}

func printMultikeySets(w io.Writer, list []*multikeySummary) error {
	return cli.PrintTable(w, "", "SET\tPARTIES\tN\tDIMENSION\tSECURITY\tA GATE FAILS\tKEYS", list, func(s *multikeySummary) []any {
		security := s.Security.Column(s.Security.Classical == 0)
		if s.Insecure && s.Security.Classical > 0 { // the paper's sets have insecure variants
			security += ", insecure"
		}
		return []any{cli.MarkedName(s.Name, s.Default, s.Successor), s.Parties, fmt.Sprintf("2^%d", s.LogN), s.Dim, security,
			fmt.Sprintf("2^%.0f", s.Gate), cli.Size(float64(s.KeyBytes))}
	})
}

// showMultikeySet prints a set for multi-key ciphertexts and the decryption by each quorum.
func showMultikeySet(cmd *cobra.Command, set *multikey.Set) error {
	r, err := summarizeMultikey(set)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if cli.JSON(cmd) {
		return cli.WriteJSON(w, r)
	}
	if err := printMultikeySets(w, []*multikeySummary{r}); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%shash      %s\n\n", cli.LegacyLine(set.CheckNewKeys()), r.Hash)
	return cli.PrintTable(w, "its noise is too large for joint decryption", "QUORUM\tFAILS\tNOISE UP TO\tANSWER\tCIPHERTEXT", r.Quorums, func(u multikeyUse) []any {
		return []any{u.Parties, fmt.Sprintf("2^%.0f", u.LogFailure), fmt.Sprintf("%.3f of the torus", u.NoiseBound),
			fmt.Sprintf("%d bits", u.AnswerBits), cli.Size(float64(u.Ciphertext))}
	})
}
