package cli

import (
	"crypto/ed25519"
	"crypto/hpke"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/threshold"
)

// OpenedReport is the JSON outcome of `lodge decrypt` and `lodge decrypt open`.
type OpenedReport struct {
	File    string     `json:"file"`
	Epoch   uint64     `json:"epoch"`
	Params  string     `json:"params"`
	Values  []uint64   `json:"values,omitempty"`
	Sealed  string     `json:"sealed,omitempty"` // file with the sealed answers
	Quorums [][]string `json:"quorums,omitempty"`
	Masks   string     `json:"masks"`
	Bytes   int        `json:"answer_bytes"` // sent by all parties together
	Seconds float64    `json:"seconds"`
}

// Add adds the quorum and the size of one result.
func (r *OpenedReport) Add(got *threshold.Result, names []string) {
	quorum := strings.Fields(NameList(got.Quorum, names))
	if n := len(r.Quorums); n == 0 || strings.Join(r.Quorums[n-1], " ") != strings.Join(quorum, " ") {
		r.Quorums = append(r.Quorums, quorum)
	}
	for _, part := range got.Answers.Parts {
		r.Bytes += len(part)
	}
}

// ReadRecipient reads the public key that answers are sealed to. It returns nil if file is empty.
// Sealed answers need an output file.
func ReadRecipient(file, out string) (hpke.PublicKey, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // the client itself receives the answers
	}
	if out == "" {
		return nil, Invalid("name the file with --out", "sealed answers must be written to a file")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	k, err := threshold.ParsePublicPEM(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, FromClient(err))
	}
	return k, nil
}

// WriteSealed writes answers that are sealed to a recipient to the new file out, and reports them.
func (r *OpenedReport) WriteSealed(cmd *cobra.Command, answers *threshold.AnswersFile, out string) error {
	err := WriteNewFile(out, 0o644, func(w io.Writer) error { _, err := answers.WriteTo(w); return err })
	if err != nil {
		return FromClient(err)
	}
	r.Sealed = out
	return Print(cmd, r, "%s: sealed answers of %s for %d messages, %s in %.1f s; `lodge decrypt open` opens them\n", out,
		strings.Join(r.Quorums[0], " and "), answers.Messages, Size(float64(r.Bytes)), r.Seconds)
}

// ReadAttester reads the private key of an attester.
func ReadAttester(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, Invalid("make one with `lodge decrypt attester`", "%s: no PRIVATE KEY", file)
	}
	defer clear(block.Bytes)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, Invalid("make one with `lodge decrypt attester`", "%s: %v", file, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, Invalid("make one with `lodge decrypt attester`", "%s: key type %T is not supported, an Ed25519 key is needed", file, key)
	}
	return private, nil
}
