package devnet

import (
	"crypto/ed25519"
	"path/filepath"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
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
	return pki.LoadSigningKey(c.AttesterKeyFile())
}

// newAttester writes a key pair for the attester.
func (w *writer) newAttester() {
	w.do(func() error {
		private, public, err := pki.NewSigningKey()
		if err != nil {
			return err
		}
		w.file(filepath.Join("clients", attesterKey), private)
		w.attester, err = pki.ParsePublic(public)
		return err
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
