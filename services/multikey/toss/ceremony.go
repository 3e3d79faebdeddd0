// Package toss is how founders who do not trust each other toss a coin for the seed of the common reference string of
// multi-key ciphertexts, before there is a roster. Every founder draws a value and hands out a signed commitment to it; once
// it has the commitments of all, it reveals the value, signed together with all the commitments that it has seen. The seed is
// the digest of all values. What was said is a transcript, which anybody checks.
//
// The seed is drawn at random if one founder is honest. Who reveals last sees the seed before the others do, and may keep
// quiet: then all know who it is, and toss again without it. So it has a choice among as many seeds as there are tosses,
// which does not help anybody to a string with a trapdoor.
package toss

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/config"
)

// Why something is refused. Those of faults come in a *Fault, which says whose they are.
var (
	ErrFile      = errors.New("toss: malformed file")
	ErrCeremony  = errors.New("toss: no ceremony")
	ErrOther     = errors.New("toss: of another ceremony: another label, set or founders")
	ErrFounder   = errors.New("toss: this signing key is no founder's")
	ErrSignature = errors.New("toss: not signed by the founder whom the file names")
	ErrOwn       = errors.New("toss: another commitment than this founder has made is signed with its key")
	ErrMissing   = errors.New("toss: nothing has come of some founders")
	ErrTwice     = errors.New("toss: two commitments are signed by the same founder")
	ErrList      = errors.New("toss: not signed by its founder")
	ErrOpening   = errors.New("toss: what was revealed is not what the commitment is to")
)

// Fault is what some founders have done, or not done. But for ErrMissing, their signatures are proof of it.
type Fault struct {
	Err      error
	Founders []string // by name
}

func (f *Fault) Error() string { return f.Err.Error() + ": " + strings.Join(f.Founders, ", ") }

// Unwrap gives the kind of fault.
func (f *Fault) Unwrap() error { return f.Err }

// fault is nil when there is nobody whose it is.
func fault(kind error, founders []string) error {
	if len(founders) == 0 {
		return nil
	}
	slices.Sort(founders)
	return &Fault{kind, founders}
}

// Founder is somebody who tosses.
type Founder struct {
	Name string
	Key  ed25519.PublicKey
}

// Ceremony is what a toss is for, and who takes part. All its messages begin with it.
type Ceremony struct {
	Label    string // tells it from other tosses of the same founders
	Set      string
	Hash     [32]byte  // of the set
	Founders []Founder // in the order of their keys
	digest   [32]byte
}

// New is a ceremony of founders in any order. The error wraps ErrCeremony.
func New(label, set string, founders []Founder) (*Ceremony, error) {
	c := &Ceremony{Label: label, Set: set, Founders: slices.Clone(founders)}
	slices.SortFunc(c.Founders, func(a, b Founder) int { return bytes.Compare(a.Key, b.Key) })
	s, err := multikey.Lookup(set)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCeremony, err)
	}
	c.Hash = s.Hash()
	return c, c.check()
}

// check refuses what no ceremony is, and sets the digest.
func (c *Ceremony) check() error {
	if !config.ValidName(c.Label) {
		return fmt.Errorf("%w: the label %q: use 1 to 64 of a-z, 0-9, '-', starting with a letter", ErrCeremony, c.Label)
	}
	set, err := multikey.Lookup(c.Set)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCeremony, err)
	}
	//lodge:check toss/ceremony/hash [run=TestCeremonyRefused] the seed is for another set than the
	//  founders agreed on
	if set.Hash() != c.Hash {
		return fmt.Errorf("%w: the set %s is another one here", ErrCeremony, c.Set)
	}
	if n := len(c.Founders); n < 2 || n > config.MaxParties {
		return fmt.Errorf("%w: %d founders; there are 2 to %d", ErrCeremony, n, config.MaxParties)
	}
	names := map[string]bool{}
	for i, f := range c.Founders {
		switch {
		case !config.ValidName(f.Name):
			return fmt.Errorf("%w: the founder's name %q: use 1 to 64 of a-z, 0-9, '-', starting with a letter", ErrCeremony, f.Name)
		case names[f.Name]:
			return fmt.Errorf("%w: two founders are called %s", ErrCeremony, f.Name)
		case len(f.Key) != ed25519.PublicKeySize:
			return fmt.Errorf("%w: the signing key of %s has %d bytes", ErrCeremony, f.Name, len(f.Key))
		//lodge:check toss/ceremony/keys [run=TestCeremonyRefused] one founder has two seats
		case i > 0 && bytes.Compare(f.Key, c.Founders[i-1].Key) <= 0:
			return fmt.Errorf("%w: founders are not in the order of their keys, or two have the same", ErrCeremony)
		}
		names[f.Name] = true
	}
	c.digest = sha256.Sum256(c.append([]byte(ceremonyTag)))
	return nil
}

// seat is the place of the founder with a signing key. The error is ErrFounder.
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

// commitTo is the commitment to a founder's value. It is bound to the ceremony and the founder, so that nobody can hand out another's.
func (c *Ceremony) commitTo(seat int, o *opening) [32]byte {
	h := sha256.New()
	//lodge:check toss/commitment/founder [drop=c.Founders[seat].Key] [run=TestCopiedCommitment] a
	//  founder opens another founder's commitment as its own
	for _, b := range [][]byte{[]byte(valueTag), c.digest[:], c.Founders[seat].Key, o.value[:], o.blind[:]} {
		h.Write(b)
	}
	return [32]byte(h.Sum(nil))
}

// commitSigned is what a founder signs of its commitment.
func (c *Ceremony) commitSigned(seat int, commitment [32]byte) []byte {
	return slices.Concat([]byte(commitTag), c.digest[:], c.Founders[seat].Key, commitment[:])
}

// revealSigned is what a founder signs when it reveals: its value, and all commitments.
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

// seed is what a toss gives: the digest of all values, in the order of founders.
func (c *Ceremony) seed(list []signedCommitment, opened []signedOpening) [multikey.SeedSize]byte {
	d := c.listDigest(list)
	b := slices.Concat([]byte(seedTag), c.digest[:], d[:])
	for i := range opened {
		b = append(b, opened[i].value[:]...)
	}
	return sha256.Sum256(b)
}
