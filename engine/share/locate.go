package share

import "slices"

// Consistent reports whether the shares lie on polynomials of the given degree: for every slot i,
// shares[k][i] must be the share of parties[k]. The result means nothing unless there are more than
// degree+1 parties.
func (s *Shamir) Consistent(degree int, parties []int, shares [][]uint64) bool {
	if len(parties) <= degree+1 {
		return true
	}
	n := len(shares[0])
	want := make([]uint64, n)
	defer clear(want)
	var wrong uint64
	for k := degree + 1; k < len(parties); k++ {
		s.Combine(want, s.Lagrange(s.Point(parties[k]), parties[:degree+1]), shares[:degree+1]...)
		for i, v := range shares[k][:n] {
			wrong |= v ^ want[i]
		}
	}
	return wrong == 0
}

// Faults lists the parties that may have given wrong shares.
type Faults struct {
	Certain  []int // these are wrong in every explanation; ascending
	Possible []int // these are wrong in at least one explanation; ascending
}

// Locate finds the parties whose shares of one value may be wrong, where shares[k] is the share of
// parties[k]. It assumes that at most faults of the shares are wrong and those of the parties in
// honest are right. If the shares lie on a polynomial of the degree, there are no faults. Otherwise
// it tries every minimal explanation: a set of parties without which the others agree, and which
// contains no smaller such set. The parties in all explanations are certain to be at fault. If the
// number of liars plus faults is below len(parties)-degree, the set of liars is the only
// explanation, because the polynomials of two explanations would agree in degree+1 honest shares.
// If no set of at most faults parties explains the shares, the result is empty too. The number of
// sets is exponential in faults.
func (s *Shamir) Locate(parties []int, shares []uint64, degree, faults int, honest ...int) Faults {
	var candidates []int
	for _, p := range parties {
		if !slices.Contains(honest, p) {
			candidates = append(candidates, p)
		}
	}
	var explanations [][]int
	for size := 0; size <= min(faults, len(candidates)); size++ {
		subsets(candidates, size, func(set []int) {
			for _, e := range explanations {
				if contains(set, e) {
					return
				}
			}
			if s.explains(set, parties, shares, degree) {
				explanations = append(explanations, slices.Clone(set))
			}
		})
		if len(explanations) == 1 && size == 0 {
			return Faults{}
		}
	}
	var f Faults
	for _, p := range slices.Sorted(slices.Values(candidates)) {
		in := 0
		for _, e := range explanations {
			if slices.Contains(e, p) {
				in++
			}
		}
		if in > 0 {
			f.Possible = append(f.Possible, p)
		}
		if in > 0 && in == len(explanations) {
			f.Certain = append(f.Certain, p)
		}
	}
	return f
}

// subsets calls f for every subset of the given size, in order. f must not keep the set.
func subsets(of []int, size int, f func(set []int)) {
	set := make([]int, 0, size)
	var grow func(from int)
	grow = func(from int) {
		if len(set) == size {
			f(set)
			return
		}
		for i := from; i < len(of); i++ {
			set = append(set, of[i])
			grow(i + 1)
			set = set[:len(set)-1]
		}
	}
	grow(0)
}

// explains reports whether the shares of all parties outside the set agree.
func (s *Shamir) explains(set, parties []int, shares []uint64, degree int) bool {
	var others []int
	var rest [][]uint64
	for k, p := range parties {
		if !slices.Contains(set, p) {
			others = append(others, p)
			rest = append(rest, shares[k:k+1])
		}
	}
	return s.Consistent(degree, others, rest)
}

func contains(set, subset []int) bool {
	for _, x := range subset {
		if !slices.Contains(set, x) {
			return false
		}
	}
	return true
}
