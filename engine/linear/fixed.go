package linear

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Fixed encodes real numbers and bounded integers as residues modulo T. x is encoded as round(x
// 2^Fraction), at most Most in magnitude, and a negative integer as T minus its magnitude. The
// fraction of a product is the sum of both fractions.
type Fixed struct {
	T        uint64
	Fraction uint   // bits after the point
	Most     uint64 // largest magnitude of an integer
}

// maxFraction is the largest number of bits after the point.
const maxFraction = 62

// Fixed returns an encoding of numbers of at most bits bits, including the sign and the fraction.
// The error wraps [ErrRange].
func (s *Set) Fixed(bits, fraction uint) (Fixed, error) {
	//lodge:check linear/fixed [drop=uint64(1)<<(bits-1) > s.T/2] numbers do not fit T
	if bits < 1 || bits > 63 || fraction > maxFraction || uint64(1)<<(bits-1) > s.T/2 {
		return Fixed{}, fmt.Errorf("%w: numbers of %d bits, %d after the point, modulo %d", ErrRange, bits, fraction, s.T)
	}
	return Fixed{T: s.T, Fraction: fraction, Most: 1<<(bits-1) - 1}, nil
}

// Product returns the encoding of sums of the given number of products of two numbers. The error
// wraps [ErrRange] if a sum may leave the range (-T/2, T/2) and so decode to a different number.
func (x Fixed) Product(y Fixed, terms int) (Fixed, error) {
	shape := ProductShape{Inner: terms, MaxLeft: x.Most, MaxRight: y.Most}
	//lodge:check linear/fixed-product [drop=x.T != y.T] [drop=x.Fraction+y.Fraction > maxFraction]
	//  products of different formats are mixed
	if x.T != y.T || terms < 1 || x.Fraction+y.Fraction > maxFraction {
		return Fixed{}, fmt.Errorf("%w: %d products of %+v and %+v", ErrRange, terms, x, y)
	}
	//lodge:check linear/fixed-sum sums of products wrap around T
	if _, _, err := shape.fits(x.T); err != nil {
		return Fixed{}, err
	}
	return Fixed{T: x.T, Fraction: x.Fraction + y.Fraction, Most: uint64(terms) * x.Most * y.Most}, nil
}

// RangeError reports the position of an entry out of range, and never its value. It wraps
// [ErrRange].
type RangeError struct {
	Index     int // of the entry, from 0
	Low, High float64
	What, Of  string
}

func (e *RangeError) Error() string {
	plain := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	return fmt.Sprintf("%v: %s %d%s is not in [%s, %s]", ErrRange, e.What, e.Index, e.Of, plain(e.Low), plain(e.High))
}

// Unwrap returns [ErrRange].
func (e *RangeError) Unwrap() error { return ErrRange }

// out returns the error for a number that is out of range.
func (x Fixed) out(what string) error {
	most := math.Ldexp(float64(x.Most), -int(x.Fraction))
	return &RangeError{Low: -most, High: most, What: what}
}

// at adds the entry's position to an error.
func at(err error, i int) error {
	var out *RangeError
	if errors.As(err, &out) {
		out.Index = i
	}
	return err
}

// EncodeAll encodes each number of a slice.
func (x Fixed) EncodeAll(dst []uint64, v []float64) (err error) {
	for i := range dst {
		if dst[i], err = x.Encode(v[i]); err != nil {
			return at(err, i)
		}
	}
	return nil
}

// DecodeAll decodes each residue of a slice.
func (x Fixed) DecodeAll(dst []float64, v []uint64) (err error) {
	for i := range dst {
		if dst[i], err = x.Decode(v[i]); err != nil {
			return at(err, i)
		}
	}
	return nil
}

// Integer returns the residue of an integer that is already scaled. The error is a [*RangeError].
func (x Fixed) Integer(v int64) (uint64, error) {
	//lodge:check linear/fixed-integer [swap=magnitude(v) > x.Most=>v > int64(x.Most)] an integer
	//  below the range passes
	if magnitude(v) > x.Most {
		return 0, &RangeError{Low: -float64(x.Most), High: float64(x.Most), What: "integer"}
	}
	if v < 0 {
		return x.T - magnitude(v), nil
	}
	return uint64(v), nil
}

// Encode returns the residue of a number, rounded to nearest. The error is a [*RangeError] if the
// number is too large, infinite or NaN.
func (x Fixed) Encode(v float64) (uint64, error) {
	r := math.Round(math.Ldexp(v, int(x.Fraction)))
	//lodge:check linear/fixed-number [swap=!(math.Abs(r) <= float64(x.Most))=>math.Abs(r) >
	//  float64(x.Most)] [redundant=NaN converts to the smallest integer on amd64, which is
	//  rejected] NaN passes
	if !(math.Abs(r) <= float64(x.Most)) || math.Abs(r) >= 1<<63 {
		return 0, x.out("number")
	}
	return x.Integer(int64(r))
}

// Signed returns the integer of a residue. The error is a [*RangeError] if the residue is out of
// range.
func (x Fixed) Signed(v uint64) (int64, error) {
	negative := v > x.T/2
	if negative && v < x.T {
		v = x.T - v
	}
	//lodge:check linear/fixed-residue [swap=v > x.Most=>v > x.Most && !negative] a residue outside
	//  the range passes
	if v > x.Most {
		return 0, &RangeError{Low: -float64(x.Most), High: float64(x.Most), What: "the integer of residue"}
	}
	if negative {
		return -int64(v), nil
	}
	return int64(v), nil
}

// Decode returns the number of a residue. The error is a [*RangeError] if the residue is out of
// range.
func (x Fixed) Decode(v uint64) (float64, error) {
	r, err := x.Signed(v)
	return math.Ldexp(float64(r), -int(x.Fraction)), err
}
