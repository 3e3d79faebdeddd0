package params

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"math/big"
)

// transcript hashes fields in a fixed order, each preceded by its length in eight bytes, big
// endian.
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

// Hash identifies everything in the set that keys depend on, its name included, and not its fields:
// a key set serves fields that are added later.
func (s *Set) Hash() [32]byte {
	t := newTranscript("lodge params set 1")
	//lodge:check params/set-hash/name [run=TestSetHash] sets that differ only in their name have
	//  one hash
	t.bytes([]byte(s.Name))
	//lodge:check params/set-hash/ring [run=TestSetHash] sets that differ only in their ring or
	//  digits have one hash
	t.ints(s.LogN, s.LogB, s.DigitPrimes)
	for _, primes := range [][]uint64{s.Q, s.Aux} {
		t.ints(len(primes))
		//lodge:check params/set-hash/primes [run=TestSetHash] sets that differ only in their primes
		//  have one hash
		for _, q := range primes {
			t.uint(q)
		}
	}
	//lodge:check params/set-hash/secrets [run=TestSetHash] sets that differ only in the
	//  distribution of secrets have one hash
	t.ints(int(s.Secret))
	//lodge:check params/set-hash/widths [run=TestSetHash] sets that differ only in the widths of
	//  secrets and errors have one hash
	t.floats(s.SecretWidth, s.ErrorWidth)
	//lodge:check params/set-hash/keys [run=TestSetHash] sets that differ only in whether keys are
	//  proved have one hash
	t.bytes([]byte(s.Keys))
	//lodge:check params/set-hash/security [run=TestSetHash] sets that differ only in their security
	//  levels have one hash
	t.ints(s.LambdaDDec, s.LambdaSnd, s.LambdaSim)
	//lodge:check params/set-hash/insecure [run=TestSetHash] a test set and a real set can have one
	//  hash
	t.flag(s.Insecure)
	return t.sum()
}

// Hash identifies the instance: the protocol version, the set, the field with its root of unity xi
// (another root permutes the slots), the use, and every bound that parties must share.
func (i *Instance) Hash() [32]byte { return i.hash }

func (i *Instance) digest() ([32]byte, error) {
	xi, err := rootOfUnity(i.Set, i.Field)
	if err != nil {
		return [32]byte{}, err
	}
	t := newTranscript("lodge params instance 1")
	//lodge:check params/instance-hash/version [run=TestInstanceHash] parties with different
	//  versions do not notice it
	t.ints(Version)
	set := i.Set.Hash()
	//lodge:check params/instance-hash/set [run=TestInstanceHash] instances of different sets have
	//  one hash
	t.bytes(set[:])
	//lodge:check params/instance-hash/field [run=TestInstanceHash] instances whose fields differ
	//  only in name have one hash
	t.bytes([]byte(i.Field.Name))
	//lodge:check params/instance-hash/base [run=TestInstanceHash] instances whose fields differ
	//  only in their base have one hash
	t.big(i.Field.B)
	//lodge:check params/instance-hash/extension [run=TestInstanceHash] instances whose fields
	//  differ only in their exponent have one hash
	t.ints(i.Field.M)
	//lodge:check params/instance-hash/root [run=TestInstanceHash] instances with different orders
	//  of slots have one hash
	t.big(xi)
	//lodge:check params/instance-hash/use [run=TestInstanceHash] instances for different uses have
	//  one hash
	t.ints(i.Use.Parties, i.Use.Dim, i.Use.U, i.Use.Inner)
	for _, p := range []Proof{i.Proof, i.MACKey} {
		t.flag(p.Diag)
		//lodge:check params/instance-hash/sizes [run=TestInstanceHash] instances with different
		//  proof sizes have one hash
		t.ints(p.U, p.V)
		//lodge:check params/instance-hash/widths [run=TestInstanceHash] instances with different
		//  mask widths have one hash
		t.floats(p.WidthX, p.WidthY, p.WidthR, p.WidthS)
		//lodge:check params/instance-hash/bounds [run=TestInstanceHash] instances with different
		//  bounds on responses have one hash
		t.big(p.B1)
		t.big(p.Bt1)
	}
	//lodge:check params/instance-hash/decryption [run=TestInstanceHash] instances with different
	//  decryption parameters have one hash
	t.ints(i.DDecPrimes)
	t.big(i.PhaseBound)
	t.big(i.FloodBound)
	//lodge:check params/instance-hash/proved [run=TestInstanceHash|TestProvedInstances] instances
	//  with proved and unproved keys have one hash
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
