package devnet

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lodge-mpc/lodge/services/host/config"
)

// Attester is the name of the attester in the parties' configurations of a development cluster. In
// production the attester is the program that computes the ciphertexts, and only it has the key.
const Attester = "evaluator"

// attesterKey is the file of the attester's private key, in PEM.
const attesterKey = "attester.key"

// AttesterKeyFile returns the path of the attester's private key, in PEM, for `lodge decrypt
// attest`.
func (c *Cluster) AttesterKeyFile() string { return filepath.Join(c.Dir, "clients", attesterKey) }

// AttesterKey loads the attester's private key.
func (c *Cluster) AttesterKey() (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(c.AttesterKeyFile())
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("devnet: %s has no private key", c.AttesterKeyFile())
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("devnet: %s: %w", c.AttesterKeyFile(), err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("devnet: the attester's key is not an Ed25519 key")
	}
	return private, nil
}

// newAttester writes a key pair for the attester.
func (w *writer) newAttester() {
	w.do(func() error {
		public, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			return err
		}
		der, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			return err
		}
		w.file(filepath.Join("clients", attesterKey), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
		w.attester = public
		return nil
	})
}

// decryptRules returns the rules of a development cluster. App is for experiments: it may decrypt
// any ciphertexts, and the file says so. Attested shows a production setup: ciphertexts need
// provenance signed by the program that computed them.
func decryptRules() []config.DecryptRule {
	return []config.DecryptRule{
		{Client: App, AnyCiphertexts: true, MaxTotal: 1 << 30, MessagesPerHour: 1 << 30, MaxMessages: 1 << 16, AllowPaperForm: true, AllowMultikey: true},
		{
			Client: Attested, Provenance: []string{Attester}, MessagesPerHour: 1 << 30, MaxMessages: 1 << 16,
			AllowPaperForm: true, AllowFlooding: true, AllowMultikey: true,
		},
	}
}
