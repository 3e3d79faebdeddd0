package lwe

// Blind rotation turns a table by a phase that nobody knows. With c = round(2N b/Q) and c_i =
// round(2N a_i/Q) for a ciphertext (a, b) under the binary s, the accumulator starts as the trivial
// ring ciphertext of X^-c v and takes a step for every coordinate,
//
//	acc <- acc + ((X^c_i - 1) acc) * RGSW(s_i),
//
// which multiplies it by X^c_i if s_i = 1. In the end its phase is X^-(c - sum_i c_i s_i) v, of
// which the constant coefficient is the table's value. The external product of (a, b) with the rows
// of RGSW(s_i) is the sum of the digits of a times the rows of -z s_i g_j, and of those of b times
// the rows of s_i g_j; its phase is s_i (b - a z).

// rotationKey is the expanded rotation key: for each coordinate, row after row, the halves a and b
// in evaluation form, so that a step reads one run of words from the first to the last.
type rotationKey []uint64

func (s *Scheme) newRotationKey() rotationKey {
	return make(rotationKey, 2*s.Dim*s.RotationRows()*s.N())
}

// step is the part of coordinate i.
func (k rotationKey) step(s *Scheme, i int) []uint64 {
	size := 2 * s.RotationRows() * s.N()
	return k[i*size : (i+1)*size]
}

// expand fills in coordinate i. buffer holds the words of RotationRows polynomials.
func (k rotationKey) expand(s *Scheme, keys *Keys, i int, buffer []uint64) {
	n := s.N()
	s.UniformRotation(buffer, &keys.Seed, i)
	step := k.step(s, i)
	for r := range s.RotationRows() {
		copy(step[2*r*n:], buffer[r*n:(r+1)*n])
		copy(step[(2*r+1)*n:], keys.RotationRow(i, r))
	}
}

// accumulator is the ring ciphertext of a blind rotation.
type accumulator [2][]uint64

func (s *Scheme) newAccumulator() accumulator {
	return accumulator{make([]uint64, s.N()), make([]uint64, s.N())}
}

// rotator is the working memory of steps.
type rotator struct{ turned, digit, sums [2][]uint64 }

func (s *Scheme) newRotator() (r rotator) {
	for half := range 2 {
		r.turned[half], r.digit[half], r.sums[half] = make([]uint64, s.N()), make([]uint64, s.N()), make([]uint64, s.N())
	}
	return r
}

// turn sets dst = X^e x - less x for e in [0, 2N), where less is 0 or 1. dst must not be x.
func (s *Scheme) turn(dst, x []uint64, e int, less bool) {
	n := s.N()
	negative := e >= n // X^N = -1
	if negative {
		e -= n
	}
	upper, lower := dst[e:], dst[:e]
	switch {
	case !less && !negative:
		copy(upper, x)
		s.mod.NegVec(lower, x[n-e:])
	case !less:
		s.mod.NegVec(upper, x)
		copy(lower, x[n-e:])
	case !negative:
		s.mod.SubVec(upper, x, x[e:])
		s.mod.AddVec(lower, x[n-e:], x)
		s.mod.NegVec(lower, lower)
	default:
		s.mod.AddVec(upper, x, x[e:])
		s.mod.NegVec(upper, upper)
		s.mod.SubVec(lower, x[n-e:], x)
	}
}

// start sets acc to the trivial ciphertext of X^-c v.
func (s *Scheme) start(acc accumulator, t *Table, c int) {
	clear(acc[0])
	s.turn(acc[1], t.v, (2*s.N()-c)&(2*s.N()-1), false)
}

// step multiplies the phase of acc by X^(e s_i), with the rows of coordinate i. It takes the same
// digit of both halves at a time, and reduces the sum of their products once.
func (r *rotator) step(s *Scheme, acc accumulator, rows []uint64, e int) {
	n, count := s.N(), s.Set.Rotation.Digits
	for half, x := range acc {
		s.turn(r.turned[half], x, e, true)
	}
	for j := range s.rotation.at {
		for half, x := range r.turned {
			s.mod.DigitVec(r.digit[half], x, &s.rotation.at[j])
			s.ntt.Forward(r.digit[half], r.digit[half])
		}
		a, b := rows[2*j*n:], rows[2*(count+j)*n:]
		for half, sum := range r.sums {
			if j == 0 {
				s.mod.MulSumVec(sum, r.digit[0], a[half*n:], r.digit[1], b[half*n:])
				continue
			}
			s.mod.MulAddVec(sum, r.digit[0], a[half*n:])
			s.mod.MulAddVec(sum, r.digit[1], b[half*n:])
		}
	}
	for half, x := range acc {
		s.ntt.Inverse(r.sums[half], r.sums[half])
		s.mod.AddVec(x, x, r.sums[half])
	}
}
