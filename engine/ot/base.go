package ot

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"

	"filippo.io/edwards25519"

	"github.com/lodge-mpc/lodge/engine/sample"
)

// Kappa is the number of base transfers, and of columns of an extension.
const Kappa = 128

const pointSize = 32

// OfferSize and ReplySize are the sizes in bytes of the messages of the base transfers.
const (
	OfferSize = pointSize
	ReplySize = Kappa * pointSize
)

// ID identifies the single use of this package by a pair of parties: the session, the two parties
// and which of them is the receiver.
type ID [32]byte

// ErrPoint is returned for bytes that do not encode a point, or encode a point of small order.
var ErrPoint = errors.New("ot: not a point of the group")

// The base transfers are those of Chou and Orlandi (The simplest protocol for oblivious transfer,
// LATINCRYPT 2015) on edwards25519, whose generator B has the prime order l and whose cofactor is
// 8. R offers A = a B. To choose s_i, S answers R_i = s_i (8 A) + b_i B, and has the point b_i (8
// A). R's pair is P_i0 = a (8 R_i) and P_i1 = P_i0 - 64 a^2 B; S has the point of the pair that s_i
// selects. 8 A is in the group of order l for every A, so R_i reveals nothing about s_i to anyone.
// Keys are hashes of the points with the ID, the index and the messages.

// scalar returns a uniform scalar.
func scalar(s *sample.Stream) *edwards25519.Scalar {
	var wide [64]byte
	_, _ = s.Read(wide[:]) // streams do not fail
	v, err := edwards25519.NewScalar().SetUniformBytes(wide[:])
	clear(wide[:])
	if err != nil {
		panic(err) // the length is right
	}
	return v
}

// timesCofactor decodes a point and multiplies it by the cofactor. It returns an error if the point
// has small order.
func timesCofactor(encoding []byte) (*edwards25519.Point, error) {
	p, err := new(edwards25519.Point).SetBytes(encoding)
	if err != nil {
		return nil, ErrPoint
	}
	p.MultByCofactor(p)
	//lodge:check ot/order base transfers leave the group of prime order
	if p.Equal(edwards25519.NewIdentityPoint()) == 1 {
		return nil, ErrPoint
	}
	return p, nil
}

// hashFields returns the SHA-256 of the fields, each preceded by its length in 8 bytes.
func hashFields(fields ...[]byte) [32]byte {
	h := sha256.New()
	var n [8]byte
	for _, f := range fields {
		binary.LittleEndian.PutUint64(n[:], uint64(len(f)))
		h.Write(n[:]) // hashes do not fail
		h.Write(f)
	}
	return [32]byte(h.Sum(nil))
}

// column returns the generator of a column, whose key is the hash of a point of base transfer i. It
// erases the point's encoding.
func (id ID) column(i int, offer, answer, point []byte) *sample.Stream {
	index := binary.LittleEndian.AppendUint64(nil, uint64(i))
	//lodge:check ot/key [drop=id[:]] two sessions or pairs of parties share keys
	key := hashFields([]byte("lodge ot key"), id[:], index, offer, answer, point)
	clear(point)
	source := sample.NewSource(key[:])
	clear(key[:])
	defer source.Wipe()
	return source.Stream("column")
}

// offer returns R's first message and its discrete logarithm.
func offer(s *sample.Stream) (a *edwards25519.Scalar, message []byte) {
	a = scalar(s)
	return a, new(edwards25519.Point).ScalarBaseMult(a).Bytes()
}

// reply returns S's answer to an offer for the choices s, and the generators of its columns.
func reply(id ID, choices block, random *sample.Stream, offer []byte) (
	columns [Kappa]*sample.Stream, message []byte, err error,
) {
	//lodge:check ot/cofactor [swap=timesCofactor=>new(edwards25519.Point).SetBytes] a malicious
	//  offer makes answers reveal choices
	a8, err := timesCofactor(offer)
	if err != nil {
		return columns, nil, err
	}
	message = make([]byte, 0, ReplySize)
	var p edwards25519.Point
	for i := range columns {
		b := scalar(random)
		p.ScalarBaseMult(b)
		answer := p.Bytes()
		other := p.Add(&p, a8).Bytes()
		subtle.ConstantTimeCopy(choices.bit(i), answer, other)
		message = append(message, answer...)
		columns[i] = id.column(i, offer, answer, p.ScalarMult(b, a8).Bytes())
		b.Set(edwards25519.NewScalar())
	}
	p = edwards25519.Point{}
	return columns, message, nil
}

// pairs returns R's pairs of generators, from S's answer.
func pairs(id ID, a *edwards25519.Scalar, offer, message []byte) (columns [Kappa][2]*sample.Stream, err error) {
	if len(message) != ReplySize {
		return columns, fmt.Errorf("ot: the reply has %d bytes, want %d", len(message), ReplySize)
	}
	// 64 a^2 B = 8 (8 a^2 B)
	square := edwards25519.NewScalar().Multiply(a, a)
	apart := new(edwards25519.Point).ScalarBaseMult(square)
	apart.MultByCofactor(apart).MultByCofactor(apart)
	square.Set(edwards25519.NewScalar())
	var p edwards25519.Point
	for i := range columns {
		answer := message[i*pointSize : (i+1)*pointSize]
		r8, err := timesCofactor(answer)
		if err != nil {
			return columns, err
		}
		p.ScalarMult(a, r8)
		columns[i][0] = id.column(i, offer, answer, p.Bytes())
		columns[i][1] = id.column(i, offer, answer, p.Subtract(&p, apart).Bytes())
	}
	p, *apart = edwards25519.Point{}, edwards25519.Point{}
	return columns, nil
}
