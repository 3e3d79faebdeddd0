package ot

import (
	"encoding/binary"
	"fmt"
)

// A batch returns its transfers in order, each once. Corrections of words are one word for each
// transfer, below 2^k. Corrections of bits are packed 64 to a word, and every call of Bits begins a
// new word.

// SenderBatch holds the sender's rows.
type SenderBatch struct {
	s     block
	rows  []block
	used  int // rows that were used, from the first on
	total int // rows that were ever added
	hash  *hasher
}

// ReceiverBatch holds the receiver's rows and choices.
type ReceiverBatch struct {
	rows    []block
	choices []uint64
	used    int
	total   int
	hash    *hasher
}

// words decodes little-endian words.
func words(b []byte) []uint64 {
	w := make([]uint64, len(b)/8)
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return w
}

// append adds n rows of the columns q.
func (b *SenderBatch) append(q []byte, n int) {
	w := words(q)
	b.rows = grown(b.rows, n)
	rows(b.rows[b.total:], w, len(q)*8/Kappa)
	b.total += n
	clear(w)
}

func (b *ReceiverBatch) append(t, x []byte, n int) {
	w := words(t)
	b.rows = grown(b.rows, n)
	rows(b.rows[b.total:], w, len(t)*8/Kappa)
	clear(w)
	w = words(x)
	b.choices = grown(b.choices, (b.total+n+63)/64-len(b.choices))
	for j := range n {
		b.choices[(b.total+j)/64] |= (w[j/64] >> (j % 64) & 1) << ((b.total + j) % 64)
	}
	b.total += n
	clear(w)
}

// grown returns v with n more entries. If it has to move them, it erases the old slice.
func grown[T any](v []T, n int) []T {
	if len(v)+n <= cap(v) {
		return v[:len(v)+n]
	}
	next := make([]T, len(v)+n, max(len(v)+n, 2*cap(v)))
	copy(next, v)
	clear(v)
	return next
}

// Reserve allocates memory for n transfers, so that adding them does not move rows.
func (b *SenderBatch) Reserve(n int) { b.rows = grown(b.rows, n)[:len(b.rows)] }

// Reserve allocates memory for n transfers, so that adding them does not move rows.
func (b *ReceiverBatch) Reserve(n int) {
	b.rows = grown(b.rows, n)[:len(b.rows)]
	b.choices = grown(b.choices, (n+63)/64)[:len(b.choices)]
}

// Left returns the number of unused transfers.
func (b *SenderBatch) Left() int { return b.total - b.used }

// Left returns the number of unused transfers.
func (b *ReceiverBatch) Left() int { return b.total - b.used }

// mask returns 2^k - 1.
func mask(k int) uint64 {
	if k < 1 || k > 64 {
		panic(fmt.Sprintf("ot: words of %d bits are not supported", k))
	}
	return ^uint64(0) >> (64 - k)
}

// Words uses len(d) transfers with the correlations d mod 2^k. It sets share to the sender's
// shares, and correction to the message for the receiver, all below 2^k. share and correction may
// alias d. The error is ErrSpent.
func (b *SenderBatch) Words(share, correction, d []uint64, k int) error {
	m := mask(k)
	if b.Left() < len(d) {
		return ErrSpent
	}
	share, correction = share[:len(d)], correction[:len(d)]
	for i, v := range d {
		w0, w1 := b.next()
		share[i] = -w0 & m
		correction[i] = (w0 - w1 + v) & m
	}
	return nil
}

// Words uses as many transfers as there are corrections, and sets share to the receiver's shares.
// The error is ErrSpent.
func (b *ReceiverBatch) Words(share, correction []uint64, k int) error {
	m := mask(k)
	if b.Left() < len(correction) {
		return ErrSpent
	}
	share = share[:len(correction)]
	for i, c := range correction {
		w, x := b.next()
		share[i] = (w + c&-x) & m
	}
	return nil
}

// Bits is Words for n correlations of one bit, packed 64 to a word.
func (b *SenderBatch) Bits(share, correction, d []uint64, n int) error {
	if b.Left() < n {
		return ErrSpent
	}
	for first := 0; first < n; first += 64 {
		var w0, w1 uint64
		for j := range min(64, n-first) {
			a0, a1 := b.next()
			w0 |= a0 & 1 << j
			w1 |= a1 & 1 << j
		}
		valid := ^uint64(0) >> (64 - min(64, n-first))
		v := d[first/64]
		share[first/64] = w0
		correction[first/64] = w0 ^ w1 ^ v&valid
	}
	return nil
}

// Bits is Words for n correlations of one bit, packed 64 to a word.
func (b *ReceiverBatch) Bits(share, correction []uint64, n int) error {
	if b.Left() < n {
		return ErrSpent
	}
	for first := 0; first < n; first += 64 {
		var w, x uint64
		for j := range min(64, n-first) {
			a, c := b.next()
			w |= a & 1 << j
			x |= c << j
		}
		share[first/64] = w ^ x&correction[first/64]
	}
	return nil
}

// next returns both pads of the next transfer, and erases its row.
func (b *SenderBatch) next() (w0, w1 uint64) {
	q := b.rows[b.used]
	w0, w1 = b.hash.sum(uint64(b.used), q), b.hash.sum(uint64(b.used), q.xor(b.s))
	b.rows[b.used] = block{}
	//lodge:check ot/once a transfer can be used twice
	b.used++
	return w0, w1
}

// next returns the pad and the choice of the next transfer, and erases its row.
func (b *ReceiverBatch) next() (w, x uint64) {
	w = b.hash.sum(uint64(b.used), b.rows[b.used])
	x = b.choices[b.used/64] >> (b.used % 64) & 1
	b.rows[b.used] = block{}
	b.used++
	return w, x
}

// Wipe erases the rows and s.
func (b *SenderBatch) Wipe() {
	clear(b.rows)
	b.s, b.used = block{}, b.total
	b.hash.Wipe()
}

// Wipe erases the rows and the choices.
func (b *ReceiverBatch) Wipe() {
	clear(b.rows)
	clear(b.choices)
	b.used = b.total
	b.hash.Wipe()
}
