package multikey

import (
	"crypto/subtle"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// Secret is a party's secret key, from [Scheme.Generate]. It prints only its name, and
// [Secret.Wipe] erases it.
type Secret struct {
	s    *Scheme
	id   KeyID
	held secret.Box[*coefficients]
}

// coefficients are the N bits of s, which begin with z.
type coefficients struct{ bits []uint64 }

// Wipe zeroes the bits.
func (c *coefficients) Wipe() { clear(c.bits) }

// ID returns the name of the public keys that belong to the secret. Ciphertexts under them carry
// this name.
func (k *Secret) ID() KeyID { return k.id }

// Wipe erases the secret.
func (k *Secret) Wipe() { k.held.Wipe() }

// Format prints the key's name, for any verb.
func (k *Secret) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "multikey secret of %x", k.id[:4]) }

// drawSecret draws the coefficients. Its time does not depend on them.
func (s *Scheme) drawSecret(source *sample.Source) *coefficients {
	c := &coefficients{make([]uint64, s.N())}
	z := source.Stream("multikey secret blocks")
	defer z.Wipe()
	where := make([]uint64, s.Dim/s.Block)
	defer clear(where)
	sample.Uniform(where, uint64(s.Block)+1, z)
	for i := range s.Dim {
		c.bits[i] = uint64(subtle.ConstantTimeEq(int32(where[i/s.Block]), int32(i%s.Block)))
	}
	rest := source.Stream("multikey secret bits")
	defer rest.Wipe()
	sample.Uniform(c.bits[s.Dim:], 2, rest)
	return c
}

// SecretSize returns the size in bytes of an encoded secret key: the set's hash, the digest of the
// common reference string, the key's name, and N bits.
func (s *Scheme) SecretSize() int { return 96 + s.N()/8 }

// AppendSecret appends the encoding of a secret, for storage in a vault.
func (k *Secret) AppendSecret(dst []byte) []byte {
	dst = append(append(append(dst, k.s.hash[:]...), k.s.crs[:]...), k.id[:]...)
	bits := k.held.Open().bits
	for i := 0; i < len(bits); i += 8 {
		var b uint64
		for j, x := range bits[i : i+8] {
			b |= x << j
		}
		dst = append(dst, byte(b))
	}
	return dst
}

// DecodeSecret reads exactly one secret key. The error wraps [ErrSecret], [ErrSet] or [ErrCRS].
func (s *Scheme) DecodeSecret(src []byte) (*Secret, error) {
	switch {
	//lodge:check multikey/secret-length [swap=len(src) != s.SecretSize()=>len(src) <
	//  s.SecretSize()] [run=SecretEncoding] a secret key can have trailing bytes
	case len(src) != s.SecretSize():
		return nil, fmt.Errorf("%w: it has %d bytes, want %d", ErrSecret, len(src), s.SecretSize())
	//lodge:check multikey/secret-set [run=SecretEncoding] a secret key of another parameter set is
	//  accepted
	case [32]byte(src) != s.hash:
		return nil, fmt.Errorf("%w: the secret key is not for %s", ErrSet, s.Name)
	//lodge:check multikey/secret-string [run=SecretEncoding] a secret key of another common
	//  reference string is accepted
	case [32]byte(src[32:]) != s.crs:
		return nil, fmt.Errorf("%w: a secret key", ErrCRS)
	}
	c := &coefficients{make([]uint64, s.N())}
	for i := range c.bits {
		c.bits[i] = uint64(src[96+i/8] >> (i % 8) & 1)
	}
	var crowded uint64
	for i := 0; i < s.Dim; i += s.Block {
		var ones uint64
		for _, x := range c.bits[i : i+s.Block] {
			crowded |= ones & x
			ones |= x
		}
	}
	//lodge:check multikey/secret-blocks [run=SecretEncoding] a block of a secret key has two
	//  coordinates that are 1
	if crowded != 0 {
		c.Wipe()
		return nil, fmt.Errorf("%w: a block with two ones", ErrSecret)
	}
	return &Secret{s: s, id: KeyID(src[64:]), held: secret.NewBox(c)}, nil
}

// Encrypt encrypts bits under the party's own key. A source must be used for one call only: two
// batches from the same source reveal how their bits differ. With masks from a public seed drawn
// from the source, it computes
//
//	b = m + e - <a, z>,  m = -1/8 or 1/8.
func (k *Secret) Encrypt(bits []bool, source *sample.Source) *Batch {
	s, z := k.s, k.held.Open().bits
	b := &Batch{Key: k.id, B: make([]uint32, len(bits)), s: s}
	seeds, stream := source.Stream("multikey encryption seed"), source.Stream("multikey encryption errors")
	defer stream.Wipe()
	_, _ = seeds.Read(b.Seed[:])
	e := make([]int64, len(bits))
	defer clear(e)
	s.lweErrors.Sample(e, stream)
	a, buffer := make([]uint32, s.Dim), make([]uint64, s.Dim/2)
	for i, m := range bits {
		b.mask(a, buffer, i)
		var one uint32
		if m {
			one = 1
		}
		b.B[i] = one*2*eighth - eighth + uint32(e[i]) - dot(a, z)
	}
	return b
}

// Phase returns the party's share of the phase of c: <a, z> of its part, or 0 if c has no part for
// this party. The sum of the shares of all parties and c.B is the phase, bit and noise. A share
// must not be revealed to anyone as it is.
func (k *Secret) Phase(c *Ciphertext) (uint32, error) {
	//lodge:check multikey/share-of-malformed [run=Decryption] a share of a malformed ciphertext is
	//  computed
	if err := k.s.Check(c); err != nil {
		return 0, err
	}
	for _, p := range c.Parts {
		if p.Key == k.id {
			return dot(p.A, k.held.Open().bits), nil
		}
	}
	return 0, nil
}

// Negated sets dst to -z modulo 2^32, n words, so that <a, z> = -<a, dst>, the form of phases in
// threshold decryption. The caller must wipe dst.
func (k *Secret) Negated(dst []uint64) {
	for i, bit := range k.held.Open().bits[:k.s.Dim] {
		dst[i] = -bit & (1<<32 - 1)
	}
}

// dot returns the inner product of words and the first bits of s, z. Its time does not depend on
// the bits.
func dot(a []uint32, bits []uint64) (sum uint32) {
	for i, x := range a {
		sum += x & -uint32(bits[i])
	}
	return sum
}

// Decode returns the bit of a phase.
func Decode(phase uint32) bool { return phase>>31 == 0 }

// Decrypt decrypts with the secrets of all parties of a ciphertext in one process: for tests, and
// for parties that share a process. The error wraps [ErrCiphertext], or [ErrUnknownKey] if a secret
// is missing.
func Decrypt(c *Ciphertext, secrets ...*Secret) (bool, error) {
	phase := c.B
	for _, p := range c.Parts {
		found := false
		for _, k := range secrets {
			if k.id != p.Key {
				continue
			}
			share, err := k.Phase(c)
			if err != nil {
				return false, err
			}
			phase, found = phase+share, true
			break
		}
		//lodge:check multikey/missing-secret [run=Decryption] a decryption without one party's
		//  secret gives a bit
		if !found {
			return false, fmt.Errorf("%w: the secret of %x", ErrUnknownKey, p.Key[:4])
		}
	}
	return Decode(phase), nil
}
