package threshold

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// decrypter holds the flags of `lodge decrypt`, which calls all parties as one client.
type decrypter struct {
	cli.ClientFlags

	out, recipient string
	provenance     string
	parties        []string
	paper          bool
	flooding       bool
	epoch          uint64
	batch          int
}

// defaultBatch is the default number of messages per request.
const defaultBatch = 1 << 16

// decryptCommand returns `lodge decrypt`.
func decryptCommand() *cobra.Command {
	o := &decrypter{}
	cmd := cli.Command("decrypt", func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) })
	cmd.Annotations = map[string]string{cli.TakesArguments: "yes"}
	o.ClientFlags.Flags(cmd.PersistentFlags())
	f := cmd.Flags()
	f.StringSliceVar(&o.parties, "quorum", nil, "T+1 of the holders, by name or index (default: any that are available)")
	f.BoolVar(&o.paper, "paper", false, "use masks of the paper's form, which may fail, if the parties' rules allow it")
	f.BoolVar(&o.flooding, "flooding", false, "for BGV ciphertexts: decrypt all slots, with flooding noise instead of masks, if the parties' rules allow it")
	f.StringVar(&o.recipient, "recipient", "", "file with the public key that answers are sealed to")
	f.StringVar(&o.out, "out", "", "file to create (default: standard output)")
	f.Uint64Var(&o.epoch, "epoch", 0, "epoch with the same keys whose holders decrypt (default: the file's, or the newest active one)")
	f.IntVar(&o.batch, "batch", defaultBatch, "messages per request")
	f.StringVar(&o.provenance, "provenance", "", "`file` with the signature of an attester, from `lodge decrypt attest`")
	cli.CompleteList(cmd, "quorum", o.CompleteParties)
	cmd.AddCommand(o.openCommand(), o.recipientCommand(), o.attesterCommand(), o.attestCommand(), o.approvalsCommand(), o.approveCommand())
	return cmd
}

// do connects to all parties and calls f.
func (o *decrypter) do(f func(*threshold.Client) error) error {
	return cli.As(&o.ClientFlags, threshold.Dial, func(c *threshold.Client, _ lodge.Config) error { return f(c) })
}

func (o *decrypter) run(cmd *cobra.Command, file string) error {
	if err := cli.CheckNewFile(o.out); err != nil {
		return err
	}
	to, err := cli.ReadRecipient(o.recipient, o.out)
	if err != nil {
		return err
	}
	x, err := cli.Read(file, threshold.ReadFile)
	if err != nil {
		return err
	}
	x.Flooding = o.flooding
	list, err := o.attested(cmd, x)
	if err != nil {
		return err
	}
	return o.do(func(c *threshold.Client) error {
		begun, p := time.Now(), cli.ProgressOf(cmd)
		defer p.Done()
		k, err := o.key(cmd.Context(), c, x)
		if err != nil {
			return err
		}
		quorum, err := o.quorumOf(c, k)
		if err != nil {
			return err
		}
		r := &cli.OpenedReport{File: file, Epoch: k.Epoch, Params: k.Params, Masks: "exact"}
		switch {
		case o.paper:
			r.Masks = "paper"
		case o.flooding:
			r.Masks = "flooding"
		}
		answers := &threshold.AnswersFile{Encoding: x.Encoding, Messages: x.Messages, Slots: x.Slots, Coefficients: x.Coefficients}
		var opened []uint64
		for i, q := range list {
			p.Show(fmt.Sprintf("part %d of %d: requesting %d messages in all", i+1, len(list), x.Messages), false)
			q.Paper, q.Quorum, q.Recipient = o.paper, quorum, to
			got, err := c.Decrypt(cmd.Context(), k, q)
			if err != nil {
				return err
			}
			opened = append(opened, got.Messages...)
			answers.Answers = append(answers.Answers, got.Answers)
			r.Add(got, c.Parties())
		}
		p.Done()
		r.Seconds = time.Since(begun).Seconds()
		if to != nil {
			return r.WriteSealed(cmd, answers, o.out)
		}
		if r.Values, err = x.Values(opened); err != nil {
			return err
		}
		return o.write(cmd, r)
	})
}

// key returns the threshold key that decrypts a file: that of its epoch, or if the epoch is not
// active that of the newest epoch with the same keys, whose holders have other shares of the same
// secrets.
func (o *decrypter) key(ctx context.Context, c *threshold.Client, x *threshold.File) (*threshold.Key, error) {
	if o.epoch != 0 {
		return same(ctx, c, x, o.epoch)
	}
	list, _, err := c.Keys(ctx)
	if err != nil {
		return nil, err
	}
	epoch := x.Epoch
	for _, k := range list {
		if k.Epoch == x.Epoch && k.State == "active" {
			epoch = x.Epoch
			break
		}
		if k.Digest == x.Keys && k.State == "active" {
			epoch = max(epoch, k.Epoch)
		}
	}
	return same(ctx, c, x, epoch)
}

// same returns the key of an epoch if it matches the file.
func same(ctx context.Context, c *threshold.Client, x *threshold.File, epoch uint64) (*threshold.Key, error) {
	k, err := c.Key(ctx, epoch)
	if err != nil {
		return nil, err
	}
	if k.Digest != x.Keys {
		return nil, rpc.Errorf(rpc.Foreign, "`lodge keys show` prints the digest of an epoch's keys",
			"the ciphertexts are under keys %.8x, and epoch %d has %.8x", x.Keys, epoch, k.Digest)
	}
	return k, nil
}

func (o *decrypter) quorumOf(c *threshold.Client, k *threshold.Key) ([]int, error) {
	if len(o.parties) == 0 {
		return nil, nil
	}
	names := c.Parties()
	list, err := cli.PartyList("quorum", o.parties, names)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(list))
	for i, p := range list {
		out[i] = int(p)
	}
	return out, cli.CheckQuorum(k, list, cli.PresentHolders(k), names)
}

// write writes the values to standard output or to the output file.
func (o *decrypter) write(cmd *cobra.Command, r *cli.OpenedReport) error {
	text := func(w io.Writer) error {
		if cli.JSON(cmd) {
			return cli.WriteJSON(w, r)
		}
		for _, v := range r.Values {
			if _, err := fmt.Fprintln(w, v); err != nil {
				return err
			}
		}
		return nil
	}
	if o.out == "" {
		return text(cmd.OutOrStdout())
	}
	return cli.WriteNewFile(o.out, 0o600, text)
}

func (o *decrypter) openCommand() *cobra.Command {
	var key string
	cmd := cli.Command("open", func(cmd *cobra.Command, args []string) error {
		if err := cli.CheckNewFile(o.out); err != nil {
			return err
		}
		text, err := os.ReadFile(key)
		if err != nil {
			return err
		}
		defer clear(text)
		to, err := threshold.ParseRecipientPEM(text)
		if err != nil {
			return fmt.Errorf("%s: %w", key, cli.FromClient(err))
		}
		begun := time.Now()
		f, err := cli.Read(args[0], threshold.ReadAnswers)
		if err != nil {
			return err
		}
		first := f.Answers[0]
		r := &cli.OpenedReport{File: args[0], Epoch: first.Epoch, Params: first.Params, Masks: "exact"}
		switch {
		case first.Question.Paper:
			r.Masks = "paper"
		case first.Question.Flooding:
			r.Masks = "flooding"
		}
		for _, a := range f.Answers {
			for _, part := range a.Parts {
				r.Bytes += len(part)
			}
		}
		if r.Values, err = to.OpenFile(f); err != nil {
			return cli.Invalid("open it with the private key that belongs to the recipient's public key", "%s: %v", args[0], cli.FromClient(err))
		}
		r.Seconds = time.Since(begun).Seconds()
		return o.write(cmd, r)
	})
	cmd.Flags().StringVar(&key, "key", "", "file with the recipient's private key")
	cmd.Flags().StringVar(&o.out, "out", "", "file to create (default: standard output)")
	_ = cmd.MarkFlagRequired("key")
	return cmd
}

// recipientReport is the JSON outcome of `lodge decrypt recipient`.
type recipientReport struct {
	Private string `json:"private"`
	Public  string `json:"public"`
}

func (o *decrypter) recipientCommand() *cobra.Command {
	var out string
	cmd := cli.Command("recipient", func(cmd *cobra.Command, _ []string) error {
		r := recipientReport{out, out + ".pub"}
		for _, file := range []string{r.Private, r.Public} {
			if err := cli.CheckNewFile(file); err != nil {
				return err
			}
		}
		key, err := threshold.NewRecipient()
		if err != nil {
			return err
		}
		private, err := key.PEM()
		if err != nil {
			return err
		}
		defer clear(private)
		if err := cli.WriteNewFile(r.Private, 0o600, func(w io.Writer) error { _, err := w.Write(private); return err }); err != nil {
			return err
		}
		public := threshold.PublicPEM(key.Public())
		if err := cli.WriteNewFile(r.Public, 0o644, func(w io.Writer) error { _, err := w.Write(public); return err }); err != nil {
			return err
		}
		return cli.Print(cmd, r, "%s: the private key; %s: the public key, for requesting clients\n", r.Private, r.Public)
	})
	cmd.Flags().StringVar(&out, "out", "", "file to create")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}
