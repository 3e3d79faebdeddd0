package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/ciphertext"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// sealer is how the commands about ciphertexts reach all parties: as one client that each of them knows.
type sealer struct {
	cluster, client string
	json            bool
}

// ciphertextsCommand is `lodge ciphertexts`.
func ciphertextsCommand() *cobra.Command {
	o := &sealer{}
	cmd := &cobra.Command{
		Use:   "ciphertexts",
		Short: "Encrypt values under the parties' key, prove them, and have them decrypted by all parties together",
		Long: "Encrypt values under the public key of an epoch that was made for decryption, with a proof that the client knows\n" +
			"them, into a file; check such a file; and have all parties decrypt it together. A party answers once for each\n" +
			"ciphertext, to the client that proved it, and gives that client the same answer again.\n\n" +
			"All parties are called as one client that each of them knows by the same name, with the permissions status, decrypt,\n" +
			"and prove where a party does the work: --client names its configuration.",
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.cluster, "cluster", "", clusterUsage)
	f.StringVar(&o.client, "client", "", "configuration of the client (default CLUSTER/clients/"+devnet.App+".yaml)")
	f.BoolVar(&o.json, "json", false, "write JSON")
	cmd.AddCommand(o.encryptCommand(), o.verifyCommand(), o.decryptCommand(), o.showCommand())
	return cmd
}

// do connects to all parties and runs f.
func (o *sealer) do(f func(*ciphertext.Client, lodge.Config) error) error {
	path := o.client
	if path == "" {
		path = filepath.Join(clusterDir(o.cluster), "clients", devnet.App+".yaml")
	}
	config, err := lodge.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound, "name a directory that `lodge init` wrote with --cluster or $"+clusterVariable+", or a client's configuration with --client", "%v", err)
	}
	if err != nil {
		return plain(err)
	}
	c, err := ciphertext.Dial(config)
	if err != nil {
		return plain(err)
	}
	defer c.Close()
	return plain(f(c, config))
}

// at is the index of a party by its name or index.
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

func (o *sealer) completeParties() (names []string) {
	_ = o.do(func(_ *ciphertext.Client, config lodge.Config) error {
		for _, p := range config.Parties {
			names = append(names, p.Name)
		}
		return nil
	})
	return names
}

// ciphertextReport is what there is to say of a file.
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
	cmd := &cobra.Command{
		Use:   "encrypt [VALUE...] --field FIELD --out FILE",
		Short: "Encrypt values into a new file, with a proof that this client knows them",
		Long: "Encrypt values, as arguments or one a line in a file, in decimal or in hexadecimal with 0x, below the field's\n" +
			"modulus. It happens on this machine, with the public key that all parties give; --at has a party do it, which then\n" +
			"knows the values.",
		RunE: func(cmd *cobra.Command, args []string) error {
			values, err := readValues(cmd, args, in)
			if err != nil {
				return err
			}
			if err := absentFile(out); err != nil {
				return err
			}
			return o.do(func(c *ciphertext.Client, config lodge.Config) error {
				ctx, p := cmd.Context(), progressOf(cmd, o.json)
				defer p.Done()
				if epoch == 0 {
					if epoch, err = c.NewestEpoch(ctx); err != nil {
						return err
					}
				}
				p.Show(fmt.Sprintf("fetching the public key of epoch %d from %d parties", epoch, len(config.Parties)), false)
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
				if err := writeNew(out, 0o644, func(w io.Writer) error { _, err := x.WriteTo(w); return err }); err != nil {
					return err
				}
				r := ciphertextReport{File: out, Ciphertext: x, Bytes: len(x.Bytes) + len(x.ProofBytes), Seconds: seconds}
				if o.json {
					return writeIndented(cmd.OutOrStdout(), r)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d values over %s under epoch %d, %s with the proof, in %.1f s\n",
					out, x.Values, x.Field, x.Epoch, amount(float64(r.Bytes)), seconds)
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&in, "in", "", "file with one value a line; - for standard input")
	f.StringVar(&out, "out", "", "file to make")
	f.StringVar(&fieldName, "field", "p128", "field of the values: p64 to p4096")
	f.Uint64Var(&epoch, "epoch", 0, "epoch of keys (default: the newest that decrypts for clients)")
	f.StringVar(&bound, "context", "", "text that the proof is bound to, such as what the values are for; at most 1024 bytes")
	f.StringVar(&at, "at", "", "party that encrypts and proves, by name or index (default: this machine does)")
	_ = cmd.MarkFlagRequired("out")
	complete(cmd, "field", fieldWords)
	complete(cmd, "at", o.completeParties)
	return cmd
}

// maxValues bounds what is read; a ciphertext holds less.
const maxValues = 1 << 20

// readValues reads arguments or a file.
func readValues(cmd *cobra.Command, args []string, file string) ([]*big.Int, error) {
	if (len(args) > 0) == (file != "") {
		return nil, rpc.Errorf(rpc.Invalid, "write values as arguments, or name a file with --in", "no values, or both arguments and --in")
	}
	var values []*big.Int
	add := func(text string) error {
		base := 10
		digits, hex := strings.CutPrefix(text, "0x")
		if hex {
			base = 16
		}
		v, ok := new(big.Int).SetString(digits, base)
		if !ok || v.Sign() < 0 || digits[0] == '+' {
			return rpc.Errorf(rpc.Invalid, "write decimal digits, or hexadecimal ones after 0x", "value %d is not a number from 0 on", len(values))
		}
		if values = append(values, v); len(values) > maxValues {
			return rpc.Errorf(rpc.TooLarge, "encrypt them in several files", "more than %d values", maxValues)
		}
		return nil
	}
	for _, a := range args {
		if err := add(a); err != nil {
			return nil, err
		}
	}
	if file == "" {
		return values, nil
	}
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewScanner(in) // of up to 64 KiB
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			if err := add(text); err != nil {
				return nil, err
			}
		}
	}
	if lines.Err() == nil && len(values) == 0 {
		return nil, rpc.Errorf(rpc.Invalid, "write one value a line", "%s holds no values", file)
	}
	return values, lines.Err()
}

// absentFile refuses to write over a file.
func absentFile(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return rpc.Errorf(rpc.Conflict, "name a new file", "%s exists", path)
	}
	return nil
}

// writeNew makes a file, all or nothing.
func writeNew(path string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return absentFile(path)
	}
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(write(w), w.Flush(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// opened reads a file and fetches the key that it is under.
func (o *sealer) opened(ctx context.Context, file string, f func(*ciphertext.Client, lodge.Config, *ciphertext.Key, *ciphertext.Ciphertext) error) error {
	b, err := os.Open(file)
	if err != nil {
		return err
	}
	x, err := ciphertext.Read(b)
	b.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", file, plain(err))
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
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check a ciphertext's proof",
		Long: "Check on this machine, against the public key that all parties give, that the client which a file names knew the\n" +
			"values when it encrypted them; --at has a party do it, for a file of the client itself.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
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
				if o.json {
					return writeIndented(cmd.OutOrStdout(), r)
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: the proof of %d values over %s by client %s under epoch %d holds, verified %s in %.1f s\n",
					args[0], x.Values, x.Field, x.Prover, x.Epoch, where, r.Seconds)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "party that checks, by name or index (default: this machine does)")
	complete(cmd, "at", o.completeParties)
	return cmd
}

// valuesReport is the outcome of `lodge ciphertexts decrypt`.
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
	cmd := &cobra.Command{
		Use:   "decrypt FILE",
		Short: "Have all parties decrypt a ciphertext of this client, and write its values",
		Long: "Send a ciphertext with its proof to all parties, combine their answers and write the values, in decimal, one a line.\n" +
			"Every party must answer. Each records that it did before it does; asking again gives the same answers.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out != "" {
				if err := absentFile(out); err != nil {
					return err
				}
			}
			return o.opened(cmd.Context(), args[0], func(c *ciphertext.Client, config lodge.Config, k *ciphertext.Key, x *ciphertext.Ciphertext) error {
				begun, p := time.Now(), progressOf(cmd, o.json)
				defer p.Done()
				p.Show(fmt.Sprintf("asking %d parties to decrypt %d values", len(config.Parties), x.Values), false)
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
					if o.json {
						return writeIndented(w, r)
					}
					_, err := fmt.Fprintln(w, strings.Join(r.Values, "\n"))
					return err
				}
				if out == "" {
					return write(cmd.OutOrStdout())
				}
				return writeNew(out, 0o600, write)
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to make (default: standard output)")
	return cmd
}

func (o *sealer) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Show what a ciphertext says of itself, and which parties have decrypted it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.opened(cmd.Context(), args[0], func(c *ciphertext.Client, _ lodge.Config, k *ciphertext.Key, x *ciphertext.Ciphertext) error {
				begun := time.Now()
				answers, err := c.Answers(cmd.Context(), k, x)
				if err != nil {
					return err
				}
				r := ciphertextReport{File: args[0], Ciphertext: x, Bytes: len(x.Bytes) + len(x.ProofBytes), Parties: answers, Seconds: time.Since(begun).Seconds()}
				if o.json {
					return writeIndented(cmd.OutOrStdout(), r)
				}
				return printCiphertext(cmd.OutOrStdout(), &r)
			})
		},
	}
}

func printCiphertext(w io.Writer, r *ciphertextReport) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "values\t%d over %s\n", r.Values, r.Field)
	fmt.Fprintf(t, "key\tepoch %d, %s\n", r.Epoch, r.Params)
	fmt.Fprintf(t, "client\t%s\n", r.Prover)
	if len(r.Context) > 0 {
		fmt.Fprintf(t, "context\t%q\n", r.Context)
	}
	fmt.Fprintf(t, "size\t%s with the proof, which holds\n", amount(float64(r.Bytes)))
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
