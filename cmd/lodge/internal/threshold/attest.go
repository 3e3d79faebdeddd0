package threshold

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// attesterReport is the JSON outcome of `lodge decrypt attester`.
type attesterReport struct {
	Private string `json:"private"`
	Key     string `json:"key"` // for the parties' configurations
}

func (o *decrypter) attesterCommand() *cobra.Command {
	var out string
	cmd := cli.Command("attester", func(cmd *cobra.Command, _ []string) error {
		public, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			return err
		}
		defer clear(private)
		der, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			return err
		}
		defer clear(der)
		err = cli.WriteNewFile(out, 0o600, func(w io.Writer) error { return pem.Encode(w, &pem.Block{Type: "PRIVATE KEY", Bytes: der}) })
		if err != nil {
			return err
		}
		r := attesterReport{out, hex.EncodeToString(public)}
		return cli.Print(cmd, r, "%s: the private key; for the parties' configurations:\nkey: %s\n", r.Private, r.Key)
	})
	cmd.Flags().StringVar(&out, "out", "", "file to create")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func (o *decrypter) attestCommand() *cobra.Command {
	var key, attester, circuit, out string
	var epoch uint64
	var batch int
	var flooding bool
	cmd := cli.Command("attest", func(cmd *cobra.Command, args []string) error {
		private, err := cli.ReadAttester(key)
		if err != nil {
			return err
		}
		defer clear(private)
		x, err := cli.Read(args[0], threshold.ReadFile)
		if err != nil {
			return err
		}
		if epoch == 0 {
			epoch = x.Epoch
		}
		x.Flooding = flooding
		word, err := x.Attest(epoch, batch, attester, circuit, private)
		if err != nil {
			return cli.FromClient(err)
		}
		if err := cli.WriteNewFile(out, 0o644, func(w io.Writer) error { _, err := word.WriteTo(w); return err }); err != nil {
			return cli.FromClient(err)
		}
		return cli.Print(cmd, word, "%s: signature of %s that %q made %s, under epoch %d\n", out, attester, circuit, args[0], epoch)
	})
	f := cmd.Flags()
	f.StringVar(&key, "key", "", "file with the attester's private key, PEM")
	f.StringVar(&attester, "attester", "", "name of the attester in the parties' configurations")
	f.StringVar(&circuit, "circuit", "", "circuit that made the ciphertexts")
	f.StringVar(&out, "out", "", "file to create")
	f.Uint64Var(&epoch, "epoch", 0, "epoch with the same keys whose holders decrypt (default: the file's)")
	f.IntVar(&batch, "batch", defaultBatch, "messages per request")
	f.BoolVar(&flooding, "flooding", false, "BGV ciphertexts may be decrypted with flooding, because their noise is within the bound of their set")
	for _, name := range []string{"key", "attester", "circuit", "out"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

// attested returns the requests of a file with an attester's signature, if one is given. The
// signature then determines the requests.
func (o *decrypter) attested(cmd *cobra.Command, x *threshold.File) ([]*threshold.Request, error) {
	if o.provenance == "" {
		list, err := x.Requests(o.batch)
		return list, cli.FromClient(err)
	}
	word, err := cli.Read(o.provenance, threshold.ReadProvenance)
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("epoch") && o.epoch != word.Epoch || cmd.Flags().Changed("batch") && o.batch != word.Batch {
		return nil, cli.Invalid("remove --epoch and --batch, or have the file signed again", "%s is for epoch %d and %d messages per request", o.provenance, word.Epoch, word.Batch)
	}
	o.epoch = word.Epoch
	list, err := x.Requests(word.Batch)
	if err == nil {
		err = word.Put(list)
	}
	return list, cli.FromClient(err)
}
