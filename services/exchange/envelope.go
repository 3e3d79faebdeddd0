package exchange

import (
	"crypto/ed25519"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Envelope is what a party signs for every message. A broadcast is signed once
// for all, so that two signatures over different digests prove equivocation.
type Envelope struct {
	Protocol string
	Version  uint32
	Session  [32]byte // the session id; before there is one, the digest of the spec
	Round    uint32   // index in the session's chain of rounds
	Name     string
	From     round.Party
	To       round.Party // round.All for a broadcast
	Digest   round.Digest
}

func (e Envelope) message() []byte {
	h := round.Hash("lodge envelope",
		[]byte(e.Protocol),
		round.Uint(uint64(e.Version)),
		e.Session[:],
		round.Uint(uint64(e.Round)),
		[]byte(e.Name),
		round.Uint(uint64(e.From)),
		round.Uint(uint64(e.To)), // round.All is all ones
		e.Digest[:])
	return append([]byte("lodge envelope v1:"), h[:]...)
}

// Sign gives the Ed25519 signature over every field.
func (e Envelope) Sign(key ed25519.PrivateKey) []byte { return ed25519.Sign(key, e.message()) }

// Verify checks a signature of From.
func (e Envelope) Verify(key ed25519.PublicKey, signature []byte) bool {
	return len(signature) == ed25519.SignatureSize && ed25519.Verify(key, e.message(), signature)
}
