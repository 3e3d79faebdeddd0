package triple

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// MACKey is one party's view of a MAC key: the ciphertext of alpha in every slot, and its share of
// alpha.
type MACKey struct {
	Ciphertext *gbfv.Ciphertext
	Share      field.Vec // one element, secret
	// Operand is the ciphertext made ready for products, once for all batches under the key; nil
	// has each batch do it.
	Operand *gbfv.Left
}

// MACKeyConfig holds the inputs of StartMACKey: those that all parties share, and those of this
// party.
type MACKeyConfig struct {
	Session  round.Session
	Scheme   *gbfv.Scheme
	Instance *params.Instance // see MACKeyInstance
	Public   *gbfv.PublicKey
	KeyHash  round.Digest
	Source   *sample.Source
	Workers  int
}

// StartMACKey makes a MAC key.
func StartMACKey(c MACKeyConfig) (round.Transition[MACKey], error) {
	t, err := popk.Start(popk.Config{
		Session: c.Session, Step: StepMACKey, Scheme: c.Scheme, Instance: c.Instance, Key: c.Public, KeyHash: c.KeyHash,
		//lodge:check triple/mac-key-diagonal [swap=true=>false] [run=TestMACKeys|TestCheatsInAMAC]
		//  a MAC key can differ between slots
		MACKey: true, Source: c.Source, Workers: c.Workers,
	})
	if err != nil {
		return round.Transition[MACKey]{}, err
	}
	return round.Map(t, func(r popk.Result) (MACKey, error) {
		share := r.Shares[0].Slice(0, 1).Clone()
		r.Shares[0].Wipe()
		return MACKey{Ciphertext: r.Ciphertexts[0], Share: share}, nil
	}), nil
}

// EncodeCiphertext packs a ciphertext on basis Q as two frames.
func EncodeCiphertext(s *gbfv.Scheme, ct *gbfv.Ciphertext) [2][]byte {
	primes := s.Q.Primes()
	return [2][]byte{codec.AppendPoly(nil, ct.C0.C, primes), codec.AppendPoly(nil, ct.C1.C, primes)}
}

// DecodeCiphertext is the inverse of EncodeCiphertext.
func DecodeCiphertext(s *gbfv.Scheme, frames [2][]byte) (*gbfv.Ciphertext, error) {
	ct := s.NewCiphertext()
	for i, c := range [2][][]uint64{ct.C0.C, ct.C1.C} {
		//lodge:check triple/stored-ciphertext [run=TestCiphertexts|FuzzDecode] a stored MAC key
		//  that is not canonical is loaded
		if err := codec.DecodePoly(c, s.Q.Primes(), frames[i]); err != nil {
			return nil, fmt.Errorf("triple: ciphertext: %w", err)
		}
	}
	return ct, nil
}
