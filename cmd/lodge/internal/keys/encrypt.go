package keys

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
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// encodingNames lists the encodings of messages. The first is the default.
var encodingNames = []string{"plain", "padded", "boolean"}

// bgvEncodingNames lists the encodings of values in BGV ciphertexts.
var BgvEncodingNames = []string{"slots", "coefficients"}

func keysFetchCommand(o *cli.Operator) *cobra.Command {
	var out string
	var evaluation bool
	cmd := cli.EpochCommand("fetch", func(cmd *cobra.Command, epoch uint64, _ []string) error {
		if err := cli.CheckNewFile(out); err != nil {
			return err
		}
		return o.WithHolders(func(c *threshold.Client) error { return fetchKeys(o, cmd, c, epoch, out, evaluation) })
	}, o.CompleteThreshold)
	cmd.Flags().StringVar(&out, "out", "", "file to create")
	cmd.Flags().BoolVar(&evaluation, "evaluation", false, "include the keys for computing on ciphertexts")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// keysFile is the JSON outcome of `lodge keys fetch`.
type keysFile struct {
	File       string  `json:"file"`
	Epoch      uint64  `json:"epoch"`
	Params     string  `json:"params"`
	Digest     string  `json:"digest"`
	Evaluation bool    `json:"evaluation"`
	Bytes      int64   `json:"bytes"`
	Seconds    float64 `json:"seconds"`
}

func fetchKeys(o *cli.Operator, cmd *cobra.Command, c *threshold.Client, epoch uint64, out string, evaluation bool) error {
	k, err := c.Key(cmd.Context(), epoch)
	if err != nil {
		return err
	}
	begun, p := time.Now(), cli.ProgressOf(cmd)
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
	return cli.Write(cmd, r, func(w io.Writer) error {
		what := "the public key"
		if evaluation {
			what = "all public keys"
		}
		_, err = fmt.Fprintf(w, "%s: %s of epoch %d, %s, %s in %.1f s\n", out, what, r.Epoch, r.Params, cli.Size(float64(r.Bytes)), r.Seconds)
		return err
	})
}

// encrypting holds the flags of `lodge keys encrypt`.
type encrypting struct {
	in, out, encoding, keys string
	epoch                   uint64
}

func keysEncryptCommand(o *cli.Operator) *cobra.Command {
	q := &encrypting{}
	cmd := cli.EpochCommand("encrypt", func(cmd *cobra.Command, epoch uint64, args []string) (err error) {
		q.epoch = epoch
		return encrypt(o, cmd, q, args)
	}, o.CompleteThreshold)
	f := cmd.Flags()
	f.StringVar(&q.in, "in", "", "file with one value a line; - for standard input")
	f.StringVar(&q.out, "out", "", "file to create")
	f.StringVar(&q.encoding, "encoding", encodingNames[0], "encoding: plain, padded or boolean; for BGV keys slots (the default) or coefficients")
	f.StringVar(&q.keys, "keys", "", "`file` of `lodge keys fetch`, instead of the holders' key")
	_ = cmd.MarkFlagRequired("out")
	cli.Complete(cmd, "encoding", cli.Words(slices.Concat(encodingNames, BgvEncodingNames)))
	return cmd
}

// cipherFile is the JSON outcome of `lodge keys encrypt`.
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

func encrypt(o *cli.Operator, cmd *cobra.Command, q *encrypting, args []string) error {
	values, err := cli.ReadValues(cmd, args, q.in)
	if err != nil {
		return err
	}
	if err := cli.CheckNewFile(q.out); err != nil {
		return err
	}
	if !cmd.Flags().Changed("encoding") {
		q.encoding = ""
	}
	k, file, err := publicKey(o, cmd, q)
	if err != nil {
		return err
	}
	begun := time.Now()
	x, err := q.ciphertexts(k, file, values)
	if err != nil {
		return cli.FromClient(err)
	}
	r := cipherFile{File: q.out, Epoch: k.Epoch, Params: k.Params, Encoding: q.encoding, Messages: x.Messages, Ciphertexts: max(len(x.Ring), len(x.BGV))}
	err = cli.WriteNewFile(q.out, 0o644, func(w io.Writer) (err error) {
		r.Bytes, err = x.WriteTo(w)
		return err
	})
	if err != nil {
		return cli.FromClient(err)
	}
	r.Seconds = time.Since(begun).Seconds()
	return cli.Print(cmd, r, "%s: %d %s messages under epoch %d, %s in %.1f s\n",
		q.out, r.Messages, q.encoding, r.Epoch, cli.Size(float64(r.Bytes)), r.Seconds)
}

// ciphertexts encrypts values, in the default encoding unless one is named.
func (q *encrypting) ciphertexts(k *threshold.Key, file *threshold.KeyFile, values []*big.Int) (*threshold.File, error) {
	if s := k.BGV(); s != nil {
		q.encoding = cmp.Or(q.encoding, BgvEncodingNames[0])
		if !slices.Contains(BgvEncodingNames, q.encoding) {
			return nil, cli.Invalid("write "+strings.Join(BgvEncodingNames, " or "), "encoding %q is not supported by keys of %s", q.encoding, s.Name)
		}
		list, err := below(values, s.T, "values of "+s.Name)
		if err != nil {
			return nil, err
		}
		slots := q.encoding == BgvEncodingNames[0]
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

// publicKey returns the public key of an epoch, from a file or from the holders.
func publicKey(o *cli.Operator, cmd *cobra.Command, q *encrypting) (k *threshold.Key, file *threshold.KeyFile, err error) {
	if q.keys == "" {
		file = &threshold.KeyFile{}
		err = o.WithHolders(func(c *threshold.Client) (err error) {
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
	if file, err = cli.Read(q.keys, threshold.ReadKeys); err != nil {
		return nil, nil, err
	}
	if file.Key.Epoch != q.epoch {
		return nil, nil, rpc.Errorf(rpc.Conflict, "name that epoch, or another file", "%s has the keys of epoch %d", q.keys, file.Key.Epoch)
	}
	return file.Key, file, nil
}

// smallValues converts values to messages of an encoding.
func smallValues(values []*big.Int, s *lwe.Scheme, e lwe.Encoding) ([]uint64, error) {
	limit := s.P
	if e == lwe.Boolean {
		limit = 2
	}
	return below(values, limit, fmt.Sprintf("%s messages of %s", e, s.Name))
}

// below converts values to numbers below a limit.
func below(values []*big.Int, limit uint64, what string) ([]uint64, error) {
	out := make([]uint64, len(values))
	for i, v := range values {
		if !v.IsUint64() || v.Uint64() >= limit {
			return nil, cli.Invalid(fmt.Sprintf("%s are from 0 to %d", what, limit-1), "value %d is too large", i)
		}
		out[i] = v.Uint64()
	}
	return out, nil
}
