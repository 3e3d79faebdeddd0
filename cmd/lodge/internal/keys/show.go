package keys

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// thresholdRecord is the JSON form of threshold keys.
type ThresholdRecord struct {
	Epoch     uint64 `json:"epoch"`
	State     string `json:"state"`
	Params    string `json:"params"`
	Successor string `json:"successor,omitempty"` // of a legacy set
	Digest    string `json:"digest"`
	Threshold int    `json:"threshold"`
	Quorum    int    `json:"quorum"` // number of holders that decrypt
	// Group is true if the parties have keys of their own. A ciphertext is then decrypted by the
	// owners of its keys.
	Group          bool             `json:"group,omitempty"`
	KeygenSecurity string           `json:"keygen_security"`
	Created        string           `json:"created"`
	Holders        []holderRecord   `json:"holders"`
	Masks          []maskRecord     `json:"masks"`
	Forms          []formRecord     `json:"forms"`
	Sizes          thresholdSizes   `json:"bytes"`
	Security       cli.SecurityBits `json:"security_bits"`
	// For BGV keys only.
	Galois        []uint64 `json:"galois,omitempty"` // automorphisms X -> X^g that the keys allow
	Flooded       uint64   `json:"flooded,omitempty"`
	FloodingLimit uint64   `json:"flooding_limit,omitempty"` // ciphertexts that a holder answers with flooding
	Flooders      []string `json:"flooders,omitempty"`       // parties that use flooding, of those that are available
}

type holderRecord struct {
	Share     int    `json:"share"`
	Party     string `json:"party"` // empty if it has left the roster
	Up        bool   `json:"up"`
	Decrypted uint64 `json:"decrypted"` // messages that it has answered
}

type maskRecord struct {
	Quorum []string `json:"quorum"`
	Form   string   `json:"form"`
	Free   uint64   `json:"free"` // at the member with the fewest
}

// formRecord describes the decryption with a form of masks.
type formRecord struct {
	Form string `json:"form"`
	// FailureProbability is that of a message whose ciphertext is the result of a gate or lookup.
	FailureProbability float64 `json:"failure_probability"`
	// NoiseBound is the largest noise that is decrypted correctly, as a fraction of the modulus.
	NoiseBound float64 `json:"noise_bound"`
	// AnswerBits is the number of bits that a party sends to the recipient for each message.
	AnswerBits int `json:"answer_bits"`
}

type thresholdSizes struct {
	PublicKey  int    `json:"public_key"` // the chunk that contains it
	Evaluation uint64 `json:"evaluation_keys"`
	LWE        int    `json:"lwe_ciphertext,omitempty"`
	Ring       int    `json:"ring_ciphertext,omitempty"`
	BGV        int    `json:"bgv_ciphertext,omitempty"` // fresh
}

func describeThreshold(k *threshold.Key, names []string) (*ThresholdRecord, error) {
	r := &ThresholdRecord{
		Epoch: k.Epoch, State: k.State, Params: k.Params, Digest: hex.EncodeToString(k.Digest[:]), Threshold: k.Threshold, Quorum: k.Threshold + 1,
		KeygenSecurity: k.Security, Created: k.Created.UTC().Format(time.RFC3339), Masks: []maskRecord{},
		Galois: k.Galois, Flooded: k.Flooded, FloodingLimit: k.FloodingLimit,
	}
	if s := k.Scheme(); s != nil {
		r.Sizes = thresholdSizes{PublicKey: s.ChunkSize(0), Evaluation: k.KeyBytes, LWE: s.LWESize(), Ring: s.RingSize()}
		r.Successor = s.Successor
		r.Security, r.Forms = cli.ThresholdSecurity(s.Set), formsOf(s, len(k.Holders), k.Threshold)
	}
	if s := k.BGV(); s != nil {
		r.Sizes = thresholdSizes{PublicKey: s.ChunkSize(), Evaluation: k.KeyBytes, BGV: s.CiphertextSize(s.MaxLevel())}
		r.Security, r.Forms = bgvSecurity(s.Set), bgvForms(s, k.Threshold)
	}
	if set := k.Multikey(); set != nil {
		r.Successor = set.Successor
		r.Group, r.Security = true, multikeySecurity(set)
	}
	for i, p := range k.Holders {
		h := holderRecord{Share: i}
		if p >= 0 {
			h.Party, h.Up, h.Decrypted = names[p], slices.Contains(k.Up, p), k.Decrypted[p]
		}
		r.Holders = append(r.Holders, h)
	}
	for _, p := range k.Flooders {
		r.Flooders = append(r.Flooders, names[p])
	}
	for _, m := range k.Masks {
		x := maskRecord{Form: m.Form, Free: m.Free}
		for _, p := range m.Quorum {
			x.Quorum = append(x.Quorum, names[p])
		}
		r.Masks = append(r.Masks, x)
	}
	return r, nil
}

func keysShowCommand(o *cli.Operator) *cobra.Command {
	return cli.EpochCommand("show", func(cmd *cobra.Command, epoch uint64, _ []string) error {
		return o.WithHolders(func(c *threshold.Client) error {
			k, _, err := cli.ThresholdKey(cmd.Context(), c, epoch)
			if err != nil {
				return err
			}
			r, err := describeThreshold(k, c.Parties())
			if err != nil {
				return err
			}
			return cli.Write(cmd, r, func(w io.Writer) error { return r.print(w) })
		})
	}, o.CompleteThreshold)
}

func (r *ThresholdRecord) print(w io.Writer) error {
	t := cli.NewTable(w)
	fmt.Fprintf(t, "epoch\t%d, %s\n", r.Epoch, r.State)
	if r.Group {
		fmt.Fprintf(t, "group\t%d parties decrypt ciphertexts under their own keys; all owners must take part\n", len(r.Holders))
		fmt.Fprintf(t, "security\tagainst parties that follow the protocol\n")
	} else {
		fmt.Fprintf(t, "threshold\tany %d of %d holders decrypt\n", r.Quorum, len(r.Holders))
		fmt.Fprintf(t, "key generation\t%s: honest majority, parties that follow the protocol\n", cli.OrDash(r.KeygenSecurity))
	}
	fmt.Fprintf(t, "parameters\t%s, security %s\n", cli.MarkedName(r.Params, false, r.Successor), r.Security.Sentence(r.Security.Classical == 0))
	fmt.Fprintf(t, "digest\t%s\n", r.Digest)
	fmt.Fprintf(t, "created\t%s\n", r.Created)
	if r.Sizes.BGV > 0 {
		fmt.Fprintf(t, "sizes\tevaluation keys %s, for %d automorphisms; a fresh ciphertext %s\n", cli.Size(float64(r.Sizes.Evaluation)), len(r.Galois),
			cli.Size(float64(r.Sizes.BGV)))
	} else if !r.Group {
		fmt.Fprintf(t, "sizes\tevaluation keys %s; a ciphertext of one message %s, a ring ciphertext %s\n", cli.Size(float64(r.Sizes.Evaluation)),
			cli.Size(float64(r.Sizes.LWE)), cli.Size(float64(r.Sizes.Ring)))
	}
	if r.FloodingLimit > 0 {
		fmt.Fprintf(t, "flooding\t%d of the %d ciphertexts that a holder answers\n", r.Flooded, r.FloodingLimit)
		if len(r.Flooders) < len(r.Holders) {
			fmt.Fprintf(t, "\tby %s, of those that are available\n", strings.Join(r.Flooders, ", "))
		}
	}
	for _, f := range r.Forms {
		failure := "never fails"
		if f.FailureProbability > 0 {
			failure = fmt.Sprintf("fails with probability %.1e for the result of a gate or lookup", f.FailureProbability)
		}
		fmt.Fprintf(t, "%s masks\t%s, for noise up to %.1e of the modulus\n", f.Form, failure, f.NoiseBound)
	}
	fmt.Fprintln(t, "\nSHARE\tPARTY\tUP\tMESSAGES DECRYPTED")
	for _, h := range r.Holders {
		up, party := "yes", h.Party
		switch {
		case party == "":
			up, party = "-", "has left"
		case !h.Up:
			up = "no"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\n", h.Share, party, up, h.Decrypted)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Masks) == 0 {
		_, err := fmt.Fprintf(w, "\n"+
			"no masks that the available holders can use; `lodge keys masks %d --every-quorum` makes some\n", r.Epoch)
		return err
	}
	fmt.Fprintln(t, "\nQUORUM\tMASKS\tFREE")
	for _, m := range r.Masks {
		fmt.Fprintf(t, "%s\t%s\t%d\n", strings.Join(m.Quorum, " "), m.Form, m.Free)
	}
	return t.Flush()
}
