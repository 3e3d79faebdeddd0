package linear

import (
	"fmt"
	"math"
)

// Fixed is how real numbers and integers of a range are residues modulo T: x is round(x 2^Fraction), at most Most in
// magnitude, and negative integers are T minus theirs. Products have the sum of both fractions.
type Fixed struct {
	T        uint64
	Fraction uint   // bits behind the point
	Most     uint64 // largest magnitude of an integer
}

// maxFraction is the largest number of bits behind the point.
const maxFraction = 62

// Fixed prepares numbers of at most bits bits, the sign and the fraction included. The error wraps ErrRange.
func (s *Set) Fixed(bits, fraction uint) (Fixed, error) {
	if bits < 1 || bits > 63 || fraction > maxFraction || uint64(1)<<(bits-1) > s.T/2 {
		return Fixed{}, fmt.Errorf("%w: numbers of %d bits, %d behind the point, modulo %d", ErrRange, bits, fraction, s.T)
	}
	return Fixed{T: s.T, Fraction: fraction, Most: 1<<(bits-1) - 1}, nil
}

// Product is the encoding of sums of so many products of two numbers. The error wraps ErrRange if a sum may be out of
// the range (-T/2, T/2), so that it would come out as another number.
func (x Fixed) Product(y Fixed, terms int) (Fixed, error) {
	shape := ProductShape{Inner: terms, MaxLeft: x.Most, MaxRight: y.Most}
	if x.T != y.T || terms < 1 || x.Fraction+y.Fraction > maxFraction {
		return Fixed{}, fmt.Errorf("%w: %d products of %+v and %+v", ErrRange, terms, x, y)
	}
	if _, _, err := shape.fits(x.T); err != nil {
		return Fixed{}, err
	}
	return Fixed{T: x.T, Fraction: x.Fraction + y.Fraction, Most: uint64(terms) * x.Most * y.Most}, nil
}

// Integer is the residue of an integer that is scaled already. The error wraps ErrRange.
func (x Fixed) Integer(v int64) (uint64, error) {
	if magnitude(v) > x.Most {
		return 0, fmt.Errorf("%w: an integer is beyond %d", ErrRange, x.Most)
	}
	if v < 0 {
		return x.T - magnitude(v), nil
	}
	return uint64(v), nil
}

// Encode is the residue of a number, rounded to the nearest. The error wraps ErrRange for one that is too large,
// infinite or none.
func (x Fixed) Encode(v float64) (uint64, error) {
	r := math.Round(math.Ldexp(v, int(x.Fraction)))
	if !(math.Abs(r) <= float64(x.Most)) || math.Abs(r) >= 1<<63 {
		return 0, fmt.Errorf("%w: a number is not below 2^%d times %d", ErrRange, -int(x.Fraction), x.Most)
	}
	return x.Integer(int64(r))
}

// Signed is the integer of a residue. The error wraps ErrRange for one that is out of the range.
func (x Fixed) Signed(v uint64) (int64, error) {
	negative := v > x.T/2
	if negative && v < x.T {
		v = x.T - v
	}
	if v > x.Most {
		return 0, fmt.Errorf("%w: a residue is that of no integer of at most %d", ErrRange, x.Most)
	}
	if negative {
		return -int64(v), nil
	}
	return int64(v), nil
}

// Decode is the number of a residue. The error wraps ErrRange for one that is out of the range.
func (x Fixed) Decode(v uint64) (float64, error) {
	r, err := x.Signed(v)
	return math.Ldexp(float64(r), -int(x.Fraction)), err
}
