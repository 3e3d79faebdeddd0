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
	// Transcript is of the chain's broadcasts up to the round before, so that a signature binds its party to all that it
	// answers to.
	Transcript round.Digest
	Digest     round.Digest
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
		e.Transcript[:],
		e.Digest[:])
	return append([]byte("lodge envelope v2:"), h[:]...)
}

// Sign gives the Ed25519 signature over every field.
func (e Envelope) Sign(key ed25519.PrivateKey) []byte { return ed25519.Sign(key, e.message()) }

// Verify checks a signature of From.
func (e Envelope) Verify(key ed25519.PublicKey, signature []byte) bool {
	return len(signature) == ed25519.SignatureSize && ed25519.Verify(key, e.message(), signature)
}

// Farewell is what a party signs when it ends a session without a result: its word on how it ended.
type Farewell struct {
	Protocol string
	Version  uint32
	Session  [32]byte
	From     round.Party
	Outcome  string
	Round    string
	Check    string
	Reason   string
	Blamed   *round.Party
}

func (f Farewell) message() []byte {
	blamed := []byte{}
	if f.Blamed != nil {
		blamed = round.Uint(uint64(*f.Blamed))
	}
	h := round.Hash("lodge farewell",
		[]byte(f.Protocol),
		round.Uint(uint64(f.Version)),
		f.Session[:],
		round.Uint(uint64(f.From)),
		[]byte(f.Outcome),
		[]byte(f.Round),
		[]byte(f.Check),
		[]byte(f.Reason),
		blamed)
	return append([]byte("lodge farewell v1:"), h[:]...)
}

// Sign gives the Ed25519 signature over every field.
func (f Farewell) Sign(key ed25519.PrivateKey) []byte { return ed25519.Sign(key, f.message()) }

// Verify checks a signature of From.
func (f Farewell) Verify(key ed25519.PublicKey, signature []byte) bool {
	return len(signature) == ed25519.SignatureSize && ed25519.Verify(key, f.message(), signature)
}
