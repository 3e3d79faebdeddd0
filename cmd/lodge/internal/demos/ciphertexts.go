package demos

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math/big"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/clients/go/ciphertext"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// CiphertextsReport is the outcome of `lodge demo decrypt --all`.
type CiphertextsReport struct {
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

// Ciphertexts generates keys that all parties decrypt with, encrypts a random vector with a proof
// that the client knows it, and has all parties decrypt it twice: the same request must give the
// same bytes.
func Ciphertexts(ctx context.Context, c *cluster.Cluster, set, field string) (*CiphertextsReport, error) {
	r := &CiphertextsReport{Parties: len(c.Clients), Field: field, Params: set}
	began := time.Now()
	keys, err := c.Job(ctx, &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: set, Purpose: jobv1.Purpose_PURPOSE_DECRYPTION})
	if err != nil {
		return nil, err
	}
	r.KeygenSeconds, r.KeygenSecurity = time.Since(began).Seconds(), keys.GetParties()[0].GetStatus().GetKeygenSecurity()
	config, err := c.Client(devnet.App)
	if err != nil {
		return nil, err
	}
	client, err := ciphertext.Dial(config)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	key, err := client.Key(ctx, keys.GetEpoch(), field)
	if err != nil {
		return nil, err
	}
	r.StatisticalBits, r.Values = key.SecurityBits(), key.Slots()
	values := make([]*big.Int, r.Values)
	for i := range values {
		if values[i], err = rand.Int(rand.Reader, key.Modulus()); err != nil {
			return nil, err
		}
	}
	c.Progress.Say("encrypting and proving %d values", r.Values)
	began = time.Now()
	x, err := client.Encrypt(ctx, key, values, []byte("lodge demo decrypt"))
	if err != nil {
		return nil, err
	}
	r.EncryptSeconds, r.RequestBytes = time.Since(began).Seconds(), len(x.Bytes)+len(x.ProofBytes)
	c.Progress.Say("asking %d parties to decrypt", r.Parties)
	began = time.Now()
	d, err := client.Decrypt(ctx, key, x)
	if err != nil {
		return nil, err
	}
	r.DecryptSeconds, r.AnswerBytes = time.Since(began).Seconds(), len(d.Answers[0])
	again, err := client.Decrypt(ctx, key, x)
	if err != nil {
		return nil, err
	}
	r.Repeated = slices.EqualFunc(again.Answers, d.Answers, bytes.Equal)
	for i, v := range values {
		if v.Cmp(d.Values[i]) == 0 {
			r.Correct++
		}
	}
	return r, nil
}

// Print writes the report for people.
func (r *CiphertextsReport) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, `
A client encrypted %d values over %s with %s and proved that it knows them; %d parties decrypted them together.

  right               %10d of %d
  key generation      %10.1f s   security: %s
  encryption, proof   %10.1f s   %s to each party
  decryption          %10.1f s   %s from each party; asking again gives the same bytes: %v
  statistical security%10d bits after 2^20 decrypted ciphertexts
`, r.Values, r.Field, r.Params, r.Parties, r.Correct, r.Values, r.KeygenSeconds, r.KeygenSecurity, r.EncryptSeconds,
		terminal.Amount(float64(r.RequestBytes)), r.DecryptSeconds, terminal.Amount(float64(r.AnswerBytes)), r.Repeated, r.StatisticalBits)
	return err
}
