package lwe

import (
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// Key switching turns a ciphertext (a, b) under z into a ciphertext under s. The new phase differs
// from the old one by noise only. With d_ij the digits of a_i, the new ciphertext is
//
//	(0, b) - sum_ij d_ij K_ij,  K_ij the sample of z_i g_j.
//
// Rows are added up as integers, with reductions between blocks of rows. A block is also a part of
// the key small enough to stay in the cache while several ciphertexts pass over it.
const blockRows = 128

// rowsPerBlock is the number of rows of a block: |d| <= 2^(LogBase-1), so that sums are below 2^62
// in magnitude.
func (s *Set) rowsPerBlock() int {
	return min(blockRows, 1<<(62-bits.Len64(s.Q)-(s.Switch.LogBase-1)))
}

// term is a row of the switching key with the digit that it is multiplied by.
type term struct{ row, digit int32 }

// switchKey is the expanded switching key.
type switchKey struct {
	a []uint64 // rows of n words
	b []uint64
}

func (s *Scheme) newSwitchKey(k *Keys) *switchKey {
	return &switchKey{make([]uint64, len(k.Switch)*s.Dim), append([]uint64(nil), k.Switch...)}
}

// expand fills in the rows of z_i.
func (k *switchKey) expand(s *Scheme, seed *[SeedSize]byte, i int) {
	size := s.Switch.Digits * s.Dim
	s.UniformSwitch(k.a[i*size:(i+1)*size], seed, i)
}

// row returns the row of the switching key that belongs to a term.
func (k *switchKey) row(t term, n int) []uint64 { return k.a[int(t.row)*n:][:n] }

// switched is a ciphertext of dimension n with the working memory of its computation.
type switched struct {
	a     []uint64
	b     uint64
	terms []term
	done  int      // terms that have been subtracted
	sums  []uint64 // of rows times digits, in two's complement, since the last reduction

	turns []int // a after modulus switching
	turn  int   // b after modulus switching
}

func (s *Scheme) newSwitched() switched {
	return switched{a: make([]uint64, s.Dim), sums: make([]uint64, s.Dim), turns: make([]int, s.Dim), terms: make([]term, 0, s.N()*s.Switch.Digits)}
}

// cut starts a key switch: it lists the digits of c that are not 0. They are public.
func (w *switched) cut(s *Scheme, c *LWE) {
	w.terms, w.done = w.terms[:0], 0
	for i, x := range c.A {
		for j := range s.switches.at {
			if d := s.switches.signed(x, &s.switches.at[j]); d != 0 {
				w.terms = append(w.terms, term{int32(i*s.Switch.Digits + j), int32(d)})
			}
		}
	}
	clear(w.a)
	w.b = c.B
}

// keySwitch sets dst[i] to the ciphertext under s that has the phase of from[i], except for noise.
func (s *Scheme) keySwitch(dst []switched, key *switchKey, from []*LWE) {
	for i := range dst {
		dst[i].cut(s, from[i])
	}
	block := s.rowsPerBlock()
	for row := 0; row < len(key.b); row += block {
		for i := range dst {
			dst[i].addBlock(s, key, row+block)
		}
	}
}

// addBlock subtracts the terms of rows below end.
func (w *switched) addBlock(s *Scheme, key *switchKey, end int) {
	n, from := s.Dim, w.done
	for w.done < len(w.terms) && int(w.terms[w.done].row) < end {
		w.done++
	}
	terms := w.terms[from:w.done]
	if len(terms) == 0 {
		return
	}
	var b uint64
	for _, t := range terms {
		b += uint64(t.digit) * key.b[t.row]
	}
	clear(w.sums)
	for len(terms) >= 4 {
		var rows [4][]uint64
		var f [4]uint64
		for k, t := range terms[:4] {
			rows[k], f[k] = key.row(t, n), uint64(t.digit)
		}
		kernel.AddMultiples(w.sums, rows[0], rows[1], rows[2], rows[3], &f)
		terms = terms[4:]
	}
	for _, t := range terms {
		for k, x := range key.row(t, n) {
			w.sums[k] += uint64(t.digit) * x
		}
	}
	shift := (1<<62/s.Q + 1) * s.Q // sums are below it in magnitude
	for k, x := range w.sums {
		w.sums[k] = x + shift
	}
	s.mod.ReduceVec(w.sums, w.sums)
	s.mod.SubVec(w.a, w.a, w.sums)
	w.b = s.mod.Sub(w.b, s.mod.Reduce(0, b+shift))
}

// exponent is round(2N x/Q) mod 2N, a residue as a turn in units of 2N to the circle, and the
// rounding error d = 2N x - Q round(2N x/Q), an integer in [-Q/2, Q/2].
func (s *Scheme) exponent(x uint64) (turn int, d int64) {
	high, low := bits.Mul64(x, uint64(2*s.N()))
	low, c := bits.Add64(low, s.Q/2, 0)
	quotient, rest := bits.Div64(high+c, low, s.Q)
	return int(quotient) & (2*s.N() - 1), int64(rest) - int64(s.Q/2)
}

// round switches the modulus of w: it sets the turns of all coordinates, in units of 2N to the
// circle.
//
// Rounding changes the phase by sum_i d_i s_i/Q less the error of b. The d_i are public, and each
// s_i has the mean 1/2, so everybody knows the mean sum_i d_i/2 of the sum before the rotation. A
// centred set subtracts the mean from b, which leaves sum_i d_i (s_i - 1/2)/Q:
//
//	round((2N b - sum_i d_i/2)/Q) = floor((4N b - sum_i d_i + Q)/2Q)
//
// The square of s_i - 1/2 is always 1/4, and the square of s_i has the mean 1/2, so subtracting
// halves the variance.
func (w *switched) round(s *Scheme) {
	var sum int64 // |sum| <= n Q/2 < 2^62, which Validate ensures
	for i, x := range w.a {
		var d int64
		w.turns[i], d = s.exponent(x)
		sum += d
	}
	if !s.Centred {
		w.turn, _ = s.exponent(w.b)
		return
	}
	w.turn = s.centred(w.b, sum)
}

// centred is floor((4N b - sum + Q)/2Q) mod 2N, for |sum| < 2^62.
func (s *Scheme) centred(b uint64, sum int64) int {
	high, low := bits.Mul64(uint64(4*s.N()), b+s.Q) // with 2Q 2N added, which is a whole turn and makes it positive
	low, carry := bits.Add64(low, s.Q, 0)
	high += carry
	low, borrow := bits.Sub64(low, uint64(sum), 0)
	high -= borrow + uint64(sum>>63) // the sign of sum in the upper word
	quotient, _ := bits.Div64(high, low, 2*s.Q)
	return int(quotient) & (2*s.N() - 1)
}
