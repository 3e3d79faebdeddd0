package main

import (
	"context"
	"crypto/hpke"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// decrypter is how `lodge decrypt` reaches all parties: as one client that each of them knows.
type decrypter struct {
	cluster, client string
	json            bool

	out, recipient string
	provenance     string
	parties        []string
	paper          bool
	flooding       bool
	epoch          uint64
	batch          int
}

// defaultBatch is how many messages are asked for at a time.
const defaultBatch = 1 << 16

// decryptCommand is `lodge decrypt`.
func decryptCommand() *cobra.Command {
	o := &decrypter{}
	cmd := &cobra.Command{
		Use:   "decrypt FILE",
		Short: "Have T+1 of the holders of threshold keys decrypt ciphertexts",
		Long: passiveText +
			"Ask a quorum, T+1 of the holders of threshold keys, to decrypt a file of ciphertexts, and write the values, in decimal,\n" +
			"one a line. Without --quorum the one is asked that is up and has most masks, and another one when a party fails. Each\n" +
			"party holds the request against its own rules, and records what it answers before it does: asked again, it gives the\n" +
			"same. With --recipient the answers are sealed to somebody's public key, into a file that `lodge decrypt open` reads.\n\n" +
			"All parties are called as one client that each of them knows by the same name, with the permission decrypt: --client\n" +
			"names its configuration.",
		Args:        cobra.ExactArgs(1),
		Annotations: map[string]string{takesArguments: "yes"},
		RunE:        func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.cluster, "cluster", "", clusterUsage)
	f.StringVar(&o.client, "client", "", "configuration of the client (default CLUSTER/clients/"+devnet.App+".yaml)")
	f.BoolVar(&o.json, "json", false, "write JSON")
	f = cmd.Flags()
	f.StringSliceVar(&o.parties, "quorum", nil, "T+1 of the holders, by name or index (default: whichever can)")
	f.BoolVar(&o.paper, "paper", false, "take masks of the paper's form, which may fail, where the parties' rules allow it")
	f.BoolVar(&o.flooding, "flooding", false, "of BGV ciphertexts: decrypt them whole, with noise in the place of masks, where the parties' rules allow it")
	f.StringVar(&o.recipient, "recipient", "", "file with the public key that answers are sealed to")
	f.StringVar(&o.out, "out", "", "file to make (default: standard output)")
	f.Uint64Var(&o.epoch, "epoch", 0, "epoch with the same keys whose holders decrypt (default: the file's, or the newest active one)")
	f.IntVar(&o.batch, "batch", defaultBatch, "messages that are asked for at a time")
	f.StringVar(&o.provenance, "provenance", "", "`file` with the word of an attester, of `lodge decrypt attest`")
	completeNames(cmd, "quorum", func() []string { return (&operator{cluster: o.cluster, client: o.client}).completeParties() })
	cmd.AddCommand(o.openCommand(), o.recipientCommand(), o.attesterCommand(), o.attestCommand(), o.approvalsCommand(), o.approveCommand())
	return cmd
}

// do connects to all parties and runs f.
func (o *decrypter) do(f func(*threshold.Client) error) error {
	path := o.client
	if path == "" {
		path = filepath.Join(clusterDir(o.cluster), "clients", devnet.App+".yaml")
	}
	config, err := lodge.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound,
			"name a directory that `lodge init` wrote with --cluster or $"+clusterVariable+", or a client's configuration with --client", "%v", err)
	}
	if err != nil {
		return plain(err)
	}
	c, err := threshold.Dial(config)
	if err != nil {
		return plain(err)
	}
	defer c.Close()
	return plain(f(c))
}

// openedReport is the outcome of `lodge decrypt` and `lodge decrypt open`.
type openedReport struct {
	File    string     `json:"file"`
	Epoch   uint64     `json:"epoch"`
	Params  string     `json:"params"`
	Values  []uint64   `json:"values,omitempty"`
	Sealed  string     `json:"sealed,omitempty"` // file with the answers
	Quorums [][]string `json:"quorums,omitempty"`
	Masks   string     `json:"masks"`
	Bytes   int        `json:"answer_bytes"` // of all parties
	Seconds float64    `json:"seconds"`
}

func (o *decrypter) run(cmd *cobra.Command, file string) error {
	if o.out != "" {
		if err := absentFile(o.out); err != nil {
			return err
		}
	}
	to, err := o.to()
	if err != nil {
		return err
	}
	x, err := readCiphertexts(file)
	if err != nil {
		return err
	}
	x.Flooding = o.flooding
	list, err := o.attested(cmd, x)
	if err != nil {
		return err
	}
	return o.do(func(c *threshold.Client) error {
		begun, p := time.Now(), progressOf(cmd, o.json)
		defer p.Done()
		k, err := o.key(cmd.Context(), c, x)
		if err != nil {
			return err
		}
		quorum, err := o.quorumOf(c, k)
		if err != nil {
			return err
		}
		r := &openedReport{File: file, Epoch: k.Epoch, Params: k.Params, Masks: "exact"}
		switch {
		case o.paper:
			r.Masks = "paper"
		case o.flooding:
			r.Masks = "flooding"
		}
		answers := &threshold.AnswersFile{Encoding: x.Encoding, Messages: x.Messages, Slots: x.Slots, Coefficients: x.Coefficients}
		var opened []uint64
		for i, q := range list {
			p.Show(fmt.Sprintf("part %d of %d: asking for %d messages in all", i+1, len(list), x.Messages), false)
			q.Paper, q.Quorum, q.Recipient = o.paper, quorum, to
			got, err := c.Decrypt(cmd.Context(), k, q)
			if err != nil {
				return err
			}
			opened = append(opened, got.Messages...)
			answers.Answers = append(answers.Answers, got.Answers)
			r.add(got, c.Parties())
		}
		p.Done()
		r.Seconds = time.Since(begun).Seconds()
		if to != nil {
			return o.sealed(cmd, r, answers)
		}
		if r.Values, err = x.Values(opened); err != nil {
			return err
		}
		return o.write(cmd, r)
	})
}

// add notes who has answered.
func (r *openedReport) add(got *threshold.Result, names []string) {
	quorum := strings.Fields(nameList(got.Quorum, names))
	if n := len(r.Quorums); n == 0 || strings.Join(r.Quorums[n-1], " ") != strings.Join(quorum, " ") {
		r.Quorums = append(r.Quorums, quorum)
	}
	for _, part := range got.Answers.Parts {
		r.Bytes += len(part)
	}
}

// to is the public key of the recipient, or nil.
func (o *decrypter) to() (hpke.PublicKey, error) {
	if o.recipient == "" {
		return nil, nil //nolint:nilnil // no recipient beside the client
	}
	if o.out == "" {
		return nil, invalid("name a file with --out", "sealed answers go into a file")
	}
	b, err := os.ReadFile(o.recipient)
	if err != nil {
		return nil, err
	}
	k, err := threshold.ParsePublicPEM(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.recipient, plain(err))
	}
	return k, nil
}

// key finds who decrypts a file: the holders of its epoch, or where that is not active those of the newest epoch with the
// same keys, which have other shares of the same secrets.
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

// same is the key of an epoch, if it is the one of a file.
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
	list, err := partyList("quorum", o.parties, names)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(list))
	for i, p := range list {
		out[i] = int(p)
	}
	return out, checkQuorum(k, list, presentHolders(k), names)
}

// sealed writes answers that are for somebody else.
func (o *decrypter) sealed(cmd *cobra.Command, r *openedReport, answers *threshold.AnswersFile) error {
	err := writeNew(o.out, 0o644, func(w io.Writer) error { _, err := answers.WriteTo(w); return err })
	if err != nil {
		return plain(err)
	}
	if r.Sealed = o.out; o.json {
		return writeIndented(cmd.OutOrStdout(), r)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: sealed answers of %s for %d messages, %s in %.1f s; `lodge decrypt open` opens them\n", o.out,
		strings.Join(r.Quorums[0], " and "), answers.Messages, amount(float64(r.Bytes)), r.Seconds)
	return err
}

// write writes values to where they are wanted.
func (o *decrypter) write(cmd *cobra.Command, r *openedReport) error {
	text := func(w io.Writer) error {
		if o.json {
			return writeIndented(w, r)
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
	return writeNew(o.out, 0o600, text)
}

func (o *decrypter) openCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "open ANSWERS --key FILE",
		Short: "Open answers that are sealed to a recipient, with the recipient's private key",
		Long:  "Open the answers that `lodge decrypt --recipient` has put into a file, and write the values. No party is asked.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.out != "" {
				if err := absentFile(o.out); err != nil {
					return err
				}
			}
			text, err := os.ReadFile(key)
			if err != nil {
				return err
			}
			defer clear(text)
			to, err := threshold.ParseRecipientPEM(text)
			if err != nil {
				return fmt.Errorf("%s: %w", key, plain(err))
			}
			in, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			begun := time.Now()
			f, err := threshold.ReadAnswers(in)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], plain(err))
			}
			first := f.Answers[0]
			r := &openedReport{File: args[0], Epoch: first.Epoch, Params: first.Params, Masks: "exact"}
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
				return invalid("open it with the private key whose public one they were sealed to", "%s: %v", args[0], plain(err))
			}
			r.Seconds = time.Since(begun).Seconds()
			return o.write(cmd, r)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "file with the recipient's private key")
	cmd.Flags().StringVar(&o.out, "out", "", "file to make (default: standard output)")
	_ = cmd.MarkFlagRequired("key")
	return cmd
}

// recipientReport is the outcome of `lodge decrypt recipient`.
type recipientReport struct {
	Private string `json:"private"`
	Public  string `json:"public"`
}

func (o *decrypter) recipientCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "recipient --out FILE",
		Short: "Make a key pair of a recipient: FILE has the private key, FILE.pub the public one",
		Long: "Make a key pair to which parties seal their answers, by ML-KEM-768 with X25519: whoever asks for a decryption then\n" +
			"learns nothing by it. The private key is in a file that only its owner can read; give others FILE.pub.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := recipientReport{out, out + ".pub"}
			for _, file := range []string{r.Private, r.Public} {
				if err := absentFile(file); err != nil {
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
			if err := writeNew(r.Private, 0o600, func(w io.Writer) error { _, err := w.Write(private); return err }); err != nil {
				return err
			}
			public := threshold.PublicPEM(key.Public())
			if err := writeNew(r.Public, 0o644, func(w io.Writer) error { _, err := w.Write(public); return err }); err != nil {
				return err
			}
			if o.json {
				return writeIndented(cmd.OutOrStdout(), r)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: the private key; %s: the public one, for those who ask\n", r.Private, r.Public)
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to make")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}
