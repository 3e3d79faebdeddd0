package maccheck

import (
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
)

// strategy describes the cheating party, which may speak last: it shifts Y by e0 + e1 Y and m by d0
// + d1 Y + d2 m, where Y and m are the honest party's broadcast. Errors in the product or the MAC
// of the check triple, and the z that it commits to, add a term that it knows before it sees z, and
// need no enumeration.
type strategy struct{ e0, e1, d0, d1, d2 field.Element }

// errors returns the shifts of Y and m after the honest party's broadcast.
func (s *strategy) errors(f *tiny, y, m field.Element) (eps, delta field.Element) {
	eps, delta, t := f.NewElement(), f.NewElement(), f.NewElement()
	f.Mul(eps, s.e1, y)
	f.Add(eps, eps, s.e0)
	f.Mul(delta, s.d1, y)
	f.Add(delta, delta, s.d0)
	f.Mul(t, s.d2, m)
	f.Add(delta, delta, t)
	return eps, delta
}

// view is the adversary's whole view of one combination: the honest party's Y, m and z, by value.
type view struct{ y, m, z int }

// tiny is a field that can be enumerated.
type tiny struct {
	*field.Field
	elements []field.Element
	index    map[string]int
}

func newTiny(t *testing.T) *tiny {
	t.Helper()
	f, err := field.Small(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	x := &tiny{Field: f, index: map[string]int{}}
	for i := range 5 {
		e := f.NewElement()
		f.SetUint64(e, uint64(i))
		x.elements = append(x.elements, e)
		x.index[x.key(e)] = i
	}
	if len(x.index) != 5 {
		t.Fatal("not a field of five elements")
	}
	return x
}

func (f *tiny) key(e field.Element) string {
	b := make([]byte, f.Size())
	f.Encode(b, e)
	return string(b)
}

func (f *tiny) of(e field.Element) int { return f.index[f.key(e)] }

func (f *tiny) vec(e field.Element) field.Vec {
	v := f.NewVec(1)
	copy(v.At(0), e)
	return v
}

// play runs one check under a MAC key for all randomness of the honest party, with the package's
// arithmetic, and counts the views and the sigmas, which the replaced check opened. The shares of
// the cheating party are zero except for its errors. This loses no generality, because it knows
// them.
func (f *tiny) play(alpha field.Element, s strategy) (views map[view]int, sigmas [5]int) {
	views = map[view]int{}
	mac, c, gamma, m, z := f.NewElement(), f.NewElement(), f.NewElement(), f.NewElement(), f.NewElement()
	opened, sum, sigma := f.NewElement(), f.NewElement(), f.NewElement()
	for _, y := range f.elements { // uniform, because of the mask
		for _, a := range f.elements {
			for _, b := range f.elements {
				f.Mul(mac, alpha, y)
				f.Mul(c, a, b)
				f.Mul(gamma, alpha, b)
				honest := Triple{A: f.vec(a), B: f.vec(b), C: f.vec(c), MACB: f.vec(gamma)}
				honest.hide(f.Field, m, mac)
				eps, delta := s.errors(f, y, m)
				f.Add(opened, y, eps)
				f.Add(sum, m, delta)
				honest.multiply(f.Field, z, opened, sum)
				views[view{f.of(y), f.of(m), f.of(z)}]++
				f.Mul(sigma, alpha, eps)
				f.Sub(sigma, delta, sigma)
				sigmas[f.of(sigma)]++
			}
		}
	}
	return views, sigmas
}

// strategies lists all constant errors, and many that depend on the honest party's broadcast.
func (f *tiny) strategies() (list []strategy) {
	for _, e0 := range f.elements {
		for _, e1 := range f.elements {
			for _, d0 := range f.elements {
				for _, d1 := range f.elements[:3] {
					for _, d2 := range f.elements[:2] {
						list = append(list, strategy{e0, e1, d0, d1, d2})
					}
				}
			}
		}
	}
	return list
}

// If the MAC is wrong, at most one alpha passes for any strategy and any view of the adversary. The
// view under all other alphas has the same distribution, so a failure tells only that one guess of
// alpha was wrong.
func TestFailureHidesAlpha(t *testing.T) {
	f := newTiny(t)
	leaks := 0 // strategies for which sigma tells two alphas apart that both fail
	for _, s := range f.strategies() {
		var views [5]map[view]int
		var sigmas [5][5]int
		for i, alpha := range f.elements {
			views[i], sigmas[i] = f.play(alpha, s)
		}
		for y := range 5 {
			for m := range 5 {
				f.checkOpening(t, s, y, m, views)
			}
		}
		if sigmas[1] != sigmas[2] && sigmas[1][0] == 0 && sigmas[2][0] == 0 {
			leaks++
		}
	}
	if leaks == 0 {
		t.Error("opening sigma does not leak: the experiment shows nothing")
	}
}

// checkOpening compares the views of z under all alphas, after the honest party has broadcast y and
// m.
func (f *tiny) checkOpening(t *testing.T, s strategy, y, m int, views [5]map[view]int) {
	t.Helper()
	eps, delta := s.errors(f, f.elements[y], f.elements[m])
	if f.IsZero(eps) && f.IsZero(delta) {
		return // nothing is wrong
	}
	x, right := f.NewElement(), 0
	for i, alpha := range f.elements {
		f.Mul(x, alpha, eps)
		guessed := f.Equal(x, delta)
		if guessed {
			right++
		}
		for z := range 5 {
			// Five values of b lead to this y and m. Under a wrong guess each leads to another z,
			// so any commitment passes for one of the five. Under the right guess z is zero.
			want := 1
			if guessed {
				want = map[bool]int{true: 5}[z == 0]
			}
			if got := views[i][view{y, m, z}]; got != want {
				t.Fatalf("alpha %d after %d and %d: z = %d is seen %d times, want %d", i, y, m, z, got, want)
			}
		}
	}
	if right > 1 {
		t.Fatalf("%d alphas pass", right)
	}
}
