package masks

import (
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/ot"
)

// modulus is what the shares of one bit are modulo: a power of two, or an odd p times one. Transfers are modulo half of
// it, if it is even, as their shares count twice.
type modulus struct {
	m     uint64
	width int // of what is transferred, in bits
	// Of an odd p. With a power of two, m is not needed before the end: words wrap around.
	odd  bool
	half uint64 // what transfers are modulo
	ot   ot.Residues
}

// moduli are those of the bits of r or rho, and of d.
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

// correctionWidth is the size of a correction for bit p: of a residue modulo half of what the shares are modulo.
func (k Kind) correctionWidth(p int) int {
	w := k.widths()[p]
	if k.Odd != 0 && p == k.LogPhi { // d, modulo an odd number, which has no half
		return w
	}
	return w - 1
}

// once gives v mod m for v < 2m.
func once(v, m uint64) uint64 {
	d := v - m
	return d + m&uint64(int64(d)>>63)
}

// reduce gives v mod m, for v < 2m if p is odd.
func (m *modulus) reduce(v uint64) uint64 {
	if m.odd {
		return once(v, m.m)
	}
	return v & (m.m - 1)
}

// send gives out transfers with the correlations b; u and c are as package ot has them.
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

// receive is the other side of send.
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
		twice := 2 * u[i] // less than m, or than 2m if that is odd
		if m.half == m.m {
			twice = once(twice, m.m)
		}
		b[i] = once(b[i]+m.m-twice, m.m)
	}
}

// residues reports whether all of v, which have the right width, are residues of what is transferred.
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
