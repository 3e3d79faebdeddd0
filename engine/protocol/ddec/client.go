package ddec

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// ClientShare returns one party's last message of the decryption of ct, on basis Q, for a client
// that collects the messages of all parties and combines them itself. There is no mask: the sum of
// the messages is the encoding of the plaintext, flooded by every party.
//
// The caller must ensure that the key was made for clients, that the noise of ct is within the
// instance's bound (a fresh ciphertext with a proof of plaintext knowledge, doubled), and that the
// share for each ClientKey is computed once and stored. Every further share floods the same phase
// again and spends statistical distance.
func ClientShare(s *gbfv.Scheme, i *params.Instance, ct *gbfv.Ciphertext, secret ring.NTT, source *sample.Source) []byte {
	switched := s.SwitchModulus(ct, i.DDecPrimes)
	zero := s.Field.NewVec(s.Slots())
	d := message(s, i, switched.C1, secret, zero, source.Stream("flood"))
	return codec.AppendPoly(nil, d.C, s.Prefix(i.DDecPrimes).Primes())
}

// ClientKey identifies the value on which a party's share depends besides its key: c1 after the
// switch of modulus. Ciphertexts that are equal after the switch have the same ClientKey.
func ClientKey(s *gbfv.Scheme, i *params.Instance, ct *gbfv.Ciphertext) round.Digest {
	switched := s.SwitchModulus(ct, i.DDecPrimes)
	//lodge:check ddec/client/key [swap=nil=>codec.AppendPoly(nil, ct.C1.C, s.Q.Primes())]
	//  [run=TestClient|TestAnswers] ciphertexts with the same answer have several places in the
	//  ledger
	return round.Hash("lodge client ciphertext", codec.AppendPoly(nil, switched.C1.C, s.Prefix(i.DDecPrimes).Primes()))
}

// Combine returns the D slots of ct from all parties' messages, in the order of the roster. The
// error is a *round.Blame if a message is malformed. A well-formed wrong message changes the result
// undetectably.
func Combine(s *gbfv.Scheme, i *params.Instance, ct *gbfv.Ciphertext, messages [][]byte) (field.Vec, error) {
	//lodge:check ddec/client/messages [swap=len(messages) != i.Use.Parties=>len(messages) >
	//  i.Use.Parties] [run=TestClient|FuzzCombine] a client accepts messages from too few parties
	if len(messages) != i.Use.Parties {
		return field.Vec{}, fmt.Errorf("ddec: messages of %d parties, want %d", len(messages), i.Use.Parties)
	}
	b := s.Prefix(i.DDecPrimes)
	sum, t := b.NewPoly(), b.NewPoly()
	for p, m := range messages {
		//lodge:check ddec/client/decodes [run=TestClient|FuzzCombine] a client accepts messages
		//  that are not canonical
		if err := codec.DecodePoly(t.C, b.Primes(), m); err != nil {
			return field.Vec{}, round.Malformed(round.Party(p), err)
		}
		b.Add(sum, sum, t)
	}
	slots := s.Field.NewVec(s.Slots())
	decode(s, i, slots, s.SwitchModulus(ct, i.DDecPrimes).C0, sum)
	return slots, nil
}
