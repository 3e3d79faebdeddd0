package lwe

import (
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// digits cuts residues into the digits of a gadget with base B = 2^b, exactly: with D = 2^Drop,
//
//	x = sum_j d_j D B^j + r mod Q,  -D/2 <= r < D/2,
//
// where for B >= 4 x stands for the integer of (-Q/2, Q/2), d_j is in [-B/2, B/2) and the last
// digit also takes the carry, and so is in [-B/2, B/2]; for B = 2 x stands for that of [0, Q), and
// digits are bits. With the half D/2 and the middles (B/2) D B^j added, every digit is a field of
// bits of one word.
type digits struct {
	Gadget
	q      uint64
	drop   int
	centre uint64 // added modulo Q, so that residues are in the order of the integers that they stand for
	offset uint64 // added as an integer
	middle uint64 // B/2, or 0 for B = 2
	at     []kernel.Digit
}

func newDigits(g Gadget, q uint64) digits {
	d := digits{Gadget: g, q: q, drop: g.Drop(q)}
	if d.drop > 0 {
		d.offset = 1 << (d.drop - 1)
	}
	if g.LogBase > 1 {
		d.middle = 1 << (g.LogBase - 1)
		d.centre = (q - 1) / 2
		for j := range g.Digits {
			d.offset += d.middle * g.Factor(q, j)
		}
		d.offset -= d.centre // the middle of the last digit alone is 2^(len Q - 1) > (Q-1)/2
	}
	for j := range g.Digits {
		d.at = append(d.at, d.digit(j))
	}
	return d
}

// digit prepares the extraction of digit j.
func (d *digits) digit(j int) kernel.Digit {
	mask := uint64(1)<<d.LogBase - 1
	if j == d.Digits-1 {
		mask = 1<<(64-d.drop-j*d.LogBase) - 1 // everything
	}
	shift := uint64(d.drop + j*d.LogBase)
	return kernel.Digit{Centre: d.centre, Offset: d.offset, Shift: shift, Mask: mask, Middle: d.middle}
}

// signed is digit j of x as an integer.
func (d *digits) signed(x uint64, k *kernel.Digit) int64 {
	x += k.Centre
	if _, below := bits.Sub64(x, d.q, 0); below == 0 {
		x -= d.q
	}
	return int64((x+k.Offset)>>k.Shift&k.Mask) - int64(k.Middle)
}
