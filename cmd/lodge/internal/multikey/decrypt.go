package multikey

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	engine "github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/multikey"
)

// mkDecrypting holds the flags of `lodge mk decrypt`.
type mkDecrypting struct {
	cli.ClientFlags
	roster, recipient, out, provenance string
	epoch                              uint64
	parties                            []string
}

// mkDecryptReport is the JSON outcome of `lodge mk decrypt`.
type mkDecryptReport struct {
	File    string     `json:"file"`
	Epoch   uint64     `json:"epoch"`
	Bits    string     `json:"bits,omitempty"`   // digits 0 and 1
	Sealed  string     `json:"sealed,omitempty"` // file with the sealed answers
	Quorums [][]string `json:"quorums"`
}

func mkDecryptCommand() *cobra.Command {
	o := &mkDecrypting{}
	cmd := cli.Command("decrypt", func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) })
	f := cmd.Flags()
	o.flags(f)
	f.StringSliceVar(&o.parties, "quorum", nil, "parties that decrypt, including the owners, by name or index (default: as few as possible)")
	f.StringVar(&o.recipient, "recipient", "", "file with the public key that answers are sealed to")
	f.StringVar(&o.out, "out", "", "file to create (default: standard output)")
	f.StringVar(&o.provenance, "provenance", "", "`file` with the signature of an attester, from `lodge mk attest`")
	cli.CompleteList(cmd, "quorum", o.CompleteParties)
	return cmd
}

// flags adds the flags that select the group.
func (o *mkDecrypting) flags(f *pflag.FlagSet) {
	o.ClientFlags.Flags(f)
	f.StringVar(&o.roster, "roster", "", "roster (default CLUSTER/roster.yaml)")
	f.Uint64Var(&o.epoch, "epoch", 0, "epoch of the group (default: the newest that is active)")
}

// do reads a file of ciphertexts, connects to the parties, and calls f.
func (o *mkDecrypting) do(file string, f func(*mkclient.Client, []*engine.Ciphertext) error) error {
	roster, err := config.LoadRoster((&cli.Operator{Cluster: o.Cluster}).Path(o.roster, cli.RosterFile))
	if err != nil {
		return cli.MissingFile(err)
	}
	context, err := multikey.ContextOf(roster.Multikey)
	if err != nil {
		return err
	}
	groups, err := cli.Read(file, func(r io.Reader) ([]mkclient.Group, error) { return mkclient.Read(r, context.Scheme) })
	if err != nil {
		return err
	}
	return cli.As(&o.ClientFlags, mkclient.Dial, func(c *mkclient.Client, _ lodge.Config) error { return f(c, mkclient.Ciphertexts(groups)) })
}

func (o *mkDecrypting) run(cmd *cobra.Command, file string) error {
	if err := cli.CheckNewFile(o.out); err != nil {
		return err
	}
	to, err := cli.ReadRecipient(o.recipient, o.out)
	if err != nil {
		return err
	}
	var word *threshold.Provenance
	if o.provenance != "" {
		if word, err = cli.Read(o.provenance, threshold.ReadProvenance); err != nil {
			return err
		}
	}
	return o.do(file, func(c *mkclient.Client, list []*engine.Ciphertext) error {
		names := c.Threshold.Parties()
		quorum, err := cli.PartyList("quorum", o.parties, names)
		if err != nil {
			return err
		}
		q := &mkclient.Decryption{Ciphertexts: list, Epoch: o.epoch, Recipient: to, Provenance: word}
		for _, p := range quorum {
			q.Quorum = append(q.Quorum, int(p))
		}
		begun := time.Now()
		got, err := c.Decrypt(cmd.Context(), q)
		if err != nil {
			return err
		}
		if to != nil {
			return o.sealed(cmd, file, time.Since(begun), list, got, names)
		}
		return o.write(cmd, file, got, names)
	})
}

// sealed writes answers that are sealed to a recipient.
func (o *mkDecrypting) sealed(cmd *cobra.Command, file string, took time.Duration, list []*engine.Ciphertext, got *mkclient.Decrypted, names []string) error {
	f, err := threshold.MultikeyAnswers(list, got.Answers, got.Places)
	if err != nil {
		return err
	}
	r := &cli.OpenedReport{File: file, Epoch: got.Epoch, Params: f.Answers[0].Params, Masks: "exact", Seconds: took.Seconds()}
	for i, a := range got.Answers {
		r.Add(&threshold.Result{Quorum: got.Quorums[i], Answers: a}, names)
	}
	return r.WriteSealed(cmd, f, o.out)
}

// write writes the bits to standard output or to the output file.
func (o *mkDecrypting) write(cmd *cobra.Command, file string, got *mkclient.Decrypted, names []string) error {
	r := &mkDecryptReport{File: file, Epoch: got.Epoch, Bits: digitsOf(got.Bits), Quorums: [][]string{}}
	for _, q := range got.Quorums {
		r.Quorums = append(r.Quorums, strings.Fields(cli.NameList(q, names)))
	}
	text := func(w io.Writer) error {
		if cli.JSON(cmd) {
			return cli.WriteJSON(w, r)
		}
		_, err := fmt.Fprintln(w, r.Bits)
		return err
	}
	if o.out == "" {
		return text(cmd.OutOrStdout())
	}
	return cli.WriteNewFile(o.out, 0o600, text)
}

func mkAttestCommand() *cobra.Command {
	o := &mkDecrypting{}
	var key, attester, circuit string
	cmd := cli.Command("attest", func(cmd *cobra.Command, args []string) error {
		private, err := cli.ReadAttester(key)
		if err != nil {
			return err
		}
		defer clear(private)
		return o.do(args[0], func(c *mkclient.Client, list []*engine.Ciphertext) error {
			word, err := c.Attest(cmd.Context(), list, o.epoch, attester, circuit, private)
			if err != nil {
				return err
			}
			if err := cli.WriteNewFile(o.out, 0o644, func(w io.Writer) error { _, err := word.WriteTo(w); return err }); err != nil {
				return err
			}
			return cli.Print(cmd, word, "%s: signature of %s that %q made %s, under epoch %d\n", o.out, attester, circuit, args[0], word.Epoch)
		})
	})
	f := cmd.Flags()
	o.flags(f)
	f.StringVar(&key, "key", "", "file with the attester's private key, PEM")
	f.StringVar(&attester, "attester", "", "name of the attester in the parties' configurations")
	f.StringVar(&circuit, "circuit", "", "circuit that made the ciphertexts")
	f.StringVar(&o.out, "out", "", "file to create")
	for _, name := range []string{"key", "attester", "circuit", "out"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}
