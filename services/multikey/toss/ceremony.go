// Package toss lets founders who do not trust each other toss a coin for the seed of the common
// reference string of multi-key ciphertexts, before there is a roster. Every founder draws a value
// and distributes a signed commitment to it. Once it has the commitments of all founders, it
// reveals its value, signed together with all the commitments that it has received. The seed is the
// digest of all values. The messages form a transcript that everybody can verify.
//
// The seed is random if one founder is honest. The founder who reveals last sees the seed before
// the others do, and may refuse to reveal: then all know who it is, and toss again without it. It
// thus has a choice among as many seeds as there are tosses, which does not help anybody to a
// string with a trapdoor.
package toss

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/catalogue"
	"github.com/lodge-mpc/lodge/services/host/config"
)

// Reasons for which messages are rejected. Some come in a *Fault, which names the responsible
// founders.
var (
	ErrFile      = errors.New("toss: malformed file")
	ErrCeremony  = errors.New("toss: invalid ceremony")
	ErrOther     = errors.New("toss: another ceremony: another label, set or founders")
	ErrFounder   = errors.New("toss: this signing key does not belong to a founder")
	ErrSignature = errors.New("toss: the signature of the founder named in the file does not verify")
	ErrOwn       = errors.New("toss: another commitment than this founder made is signed with its key")
	ErrMissing   = errors.New("toss: messages of some founders are missing")
	ErrTwice     = errors.New("toss: a founder has signed two commitments")
	ErrList      = errors.New("toss: a commitment in a reveal is not signed by its founder")
	ErrOpening   = errors.New("toss: a revealed value does not match its commitment")
)

// Fault describes what some founders have done, or failed to do. Except for ErrMissing, their
// signatures prove the fault.
type Fault struct {
	Err      error
	Founders []string // by name
}

func (f *Fault) Error() string { return f.Err.Error() + ": " + strings.Join(f.Founders, ", ") }

// Unwrap returns the kind of fault.
func (f *Fault) Unwrap() error { return f.Err }

// fault returns nil if founders is empty.
func fault(kind error, founders []string) error {
	if len(founders) == 0 {
		return nil
	}
	slices.Sort(founders)
	return &Fault{kind, founders}
}

// Founder is a participant of a toss.
type Founder struct {
	Name string
	Key  ed25519.PublicKey
}

// Ceremony is the purpose and the participants of a toss. All its messages begin with it.
type Ceremony struct {
	Label    string // distinguishes tosses of the same founders
	Set      string
	Hash     [32]byte  // hash of the set
	Founders []Founder // sorted by their keys
	digest   [32]byte
}

// New returns a ceremony of founders given in any order. The error wraps ErrCeremony.
func New(label, set string, founders []Founder) (*Ceremony, error) {
	c := &Ceremony{Label: label, Set: set, Founders: slices.Clone(founders)}
	slices.SortFunc(c.Founders, func(a, b Founder) int { return bytes.Compare(a.Key, b.Key) })
	s, err := catalogue.Multikey(set)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCeremony, err)
	}
	c.Hash = s.Hash
	return c, c.check()
}

// check validates the ceremony and sets its digest.
func (c *Ceremony) check() error {
	if !config.ValidName(c.Label) {
		return fmt.Errorf("%w: the label %q: use 1 to 64 of a-z, 0-9, '-', starting with a letter", ErrCeremony, c.Label)
	}
	set, err := catalogue.Multikey(c.Set)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCeremony, err)
	}
	//lodge:check toss/ceremony/hash [run=TestCeremonyRefused] the seed is for another set than the
	//  founders agreed on
	if set.Hash != c.Hash {
		return fmt.Errorf("%w: the set %s is different in this version", ErrCeremony, c.Set)
	}
	if n := len(c.Founders); n < 2 || n > config.MaxParties {
		return fmt.Errorf("%w: %d founders; there must be 2 to %d", ErrCeremony, n, config.MaxParties)
	}
	names := map[string]bool{}
	for i, f := range c.Founders {
		switch {
		case !config.ValidName(f.Name):
			return fmt.Errorf("%w: the founder's name %q: use 1 to 64 of a-z, 0-9, '-', starting with a letter", ErrCeremony, f.Name)
		case names[f.Name]:
			return fmt.Errorf("%w: two founders have the name %s", ErrCeremony, f.Name)
		case len(f.Key) != ed25519.PublicKeySize:
			return fmt.Errorf("%w: the signing key of %s has %d bytes", ErrCeremony, f.Name, len(f.Key))
		//lodge:check toss/ceremony/keys [run=TestCeremonyRefused] one founder has two seats
		case i > 0 && bytes.Compare(f.Key, c.Founders[i-1].Key) <= 0:
			return fmt.Errorf("%w: founders are not sorted by their keys, or two have the same key", ErrCeremony)
		}
		names[f.Name] = true
	}
	c.digest = sha256.Sum256(c.append([]byte(ceremonyTag)))
	return nil
}

// seat returns the index of the founder with a signing key. The error is ErrFounder.
func (c *Ceremony) seat(key ed25519.PublicKey) (int, error) {
	i := slices.IndexFunc(c.Founders, func(f Founder) bool { return f.Key.Equal(key) })
	if i < 0 {
		return 0, ErrFounder
	}
	return i, nil
}

const (
	ceremonyTag = "lodge multikey toss 1"
	valueTag    = "lodge multikey toss value 1"
	listTag     = "lodge multikey toss list 1"
	commitTag   = "lodge multikey toss commitment 1"
	revealTag   = "lodge multikey toss reveal 1"
	seedTag     = "lodge multikey toss seed 1"
)

// commitTo returns the commitment to a founder's value. It is bound to the ceremony and the
// founder, so that no founder can pass off another's as its own.
func (c *Ceremony) commitTo(seat int, o *opening) [32]byte {
	h := sha256.New()
	//lodge:check toss/commitment/founder [drop=c.Founders[seat].Key] [run=TestCopiedCommitment] a
	//  founder opens another founder's commitment as its own
	for _, b := range [][]byte{[]byte(valueTag), c.digest[:], c.Founders[seat].Key, o.value[:], o.blind[:]} {
		h.Write(b)
	}
	return [32]byte(h.Sum(nil))
}

// commitSigned returns the bytes that a founder signs for its commitment.
func (c *Ceremony) commitSigned(seat int, commitment [32]byte) []byte {
	return slices.Concat([]byte(commitTag), c.digest[:], c.Founders[seat].Key, commitment[:])
}

// revealSigned returns the bytes that a founder signs for its reveal: its value, and all
// commitments.
func (c *Ceremony) revealSigned(seat int, list []signedCommitment, o *opening) []byte {
	d := c.listDigest(list)
	return slices.Concat([]byte(revealTag), c.digest[:], c.Founders[seat].Key, d[:], o.value[:], o.blind[:])
}

func (c *Ceremony) listDigest(list []signedCommitment) [32]byte {
	b := append([]byte(listTag), c.digest[:]...)
	for i := range list {
		b = append(b, list[i].commitment[:]...)
	}
	return sha256.Sum256(b)
}

// seed returns the result of a toss: the digest of all values, in the order of the founders.
func (c *Ceremony) seed(list []signedCommitment, opened []signedOpening) [catalogue.SeedSize]byte {
	d := c.listDigest(list)
	b := slices.Concat([]byte(seedTag), c.digest[:], d[:])
	for i := range opened {
		b = append(b, opened[i].value[:]...)
	}
	return sha256.Sum256(b)
}
