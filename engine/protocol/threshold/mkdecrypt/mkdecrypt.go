// Package mkdecrypt decrypts multi-key ciphertexts (package multikey) by the owners of their keys,
// with the exact form of package decrypt: the values that the parties open are uniform, and only
// the recipient learns the bits. The masks come from package masks and do not depend on any key.
//
// A ciphertext under keys 1, ..., k has the phase b + <a_1, z_1> + ... + <a_k, z_k> modulo 2^32,
// with a bit encoded as -1/8 or 1/8. Adding 1/8 makes the phase Q m/p + e for Q = 2^32, p = 4 and m
// in {0, 1}. For package decrypt this is a ciphertext (a, b + Q/8) of dimension k n, a = (a_1, ...,
// a_k), under the key -(z_1, ..., z_k). The parties have additive shares of this key without any
// protocol: each has its own -z_i in its places, and zeros elsewhere. A party of the quorum that
// owns none of the keys has the share zero and adds only its masks. So no party learns more than
// from package decrypt, and no decryption is possible without all owners.
//
// # Failure
//
// p = 4 leaves 1/8 for noise on either side, as decryption with all secrets does. A multiplexer,
// the sum of two results, has the largest noise (multikey.Noise.Mux). eta is the smallest value for
// which noise of deviations(set) times its standard deviation never fails, whatever the sum of the
// parties' roundings. Larger noise has probability 2^-128, or 2^-64 for sets that shipped earlier,
// for which masks exist already. No eta exists for sets with larger noise, which include some of
// the paper's.
//
// A plaintext of 2 or 3 is not a bit. Such a ciphertext has more noise than any gate's result,
// perhaps deliberately. Bits returns an error for it. An adversary that can request the decryption
// of chosen ciphertexts learns from such results the noise of other ciphertexts, and from that
// their owners' secrets. The parties' policies must decide which ciphertexts may be decrypted.
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

// deviations returns the number of standard deviations of the noise that never fail. It determines
// the kind of a set's masks, so it must not change for sets that have masks already.
func deviations(set *multikey.Set) float64 {
	if set.Centred {
		return deviations128
	}
	return deviations64
}

const (
	modulus = 1 << 32     // Q
	eighth  = modulus / 8 // added to the phase
	logP    = 2
)

var (
	// ErrParams is returned if a quorum cannot decrypt ciphertexts of a set.
	ErrParams = errors.New("mkdecrypt: parameters do not fit")
	// ErrKeys is returned if a ciphertext is under other keys than the batch.
	ErrKeys = errors.New("mkdecrypt: the ciphertext is under other keys than the batch")
	// ErrNoise is returned if a plaintext is not a bit.
	ErrNoise = errors.New("mkdecrypt: the ciphertext has more noise than results of gates have")
)

// deviation returns the standard deviation of the largest noise, in units of residues.
func deviation(set *multikey.Set) float64 {
	return modulus * math.Sqrt(set.Noise(set.Parties).Mux())
}

// Params returns the parameters with which a quorum of parties decrypts ciphertexts of a set under
// the given number of keys. The error wraps ErrParams.
func Params(set *multikey.Set, parties, keys int) (decrypt.Params, error) {
	if keys < 1 || keys > set.Parties {
		return decrypt.Params{}, fmt.Errorf("%w: ciphertexts under %d keys are not supported by set %s (1 to %d keys)", ErrParams, keys, set.Name, set.Parties)
	}
	if parties < 2 || parties > max(2, set.Parties) {
		return decrypt.Params{}, fmt.Errorf("%w: a quorum of %d parties is not supported by set %s (2 to %d parties)", ErrParams, parties, set.Name, set.Parties)
	}
	kind, err := decrypt.ExactKind(modulus, logP, parties, deviations(set)*deviation(set))
	if err != nil {
		return decrypt.Params{}, fmt.Errorf("%w: %s: %w", ErrParams, set.Name, err)
	}
	p := decrypt.Params{Modulus: modulus, Dimension: keys * set.Dim, LogP: logP, Parties: parties, Kind: kind}
	return p, p.Check()
}

// Failure returns log2 of a bound on the probability that the decryption of a multiplexer's result
// returns a wrong bit or an error, because its noise exceeds the noise that never fails.
func Failure(set *multikey.Set, p decrypt.Params) float64 {
	x := decrypt.MaxNoise(p.Kind, p.Modulus, p.Parties) / deviation(set) / math.Sqrt2
	if erfc := math.Erfc(x); erfc > 0 {
		return math.Log2(erfc)
	}
	return (-x*x - math.Log(x*math.Sqrt(math.Pi))) / math.Ln2 // erfc(x) < exp(-x^2) / (x sqrt(pi))
}

// Ciphertexts is a batch of ciphertexts under the same keys. It implements decrypt.Ciphertexts.
type Ciphertexts struct {
	s    *multikey.Scheme
	keys []multikey.KeyID
	a    [][]uint64
	b    []uint64
}

// NewCiphertexts returns an empty batch under keys in ascending order.
func NewCiphertexts(s *multikey.Scheme, keys []multikey.KeyID) *Ciphertexts {
	return &Ciphertexts{s: s, keys: keys}
}

// Add appends a copy of a ciphertext. The error wraps ErrKeys or an error of package multikey.
func (c *Ciphertexts) Add(x *multikey.Ciphertext) error {
	if err := c.s.Check(x); err != nil {
		return err
	}
	if len(x.Parts) != len(c.keys) {
		return fmt.Errorf("%w: %d keys instead of %d", ErrKeys, len(x.Parts), len(c.keys))
	}
	a := make([]uint64, 0, len(c.keys)*c.s.Dim)
	for i, p := range x.Parts {
		if p.Key != c.keys[i] {
			return fmt.Errorf("%w: key %.8x instead of %.8x", ErrKeys, p.Key[:], c.keys[i][:])
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

// Share returns a party's additive share of the key for ciphertexts under keys. own returns the
// secret for keys that the party owns, and nil for others. The caller must erase the share.
func Share(s *multikey.Scheme, keys []multikey.KeyID, own func(multikey.KeyID) *multikey.Secret) []uint64 {
	share := make([]uint64, len(keys)*s.Dim)
	for i, id := range keys {
		if secret := own(id); secret != nil {
			secret.Negated(share[i*s.Dim : (i+1)*s.Dim])
		}
	}
	return share
}

// Bits converts the output of package decrypt to bits. The error wraps ErrNoise.
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
