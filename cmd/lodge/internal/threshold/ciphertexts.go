package threshold

import (
	"context"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/ciphertext"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// sealer holds the connection flags of the commands about ciphertexts, which call all parties as
// one client.
type sealer struct{ cli.ClientFlags }

// ciphertextsCommand returns `lodge ciphertexts`.
func ciphertextsCommand() *cobra.Command {
	o := &sealer{}
	cmd := cli.Command("ciphertexts", nil)
	o.Flags(cmd.PersistentFlags())
	cmd.AddCommand(o.encryptCommand(), o.verifyCommand(), o.decryptCommand(), o.showCommand())
	return cmd
}

// do connects to all parties and calls f.
func (o *sealer) do(f func(*ciphertext.Client, lodge.Config) error) error {
	return cli.As(&o.ClientFlags, ciphertext.Dial, f)
}

// at returns the index of a party with a name or index.
func (o *sealer) at(config lodge.Config, party string) (int, error) {
	var names []string
	for i, p := range config.Parties {
		if party == p.Name || party == fmt.Sprint(i) {
			return i, nil
		}
		names = append(names, p.Name)
	}
	return 0, rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(names, ", "), "--at %q", party)
}

// ciphertextReport is the JSON form of a file.
type ciphertextReport struct {
	File string `json:"file"`
	*ciphertext.Ciphertext
	Bytes   int                   `json:"bytes"`
	Parties []ciphertext.Answered `json:"parties,omitempty"`
	Seconds float64               `json:"seconds"`
}

func (o *sealer) encryptCommand() *cobra.Command {
	var in, out, bound, at, fieldName string
	var epoch uint64
	cmd := cli.Command("encrypt", func(cmd *cobra.Command, args []string) error {
		values, err := cli.ReadValues(cmd, args, in)
		if err != nil {
			return err
		}
		if err := cli.CheckNewFile(out); err != nil {
			return err
		}
		return o.do(func(c *ciphertext.Client, config lodge.Config) error {
			ctx, p := cmd.Context(), cli.ProgressOf(cmd)
			defer p.Done()
			if epoch == 0 {
				if epoch, err = c.NewestEpoch(ctx); err != nil {
					return err
				}
			}
			p.Show(fmt.Sprintf("downloading the public key of epoch %d from %d parties", epoch, len(config.Parties)), false)
			k, err := c.Key(ctx, epoch, fieldName)
			if err != nil {
				return err
			}
			begun := time.Now()
			p.Show(fmt.Sprintf("encrypting and proving %d values", len(values)), false)
			encrypt := c.Encrypt
			if at != "" {
				party, err := o.at(config, at)
				if err != nil {
					return err
				}
				encrypt = func(ctx context.Context, k *ciphertext.Key, values []*big.Int, bound []byte) (*ciphertext.Ciphertext, error) {
					return c.EncryptAt(ctx, party, k, values, bound)
				}
			}
			x, err := encrypt(ctx, k, values, []byte(bound))
			if err != nil {
				return err
			}
			seconds := time.Since(begun).Seconds()
			if err := cli.WriteNewFile(out, 0o644, func(w io.Writer) error { _, err := x.WriteTo(w); return err }); err != nil {
				return err
			}
			r := ciphertextReport{File: out, Ciphertext: x, Bytes: len(x.Bytes) + len(x.ProofBytes), Seconds: seconds}
			return cli.Print(cmd, r, "%s: %d values over %s under epoch %d, %s with the proof, in %.1f s\n",
				out, x.Values, x.Field, x.Epoch, cli.Size(float64(r.Bytes)), seconds)
		})
	})
	f := cmd.Flags()
	f.StringVar(&in, "in", "", "file with one value a line; - for standard input")
	f.StringVar(&out, "out", "", "file to create")
	f.StringVar(&fieldName, "field", "p128", "field of the values: p64 to p4096")
	f.Uint64Var(&epoch, "epoch", 0, "epoch of keys (default: the newest that decrypts for clients)")
	f.StringVar(&bound, "context", "", "context to bind the proof to, such as the use of the values; at most 1024 bytes")
	f.StringVar(&at, "at", "", "party that encrypts and proves, by name or index (default: this machine)")
	_ = cmd.MarkFlagRequired("out")
	cli.Complete(cmd, "field", cli.FieldWords)
	cli.Complete(cmd, "at", o.CompleteParties)
	return cmd
}

// opened reads a file and downloads the key that it is encrypted under.
func (o *sealer) opened(ctx context.Context, file string, f func(*ciphertext.Client, lodge.Config, *ciphertext.Key, *ciphertext.Ciphertext) error) error {
	x, err := cli.Read(file, ciphertext.Read)
	if err != nil {
		return err
	}
	return o.do(func(c *ciphertext.Client, config lodge.Config) error {
		k, err := c.Key(ctx, x.Epoch, x.Field)
		if err != nil {
			return err
		}
		return f(c, config, k, x)
	})
}

func (o *sealer) verifyCommand() *cobra.Command {
	var at string
	cmd := cli.Command("verify", func(cmd *cobra.Command, args []string) error {
		return o.opened(cmd.Context(), args[0], func(c *ciphertext.Client, config lodge.Config, k *ciphertext.Key, x *ciphertext.Ciphertext) error {
			begun, where := time.Now(), "on this machine"
			if at == "" {
				if err := c.Verify(cmd.Context(), k, x); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
			} else {
				party, err := o.at(config, at)
				if err != nil {
					return err
				}
				where = "by party " + config.Parties[party].Name
				if err := c.VerifyAt(cmd.Context(), party, x); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
			}
			r := ciphertextReport{File: args[0], Ciphertext: x, Bytes: len(x.Bytes) + len(x.ProofBytes), Seconds: time.Since(begun).Seconds()}
			return cli.Print(cmd, r, "%s: the proof of %d values over %s by client %s under epoch %d is valid, verified %s in %.1f s\n",
				args[0], x.Values, x.Field, x.Prover, x.Epoch, where, r.Seconds)
		})
	})
	cmd.Flags().StringVar(&at, "at", "", "party that verifies, by name or index (default: this machine)")
	cli.Complete(cmd, "at", o.CompleteParties)
	return cmd
}

// valuesReport is the JSON outcome of `lodge ciphertexts decrypt`.
type valuesReport struct {
	File    string   `json:"file"`
	Epoch   uint64   `json:"epoch"`
	Field   string   `json:"field"`
	Values  []string `json:"values"` // decimal
	Bytes   int      `json:"answer_bytes_per_party"`
	Seconds float64  `json:"seconds"`
}

func (o *sealer) decryptCommand() *cobra.Command {
	var out string
	cmd := cli.Command("decrypt", func(cmd *cobra.Command, args []string) error {
		if err := cli.CheckNewFile(out); err != nil {
			return err
		}
		return o.opened(cmd.Context(), args[0], func(c *ciphertext.Client, config lodge.Config, k *ciphertext.Key, x *ciphertext.Ciphertext) error {
			begun, p := time.Now(), cli.ProgressOf(cmd)
			defer p.Done()
			p.Show(fmt.Sprintf("requesting %d parties to decrypt %d values", len(config.Parties), x.Values), false)
			d, err := c.Decrypt(cmd.Context(), k, x)
			if err != nil {
				return err
			}
			r := valuesReport{File: args[0], Epoch: x.Epoch, Field: x.Field, Values: []string{}, Bytes: len(d.Answers[0]), Seconds: time.Since(begun).Seconds()}
			for _, v := range d.Values {
				r.Values = append(r.Values, v.String())
			}
			p.Done()
			write := func(w io.Writer) error {
				if cli.JSON(cmd) {
					return cli.WriteJSON(w, r)
				}
				_, err := fmt.Fprintln(w, strings.Join(r.Values, "\n"))
				return err
			}
			if out == "" {
				return write(cmd.OutOrStdout())
			}
			return cli.WriteNewFile(out, 0o600, write)
		})
	})
	cmd.Flags().StringVar(&out, "out", "", "file to create (default: standard output)")
	return cmd
}

func (o *sealer) showCommand() *cobra.Command {
	return cli.Command("show", func(cmd *cobra.Command, args []string) error {
		return o.opened(cmd.Context(), args[0], func(c *ciphertext.Client, _ lodge.Config, k *ciphertext.Key, x *ciphertext.Ciphertext) error {
			begun := time.Now()
			answers, err := c.Answers(cmd.Context(), k, x)
			if err != nil {
				return err
			}
			r := ciphertextReport{File: args[0], Ciphertext: x, Bytes: len(x.Bytes) + len(x.ProofBytes), Parties: answers, Seconds: time.Since(begun).Seconds()}
			return cli.Write(cmd, r, func(w io.Writer) error { return printCiphertext(w, &r) })
		})
	})
}

func printCiphertext(w io.Writer, r *ciphertextReport) error {
	t := cli.NewTable(w)
	fmt.Fprintf(t, "values\t%d over %s\n", r.Values, r.Field)
	fmt.Fprintf(t, "key\tepoch %d, %s\n", r.Epoch, r.Params)
	fmt.Fprintf(t, "client\t%s\n", r.Prover)
	if len(r.Context) > 0 {
		fmt.Fprintf(t, "context\t%q\n", r.Context)
	}
	fmt.Fprintf(t, "size\t%s including the proof, which is valid\n", cli.Size(float64(r.Bytes)))
	for _, a := range r.Parties {
		text := "has not decrypted it"
		switch {
		case a.ToUs:
			text = "decrypted it for this client at " + a.When.Format(time.RFC3339)
		case a.Answered:
			text = "decrypted it for another client at " + a.When.Format(time.RFC3339)
		}
		fmt.Fprintf(t, "party %s\t%s\n", a.Party, text)
	}
	return t.Flush()
}
