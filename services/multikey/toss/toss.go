package toss

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/catalogue"
)

// Commit draws the random value of the founder with this signing key. The founder sends the
// commitment to all founders, and must keep the secret until it has the commitments of all
// founders. The error is ErrFounder.
func (c *Ceremony) Commit(key ed25519.PrivateKey) (*Secret, *Commitment, error) {
	var o opening
	if _, err := rand.Read(o.value[:]); err != nil {
		return nil, nil, err
	}
	if _, err := rand.Read(o.blind[:]); err != nil {
		return nil, nil, err
	}
	return c.commit(key, o)
}

func (c *Ceremony) commit(key ed25519.PrivateKey, o opening) (*Secret, *Commitment, error) {
	seat, err := c.seat(key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, nil, err
	}
	s := &Secret{c, seat, o}
	m := &Commitment{c, seat, signedCommitment{commitment: c.commitTo(seat, &o)}}
	m.signature = [64]byte(ed25519.Sign(key, c.commitSigned(seat, m.commitment)))
	return s, m, nil
}

// signed reports whether a founder has signed this commitment.
func (c *Ceremony) signed(seat int, m *signedCommitment) bool {
	return ed25519.Verify(c.Founders[seat].Key, c.commitSigned(seat, m.commitment), m.signature[:])
}

// Reveal returns the founder's second message, given the commitments of all founders including its
// own. The founder must call it only once for a secret: a party that can make a founder reveal
// before it has committed itself chooses the seed. The error wraps ErrOther, ErrSignature,
// ErrFounder or ErrOwn, or is a *Fault with ErrTwice or ErrMissing.
func (s *Secret) Reveal(key ed25519.PrivateKey, commitments []*Commitment) (*Reveal, error) {
	c := s.Ceremony
	//lodge:check toss/reveal/founder [drop=seat != s.seat] [run=TestRevealRefused] a founder's
	//  reveal is signed with another founder's key
	if seat, err := c.seat(key.Public().(ed25519.PublicKey)); err != nil || seat != s.seat {
		return nil, ErrFounder
	}
	list, there := make([]signedCommitment, len(c.Founders)), make([]bool, len(c.Founders))
	var twice []string
	for _, m := range commitments {
		//lodge:check toss/reveal/other [run=TestRevealRefused] a commitment to another toss is
		//  accepted
		if m.digest != c.digest {
			return nil, fmt.Errorf("the commitment of %s: %w", m.Founder(), ErrOther)
		}
		//lodge:check toss/reveal/signature [run=TestRevealRefused] a commitment need not be signed
		//  by its founder
		if !c.signed(m.seat, &m.signedCommitment) {
			return nil, fmt.Errorf("the commitment of %s: %w", m.Founder(), ErrSignature)
		}
		//lodge:check toss/reveal/twice [run=TestRevealRefused] a founder has two commitments
		if there[m.seat] && list[m.seat].commitment != m.commitment {
			twice = append(twice, m.Founder())
		}
		list[m.seat], there[m.seat] = m.signedCommitment, true
	}
	if err := fault(ErrTwice, twice); err != nil {
		return nil, err
	}
	//lodge:check toss/reveal/missing [run=TestRevealRefused] a founder reveals before all have
	//  committed
	if err := c.missing(there); err != nil {
		return nil, err
	}
	//lodge:check toss/reveal/own [run=TestRevealRefused] a founder does not notice that another
	//  process signs with its key
	if list[s.seat].commitment != c.commitTo(s.seat, &s.opening) {
		return nil, ErrOwn
	}
	m := &Reveal{c, s.seat, list, signedOpening{opening: s.opening}}
	m.signature = [64]byte(ed25519.Sign(key, c.revealSigned(s.seat, list, &s.opening)))
	return m, nil
}

// missing returns a fault of the founders whose messages are missing, or nil.
func (c *Ceremony) missing(there []bool) error {
	var names []string
	for i, ok := range there {
		if !ok {
			names = append(names, c.Founders[i].Name)
		}
	}
	return fault(ErrMissing, names)
}

// Combine makes the transcript from the reveals of all founders, and verifies it. The error wraps
// ErrOther, ErrSignature or ErrList, or is a *Fault with all responsible founders: ErrTwice,
// ErrMissing or ErrOpening.
func Combine(reveals []*Reveal) (*Transcript, error) {
	if len(reveals) == 0 {
		return nil, fmt.Errorf("%w: no reveals", ErrFile)
	}
	c := reveals[0].Ceremony
	t := &Transcript{c, reveals[0].list, make([]signedOpening, len(c.Founders))}
	there := make([]bool, len(c.Founders))
	for _, m := range reveals {
		//lodge:check toss/combine/other [run=TestCombineRefused] a reveal of another toss is
		//  accepted
		if m.digest != c.digest {
			return nil, fmt.Errorf("the reveal of %s: %w", m.Founder(), ErrOther)
		}
		//lodge:check toss/combine/signature [run=TestCombineRefused] a founder is blamed for a
		//  reveal that others changed
		if !ed25519.Verify(c.Founders[m.seat].Key, c.revealSigned(m.seat, m.list, &m.opening), m.signature[:]) {
			return nil, fmt.Errorf("the reveal of %s: %w", m.Founder(), ErrSignature)
		}
		for i := range m.list {
			//lodge:check toss/combine/list [run=TestCombineRefused] a founder is blamed for
			//  commitments that it never signed
			if !c.signed(i, &m.list[i]) {
				return nil, fmt.Errorf("the reveal of %s, and in it the commitment of %s: %w", m.Founder(), c.Founders[i].Name, ErrList)
			}
		}
		t.opened[m.seat], there[m.seat] = m.signedOpening, true
	}
	if err := fault(ErrTwice, c.twice(reveals)); err != nil {
		return nil, err
	}
	//lodge:check toss/combine/missing [run=TestCombineRefused] a founder that reveals nothing is
	//  not blamed
	if err := c.missing(there); err != nil {
		return nil, err
	}
	if err := t.Verify(); err != nil {
		return nil, err
	}
	return t, nil
}

// twice returns the founders whose commitments differ between the reveals.
func (c *Ceremony) twice(reveals []*Reveal) (names []string) {
	for i, f := range c.Founders {
		for _, m := range reveals {
			//lodge:check toss/combine/twice [swap=reveals[0]=>m] [run=TestCombineRefused] a founder
			//  that shows different commitments to others is not blamed
			if m.list[i].commitment != reveals[0].list[i].commitment {
				names = append(names, f.Name)
				break
			}
		}
	}
	return names
}

// Verify verifies the whole transcript: all signatures, and that all founders have revealed the
// values of their commitments, knowing the commitments of all. The error wraps ErrSignature, or is
// a *Fault with ErrOpening.
func (t *Transcript) Verify() error {
	var wrong []string
	for i, f := range t.Founders {
		//lodge:check toss/verify/commitment [run=TestVerifyRefused] [redundant=the reveals sign all
		//  commitments, and each reveal opens its founder's commitment] a transcript holds
		//  commitments that its founders did not sign
		if !t.signed(i, &t.list[i]) {
			return fmt.Errorf("the commitment of %s: %w", f.Name, ErrSignature)
		}
		o := &t.opened[i]
		//lodge:check toss/verify/reveal [run=TestVerifyRefused] a transcript holds reveals made
		//  before all commitments were known
		if !ed25519.Verify(f.Key, t.revealSigned(i, t.list, &o.opening), o.signature[:]) {
			return fmt.Errorf("the reveal of %s: %w", f.Name, ErrSignature)
		}
		//lodge:check toss/verify/opening [run=TestCombineRefused|TestVerifyRefused] a founder
		//  reveals another value than it committed to
		if t.commitTo(i, &o.opening) != t.list[i].commitment {
			wrong = append(wrong, f.Name)
		}
	}
	return fault(ErrOpening, wrong)
}

// Seed returns the result of the toss. The caller must call Verify first.
func (t *Transcript) Seed() [catalogue.SeedSize]byte { return t.seed(t.list, t.opened) }

// NotFounders returns the names of the given parties whose signing keys took no part.
func (t *Transcript) NotFounders(founders []Founder) (names []string) {
	for _, f := range founders {
		if _, err := t.seat(f.Key); err != nil {
			names = append(names, f.Name)
		}
	}
	return names
}
