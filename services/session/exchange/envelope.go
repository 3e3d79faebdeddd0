package exchange

import (
	"crypto/ed25519"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Envelope is the content that a party signs for every message. A broadcast is signed once for all
// recipients, so two signatures over different digests prove equivocation.
type Envelope struct {
	Protocol string
	Version  uint32
	Session  [32]byte // the session id; before there is one, the digest of the spec
	Round    uint32   // index in the session's chain of rounds
	Name     string
	From     round.Party
	To       round.Party // round.All for a broadcast
	// Transcript is the hash of the chain's broadcasts up to the previous round. A signature
	// therefore binds its party to all messages that it responds to.
	Transcript round.Digest
	Digest     round.Digest
}

func (e Envelope) message() []byte {
	h := round.Hash("lodge envelope",
		//lodge:check exchange/envelope/protocol [run=TestEnvelope] a signature does not bind the
		//  protocol
		[]byte(e.Protocol),
		//lodge:check exchange/envelope/version [run=TestEnvelope] a signature does not bind the
		//  protocol version
		round.Uint(uint64(e.Version)),
		//lodge:check exchange/envelope/session [run=TestEnvelope] a signed message can be replayed
		//  in another session
		e.Session[:],
		//lodge:check exchange/envelope/round [run=TestEnvelope] a signed message can be replayed in
		//  another round
		round.Uint(uint64(e.Round)),
		//lodge:check exchange/envelope/name [run=TestEnvelope] a signed message passes for a
		//  message of another name
		[]byte(e.Name),
		//lodge:check exchange/envelope/from [run=TestEnvelope] a signature does not bind the sender
		round.Uint(uint64(e.From)),
		//lodge:check exchange/envelope/to [run=TestEnvelope] a signed message can be delivered to
		//  another party
		round.Uint(uint64(e.To)), // round.All is all ones
		//lodge:check exchange/envelope/transcript [run=TestEnvelope] a signature does not bind the
		//  broadcasts before it
		e.Transcript[:],
		//lodge:check exchange/envelope/digest [drop=e.Digest[:]] [run=TestEnvelope] a signature
		//  does not bind the content of the message
		e.Digest[:])
	return append([]byte("lodge envelope v2:"), h[:]...)
}

// Sign returns the Ed25519 signature over every field.
func (e Envelope) Sign(key ed25519.PrivateKey) []byte { return ed25519.Sign(key, e.message()) }

// Verify checks a signature of From.
func (e Envelope) Verify(key ed25519.PublicKey, signature []byte) bool {
	//lodge:check exchange/envelope/verify [drop=ed25519.Verify(key, e.message(), signature)]
	//  [run=TestEnvelope] a message needs no valid signature
	return len(signature) == ed25519.SignatureSize && ed25519.Verify(key, e.message(), signature)
}

// Farewell is the content that a party signs when it ends a session without a result: how the
// session ended for it.
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
		//lodge:check exchange/farewell/blamed [run=TestEnvelope|TestFarewell] the blamed party of a
		//  signed farewell can be changed
		blamed = round.Uint(uint64(*f.Blamed))
	}
	h := round.Hash("lodge farewell",
		//lodge:check exchange/farewell/protocol [run=TestEnvelope|TestFarewell] a signed farewell
		//  does not bind its protocol
		[]byte(f.Protocol),
		//lodge:check exchange/farewell/version [run=TestEnvelope|TestFarewell] a signed farewell
		//  does not bind its protocol version
		round.Uint(uint64(f.Version)),
		//lodge:check exchange/farewell/session [run=TestEnvelope|TestFarewell] a signed farewell
		//  can be replayed in another session
		f.Session[:],
		//lodge:check exchange/farewell/from [run=TestEnvelope|TestFarewell] a signed farewell does
		//  not bind its sender
		round.Uint(uint64(f.From)),
		//lodge:check exchange/farewell/outcome [run=TestEnvelope|TestFarewell] the outcome of a
		//  signed farewell can be changed
		[]byte(f.Outcome),
		//lodge:check exchange/farewell/round [run=TestEnvelope|TestFarewell] the round of a signed
		//  farewell can be changed
		[]byte(f.Round),
		//lodge:check exchange/farewell/check [run=TestEnvelope|TestFarewell] the failed check of a
		//  signed farewell can be changed
		[]byte(f.Check),
		//lodge:check exchange/farewell/reason [run=TestEnvelope|TestFarewell] the reason of a
		//  signed farewell can be changed
		[]byte(f.Reason),
		blamed)
	return append([]byte("lodge farewell v1:"), h[:]...)
}

// Sign returns the Ed25519 signature over every field.
func (f Farewell) Sign(key ed25519.PrivateKey) []byte { return ed25519.Sign(key, f.message()) }

// Verify checks a signature of From.
func (f Farewell) Verify(key ed25519.PublicKey, signature []byte) bool {
	//lodge:check exchange/farewell/verify [drop=ed25519.Verify(key, f.message(), signature)]
	//  [run=TestEnvelope|TestFarewell] a farewell needs no valid signature
	return len(signature) == ed25519.SignatureSize && ed25519.Verify(key, f.message(), signature)
}
