package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/clients/go/ciphertext"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/params"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// decryptReport is the outcome of `lodge demo decrypt --all`.
type decryptReport struct {
	Parties         int     `json:"parties"`
	Field           string  `json:"field"`
	Params          string  `json:"params"`
	Values          int     `json:"values"`
	Correct         int     `json:"correct"`
	KeygenSeconds   float64 `json:"keygen_seconds"`
	EncryptSeconds  float64 `json:"encrypt_seconds"`
	DecryptSeconds  float64 `json:"decrypt_seconds"`
	RequestBytes    int     `json:"request_bytes"`
	AnswerBytes     int     `json:"answer_bytes_per_party"`
	Repeated        bool    `json:"repeat_gives_same_bytes"`
	KeygenSecurity  string  `json:"keygen_security"`
	StatisticalBits int     `json:"statistical_security_bits"`
}

func runDemoDecrypt(cmd *cobra.Command, o *demoOptions) (err error) {
	defer func() { err = ended(cmd, err) }()
	if err := checkParties(o.parties); err != nil {
		return err
	}
	if o.params == "" {
		o.params = params.Default
	}
	set, err := params.Lookup(o.params)
	if err != nil {
		return err
	}
	if _, err := set.Field(o.field); err != nil {
		return err
	}
	c, err := startCluster(cmd, clusterOptions{parties: o.parties, set: o.params, keep: o.keep})
	if err != nil {
		return err
	}
	defer c.stop()
	r := &decryptReport{Parties: o.parties, Field: o.field, Params: o.params}
	began := time.Now()
	keys, err := c.job(cmd.Context(), &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: o.params, Purpose: jobv1.Purpose_PURPOSE_DECRYPTION, Timeout: durationpb.New(time.Hour),
	})
	if err != nil {
		return err
	}
	r.KeygenSeconds = time.Since(began).Seconds()
	r.KeygenSecurity = keys.GetParties()[0].GetStatus().GetKeygenSecurity()
	if err := c.decrypt(cmd.Context(), r, keys.GetEpoch()); err != nil {
		return plain(err)
	}
	hold(cmd)
	if o.json {
		err = writeIndented(cmd.OutOrStdout(), r)
	} else {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), `
A client encrypted %d values over %s with %s and proved that it knows them; %d parties decrypted them together.

  right               %10d of %d
  key generation      %10.1f s   security: %s
  encryption, proof   %10.1f s   %s to each party
  decryption          %10.1f s   %s from each party; asking again gives the same bytes: %v
  statistical security%10d bits after 2^20 decrypted ciphertexts
`, r.Values, r.Field, r.Params, r.Parties, r.Correct, r.Values, r.KeygenSeconds, r.KeygenSecurity, r.EncryptSeconds,
			amount(float64(r.RequestBytes)), r.DecryptSeconds, amount(float64(r.AnswerBytes)), r.Repeated, r.StatisticalBits)
	}
	if err == nil && (r.Correct != r.Values || !r.Repeated) {
		err = rpc.Errorf(checkFailed, "", "the decryption is wrong: %d of %d values are right", r.Correct, r.Values)
	}
	return err
}

// decrypt encrypts a random vector as a client, and has it decrypted twice.
func (c *cluster) decrypt(ctx context.Context, r *decryptReport, epoch uint64) error {
	config, err := lodge.Load(filepath.Join(c.net.Dir, "clients", devnet.App+".yaml"))
	if err != nil {
		return err
	}
	client, err := ciphertext.Dial(config)
	if err != nil {
		return err
	}
	defer client.Close()
	key, err := client.Key(ctx, epoch, r.Field)
	if err != nil {
		return err
	}
	r.StatisticalBits, r.Values = key.SecurityBits(), key.Slots()
	values := make([]*big.Int, r.Values)
	for i := range values {
		if values[i], err = rand.Int(rand.Reader, key.Modulus()); err != nil {
			return err
		}
	}
	c.progress.say("encrypting and proving %d values", r.Values)
	began := time.Now()
	x, err := client.Encrypt(ctx, key, values, []byte("lodge demo decrypt"))
	if err != nil {
		return err
	}
	r.EncryptSeconds, r.RequestBytes = time.Since(began).Seconds(), len(x.Bytes)+len(x.ProofBytes)
	c.progress.say("asking %d parties to decrypt", r.Parties)
	began = time.Now()
	d, err := client.Decrypt(ctx, key, x)
	if err != nil {
		return err
	}
	r.DecryptSeconds, r.AnswerBytes = time.Since(began).Seconds(), len(d.Answers[0])
	again, err := client.Decrypt(ctx, key, x)
	if err != nil {
		return err
	}
	r.Repeated = slices.EqualFunc(again.Answers, d.Answers, bytes.Equal)
	for i, v := range values {
		if v.Cmp(d.Values[i]) == 0 {
			r.Correct++
		}
	}
	return nil
}
