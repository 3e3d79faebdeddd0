package lwe

import (
	"fmt"
	"math/bits"
)

// Encoding says where on the circle of phases, the residues modulo Q, a message lies.
type Encoding uint8

const (
	// Plain has m in Z_p at round(Q m/p). Sums of messages wrap around. Threshold decryption opens
	// plain messages.
	Plain Encoding = iota + 1
	// Padded has m in [0, p) at round(Q m/2p): the bit above m is 0. Lookups take and return padded
	// messages. Sums must stay below p; twice a padded ciphertext is a plain one.
	Padded
	// Boolean has false at -Q/8 and true at Q/8. Gates take and return Boolean messages. As a plain
	// message it is -p/8 or p/8 mod p.
	Boolean
)

// String names the encoding.
func (e Encoding) String() string {
	switch e {
	case Plain:
		return "plain"
	case Padded:
		return "padded"
	case Boolean:
		return "boolean"
	}
	return fmt.Sprintf("Encoding(%d)", uint8(e))
}

// rounded is round(Q m/2^k) for m <= 2^k <= 2^10.
func (s *Scheme) rounded(m uint64, k int) uint64 {
	high, low := bits.Mul64(s.Q, m)
	low, c := bits.Add64(low, 1<<k>>1, 0)
	high += c
	return high<<(64-k) | low>>k
}

// eighth is round(Q/8).
func (s *Scheme) eighth() uint64 { return s.rounded(1, 3) }

// Encode returns the phase of a message, which is 0 or 1 for Boolean. The error wraps ErrMessage.
// The message may be secret: the running time depends on it only if it is rejected.
func (s *Scheme) Encode(m uint64, e Encoding) (uint64, error) {
	k := bits.Len64(s.P) - 1
	limit := s.P
	switch e {
	case Plain:
	case Padded:
		k++
	case Boolean:
		limit = 2
	default:
		return 0, fmt.Errorf("%w: %v", ErrMessage, e)
	}
	if m >= limit {
		return 0, fmt.Errorf("%w: not below %d in the %v encoding", ErrMessage, limit, e)
	}
	if e == Boolean {
		eighth := s.eighth()
		return s.mod.Add(s.Q-eighth, 2*eighth&-m), nil
	}
	return s.rounded(m, k), nil
}

// Decode returns the message nearest to a phase, from 0 to p-1. No padded message has a phase in
// the upper half of the circle; there Decode returns the message modulo p, as for the phase of m -
// p.
func (s *Scheme) Decode(phase uint64, e Encoding) uint64 {
	if e == Boolean {
		_, lower := bits.Sub64(phase, (s.Q+1)/2, 0)
		return lower
	}
	parts := s.P
	if e == Padded {
		parts *= 2
	}
	// round(parts phase/Q) mod parts
	high, low := bits.Mul64(phase, parts)
	low, c := bits.Add64(low, s.Q/2, 0)
	quotient, _ := bits.Div64(high+c, low, s.Q)
	return quotient & (s.P - 1)
}
