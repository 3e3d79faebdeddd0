package masks

import (
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/ot"
)

// modulus describes arithmetic on the shares of one bit, modulo a power of two or an odd p times a
// power of two. If the modulus is even, transfers are modulo half the modulus, because their shares
// are doubled.
type modulus struct {
	m     uint64
	width int // of a transferred value, in bits
	// odd is true for an odd p. For a power of two, m is only needed at the end, because words wrap
	// around.
	odd  bool
	half uint64 // the modulus of transfers
	ot   ot.Residues
}

// moduli returns the moduli for the bits of r or rho, and for d.
func (k Kind) moduli() (list []modulus, err error) {
	for p := range k.widths() {
		m := modulus{m: k.P(), width: k.correctionWidth(p), odd: k.Odd != 0}
		if p < k.LogPhi {
			m.m = k.Eta() >> p
		}
		m.half = m.m >> (1 - m.m&1)
		if m.odd {
			if m.ot, err = ot.NewResidues(m.half); err != nil {
				return nil, err
			}
		}
		list = append(list, m)
	}
	return list, nil
}

// correctionWidth returns the bits of a correction for bit p: a residue modulo half of the modulus
// of the shares.
func (k Kind) correctionWidth(p int) int {
	w := k.widths()[p]
	if k.Odd != 0 && p == k.LogPhi { // d: the modulus is odd and has no half
		return w
	}
	return w - 1
}

// once returns v mod m for v < 2m.
func once(v, m uint64) uint64 {
	d := v - m
	return d + m&uint64(int64(d)>>63)
}

// reduce returns v mod m; if p is odd, v must be less than 2m.
func (m *modulus) reduce(v uint64) uint64 {
	if m.odd {
		return once(v, m.m)
	}
	return v & (m.m - 1)
}

// send consumes transfers with the correlations b; u and c are as in package ot.
func (m *modulus) send(batch *ot.SenderBatch, u, c, b []uint64) error {
	if !m.odd {
		return batch.Words(u, c, b, m.width)
	}
	for i, v := range b {
		c[i] = v
		if m.half < m.m {
			c[i] = once(v, m.half)
		}
	}
	return batch.Residues(u, c, c, m.ot)
}

// receive is the receiver's counterpart of send.
func (m *modulus) receive(batch *ot.ReceiverBatch, v, c []uint64) error {
	if !m.odd {
		return batch.Words(v, c, m.width)
	}
	return batch.Residues(v, c, m.ot)
}

// subtractTwice sets b to b - 2u, for shares u of a transfer.
func (m *modulus) subtractTwice(b, u []uint64) {
	if !m.odd {
		for i := range b {
			b[i] -= 2 * u[i]
		}
		return
	}
	for i := range b {
		twice := 2 * u[i] // less than m, or less than 2m if m is odd
		if m.half == m.m {
			twice = once(twice, m.m)
		}
		b[i] = once(b[i]+m.m-twice, m.m)
	}
}

// residues reports whether all values of v, which have the right width, are residues modulo half.
func (m *modulus) residues(v []uint64) bool {
	if !m.odd {
		return true
	}
	var above uint64
	for _, x := range v {
		_, below := bits.Sub64(x, m.half, 0)
		above |= 1 - below
	}
	return above == 0
}
