package multikey

import (
	"encoding/binary"
	"sync"

	"github.com/sp301415/tfhe-go/math/poly"

	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// KeyID names a party's keys by their digest. Ciphertexts name their keys, so that keys cannot be
// mistaken for those of another party or version.
type KeyID [32]byte

// Keys are a party's public keys: the halves of samples that masks do not determine, without Drop
// low bits. Masks are expanded from the seed and the common reference string. Words are stored N at
// a time:
//
// public b_j for each digit of Uni, relin d_j and f0_j for each digit of Uni, followed for each of
// n coordinates by the rotation rows: those of z_i for each digit of Rotation, and those of t z_i.
type Keys struct {
	Owner uint32 // the owner's number in the registry that accepts the keys
	Seed  [SeedSize]byte

	s     *Scheme
	words []uint64 // below 2^(64-Drop)
	short []uint32 // the switching key: for each coordinate n <= i < N, each digit
}

// rows returns the number of ring elements before the rotation key, and for each coordinate of the
// rotation key.
func (s *Scheme) rows() (first, each int) { return 3 * s.Uni.Digits, 2 * s.Rotation.Digits }

// newKeys returns zero keys.
func (s *Scheme) newKeys(owner uint32, seed [SeedSize]byte) *Keys {
	first, each := s.rows()
	return &Keys{
		Owner: owner, Seed: seed, s: s, words: make([]uint64, (first+s.Dim*each)*s.N()),
		short: make([]uint32, (s.N()-s.Dim)*s.Switch.Digits),
	}
}

// row returns ring element i of the words.
func (k *Keys) row(i int) []uint64 { return k.words[i*k.s.N() : (i+1)*k.s.N()] }

// load sets dst to the original ring element i, except for the dropped bits.
func (k *Keys) load(dst []uint64, i int) {
	for j, x := range k.row(i) {
		dst[j] = x << k.s.Drop
	}
}

// store rounds ring element i to the precision of keys.
func (k *Keys) store(i int, src []uint64) {
	dst, drop := k.row(i), k.s.Drop
	half := uint64(1) << drop >> 1
	for j, x := range src {
		//lodge:check multikey/rounding-of-keys [swap=x + half=>x + half - half] [run=Noise$|Pinned]
		//  dropped bits of keys are truncated instead of rounded
		dst[j] = (x + half) >> drop
	}
}

// Masks of ring elements: f_j of the relinearisation key, and the rows of the rotation key.
func (s *Scheme) relinMask(dst []uint64, seed *[SeedSize]byte, j int) {
	sample.ExpandWords(dst, seed[:], "multikey relinearisation key", uint64(j))
}

func (s *Scheme) rotationMask(dst []uint64, seed *[SeedSize]byte, i, row int) {
	sample.ExpandWords(dst, seed[:], "multikey rotation key", uint64(i), uint64(row))
}

// switchMask sets dst, n words for each digit, to the masks of coordinate i of the switching key.
// buffer has the same length.
func (s *Scheme) switchMask(dst []uint32, buffer []uint64, seed *[SeedSize]byte, i int) {
	expandShort(dst, buffer, seed, "multikey switching key", uint64(i))
}

// Generate generates a party's keys from fresh randomness, on the given number of goroutines. A
// source must be used for one call only.
func (s *Scheme) Generate(owner uint32, source *sample.Source, workers int) (*Secret, *Keys) {
	var seed [SeedSize]byte
	_, _ = source.Stream("multikey public seed").Read(seed[:])
	return s.GenerateWithSeed(owner, seed, source, workers)
}

// GenerateWithSeed is Generate with the caller's public seed, from which the masks are expanded.
// The seed must differ from those of other keys. It may be a commitment, because the name of the
// keys is a digest over it.
func (s *Scheme) GenerateWithSeed(owner uint32, seed [SeedSize]byte, source *sample.Source, workers int) (*Secret, *Keys) {
	c, keys := s.drawSecret(source), s.newKeys(owner, seed)
	m := &maker{s: s, keys: keys, source: source, bits: c.bits}
	m.benches = &sync.Pool{New: func() any { return s.newMakerBench() }}
	m.turned = s.drawTernary(source, "multikey rotation secret")
	defer clear(m.turned)
	transform := s.transform.ShallowCopy()
	m.secret = transform.ToFourierPoly(poly.Poly[uint64]{Coeffs: c.bits})
	defer clear(m.secret.Coeffs)
	m.turnedSecret = transform.ToFourierPoly(poly.Poly[uint64]{Coeffs: m.turned})
	defer clear(m.turnedSecret.Coeffs)
	m.first()
	parallel.For(workers, s.Dim, m.rotation)
	parallel.For(workers, s.N()-s.Dim, m.switching)
	return &Secret{s: s, id: keys.ID(), held: secret.NewBox(c)}, keys
}

// maker generates keys. Each random value comes from a stream with its own name, so that the order
// in which goroutines run does not matter.
type maker struct {
	s       *Scheme
	keys    *Keys
	source  *sample.Source
	bits    []uint64   // of s
	turned  []uint64   // t
	benches *sync.Pool // a pointer, because the runtime retains a pool for two garbage collections, with the object that contains it

	secret, turnedSecret poly.FourierPoly // s and t
}

// drawTernary draws a secret with uniform coefficients in {-1, 0, 1}.
func (s *Scheme) drawTernary(source *sample.Source, label string) []uint64 {
	small := make([]int64, s.N())
	defer clear(small)
	stream := source.Stream(label)
	defer stream.Wipe()
	//lodge:check multikey/ternary [as=sample.Ternary(small, stream); for i := range small {
	//  small[i] &= 1 }] [run=Noise$] the noise has another variance than the failure probability
	//  assumes
	sample.Ternary(small, stream)
	out := make([]uint64, s.N())
	for i, x := range small {
		out[i] = uint64(x)
	}
	return out
}

type makerBench struct {
	transform *poly.Evaluator[uint64]
	mask, sum []uint64
	errors    []int64
	short     []uint32
}

func (s *Scheme) newMakerBench() *makerBench {
	n, words := s.N(), s.Switch.Digits*s.Dim
	return &makerBench{
		transform: s.transform.ShallowCopy(), mask: make([]uint64, max(n, words)), sum: make([]uint64, n),
		errors: make([]int64, n), short: make([]uint32, words),
	}
}

// wipe erases the secrets in a bench.
func (b *makerBench) wipe() {
	clear(b.sum)
	clear(b.errors)
}

// noise sets b.sum to errors from the named stream.
func (m *maker) noise(b *makerBench, label string, index ...uint64) {
	stream := m.source.Stream(label, index...)
	defer stream.Wipe()
	m.s.ringErrors.Sample(b.errors, stream)
	for i, x := range b.errors {
		b.sum[i] = uint64(x)
	}
}

// product adds or subtracts the exact product of a uniform element and a short one, given by its
// transform.
func (b *makerBench) product(a []uint64, short poly.FourierPoly, less bool) {
	p, sum := poly.Poly[uint64]{Coeffs: a}, poly.Poly[uint64]{Coeffs: b.sum}
	if less {
		b.transform.ShortFourierPolyMulSubPolyAssign(p, short, sum)
	} else {
		b.transform.ShortFourierPolyMulAddPolyAssign(p, short, sum)
	}
}

// add adds g times a short element to b.sum.
func (b *makerBench) add(short []uint64, g uint64) {
	for i, x := range short {
		b.sum[i] += x * g
	}
}

// first generates the public part and the relinearisation key.
func (m *maker) first() {
	s, u := m.s, m.s.Uni.Digits
	b := m.benches.Get().(*makerBench)
	defer m.benches.Put(b)
	defer b.wipe()
	r := s.drawTernary(m.source, "multikey relinearisation secret")
	defer clear(r)
	transformed := b.transform.ToFourierPoly(poly.Poly[uint64]{Coeffs: r})
	defer clear(transformed.Coeffs)
	for j := range u {
		g := s.uni.BaseQ(j)
		m.noise(b, "multikey public errors", uint64(j))
		b.product(s.string[j], m.secret, true)
		m.keys.store(j, b.sum)

		m.noise(b, "multikey relinearisation errors d", uint64(j))
		b.product(s.string[j], transformed, false)
		b.add(m.turned, g)
		m.keys.store(u+j, b.sum)

		m.noise(b, "multikey relinearisation errors f", uint64(j))
		s.relinMask(b.mask[:s.N()], &m.keys.Seed, j)
		b.product(b.mask[:s.N()], m.secret, true)
		b.add(r, g)
		m.keys.store(2*u+j, b.sum)
	}
}

// rotation generates the rows of coordinate i.
func (m *maker) rotation(i int) {
	s := m.s
	b := m.benches.Get().(*makerBench)
	defer m.benches.Put(b)
	defer b.wipe()
	first, each := s.rows()
	for row := range each {
		m.noise(b, "multikey rotation errors", uint64(i), uint64(row))
		s.rotationMask(b.mask[:s.N()], &m.keys.Seed, i, row)
		b.product(b.mask[:s.N()], m.turnedSecret, true)
		g := s.rotation.BaseQ(row%s.Rotation.Digits) * m.bits[i]
		if row < s.Rotation.Digits {
			b.sum[0] += g
		} else {
			b.add(m.turned, g)
		}
		m.keys.store(first+i*each+row, b.sum)
	}
}

// switching generates the samples of coordinate n+i of the vector of an extracted phase.
func (m *maker) switching(i int) {
	s, digits := m.s, m.s.Switch.Digits
	b := m.benches.Get().(*makerBench)
	defer m.benches.Put(b)
	defer b.wipe()
	stream := m.source.Stream("multikey switching errors", uint64(i))
	defer stream.Wipe()
	s.lweErrors.Sample(b.errors[:digits], stream)
	s.switchMask(b.short, b.mask, &m.keys.Seed, i)
	for d := range digits {
		x := uint32(b.errors[d]) - dot(b.short[d*s.Dim:(d+1)*s.Dim], m.bits)
		x += uint32(m.bits[s.Dim+i]) << (lweBits - (d+1)*s.Switch.LogBase)
		m.keys.short[i*digits+d] = x
	}
}

// appendWords appends words, least significant byte first.
func appendWords(dst []byte, v []uint64) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint64(dst, x)
	}
	return dst
}
