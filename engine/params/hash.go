package params

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"math/big"
)

// transcript hashes fields in a fixed order, each preceded by its length in eight bytes, big endian.
type transcript struct{ h hash.Hash }

func newTranscript(tag string) transcript {
	t := transcript{sha256.New()}
	t.bytes([]byte(tag))
	return t
}

func (t transcript) bytes(b []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(b)))
	t.h.Write(n[:])
	t.h.Write(b)
}

func (t transcript) uint(v uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	t.bytes(b[:])
}

func (t transcript) ints(list ...int) {
	for _, v := range list {
		t.uint(uint64(v))
	}
}

func (t transcript) big(v *big.Int) { t.bytes(v.Bytes()) } // v >= 0

func (t transcript) floats(list ...float64) {
	for _, v := range list {
		t.uint(math.Float64bits(v))
	}
}

func (t transcript) flag(v bool) {
	if v {
		t.uint(1)
	} else {
		t.uint(0)
	}
}

func (t transcript) sum() (d [32]byte) {
	t.h.Sum(d[:0])
	return d
}

// Hash identifies everything in the set that keys depend on, its name included, and not its fields: a key set serves
// fields that are added later.
func (s *Set) Hash() [32]byte {
	t := newTranscript("lodge params set 1")
	t.bytes([]byte(s.Name))
	t.ints(s.LogN, s.LogB, s.DigitPrimes)
	for _, primes := range [][]uint64{s.Q, s.Aux} {
		t.ints(len(primes))
		for _, q := range primes {
			t.uint(q)
		}
	}
	t.ints(int(s.Secret))
	t.floats(s.SecretWidth, s.ErrorWidth)
	t.bytes([]byte(s.Keys))
	t.ints(s.LambdaDDec, s.LambdaSnd, s.LambdaSim)
	t.flag(s.Insecure)
	return t.sum()
}

// Hash identifies the instance: the protocol version, the set, the field with its root of unity xi (another root
// permutes the slots), the use, and every bound that parties must share.
func (i *Instance) Hash() [32]byte { return i.hash }

func (i *Instance) digest() ([32]byte, error) {
	xi, err := rootOfUnity(i.Set, i.Field)
	if err != nil {
		return [32]byte{}, err
	}
	t := newTranscript("lodge params instance 1")
	t.ints(Version)
	set := i.Set.Hash()
	t.bytes(set[:])
	t.bytes([]byte(i.Field.Name))
	t.big(i.Field.B)
	t.ints(i.Field.M)
	t.big(xi)
	t.ints(i.Use.Parties, i.Use.Dim, i.Use.U, i.Use.Inner)
	for _, p := range []Proof{i.Proof, i.MACKey} {
		t.flag(p.Diag)
		t.ints(p.U, p.V)
		t.floats(p.WidthX, p.WidthY, p.WidthR, p.WidthS)
		t.big(p.B1)
		t.big(p.Bt1)
	}
	t.ints(i.DDecPrimes)
	t.big(i.PhaseBound)
	t.big(i.FloodBound)
	if i.Set.proved { // and only then: other instances keep the hashes that they have
		p, err := i.Set.KeyProof(i.Use.Parties, 1)
		if err != nil {
			return [32]byte{}, err
		}
		t.bytes([]byte(Proved))
		t.ints(p.Challenges, p.V, int(p.Bound))
	}
	return t.sum(), nil
}
