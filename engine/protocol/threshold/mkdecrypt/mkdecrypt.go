// Package mkdecrypt opens multi-key ciphertexts (package multikey) by the parties whose keys they are under, with the exact
// form of package decrypt: what is opened between the parties is uniform, and the recipient alone learns the bits. The
// masks are those of package masks, which know nothing of any key.
//
// A ciphertext under keys 1, ..., k has the phase b + <a_1, z_1> + ... + <a_k, z_k> modulo 2^32, a bit at -1/8 or 1/8. With 1/8
// added it is Q m/p + e for Q = 2^32, p = 4 and m in {0, 1}: as package decrypt has them, a ciphertext (a, b + Q/8) of
// dimension k n, a = (a_1, ..., a_k), under the key -(z_1, ..., z_k). Of this key the parties have additive shares without
// any protocol: each its own -z_i in its places, and zeros in all others. A party of the quorum that has none of the keys has
// the share zero; it adds its masks alone. So nobody learns more than from package decrypt, and without any of the owners
// nothing is decrypted.
//
// # Failure
//
// p = 4 leaves 1/8 for noise on either side, as decryption with all secrets does. The most noise has the sum of two results
// that a multiplexer is (multikey.Noise.Mux). eta is the smallest for which noise of deviations(set) times its standard
// deviation never fails, whatever the roundings of the parties add up to; more has the probability 2^-128, or 2^-64 for sets
// that shipped earlier, whose masks exist. There is none for sets whose noise is too large: some of the paper's.
//
// A plaintext of 2 or 3 is no bit: it is that of a ciphertext with more noise than any gate's result has, or that was made to
// be so. Bits refuses it. Whoever may have ciphertexts of its own choice decrypted learns the noise of others by such, and by
// that their owners' secrets: what is decrypted is for the parties' policies to say.
package mkdecrypt

import (
	"errors"
	"fmt"
	"math"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
)

// Numbers of standard deviations d with erfc(d/sqrt(2)) below 2^-64 and below 2^-128.
const (
	deviations64  = 9.2
	deviations128 = 13.2
)

// deviations is how many standard deviations of the noise never fail. It decides what masks of a set are like, so it stays
// as it was for sets that have masks already.
func deviations(set *multikey.Set) float64 {
	if set.Centred {
		return deviations128
	}
	return deviations64
}

const (
	modulus = 1 << 32     // Q
	eighth  = modulus / 8 // what is added
	logP    = 2
)

var (
	// ErrParams says that a quorum cannot open ciphertexts of a set.
	ErrParams = errors.New("mkdecrypt: parameters do not fit")
	// ErrKeys says that a ciphertext is under other keys than the others of its batch.
	ErrKeys = errors.New("mkdecrypt: a ciphertext under other keys")
	// ErrNoise says that a plaintext is no bit.
	ErrNoise = errors.New("mkdecrypt: a ciphertext with more noise than results of gates have")
)

// deviation is the standard deviation of the noise that counts, in units of residues.
func deviation(set *multikey.Set) float64 {
	return modulus * math.Sqrt(set.Noise(set.Parties).Mux())
}

// Params is how so many parties open ciphertexts of a set under so many keys. The error wraps ErrParams.
func Params(set *multikey.Set, parties, keys int) (decrypt.Params, error) {
	if keys < 1 || keys > set.Parties {
		return decrypt.Params{}, fmt.Errorf("%w: ciphertexts under %d keys; those of %s have 1 to %d", ErrParams, keys, set.Name, set.Parties)
	}
	if parties < 2 || parties > max(2, set.Parties) {
		return decrypt.Params{}, fmt.Errorf("%w: a quorum of %d; %s is for 2 to %d", ErrParams, parties, set.Name, set.Parties)
	}
	kind, err := decrypt.ExactKind(modulus, logP, parties, deviations(set)*deviation(set))
	if err != nil {
		return decrypt.Params{}, fmt.Errorf("%w: %s: %w", ErrParams, set.Name, err)
	}
	p := decrypt.Params{Modulus: modulus, Dimension: keys * set.Dim, LogP: logP, Parties: parties, Kind: kind}
	return p, p.Check()
}

// Failure is log2 of a bound on the probability that the bit which is opened of a result of a multiplexer is another one, or
// that none is: its noise is beyond what never fails.
func Failure(set *multikey.Set, p decrypt.Params) float64 {
	x := decrypt.MaxNoise(p.Kind, p.Modulus, p.Parties) / deviation(set) / math.Sqrt2
	if erfc := math.Erfc(x); erfc > 0 {
		return math.Log2(erfc)
	}
	return (-x*x - math.Log(x*math.Sqrt(math.Pi))) / math.Ln2 // erfc(x) < exp(-x^2) / (x sqrt(pi))
}

// Ciphertexts is a batch of ciphertexts under the same keys, as package decrypt takes it.
type Ciphertexts struct {
	s    *multikey.Scheme
	keys []multikey.KeyID
	a    [][]uint64
	b    []uint64
}

// NewCiphertexts is an empty batch under keys in ascending order.
func NewCiphertexts(s *multikey.Scheme, keys []multikey.KeyID) *Ciphertexts {
	return &Ciphertexts{s: s, keys: keys}
}

// Add puts a ciphertext at the end, of which it keeps nothing. The error wraps ErrKeys, or one of package multikey's.
func (c *Ciphertexts) Add(x *multikey.Ciphertext) error {
	if err := c.s.Check(x); err != nil {
		return err
	}
	if len(x.Parts) != len(c.keys) {
		return fmt.Errorf("%w: %d of them, not %d", ErrKeys, len(x.Parts), len(c.keys))
	}
	a := make([]uint64, 0, len(c.keys)*c.s.Dim)
	for i, p := range x.Parts {
		if p.Key != c.keys[i] {
			return fmt.Errorf("%w: %.8x, not %.8x", ErrKeys, p.Key[:], c.keys[i][:])
		}
		for _, w := range p.A {
			a = append(a, uint64(w))
		}
	}
	c.a, c.b = append(c.a, a), append(c.b, uint64(x.B+eighth))
	return nil
}

// Len implements decrypt.Ciphertexts.
func (c *Ciphertexts) Len() int { return len(c.b) }

// At implements decrypt.Ciphertexts.
func (c *Ciphertexts) At(i int) (a []uint64, b uint64) { return c.a[i], c.b[i] }

// Share is a party's additive share of the key for ciphertexts under keys: own gives its secret for those that are its own,
// and nil for others. The caller wipes it.
func Share(s *multikey.Scheme, keys []multikey.KeyID, own func(multikey.KeyID) *multikey.Secret) []uint64 {
	share := make([]uint64, len(keys)*s.Dim)
	for i, id := range keys {
		if secret := own(id); secret != nil {
			secret.Negated(share[i*s.Dim : (i+1)*s.Dim])
		}
	}
	return share
}

// Bits are the bits of what package decrypt opens. The error wraps ErrNoise.
func Bits(opened []uint64) ([]bool, error) {
	bits := make([]bool, len(opened))
	for i, m := range opened {
		if m > 1 {
			clear(bits)
			return nil, fmt.Errorf("%w: ciphertext %d", ErrNoise, i)
		}
		bits[i] = m == 1
	}
	return bits, nil
}
