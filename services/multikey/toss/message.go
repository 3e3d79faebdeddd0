package toss

import (
	"crypto/ed25519"
	"fmt"

	"github.com/lodge-mpc/lodge/services/host/config"
)

// A message is a line that identifies its kind, the ceremony, and one of these:
//
//	secret      the founder's place 1, value 32, blinding 32
//	commitment  the founder's place 1, commitment 32, signature 64
//	reveal      the founder's place 1, commitment and signature of every founder, value 32, blinding 32, signature 64
//	transcript  commitment and signature of every founder, then value, blinding and signature of every founder
//
// A ceremony is encoded as label, set, hash of the set 32, number of founders 1, and the name and
// key 32 of each founder. Strings are preceded by their length in one byte. Each message has
// exactly one encoding.
const (
	secretLine     = "lodge multikey toss secret 1\n"
	commitLine     = "lodge multikey toss commitment 1\n"
	revealLine     = "lodge multikey toss reveal 1\n"
	transcriptLine = "lodge multikey toss transcript 1\n"
)

// MaxSize is the maximum size of any message, in bytes.
const MaxSize = 64 + 2*65 + 33 + config.MaxParties*(65+ed25519.PublicKeySize+(32+64)+(64+64))

// opening is the committed value with its blinding.
type opening struct{ value, blind [32]byte }

type signedCommitment struct {
	commitment [32]byte
	signature  [ed25519.SignatureSize]byte
}

type signedOpening struct {
	opening
	signature [ed25519.SignatureSize]byte
}

func (c *Ceremony) append(b []byte) []byte {
	text := func(s string) { b = append(append(b, byte(len(s))), s...) }
	text(c.Label)
	text(c.Set)
	b = append(append(b, c.Hash[:]...), byte(len(c.Founders)))
	for _, f := range c.Founders {
		text(f.Name)
		b = append(b, f.Key...)
	}
	return b
}

// reader decodes a message. After the first missing byte it returns zeros.
type reader struct {
	left  []byte
	short bool
}

func (r *reader) bytes(n int) []byte {
	if len(r.left) < n {
		r.left, r.short = nil, true
		return make([]byte, n)
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

func (r *reader) text() string { return string(r.bytes(int(r.bytes(1)[0]))) }

func (r *reader) signedCommitment() signedCommitment {
	return signedCommitment{[32]byte(r.bytes(32)), [64]byte(r.bytes(64))}
}

func (r *reader) opening() opening { return opening{[32]byte(r.bytes(32)), [32]byte(r.bytes(32))} }

func (r *reader) signedOpening() signedOpening {
	return signedOpening{r.opening(), [64]byte(r.bytes(64))}
}

func (r *reader) list(n int) []signedCommitment {
	list := make([]signedCommitment, n)
	for i := range list {
		list[i] = r.signedCommitment()
	}
	return list
}

// open decodes the line and the ceremony of a message.
func open(b []byte, line string) (*reader, *Ceremony, error) {
	//lodge:check toss/message/size [run=TestMessagesRefused] a message of any size is read
	if len(b) > MaxSize {
		return nil, nil, fmt.Errorf("%w: %d bytes; messages have at most %d", ErrFile, len(b), MaxSize)
	}
	r := &reader{left: b}
	if string(r.bytes(len(line))) != line {
		return nil, nil, fmt.Errorf("%w: it does not begin with %q", ErrFile, line[:len(line)-1])
	}
	c := &Ceremony{Label: r.text(), Set: r.text(), Hash: [32]byte(r.bytes(32))}
	n := int(r.bytes(1)[0])
	for i := 0; i < n && !r.short; i++ {
		c.Founders = append(c.Founders, Founder{r.text(), append(ed25519.PublicKey{}, r.bytes(ed25519.PublicKeySize)...)})
	}
	if r.short {
		return nil, nil, r.done()
	}
	return r, c, c.check()
}

// done returns an error if the message is too short or too long.
func (r *reader) done() error {
	switch {
	//lodge:check toss/message/short [run=TestMessagesRefused] missing bytes are read as zeros
	case r.short:
		return fmt.Errorf("%w: it is truncated", ErrFile)
	//lodge:check toss/message/end [swap=0=>1 << 30] [run=TestMessagesRefused] a message can have
	//  trailing data
	case len(r.left) > 0:
		return fmt.Errorf("%w: %d bytes too many", ErrFile, len(r.left))
	}
	return nil
}

// founder decodes a founder's index.
func (r *reader) founder(c *Ceremony) (int, error) {
	seat := int(r.bytes(1)[0])
	//lodge:check toss/message/seat [swap=seat >= len(c.Founders)=>seat > 255]
	//  [run=TestMessagesRefused] a seat outside the ceremony crashes the reader
	if seat >= len(c.Founders) {
		return 0, fmt.Errorf("%w: founder %d of %d", ErrFile, seat, len(c.Founders))
	}
	return seat, nil
}

// parse decodes a message of one founder; rest decodes what follows the founder's index.
func parse[T any](b []byte, line string, rest func(r *reader, c *Ceremony, seat int) *T) (*T, error) {
	r, c, err := open(b, line)
	if err != nil {
		return nil, err
	}
	seat, err := r.founder(c)
	if err != nil {
		return nil, err
	}
	return rest(r, c, seat), r.done()
}

// Secret is the value that a founder keeps until it reveals it.
type Secret struct {
	*Ceremony
	seat int
	opening
}

// Bytes returns the encoding.
func (s *Secret) Bytes() []byte {
	b := append(s.append([]byte(secretLine)), byte(s.seat))
	return append(append(b, s.value[:]...), s.blind[:]...)
}

// Wipe erases the value.
func (s *Secret) Wipe() { s.opening = opening{} }

// ParseSecret decodes a founder's secret. The error wraps ErrFile or ErrCeremony.
func ParseSecret(b []byte) (*Secret, error) {
	return parse(b, secretLine, func(r *reader, c *Ceremony, seat int) *Secret {
		return &Secret{c, seat, r.opening()}
	})
}

// Commitment is a founder's first message.
type Commitment struct {
	*Ceremony
	seat int
	signedCommitment
}

// Bytes returns the encoding.
func (m *Commitment) Bytes() []byte {
	return m.signedCommitment.append(append(m.Ceremony.append([]byte(commitLine)), byte(m.seat)))
}

func (m *signedCommitment) append(b []byte) []byte {
	return append(append(b, m.commitment[:]...), m.signature[:]...)
}

func (m *signedOpening) append(b []byte) []byte {
	return append(append(append(b, m.value[:]...), m.blind[:]...), m.signature[:]...)
}

// Founder returns the name of the sender.
func (m *Commitment) Founder() string { return m.Founders[m.seat].Name }

// ParseCommitment decodes a commitment without verifying its signature. The error wraps ErrFile or
// ErrCeremony.
func ParseCommitment(b []byte) (*Commitment, error) {
	return parse(b, commitLine, func(r *reader, c *Ceremony, seat int) *Commitment {
		return &Commitment{c, seat, r.signedCommitment()}
	})
}

// Reveal is a founder's second message, with all commitments that it received in the first round.
type Reveal struct {
	*Ceremony
	seat int
	list []signedCommitment
	signedOpening
}

// Bytes returns the encoding.
func (m *Reveal) Bytes() []byte {
	b := append(m.Ceremony.append([]byte(revealLine)), byte(m.seat))
	for i := range m.list {
		b = m.list[i].append(b)
	}
	return m.signedOpening.append(b)
}

// Founder returns the name of the sender.
func (m *Reveal) Founder() string { return m.Founders[m.seat].Name }

// ParseReveal decodes a reveal without verifying signatures. The error wraps ErrFile or
// ErrCeremony.
func ParseReveal(b []byte) (*Reveal, error) {
	return parse(b, revealLine, func(r *reader, c *Ceremony, seat int) *Reveal {
		return &Reveal{c, seat, r.list(len(c.Founders)), r.signedOpening()}
	})
}

// Transcript contains all messages of a toss.
type Transcript struct {
	*Ceremony
	list   []signedCommitment
	opened []signedOpening
}

// Bytes returns the encoding.
func (t *Transcript) Bytes() []byte {
	b := t.append([]byte(transcriptLine))
	for i := range t.list {
		b = t.list[i].append(b)
	}
	for i := range t.opened {
		b = t.opened[i].append(b)
	}
	return b
}

// ParseTranscript decodes a transcript, which the caller must then check with Verify. The error
// wraps ErrFile or ErrCeremony.
func ParseTranscript(b []byte) (*Transcript, error) {
	r, c, err := open(b, transcriptLine)
	if err != nil {
		return nil, err
	}
	t := &Transcript{c, r.list(len(c.Founders)), make([]signedOpening, len(c.Founders))}
	for i := range t.opened {
		t.opened[i] = r.signedOpening()
	}
	return t, r.done()
}
