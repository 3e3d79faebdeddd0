package main

import (
	"cmp"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// encodingNames are the encodings of messages, the usual one first.
var encodingNames = []string{"plain", "padded", "boolean"}

// bgvEncodingNames are those of values in BGV ciphertexts.
var bgvEncodingNames = []string{"slots", "coefficients"}

func (o *operator) keysFetchCommand() *cobra.Command {
	var out string
	var evaluation bool
	cmd := &cobra.Command{
		Use:   "fetch EPOCH --out FILE",
		Short: "Write the public key of threshold keys to a file, or all that it takes to compute with ciphertexts",
		Long: "Fetch the public key from the holders, or with --evaluation all public keys, and check them against the digest on\n" +
			"which more than T of the holders agree. What is not complete is in FILE.part: the same command goes on with it, and\n" +
			"takes what is missing from whichever holder is up.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(o.completeThreshold),
		RunE: func(cmd *cobra.Command, args []string) error {
			epoch, err := epochArgument(args[0])
			if err != nil {
				return err
			}
			if err := absentFile(out); err != nil {
				return err
			}
			return o.withHolders(func(c *threshold.Client) error { return o.fetchKeys(cmd, c, epoch, out, evaluation) })
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to make")
	cmd.Flags().BoolVar(&evaluation, "evaluation", false, "with the keys to compute with")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// keysFile is the outcome of `lodge keys fetch`.
type keysFile struct {
	File       string  `json:"file"`
	Epoch      uint64  `json:"epoch"`
	Params     string  `json:"params"`
	Digest     string  `json:"digest"`
	Evaluation bool    `json:"evaluation"`
	Bytes      int64   `json:"bytes"`
	Seconds    float64 `json:"seconds"`
}

func (o *operator) fetchKeys(cmd *cobra.Command, c *threshold.Client, epoch uint64, out string, evaluation bool) error {
	k, err := c.Key(cmd.Context(), epoch)
	if err != nil {
		return err
	}
	begun, p := time.Now(), progressOf(cmd, o.json)
	defer p.Done()
	var bar *terminal.Transfer
	err = c.FetchKeys(cmd.Context(), k, out, evaluation, func(done, of int64) {
		if bar == nil {
			bar = terminal.NewTransfer(p, done, of)
		}
		bar.At(done)
	})
	p.Done()
	if err != nil {
		return err
	}
	info, err := os.Stat(out)
	if err != nil {
		return err
	}
	r := keysFile{out, k.Epoch, k.Params, fmt.Sprintf("%x", k.Digest), evaluation, info.Size(), time.Since(begun).Seconds()}
	if o.json {
		return writeIndented(cmd.OutOrStdout(), r)
	}
	what := "the public key"
	if evaluation {
		what = "all public keys"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s of epoch %d, %s, %s in %.1f s\n", out, what, r.Epoch, r.Params, amount(float64(r.Bytes)), r.Seconds)
	return err
}

// encrypting is what `lodge keys encrypt` does.
type encrypting struct {
	in, out, encoding, keys string
	epoch                   uint64
}

func (o *operator) keysEncryptCommand() *cobra.Command {
	q := &encrypting{}
	cmd := &cobra.Command{
		Use:   "encrypt EPOCH [VALUE...] --out FILE",
		Short: "Encrypt values under threshold keys into a new file",
		Long: "Encrypt values, as arguments or one a line in a file, from 0 to the plaintext modulus less 1: from 0 to 15 for the\n" +
			"sets that there are, and 0 or 1 with --encoding boolean. It happens on this machine, with the public key that the\n" +
			"holders give, or that `lodge keys fetch` has put into a file. Sums of plain messages wrap around; lookups take padded\n" +
			"ones, gates boolean ones; `lodge decrypt` decrypts all of them. No proof says who knows the values.",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: firstArgument(o.completeThreshold),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.epoch, err = epochArgument(args[0]); err != nil {
				return err
			}
			return o.encrypt(cmd, q, args[1:])
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.in, "in", "", "file with one value a line; - for standard input")
	f.StringVar(&q.out, "out", "", "file to make")
	f.StringVar(&q.encoding, "encoding", encodingNames[0], "where messages lie: plain, padded or boolean; under BGV keys slots (their default) or coefficients")
	f.StringVar(&q.keys, "keys", "", "`file` of `lodge keys fetch`, in place of asking the holders")
	_ = cmd.MarkFlagRequired("out")
	complete(cmd, "encoding", words(slices.Concat(encodingNames, bgvEncodingNames)))
	return cmd
}

// cipherFile is the outcome of `lodge keys encrypt`.
type cipherFile struct {
	File        string  `json:"file"`
	Epoch       uint64  `json:"epoch"`
	Params      string  `json:"params"`
	Encoding    string  `json:"encoding"`
	Messages    int     `json:"messages"`
	Ciphertexts int     `json:"ciphertexts"`
	Bytes       int64   `json:"bytes"`
	Seconds     float64 `json:"seconds"`
}

func (o *operator) encrypt(cmd *cobra.Command, q *encrypting, args []string) error {
	values, err := readValues(cmd, args, q.in)
	if err != nil {
		return err
	}
	if err := absentFile(q.out); err != nil {
		return err
	}
	if !cmd.Flags().Changed("encoding") {
		q.encoding = ""
	}
	k, file, err := o.publicKey(cmd, q)
	if err != nil {
		return err
	}
	begun := time.Now()
	x, err := q.ciphertexts(k, file, values)
	if err != nil {
		return plain(err)
	}
	r := cipherFile{File: q.out, Epoch: k.Epoch, Params: k.Params, Encoding: q.encoding, Messages: x.Messages, Ciphertexts: max(len(x.Ring), len(x.BGV))}
	err = writeNew(q.out, 0o644, func(w io.Writer) (err error) {
		r.Bytes, err = x.WriteTo(w)
		return err
	})
	if err != nil {
		return plain(err)
	}
	r.Seconds = time.Since(begun).Seconds()
	if o.json {
		return writeIndented(cmd.OutOrStdout(), r)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d %s messages under epoch %d, %s in %.1f s\n",
		q.out, r.Messages, q.encoding, r.Epoch, amount(float64(r.Bytes)), r.Seconds)
	return err
}

// ciphertexts encrypts values, in the usual encoding if none is named.
func (q *encrypting) ciphertexts(k *threshold.Key, file *threshold.KeyFile, values []*big.Int) (*threshold.File, error) {
	if s := k.BGV(); s != nil {
		q.encoding = cmp.Or(q.encoding, bgvEncodingNames[0])
		if !slices.Contains(bgvEncodingNames, q.encoding) {
			return nil, invalid("write "+strings.Join(bgvEncodingNames, " or "), "encoding %q under keys of %s", q.encoding, s.Name)
		}
		list, err := below(values, s.T, "values of "+s.Name)
		if err != nil {
			return nil, err
		}
		slots := q.encoding == bgvEncodingNames[0]
		c, err := threshold.EncryptBGV(k, file.BGVPublic, list, slots)
		if err != nil {
			return nil, err
		}
		return threshold.NewBGVFile(k, c, len(list), slots)
	}
	q.encoding = cmp.Or(q.encoding, encodingNames[0])
	encoding, err := threshold.EncodingOf(q.encoding)
	if err != nil {
		return nil, err
	}
	messages, err := smallValues(values, k.Scheme(), encoding)
	if err != nil {
		return nil, err
	}
	ring, err := threshold.Encrypt(k, file.Public, messages, encoding)
	if err != nil {
		return nil, err
	}
	return threshold.NewFile(k, ring, len(messages), encoding), nil
}

// publicKey is that of an epoch: from a file, or from the holders.
func (o *operator) publicKey(cmd *cobra.Command, q *encrypting) (k *threshold.Key, file *threshold.KeyFile, err error) {
	if q.keys == "" {
		file = &threshold.KeyFile{}
		err = o.withHolders(func(c *threshold.Client) (err error) {
			if k, err = c.Key(cmd.Context(), q.epoch); err != nil {
				return err
			}
			if k.BGV() != nil {
				file.BGVPublic, err = c.BGVPublicKey(cmd.Context(), k)
			} else {
				file.Public, err = c.PublicKey(cmd.Context(), k)
			}
			return err
		})
		return k, file, err
	}
	f, err := os.Open(q.keys)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if file, err = threshold.ReadKeys(f); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", q.keys, plain(err))
	}
	if file.Key.Epoch != q.epoch {
		return nil, nil, rpc.Errorf(rpc.Conflict, "name that one, or another file", "%s has the keys of epoch %d", q.keys, file.Key.Epoch)
	}
	return file.Key, file, nil
}

// smallValues are values as messages of an encoding.
func smallValues(values []*big.Int, s *lwe.Scheme, e lwe.Encoding) ([]uint64, error) {
	limit := s.P
	if e == lwe.Boolean {
		limit = 2
	}
	return below(values, limit, fmt.Sprintf("%s messages of %s", e, s.Name))
}

// below are values as numbers below a limit.
func below(values []*big.Int, limit uint64, what string) ([]uint64, error) {
	out := make([]uint64, len(values))
	for i, v := range values {
		if !v.IsUint64() || v.Uint64() >= limit {
			return nil, invalid(fmt.Sprintf("%s are from 0 to %d", what, limit-1), "value %d is too large", i)
		}
		out[i] = v.Uint64()
	}
	return out, nil
}
