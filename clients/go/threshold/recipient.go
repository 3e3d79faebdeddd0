package threshold

import (
	"crypto/hpke"
	"fmt"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
)

// kem seals answers. It is a key encapsulation with the same post-quantum security as the
// ciphertexts.
func kem() hpke.KEM { return hpke.MLKEM768X25519() }

// Recipient reads answers that others requested for it: parties seal their answers to its public
// key, so that neither the parties nor the requesting client learn a plaintext.
type Recipient struct{ key hpke.PrivateKey }

// NewRecipient generates a key pair.
func NewRecipient() (*Recipient, error) {
	k, err := kem().GenerateKey()
	if err != nil {
		return nil, err
	}
	return &Recipient{k}, nil
}

// LoadRecipient reads the output of Bytes.
func LoadRecipient(private []byte) (*Recipient, error) {
	k, err := kem().NewPrivateKey(private)
	if err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "", "not a recipient's private key: %v", err)
	}
	return &Recipient{k}, nil
}

// Bytes returns the private key.
func (r *Recipient) Bytes() ([]byte, error) { return r.key.Bytes() }

// Public returns the public key, for the clients that send requests.
func (r *Recipient) Public() hpke.PublicKey { return r.key.PublicKey() }

// ParsePublic reads the public key of a recipient.
func ParsePublic(public []byte) (hpke.PublicKey, error) {
	k, err := kem().NewPublicKey(public)
	if err != nil {
		return nil, lodge.Errorf(lodge.Invalid, "", "not a recipient's public key: %v", err)
	}
	return k, nil
}

// Open returns the plaintexts of answers sealed to this recipient.
func (r *Recipient) Open(a *Answers) ([]uint64, error) {
	if !a.Sealed || a.Question == nil || len(a.Parts) != len(a.Question.Quorum) {
		return nil, lodge.Errorf(lodge.Invalid, "", "these answers are not sealed")
	}
	clear := *a
	var err error
	clear.Parts = make([][]byte, len(a.Parts))
	for i, sealed := range a.Parts {
		clear.Parts[i], err = hpke.Open(r.key, hpke.HKDFSHA256(), hpke.AES256GCM(), a.Question.Info(a.Question.Quorum[i]), sealed)
		if err != nil {
			return nil, fmt.Errorf("threshold: the answer of party %d is not sealed to this recipient, or not for this request: %w", a.Question.Quorum[i], err)
		}
	}
	return clear.combine()
}
