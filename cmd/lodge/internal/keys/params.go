package keys

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
)

// paramsCommand returns `lodge params`, the registry of parameter sets.
func paramsCommand() *cobra.Command {
	cmd := cli.Command("params", nil)
	cmd.AddCommand(paramsListCommand(), paramsShowCommand())
	return cmd
}

func paramsListCommand() *cobra.Command {
	var all bool
	cmd := cli.Command("list", func(cmd *cobra.Command, _ []string) error {
		list := summaries(params.Sets(), all, func(s *params.Set) bool { return s.Insecure }, func(s *params.Set) (setSummary, error) { return summarize(s), nil })
		thresholds := summaries(lwe.Sets(), all, func(s *lwe.Set) bool { return s.Insecure }, summarizeThreshold)
		bgvs := summaries(bgv.Sets(), all, func(s *bgv.Set) bool { return s.Insecure }, summarizeBGV)
		multikeys := summaries(multikey.Sets(), all, func(s *multikey.Set) bool { return s.Insecure }, summarizeMultikey)
		return cli.Write(cmd, slices.Concat(anys(list), anys(thresholds), anys(bgvs), anys(multikeys)), func(w io.Writer) error {
			if err := printSets(w, list); err != nil {
				return err
			}
			fmt.Fprintln(w, "\n"+cli.SecurityNote+"KEYS says whether parties prove their shares of the keys. If not, key generation is passively secure.\n\n"+
				"For threshold keys, whose key generation is passively secure:")
			if err := printThresholdSets(w, thresholds); err != nil {
				return err
			}
			fmt.Fprintln(w, "\nFor threshold keys of BGV and BFV, with public keys without rotations:")
			if err := printBGVSets(w, bgvs); err != nil {
				return err
			}
			fmt.Fprintln(w, "\nFor multi-key ciphertexts of bits, under keys that parties make by themselves:")
			return printMultikeySets(w, multikeys)
		})
	})
	cmd.Flags().Bool("json", false, "write JSON")
	cmd.Flags().BoolVar(&all, "all", false, "include the insecure sets for tests")
	return cmd
}

// summaries returns the summaries of the sets, or of the secure ones only.
func summaries[S, R any](sets []S, all bool, insecure func(S) bool, summarize func(S) (R, error)) (list []R) {
	for _, s := range sets {
		if r, err := summarize(s); err == nil && (all || !insecure(s)) {
			list = append(list, r)
		}
	}
	return list
}

func anys[T any](list []T) []any { return cli.Each(list, func(x T) any { return x }) }

func paramsShowCommand() *cobra.Command {
	var field string
	var use params.Use
	cmd := cli.Command("show", func(cmd *cobra.Command, args []string) error {
		if slices.Contains(cli.ThresholdWords(), args[0]) && field != "" {
			return cli.Invalid("remove it", "--field with %s, a set for threshold keys or multi-key ciphertexts, which has no fields", args[0])
		}
		if set, err := lwe.Lookup(args[0]); err == nil {
			return showThresholdSet(cmd, set)
		}
		if set, err := bgv.Lookup(args[0]); err == nil {
			return showBGVSet(cmd, set)
		}
		if set, err := multikey.Lookup(args[0]); err == nil {
			return showMultikeySet(cmd, set)
		}
		s, err := params.Lookup(args[0])
		if err != nil {
			return err
		}
		if field != "" {
			return showUse(cmd, s, field, use)
		}
		detail, err := describe(s)
		if err != nil {
			return err
		}
		return cli.Write(cmd, detail, func(w io.Writer) error { return printDetail(w, detail) })
	}, cli.AllSetWords)
	cmd.Flags().Bool("json", false, "write JSON")
	cmd.Flags().StringVar(&field, "field", "", "show the bounds for this field")
	cli.Complete(cmd, "field", cli.FieldWords)
	cmd.Flags().IntVar(&use.Parties, "parties", 3, "number of parties, with --field")
	cli.AcceptFormerFlags(cmd)
	cmd.Flags().IntVar(&use.Dim, "block", 1, "block dimension, with --field; 1 for scalar triples")
	cmd.Flags().IntVar(&use.U, "batch", 0, "ciphertexts per proof, with --field (default: one batch of the kind)")
	cmd.Flags().IntVar(&use.Inner, "inner", 0, "accumulated inner length, with --field (default: the dimension)")
	return cmd
}

type setSummary struct {
	Name             string   `json:"name"`
	Default          bool     `json:"default"`
	LogN             int      `json:"log_n"`
	LogQ             float64  `json:"log_q"`
	Classical        float64  `json:"classical_bits"`
	Quantum          float64  `json:"quantum_bits"`
	Primes           int      `json:"primes"`
	DigitPrimes      int      `json:"digit_primes"`
	Secret           string   `json:"secret"`
	Keys             string   `json:"keys"` // keys that the parameters allow
	KeygenSecurity   string   `json:"keygen_security"`
	LogB             int      `json:"log_b"`
	LambdaDDec       int      `json:"lambda_ddec"`
	LambdaSnd        int      `json:"lambda_snd"`
	LambdaSim        int      `json:"lambda_sim"`
	StatSecurityBits int      `json:"statistical_security_bits"`
	Served           bool     `json:"served"` // a service accepts the statistical security
	Insecure         bool     `json:"insecure"`
	Fields           []string `json:"fields"`
	Hash             string   `json:"hash"`
}

func summarize(s *params.Set) setSummary {
	hash := s.Hash()
	bits := s.Security()
	sum := setSummary{
		Name: s.Name, Default: s.Name == params.Default, LogN: s.LogN, LogQ: s.LogQ(),
		Classical: bits.Classical, Quantum: bits.Quantum, Primes: len(s.Q), DigitPrimes: s.DigitPrimes,
		Secret: s.Secret.String(), Keys: s.Keys, KeygenSecurity: s.KeygenSecurity(), LogB: s.LogB,
		LambdaDDec: s.LambdaDDec, LambdaSnd: s.LambdaSnd, LambdaSim: s.LambdaSim,
		StatSecurityBits: s.StatSecurityBits(), Served: s.StatSecurityBits() >= params.MinStatSecurity,
		Insecure: s.Insecure, Hash: hex.EncodeToString(hash[:]),
	}
	for _, f := range s.Fields {
		sum.Fields = append(sum.Fields, f.Name)
	}
	return sum
}

func printSets(w io.Writer, list []setSummary) error {
	return cli.PrintTable(w, "", "SET\tN\tLOG Q\tSECURITY\tPRIMES\tDIGIT\tB\tSECRET\tKEYS\tFLOODING\tSTATISTICAL\tFIELDS", list, func(s setSummary) []any {
		bits := cli.SecurityBits{Classical: s.Classical, Quantum: s.Quantum}
		return []any{cli.MarkedName(s.Name, s.Default, ""), fmt.Sprintf("2^%d", s.LogN), fmt.Sprintf("%.1f", s.LogQ), bits.Column(s.Insecure),
			s.Primes, s.DigitPrimes, fmt.Sprintf("~2^%d", s.LogB), s.Secret, s.Keys, s.LambdaDDec, statistical(s),
			fieldRange(s.Fields)}
	})
}

// statistical formats the security in bits after 2^20 decrypted ciphertexts.
func statistical(s setSummary) string {
	if !s.Served {
		return fmt.Sprintf("%d (rejected)", s.StatSecurityBits)
	}
	return fmt.Sprint(s.StatSecurityBits)
}

func fieldRange(fields []string) string {
	if len(fields) == 1 {
		return fields[0]
	}
	return fields[0] + ".." + fields[len(fields)-1]
}

// verdict reports whether a set supports a use.
type verdict struct {
	Field     string   `json:"field"`
	Parties   int      `json:"parties"`
	Dim       int      `json:"dim"`
	Batch     int      `json:"batch"`
	Fits      bool     `json:"fits"`
	SpareBits *float64 `json:"spare_bits,omitempty"`
	ShortBits int      `json:"short_bits,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Others    []string `json:"sets_that_fit,omitempty"`
}

type setDetail struct {
	setSummary
	ErrorStd  float64   `json:"error_std"`
	SecretStd float64   `json:"secret_std,omitempty"`
	Q         []string  `json:"q"`
	Aux       []string  `json:"aux"`
	Verdicts  []verdict `json:"verdicts"`
}

// The uses that the table of verdicts covers.
var (
	tableParties = []int{2, 3, 5, 8, 16}
	tableUses    = []params.Use{{Dim: 1}, {Dim: 128}}
)

func describe(s *params.Set) (setDetail, error) {
	std := func(width float64) float64 { return math.Round(1000*width/math.Sqrt(2*math.Pi)) / 1000 }
	d := setDetail{setSummary: summarize(s), ErrorStd: std(s.ErrorWidth), SecretStd: std(s.SecretWidth)}
	for _, q := range s.Q {
		d.Q = append(d.Q, fmt.Sprint(q)) // strings: JSON numbers lose bits beyond 2^53
	}
	for _, q := range s.Aux {
		d.Aux = append(d.Aux, fmt.Sprint(q))
	}
	s = asMade(s)
	for _, f := range s.Fields {
		for _, use := range tableUses {
			for _, use.Parties = range tableParties {
				v, err := judge(s, f.Name, use)
				if err != nil {
					return setDetail{}, err
				}
				d.Verdicts = append(d.Verdicts, v)
			}
		}
	}
	return d, nil
}

// asMade returns the set with the bounds for keys as they are made today. If shares are proved, the
// proofs imply weaker bounds.
func asMade(s *params.Set) *params.Set {
	if s.KeygenSecurity() == params.Proved {
		return s.Proved()
	}
	return s
}

func judge(s *params.Set, field string, use params.Use) (verdict, error) {
	i, err := params.Resolve(s, field, use)
	var miss *params.DoesNotFit
	switch {
	case errors.As(err, &miss):
		return verdict{Field: field, Parties: use.Parties, Dim: use.Dim, Batch: miss.Use.U, ShortBits: miss.Short,
			Reason: miss.Reason, Others: miss.Fits}, nil
	case err != nil:
		return verdict{}, err
	}
	spare := math.Round(10*(i.HaveLog2-i.NeedLog2)) / 10
	return verdict{Field: field, Parties: use.Parties, Dim: use.Dim, Batch: i.Use.U, Fits: true, SpareBits: &spare}, nil
}

func printDetail(w io.Writer, d setDetail) error {
	if err := printSets(w, []setSummary{d.setSummary}); err != nil {
		return err
	}
	secret := d.Secret
	if d.SecretStd > 0 {
		secret = fmt.Sprintf("%s, standard deviation %.2f", d.Secret, d.SecretStd)
	}
	fmt.Fprintf(w, "\n"+
		"secret    %s\n"+
		"errors    standard deviation %.2f\n"+
		"keys      parameters allow %s keys; key generation is %s\n"+
		"hash      %s\n"+
		"\n",
		secret, d.ErrorStd, d.Keys, d.KeygenSecurity, d.Hash)
	fmt.Fprintln(w, "Spare bits of q by number of parties (- : not supported, with the missing bits)")
	t := cli.NewTable(w)
	fmt.Fprint(t, "FIELD\tKIND")
	for _, n := range tableParties {
		fmt.Fprintf(t, "\tn=%d", n)
	}
	for k, v := range d.Verdicts {
		if k%len(tableParties) == 0 {
			kind := "scalar"
			if v.Dim > 1 {
				kind = fmt.Sprintf("matrix %d", v.Dim)
			}
			fmt.Fprintf(t, "\n%s\t%s", v.Field, kind)
		}
		switch {
		case v.Fits:
			fmt.Fprintf(t, "\t%.1f", *v.SpareBits)
		case v.ShortBits > 0:
			fmt.Fprintf(t, "\t-%d", v.ShortBits)
		default:
			fmt.Fprint(t, "\ttoo few slots")
		}
	}
	fmt.Fprintln(t)
	return t.Flush()
}

type useDetail struct {
	Set              string       `json:"set"`
	Field            string       `json:"field"`
	Parties          int          `json:"parties"`
	Dim              int          `json:"dim"`
	Batch            int          `json:"batch"`
	Inner            int          `json:"inner"`
	NeedLogQ         float64      `json:"need_log_q"`
	HaveLogQ         float64      `json:"have_log_q"`
	Repetitions      int          `json:"popk_repetitions"`
	MACRepetitions   int          `json:"mac_key_popk_repetitions"`
	DDecPrimes       int          `json:"decryption_primes"`
	FloodBits        float64      `json:"flood_bits"`
	StatSecurityBits int          `json:"statistical_security_bits"`
	Hash             string       `json:"hash"`
	Noise            []termDetail `json:"noise"`
}

type termDetail struct {
	Name    string  `json:"name"`
	Log2    float64 `json:"log2"`
	Meaning string  `json:"meaning"`
}

func showUse(cmd *cobra.Command, s *params.Set, field string, use params.Use) error {
	i, err := params.Resolve(asMade(s), field, use)
	if err != nil {
		return err
	}
	hash := i.Hash()
	d := useDetail{
		Set: s.Name, Field: field, Parties: i.Use.Parties, Dim: i.Use.Dim, Batch: i.Use.U, Inner: i.Use.Inner,
		NeedLogQ: i.NeedLog2, HaveLogQ: i.HaveLog2, Repetitions: i.V, MACRepetitions: i.VDiag,
		DDecPrimes: i.DDecPrimes, FloodBits: i.FloodBits, StatSecurityBits: i.StatSecurityBits,
		Hash: hex.EncodeToString(hash[:]),
	}
	for _, term := range i.Noise {
		d.Noise = append(d.Noise, termDetail{term.Name, term.Log2, term.Meaning})
	}
	w := cmd.OutOrStdout()
	if cli.JSON(cmd) {
		return cli.WriteJSON(w, d)
	}
	fmt.Fprintf(w, "%s %s, %d parties, d = %d, %d ciphertexts per proof, inner length %d\n\n", s.Name, field, d.Parties,
		d.Dim, d.Batch, d.Inner)
	t := cli.NewTable(w)
	fmt.Fprintf(t, "q needed, available\t%.1f, %.1f bits\n", d.NeedLogQ, d.HaveLogQ)
	fmt.Fprintf(t, "PoPK repetitions\t%d, MAC key %d\n", d.Repetitions, d.MACRepetitions)
	fmt.Fprintf(t, "decryption modulus\t%d primes\n", d.DDecPrimes)
	fmt.Fprintf(t, "flooding\t%.1f bits, at least %d\n", d.FloodBits, s.LambdaDDec)
	fmt.Fprintf(t, "statistical security\t%d bits after 2^20 decryptions\n", d.StatSecurityBits)
	fmt.Fprintf(t, "hash\t%s\n", d.Hash)
	fmt.Fprintln(t, "\nNOISE\tLOG2\tBOUND ON")
	for _, term := range d.Noise {
		fmt.Fprintf(t, "%s\t%s%.1f\t%s\n", term.Name, strings.Repeat(" ", max(0, 3-len(fmt.Sprintf("%.0f", term.Log2)))),
			term.Log2, term.Meaning)
	}
	return t.Flush()
}
