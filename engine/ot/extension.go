package ot

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"

	"filippo.io/edwards25519"

	"github.com/lodge-mpc/lodge/engine/sample"
)

// ChunkSize is the maximum number of transfers in a chunk of an extension.
const ChunkSize = 1 << 15

// pad is the minimum number of additional rows in a chunk. Their random choices hide the hash of
// the other rows.
const pad = 128

var (
	// ErrConsistency is returned if a receiver's columns do not contain the same choices.
	ErrConsistency = errors.New("ot: columns do not agree on the choices")
	// ErrLength is returned if the length of a message does not match the number of transfers.
	ErrLength = errors.New("ot: wrong length")
	// ErrSpent is returned if a batch has too few unused transfers.
	ErrSpent = errors.New("ot: too few transfers left")
)

// length returns the number of rows in a chunk of n transfers.
func length(n int) int { return (n + pad + 127) / 128 * 128 }

// FrameSize returns the size in bytes of the message for a chunk of n transfers.
func FrameSize(n int) int { return Kappa*length(n)/8 + (Kappa+1)*tagSize }

// Chunks returns the number of chunks in an extension by n transfers. All chunks except the last
// are full.
func Chunks(n int) int { return (n + ChunkSize - 1) / ChunkSize }

// Chunk returns the number of transfers in chunk i of an extension by n.
func Chunk(n, i int) int { return min(ChunkSize, n-i*ChunkSize) }

// Receiver extends transfers as the party with the choices.
type Receiver struct {
	id         ID
	random     *sample.Stream
	a          *edwards25519.Scalar
	offer      []byte
	columns    [Kappa][2]*sample.Stream
	ready      bool
	transcript [32]byte
	batch      ReceiverBatch
}

// NewReceiver begins the base transfers and returns the offer, its message to the sender. The
// source determines all secrets and must be used for one ID only.
func NewReceiver(id ID, source *sample.Source) (*Receiver, []byte) {
	r := &Receiver{id: id, random: source.Stream("ot receiver")}
	r.a, r.offer = offer(r.random)
	r.batch.hash = newHasher(id)
	return r, r.offer
}

// Finish processes the reply and ends the base transfers.
func (r *Receiver) Finish(reply []byte) error {
	if r.a == nil {
		panic("ot: the base transfers have already ended")
	}
	columns, err := pairs(r.id, r.a, r.offer, reply)
	r.a.Set(edwards25519.NewScalar())
	r.a = nil
	if err != nil {
		return err
	}
	r.columns, r.ready = columns, true
	r.transcript = hashFields([]byte("lodge ot base"), r.id[:], r.offer, reply)
	return nil
}

// Extend adds n transfers, at most ChunkSize, to the batch, and returns the chunk's message.
// choices holds the choice bits, 64 to a word.
func (r *Receiver) Extend(choices []uint64, n int) []byte {
	if !r.ready || n < 1 || n > ChunkSize {
		panic(fmt.Sprintf("ot: cannot extend by %d transfers in this state", n))
	}
	size := length(n) / 8
	x := make([]byte, size)
	_, _ = r.random.Read(x) // streams do not fail
	for j := range n {
		x[j/8] = x[j/8]&^(1<<(j%8)) | byte(choices[j/64]>>(j%64)&1)<<(j%8)
	}
	frame, t := make([]byte, FrameSize(n)), make([]byte, Kappa*size)
	r.expand(frame, t, x)
	r.prove(frame, t, x)
	r.batch.append(t, x, n)
	clear(t)
	clear(x)
	return frame
}

// expand sets t to the columns of the next rows, and the beginning of the frame to the message for
// the sender.
func (r *Receiver) expand(frame, t, x []byte) {
	size := len(x)
	for i := range Kappa {
		own, sent := t[i*size:(i+1)*size], frame[i*size:(i+1)*size]
		_, _ = r.columns[i][0].Read(own)
		_, _ = r.columns[i][1].Read(sent)
		subtle.XORBytes(sent, sent, own)
		subtle.XORBytes(sent, sent, x)
	}
}

// prove sets the rest of the frame to the hashes of x and of the columns.
func (r *Receiver) prove(frame, t, x []byte) {
	size := len(x)
	proof := frame[Kappa*size:]
	r.transcript = r.id.challenge(r.transcript, uint64(r.batch.total), frame[:Kappa*size])
	l := newLinear(r.transcript, size)
	sum := l.of(x)
	copy(proof, sum[:])
	for i := range Kappa {
		sum = l.of(t[i*size : (i+1)*size])
		copy(proof[(1+i)*tagSize:], sum[:])
	}
}

// Batch returns the extended transfers.
func (r *Receiver) Batch() *ReceiverBatch { return &r.batch }

// Wipe erases everything.
func (r *Receiver) Wipe() {
	r.random.Wipe()
	if r.a != nil {
		r.a.Set(edwards25519.NewScalar())
	}
	for _, pair := range r.columns {
		for _, s := range pair {
			if s != nil {
				s.Wipe()
			}
		}
	}
	r.ready = false
	r.batch.Wipe()
}

// Sender extends transfers as the party with the correlations.
type Sender struct {
	id         ID
	columns    [Kappa]*sample.Stream
	transcript [32]byte
	failed     bool
	batch      SenderBatch
}

// NewSender processes an offer and returns the reply, its message to the receiver. The source must
// be used for one ID only.
func NewSender(id ID, source *sample.Source, offer []byte) (*Sender, []byte, error) {
	random := source.Stream("ot sender")
	defer random.Wipe()
	s := &Sender{id: id}
	s.batch.s = block{random.Uint64(), random.Uint64()}
	s.batch.hash = newHasher(id)
	columns, message, err := reply(id, s.batch.s, random, offer)
	if err != nil {
		return nil, nil, err
	}
	s.columns = columns
	s.transcript = hashFields([]byte("lodge ot base"), id[:], offer, message)
	return s, message, nil
}

// Extend checks the message for a chunk of n transfers and adds them to the batch. The error is
// ErrLength or ErrConsistency; after an error the sender must not be used.
func (s *Sender) Extend(frame []byte, n int) error {
	if s.failed || n < 1 || n > ChunkSize {
		panic(fmt.Sprintf("ot: cannot extend by %d transfers in this state", n))
	}
	//lodge:check ot/length [swap=len(frame) != FrameSize(n)=>len(frame) < FrameSize(n)] an
	//  extension can have trailing bytes
	if len(frame) != FrameSize(n) {
		s.failed = true
		return ErrLength
	}
	size := length(n) / 8
	q := make([]byte, Kappa*size)
	masked := make([]byte, size)
	proof := frame[Kappa*size:]
	s.transcript = s.id.challenge(s.transcript, uint64(s.batch.total), frame[:Kappa*size])
	l := newLinear(s.transcript, size)
	var wrong byte
	for i := range Kappa {
		own := q[i*size : (i+1)*size]
		_, _ = s.columns[i].Read(own)
		maskWords(masked, frame[i*size:(i+1)*size], uint64(s.batch.s.bit(i)))
		subtle.XORBytes(own, own, masked)
		sum := l.of(own)
		for b := range sum {
			wrong |= sum[b] ^ proof[(1+i)*tagSize+b] ^ proof[b]&-byte(s.batch.s.bit(i))
		}
	}
	clear(masked)
	//lodge:check ot/consistency a receiver can choose differently in different columns
	if subtle.ConstantTimeByteEq(wrong, 0) == 0 {
		s.failed = true
		clear(q)
		return ErrConsistency
	}
	s.batch.append(q, n)
	clear(q)
	return nil
}

// maskWords sets dst to src if bit is 1, and to zeros if it is 0. The length must be a multiple of
// 8 bytes.
func maskWords(dst, src []byte, bit uint64) {
	for at := 0; at < len(src); at += 8 {
		binary.LittleEndian.PutUint64(dst[at:], binary.LittleEndian.Uint64(src[at:])&-bit)
	}
}

// Batch returns the extended transfers.
func (s *Sender) Batch() *SenderBatch { return &s.batch }

// Wipe erases everything.
func (s *Sender) Wipe() {
	for _, c := range s.columns {
		if c != nil {
			c.Wipe()
		}
	}
	s.failed = true
	s.batch.Wipe()
}
